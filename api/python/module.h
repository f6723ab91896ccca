/* What the files of the Python module share: its types, its exception, and how a call into the
 * library gives up the interpreter.
 *
 * Threads: everything here runs with the interpreter's lock held, except what stands between
 *          Py_BEGIN_ALLOW_THREADS and Py_END_ALLOW_THREADS: there only the library is called.
 */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <gyre.h>

/* One for each interpreter that imports the module. */
struct gyrepy_state {
    PyObject *error; /* gyre.Error */
    PyTypeObject *key, *store, *object, *piece, *writer;
};

extern struct PyModuleDef gyrepy_module;

/* The state behind a type of this module. */
struct gyrepy_state *gyrepy_state_of(PyTypeObject *type);

/* Raises gyre.Error for `err`, with `message` or, if NULL, the error's own sentence. */
void gyrepy_raise(struct gyrepy_state *state, gyre_err err, const char *message);

/* ---- Keys: key.c ---- */

extern PyType_Spec gyrepy_key_spec;

/* A key from what a caller gave: a gyre.Key, or the bytes or text of a name. False: raised. */
bool gyrepy_key_from(struct gyrepy_state *state, PyObject *given, struct gyre_key *key_out);

/* ---- Stores: store.c ---- */

extern PyType_Spec gyrepy_store_spec;

struct gyrepy_store;

/* Begins a call into the library: the open store, or NULL (raised: it is closed). While calls are
 * under way gyrepy_leave is owed for each, and close waits. */
struct gyre_store *gyrepy_enter(struct gyrepy_store *store);
void gyrepy_leave(struct gyrepy_store *store);

/* The options a put takes, as keywords; see the module's text. */
struct gyrepy_put_arguments {
    Py_buffer meta;
    PyObject *if_serial; /* lent: None or an integer */
    unsigned long created, expires;
    unsigned long long etag_hash;
    int if_absent, sync;
};

/* Fills put options from arguments. False: raised. */
bool gyrepy_put_options(const struct gyrepy_put_arguments *arguments,
                        struct gyre_put_options *options_out);

/* ---- Objects: object.c ---- */

extern PyType_Spec gyrepy_object_spec, gyrepy_piece_spec;

/* Makes a gyre.Object of a handle, which it owns from then on (released on failure). */
PyObject *gyrepy_object_new(struct gyrepy_state *state, struct gyre_handle *handle);

/* ---- Writers: writer.c ---- */

extern PyType_Spec gyrepy_writer_spec;

/* Makes a gyre.Writer of a put, which it owns from then on (aborted on failure). */
PyObject *gyrepy_writer_new(struct gyrepy_state *state, struct gyre_put *put);
