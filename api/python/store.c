/* gyre.Store: an open store. Calls give up the interpreter's lock while they are in the library;
 * close lets no new ones in and waits for those under way. */
#include "module.h"

#include <pthread.h>

struct gyrepy_store {
    PyObject_HEAD struct gyre_store *store; /* NULL: closed */
    pthread_mutex_t lock;
    pthread_cond_t idle;
    long calls; /* under way; under `lock` */
};

struct gyre_store *gyrepy_enter(struct gyrepy_store *self)
{
    pthread_mutex_lock(&self->lock);
    struct gyre_store *store = self->store;
    if (store != NULL)
        self->calls++;
    pthread_mutex_unlock(&self->lock);
    if (store == NULL)
        gyrepy_raise(gyrepy_state_of(Py_TYPE(self)), GYRE_CLOSED, NULL);
    return store;
}

void gyrepy_leave(struct gyrepy_store *self)
{
    pthread_mutex_lock(&self->lock);
    if (--self->calls == 0)
        pthread_cond_broadcast(&self->idle);
    pthread_mutex_unlock(&self->lock);
}

/* Takes the store away, once no call is under way. Without the interpreter's lock. */
static gyre_err shut(struct gyrepy_store *self, uint32_t timeout_ms)
{
    pthread_mutex_lock(&self->lock);
    struct gyre_store *store = self->store;
    self->store = NULL;
    while (self->calls > 0)
        pthread_cond_wait(&self->idle, &self->lock);
    pthread_mutex_unlock(&self->lock);
    return store != NULL ? gyre_close(&store, timeout_ms) : GYRE_OK;
}

static bool mode_of(const char *name, enum gyre_open_mode *mode_out)
{
    static const char *const names[] = {
        [GYRE_OPEN_OR_CREATE] = "open-or-create",
        [GYRE_OPEN_EXISTING] = "existing",
        [GYRE_OPEN_RESET] = "reset",
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(name, names[i]) == 0) {
            *mode_out = (enum gyre_open_mode)i;
            return true;
        }
    }
    PyErr_Format(PyExc_ValueError,
                 "unknown mode '%.50s'; there are open-or-create, existing and reset", name);
    return false;
}

static PyObject *new (PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"path", "size", "mode", "sync_interval_ms", "average_object", NULL};
    PyObject *path = NULL;
    unsigned long long size = 0;
    const char *mode = "open-or-create";
    struct gyre_options options;
    gyre_options_init(&options);
    unsigned int sync_interval_ms = options.sync_interval_ms, average = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&|K$sII:Store", names, PyUnicode_FSConverter,
                                     &path, &size, &mode, &sync_interval_ms, &average))
        return NULL;
    struct gyrepy_store *self = NULL;
    if (!mode_of(mode, &options.mode))
        goto out;
    struct gyre_data_dir dir = {.path = PyBytes_AsString(path)};
    options.dirs = &dir;
    options.n_dirs = 1;
    options.size_bytes = size;
    options.sync_interval_ms = sync_interval_ms;
    options.average_object_bytes = average;
    char message[512] = "";
    struct gyre_store *store;
    gyre_err err;
    Py_BEGIN_ALLOW_THREADS err = gyre_open(&options, &store, message, sizeof message);
    Py_END_ALLOW_THREADS if (err != GYRE_OK)
    {
        gyrepy_raise(gyrepy_state_of(type), err, message);
        goto out;
    }
    self = (struct gyrepy_store *)type->tp_alloc(type, 0);
    if (self == NULL) {
        (void)!gyre_close(&store, 0);
        goto out;
    }
    self->store = store;
    pthread_mutex_init(&self->lock, NULL);
    pthread_cond_init(&self->idle, NULL);
out:
    Py_XDECREF(path);
    return (PyObject *)self;
}

static void dealloc(PyObject *object)
{
    enum { TIMEOUT_MS = 10000 };
    struct gyrepy_store *self = (struct gyrepy_store *)object;
    PyTypeObject *type = Py_TYPE(object);
    Py_BEGIN_ALLOW_THREADS(void) !shut(self, TIMEOUT_MS);
    Py_END_ALLOW_THREADS pthread_cond_destroy(&self->idle);
    pthread_mutex_destroy(&self->lock);
    type->tp_free(object);
    Py_DECREF(type);
}

