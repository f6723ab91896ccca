/* gyre.Writer: an object that comes in pieces and is seen only once it is committed. */
#include "module.h"

struct writer {
    PyObject_HEAD struct gyre_put *put; /* NULL: committed or aborted */
    bool busy;                          /* a thread is in the library with it */
};

PyObject *gyrepy_writer_new(struct gyrepy_state *state, struct gyre_put *put)
{
    struct writer *self = PyObject_New(struct writer, state->writer);
    if (self == NULL) {
        gyre_put_abort(&put);
        return NULL;
    }
    self->put = put;
    self->busy = false;
    return (PyObject *)self;
}

/* Begins something with the put. False: raised, it is ended or another thread is at it. */
static bool take(struct writer *self)
{
    if (self->put == NULL)
        PyErr_SetString(PyExc_ValueError, "the writer is committed or aborted");
    else if (self->busy)
        PyErr_SetString(PyExc_RuntimeError, "another thread uses this writer");
    else
        self->busy = true;
    return !PyErr_Occurred();
}

/* None, or NULL (raised). */
static PyObject *outcome(struct writer *self, gyre_err err)
{
    if (err == GYRE_OK)
        Py_RETURN_NONE;
    gyrepy_raise(gyrepy_state_of(Py_TYPE(self)), err, NULL);
    return NULL;
}

static PyObject *write_bytes(PyObject *object, PyObject *given)
{
    struct writer *self = (struct writer *)object;
    Py_buffer view;
    if (PyObject_GetBuffer(given, &view, PyBUF_SIMPLE) < 0)
        return NULL;
    PyObject *result = NULL;
    if (take(self)) {
        gyre_err err;
        Py_BEGIN_ALLOW_THREADS err = gyre_put_write(self->put, view.buf, (size_t)view.len);
        Py_END_ALLOW_THREADS self->busy = false;
        result = outcome(self, err);
    }
    PyBuffer_Release(&view);
    return result;
}

static PyObject *set_meta(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"meta", "etag_hash", "expires", NULL};
    struct writer *self = (struct writer *)object;
    Py_buffer meta;
    unsigned long long etag_hash = 0;
    unsigned int expires = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "y*|$KI:set_meta", names, &meta, &etag_hash,
                                     &expires))
        return NULL;
    PyObject *result = NULL;
    if (take(self)) {
        gyre_err err = gyre_put_set_meta(self->put, meta.buf, (size_t)meta.len, etag_hash, expires);
        self->busy = false;
        result = outcome(self, err);
    }
    PyBuffer_Release(&meta);
    return result;
}

static PyObject *commit(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    struct writer *self = (struct writer *)object;
    if (!take(self))
        return NULL;
    struct gyre_put *put = self->put;
    self->put = NULL;
    self->busy = false;
    uint64_t serial;
    gyre_err err;
    Py_BEGIN_ALLOW_THREADS err = gyre_put_commit(&put, &serial);
    Py_END_ALLOW_THREADS return err == GYRE_OK ? PyLong_FromUnsignedLongLong(serial)
                                               : outcome(self, err);
}

static PyObject *abort_put(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    struct writer *self = (struct writer *)object;
    if (self->put != NULL && !take(self))
        return NULL;
    self->busy = false;
    gyre_put_abort(&self->put);
    Py_RETURN_NONE;
}

static PyObject *enter(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    return Py_NewRef(object);
}

static PyObject *leave(PyObject *object, PyObject *args)
{
    struct writer *self = (struct writer *)object;
    PyObject *type, *value, *traceback;
    if (!PyArg_ParseTuple(args, "OOO:__exit__", &type, &value, &traceback))
        return NULL;
    if (type != Py_None)
        return abort_put(object, NULL);
    if (self->put == NULL) /* committed or aborted inside the block */
        Py_RETURN_NONE;
    PyObject *serial = commit(object, NULL);
    if (serial == NULL)
        return NULL;
    Py_DECREF(serial);
    Py_RETURN_NONE;
}

static void dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    gyre_put_abort(&((struct writer *)object)->put);
    PyObject_Free(object);
    Py_DECREF(type);
}

static PyMethodDef methods[] = {
    {"write", write_bytes, METH_O, "write(bytes): appends."},
    {"set_meta", (PyCFunction)(void (*)(void))set_meta, METH_VARARGS | METH_KEYWORDS,
     "set_meta(meta, *, etag_hash=0, expires=0): replaces what was given at the beginning."},
    {"commit", commit, METH_NOARGS, "commit(): publishes the object, whole; returns its serial."},
    {"abort", abort_put, METH_NOARGS, "abort(): drops what was written."},
    {"__enter__", enter, METH_NOARGS, NULL},
    {"__exit__", leave, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "An object that comes in pieces. Nothing of it is seen before commit."},
    {Py_tp_methods, methods},
    {Py_tp_dealloc, dealloc},
    {0, NULL},
};

PyType_Spec gyrepy_writer_spec = {
    .name = "gyre.Writer",
    .basicsize = sizeof(struct writer),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};