static PyObject *close_store(PyObject *object, PyObject *args)
{
    unsigned int timeout_ms = 10000;
    if (!PyArg_ParseTuple(args, "|I:close", &timeout_ms))
        return NULL;
    gyre_err err;
    Py_BEGIN_ALLOW_THREADS err = shut((struct gyrepy_store *)object, timeout_ms);
    Py_END_ALLOW_THREADS if (err != GYRE_OK)
    {
        gyrepy_raise(gyrepy_state_of(Py_TYPE(object)), err, NULL);
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *enter(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    return Py_NewRef(object);
}

static PyObject *leave(PyObject *object, PyObject *Py_UNUSED(args))
{
    PyObject *none = PyTuple_New(0);
    PyObject *result = none != NULL ? close_store(object, none) : NULL;
    Py_XDECREF(none);
    return result;
}

static uint32_t now(void)
{
    return (uint32_t)time(NULL);
}

/* Every expected "it is not there" is None or False in Python. */
static bool is_miss(gyre_err err)
{
    return err == GYRE_NOT_FOUND || err == GYRE_EXPIRED;
}

static PyObject *get(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"key", "head", NULL};
    struct gyrepy_store *self = (struct gyrepy_store *)object;
    struct gyrepy_state *state = gyrepy_state_of(Py_TYPE(object));
    PyObject *given;
    int head = 0;
    struct gyre_key key;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$p:get", names, &given, &head) ||
        !gyrepy_key_from(state, given, &key))
        return NULL;
    struct gyre_store *store = gyrepy_enter(self);
    if (store == NULL)
        return NULL;
    struct gyre_handle *handle;
    gyre_err err;
    Py_BEGIN_ALLOW_THREADS err = gyre_get(store, &key, now(), head ? GYRE_GET_HEAD : 0, &handle);
    gyrepy_leave(self);
    Py_END_ALLOW_THREADS if (err == GYRE_OK) return gyrepy_object_new(state, handle);
    if (is_miss(err))
        Py_RETURN_NONE;
    gyrepy_raise(state, err, NULL);
    return NULL;
}

static int contains(PyObject *object, PyObject *given)
{
    struct gyrepy_store *self = (struct gyrepy_store *)object;
    struct gyrepy_state *state = gyrepy_state_of(Py_TYPE(object));
    struct gyre_key key;
    if (!gyrepy_key_from(state, given, &key))
        return -1;
    struct gyre_store *store = gyrepy_enter(self);
    if (store == NULL)
        return -1;
    gyre_err err;
    Py_BEGIN_ALLOW_THREADS err = gyre_exists(store, &key, now(), GYRE_STRICT);
    gyrepy_leave(self);
    Py_END_ALLOW_THREADS if (err == GYRE_OK || is_miss(err)) return err == GYRE_OK;
    gyrepy_raise(state, err, NULL);
    return -1;
}

bool gyrepy_put_options(const struct gyrepy_put_arguments *arguments,
                        struct gyre_put_options *options_out)
{
    gyre_put_options_init(options_out);
    if (arguments->created > UINT32_MAX || arguments->expires > UINT32_MAX) {
        PyErr_SetString(PyExc_OverflowError, "times are Unix seconds of 32 bits");
        return false;
    }
    options_out->meta = arguments->meta.buf;
    options_out->meta_len = (size_t)arguments->meta.len;
    options_out->created = (uint32_t)arguments->created;
    options_out->expires = (uint32_t)arguments->expires;
    options_out->etag_hash = arguments->etag_hash;
    options_out->flags = arguments->sync ? GYRE_PUT_SYNC : 0;
    if (arguments->if_absent)
        options_out->condition = GYRE_IF_ABSENT;
    if (arguments->if_serial != Py_None) {
        options_out->condition = GYRE_IF_SERIAL;
        options_out->if_serial = PyLong_AsUnsignedLongLong(arguments->if_serial);
        if (arguments->if_absent && !PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError, "if_absent and if_serial exclude each other");
    }
    return !PyErr_Occurred();
}

static PyObject *put(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"key",       "body",      "meta",      "created", "expires",
                            "etag_hash", "if_absent", "if_serial", "sync",    NULL};
    struct gyrepy_store *self = (struct gyrepy_store *)object;
    struct gyrepy_state *state = gyrepy_state_of(Py_TYPE(object));
    struct gyrepy_put_arguments given = {.if_serial = Py_None};
    PyObject *name, *result = NULL;
    Py_buffer body = {0};
    struct gyre_key key;
    struct gyre_put_options options;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "Oy*|$y*kkKpOp:put", names, &name, &body,
                                     &given.meta, &given.created, &given.expires, &given.etag_hash,
                                     &given.if_absent, &given.if_serial, &given.sync))
        return NULL;
    struct gyre_store *store = NULL;
    if (gyrepy_key_from(state, name, &key) && gyrepy_put_options(&given, &options))
        store = gyrepy_enter(self);
    if (store != NULL) {
        uint64_t serial;
        gyre_err err;
        Py_BEGIN_ALLOW_THREADS err =
            gyre_put(store, &key, &options, body.buf, (size_t)body.len, &serial);
        gyrepy_leave(self);
        Py_END_ALLOW_THREADS if (err == GYRE_OK) result = PyLong_FromUnsignedLongLong(serial);
        else gyrepy_raise(state, err, NULL);
    }
    PyBuffer_Release(&body);
    if (given.meta.obj != NULL)
        PyBuffer_Release(&given.meta);
    return result;
}

static PyObject *writer(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"key",       "length",    "meta",      "created", "expires",
                            "etag_hash", "if_absent", "if_serial", "sync",    NULL};
    struct gyrepy_store *self = (struct gyrepy_store *)object;
    struct gyrepy_state *state = gyrepy_state_of(Py_TYPE(object));
    struct gyrepy_put_arguments given = {.if_serial = Py_None};
    PyObject *name, *length = Py_None, *result = NULL;
    struct gyre_key key;
    struct gyre_put_options options;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O$y*kkKpOp:writer", names, &name, &length,
                                     &given.meta, &given.created, &given.expires, &given.etag_hash,
                                     &given.if_absent, &given.if_serial, &given.sync))
        return NULL;
    struct gyre_store *store = NULL;
    if (gyrepy_key_from(state, name, &key) && gyrepy_put_options(&given, &options)) {
        options.length =
            length == Py_None ? GYRE_LENGTH_UNKNOWN : PyLong_AsUnsignedLongLong(length);
        store = PyErr_Occurred() ? NULL : gyrepy_enter(self);
    }
    if (store != NULL) {
        struct gyre_put *put;
        gyre_err err = gyre_put_begin(store, &key, &options, &put); /* never blocks */
        gyrepy_leave(self);
        if (err == GYRE_OK)
            result = gyrepy_writer_new(state, put);
        else
            gyrepy_raise(state, err, NULL);
    }
    if (given.meta.obj != NULL)
        PyBuffer_Release(&given.meta);
    return result;
}

static PyObject *delete (PyObject *object, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"key", "if_serial", "sync", NULL};
    struct gyrepy_store *self = (struct gyrepy_store *)object;
    struct gyrepy_state *state = gyrepy_state_of(Py_TYPE(object));
    PyObject *name, *if_serial = Py_None;
    int sync = 0;
    struct gyre_key key;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$Op:delete", names, &name, &if_serial,
                                     &sync) ||
        !gyrepy_key_from(state, name, &key))
        return NULL;
    uint64_t serial = if_serial == Py_None ? 0 : PyLong_AsUnsignedLongLong(if_serial);
    if (PyErr_Occurred())
        return NULL;
    struct gyre_store *store = gyrepy_enter(self);
    if (store == NULL)
        return NULL;
    gyre_err err;
    Py_BEGIN_ALLOW_THREADS err =
        gyre_delete(store, &key, if_serial == Py_None ? GYRE_ALWAYS : GYRE_IF_SERIAL, serial,
                    sync ? GYRE_PUT_SYNC : 0);
    gyrepy_leave(self);
    Py_END_ALLOW_THREADS if (err == GYRE_OK || is_miss(err)) return PyBool_FromLong(err == GYRE_OK);
    gyrepy_raise(state, err, NULL);
    return NULL;
}

static PyObject *sync_store(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    struct gyrepy_store *self = (struct gyrepy_store *)object;
    struct gyre_store *store = gyrepy_enter(self);
    if (store == NULL)
        return NULL;
    gyre_err err;
    Py_BEGIN_ALLOW_THREADS err = gyre_sync(store);
    gyrepy_leave(self);
    Py_END_ALLOW_THREADS if (err == GYRE_OK) Py_RETURN_NONE;
    gyrepy_raise(gyrepy_state_of(Py_TYPE(object)), err, NULL);
    return NULL;
}

static bool add_number(PyObject *dict, const char *name, uint64_t number)
{
    PyObject *value = PyLong_FromUnsignedLongLong(number);
    bool added = value != NULL && PyDict_SetItemString(dict, name, value) == 0;
    Py_XDECREF(value);
    return added;
}

static PyObject *stats(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    struct gyrepy_store *self = (struct gyrepy_store *)object;
    struct gyre_store *store = gyrepy_enter(self);
    if (store == NULL)
        return NULL;
    struct gyre_stats numbers = {.struct_size = sizeof numbers};
    uint64_t capacity = gyre_capacity_bytes(store);
    gyre_err err = gyre_stat(store, &numbers);
    gyrepy_leave(self);
    if (err != GYRE_OK) {
        gyrepy_raise(gyrepy_state_of(Py_TYPE(object)), err, NULL);
        return NULL;
    }
    PyObject *dict = PyDict_New();
    bool whole = dict != NULL && add_number(dict, "capacity", capacity);
#define X(name, unit, text) whole = whole && add_number(dict, #name, numbers.name);
#include <gyre_stats.def>
#undef X
    if (!whole)
        Py_CLEAR(dict);
    return dict;
}

#define WITH_KEYWORDS(function) \
    (PyCFunction)(void (*)(void))(function), METH_VARARGS | METH_KEYWORDS

static PyMethodDef methods[] = {
    {"get", WITH_KEYWORDS(get),
     "get(key, *, head=False): the gyre.Object, pinned, or None. Its bytes are checked and do not\n"
     "change while it is open. head: without the bytes."},
    {"put", WITH_KEYWORDS(put),
     "put(key, body, *, meta=b'', created=0, expires=0, etag_hash=0, if_absent=False,\n"
     "if_serial=None, sync=False): stores an object at once; returns its serial. Times are Unix\n"
     "seconds. With if_absent or if_serial it may raise Error 'EXISTS', 'CHANGED', 'NOT_FOUND'."},
    {"writer", WITH_KEYWORDS(writer),
     "writer(key, length=None, *, ...): a gyre.Writer for an object that comes in pieces; further\n"
     "arguments as for put. In a with block it commits at the end, and aborts on an exception."},
    {"delete", WITH_KEYWORDS(delete),
     "delete(key, *, if_serial=None, sync=False): whether there was such an object."},
    {"sync", sync_store, METH_NOARGS, "sync(): what was stored so far survives a power loss."},
    {"stats", stats, METH_NOARGS, "stats(): counters and gauges by name."},
    {"close", close_store, METH_VARARGS,
     "close(timeout_ms=10000): waits for calls under way. Objects that are open stay readable."},
    {"__enter__", enter, METH_NOARGS, NULL},
    {"__exit__", leave, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc,
     "Store(path, size=0, *, mode='open-or-create', sync_interval_ms=30000,\n"
     "average_object=0)\n\n"
     "A store of objects in a directory; size in bytes when it is made. mode 'existing'\n"
     "makes none, 'reset' empties what is there. Any number of threads may use it."},
    {Py_tp_new, new},
    {Py_tp_dealloc, dealloc},
    {Py_tp_methods, methods},
    {Py_sq_contains, contains},
    {0, NULL},
};

PyType_Spec gyrepy_store_spec = {
    .name = "gyre.Store",
    .basicsize = sizeof(struct gyrepy_store),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};
