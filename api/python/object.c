/* gyre.Object: an object found and pinned, and the views of its bytes, which are not copied. */
#include "module.h"

struct object {
    PyObject_HEAD struct gyre_handle *handle; /* NULL: closed */
    Py_ssize_t views;                         /* memoryviews and copies under way: close must not */
    bool busy; /* a thread copies out of it, without the interpreter's lock */
};

/* One contiguous piece of an object, as a buffer. */
struct piece {
    PyObject_HEAD struct object *object;
    const uint8_t *base;
    size_t len;
};

PyObject *gyrepy_object_new(struct gyrepy_state *state, struct gyre_handle *handle)
{
    struct object *self = PyObject_New(struct object, state->object);
    if (self == NULL) {
        gyre_release(handle);
        return NULL;
    }
    self->handle = handle;
    self->views = 0;
    self->busy = false;
    return (PyObject *)self;
}

/* The handle, or NULL (raised). */
static struct gyre_handle *handle_of(struct object *self)
{
    if (self->handle == NULL)
        PyErr_SetString(PyExc_ValueError, "the object is closed");
    return self->handle;
}

/* The piece at `offset`. False: raised. */
static bool piece_at(struct object *self, uint64_t offset, struct gyre_piece *piece_out)
{
    struct gyre_handle *handle = handle_of(self);
    if (handle == NULL)
        return false;
    gyre_err err = gyre_handle_piece(handle, offset, piece_out);
    if (err != GYRE_OK)
        gyrepy_raise(gyrepy_state_of(Py_TYPE(self)), err, NULL);
    return err == GYRE_OK;
}

static int object_buffer(PyObject *object, Py_buffer *view, int flags)
{
    struct object *self = (struct object *)object;
    struct gyre_handle *handle = handle_of(self);
    struct gyre_piece piece = {.base = (const uint8_t *)""};
    if (handle == NULL)
        goto fail;
    uint64_t length = gyre_handle_info(handle)->length;
    if (length > 0 && !piece_at(self, 0, &piece))
        goto fail;
    if (piece.len != length) {
        PyErr_SetString(PyExc_BufferError,
                        "the object lies in several pieces: use pieces(), or read() for a copy");
        goto fail;
    }
    if (PyBuffer_FillInfo(view, object, (void *)piece.base, (Py_ssize_t)piece.len, 1, flags) < 0)
        return -1;
    self->views++;
    return 0;
fail:
    view->obj = NULL;
    return -1;
}

static void object_buffer_end(PyObject *object, Py_buffer *Py_UNUSED(view))
{
    ((struct object *)object)->views--;
}

static PyObject *piece_new(struct object *self, const struct gyre_piece *where)
{
    struct piece *piece = PyObject_New(struct piece, gyrepy_state_of(Py_TYPE(self))->piece);
    if (piece == NULL)
        return NULL;
    piece->object = (struct object *)Py_NewRef((PyObject *)self);
    piece->base = where->base;
    piece->len = where->len;
    self->views++;
    PyObject *view = PyMemoryView_FromObject((PyObject *)piece);
    Py_DECREF(piece);
    return view;
}

static int piece_buffer(PyObject *object, Py_buffer *view, int flags)
{
    struct piece *piece = (struct piece *)object;
    return PyBuffer_FillInfo(view, object, (void *)piece->base, (Py_ssize_t)piece->len, 1, flags);
}

static void piece_dealloc(PyObject *object)
{
    struct piece *piece = (struct piece *)object;
    PyTypeObject *type = Py_TYPE(object);
    piece->object->views--;
    Py_DECREF(piece->object);
    PyObject_Free(object);
    Py_DECREF(type);
}

static PyObject *pieces(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    struct object *self = (struct object *)object;
    struct gyre_handle *handle = handle_of(self);
    PyObject *list = handle != NULL ? PyList_New(0) : NULL;
    if (list == NULL)
        return NULL;
    uint64_t length = gyre_handle_info(handle)->length;
    struct gyre_piece piece;
    for (uint64_t offset = 0; offset < length; offset += piece.len) {
        PyObject *view = piece_at(self, offset, &piece) ? piece_new(self, &piece) : NULL;
        bool added = view != NULL && PyList_Append(list, view) == 0;
        Py_XDECREF(view);
        if (!added) {
            Py_DECREF(list);
            return NULL;
        }
    }
    return list;
}

static PyObject *read_bytes(PyObject *object, PyObject *args)
{
    struct object *self = (struct object *)object;
    unsigned long long offset = 0;
    Py_ssize_t asked = -1;
    if (!PyArg_ParseTuple(args, "|Kn:read", &offset, &asked))
        return NULL;
    struct gyre_handle *handle = handle_of(self);
    if (handle == NULL)
        return NULL;
    uint64_t length = gyre_handle_info(handle)->length;
    uint64_t left = offset < length ? length - offset : 0;
    size_t len = asked >= 0 && (uint64_t)asked < left ? (size_t)asked : left;
    if (len == 0)
        return PyBytes_FromStringAndSize("", 0);
    if (self->busy) {
        PyErr_SetString(PyExc_RuntimeError,
                        "another thread reads this object: get one of your own");
        return NULL;
    }
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)len);
    if (bytes == NULL)
        return NULL;
    size_t copied = 0;
    gyre_err err = GYRE_OK;
    self->views++;
    self->busy = true;
    Py_BEGIN_ALLOW_THREADS char *to = PyBytes_AS_STRING(bytes);
    for (size_t n; err == GYRE_OK && copied < len; copied += n)
        err = gyre_copy(handle, offset + copied, to + copied, len - copied, 0, &n);
    Py_END_ALLOW_THREADS self->busy = false;
    self->views--;
    if (err != GYRE_OK) {
        Py_DECREF(bytes);
        gyrepy_raise(gyrepy_state_of(Py_TYPE(object)), err, NULL);
        return NULL;
    }
    return bytes;
}

static PyObject *close_object(PyObject *object, PyObject *Py_UNUSED(args))
{
    struct object *self = (struct object *)object;
    if (self->views != 0) {
        PyErr_SetString(PyExc_BufferError, "views of the object are still in use");
        return NULL;
    }
    gyre_release(self->handle);
    self->handle = NULL;
    Py_RETURN_NONE;
}

static PyObject *enter(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    return Py_NewRef(object);
}

/* A view that outlives the with block keeps the bytes; the last one lets go of them. */
static PyObject *leave(PyObject *object, PyObject *Py_UNUSED(args))
{
    return ((struct object *)object)->views == 0 ? close_object(object, NULL) : Py_NewRef(Py_None);
}

static void dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    gyre_release(((struct object *)object)->handle);
    PyObject_Free(object);
    Py_DECREF(type);
}

static Py_ssize_t length(PyObject *object)
{
    struct gyre_handle *handle = handle_of((struct object *)object);
    return handle != NULL ? (Py_ssize_t)gyre_handle_info(handle)->length : -1;
}

enum field { SERIAL, CREATED, EXPIRES, ETAG_HASH };

static PyObject *get_field(PyObject *object, void *which)
{
    struct gyre_handle *handle = handle_of((struct object *)object);
    if (handle == NULL)
        return NULL;
    const struct gyre_info *info = gyre_handle_info(handle);
    const uint64_t values[] = {[SERIAL] = info->serial,
                               [CREATED] = info->created,
                               [EXPIRES] = info->expires,
                               [ETAG_HASH] = info->etag_hash};
    return PyLong_FromUnsignedLongLong(values[(uintptr_t)which]);
}

static PyObject *get_meta(PyObject *object, void *Py_UNUSED(closure))
{
    struct gyre_handle *handle = handle_of((struct object *)object);
    if (handle == NULL)
        return NULL;
    size_t len;
    const void *meta = gyre_handle_meta(handle, &len);
    return PyBytes_FromStringAndSize(meta, (Py_ssize_t)len);
}

static PyMethodDef methods[] = {
    {"pieces", pieces, METH_NOARGS,
     "pieces(): memoryviews that make up the object, in order, lent from the mapped file. They\n"
     "keep it pinned until the last one is released."},
    {"read", read_bytes, METH_VARARGS, "read(offset=0, length=-1): a copy, as bytes."},
    {"close", close_object, METH_NOARGS,
     "close(): unpins the object; BufferError while views of it are in use."},
    {"__enter__", enter, METH_NOARGS, NULL},
    {"__exit__", leave, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef fields[] = {
    {"serial", get_field, NULL, "Identity of this version, for if_serial.", (void *)SERIAL},
    {"created", get_field, NULL, "Unix seconds.", (void *)CREATED},
    {"expires", get_field, NULL, "Unix seconds; 0: never.", (void *)EXPIRES},
    {"etag_hash", get_field, NULL, "The caller's own number.", (void *)ETAG_HASH},
    {"meta", get_meta, NULL, "The metadata, as bytes.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc,
     "An object found in the store, pinned until it is closed. memoryview(object) shows\n"
     "its bytes without a copy where they lie in one piece, pieces() always."},
    {Py_tp_methods, methods},
    {Py_tp_getset, fields},
    {Py_tp_dealloc, dealloc},
    {Py_bf_getbuffer, object_buffer},
    {Py_bf_releasebuffer, object_buffer_end},
    {Py_sq_length, length},
    {0, NULL},
};

PyType_Spec gyrepy_object_spec = {
    .name = "gyre.Object",
    .basicsize = sizeof(struct object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

static PyType_Slot piece_slots[] = {
    {Py_tp_dealloc, piece_dealloc},
    {Py_bf_getbuffer, piece_buffer},
    {0, NULL},
};

PyType_Spec gyrepy_piece_spec = {
    .name = "gyre.Piece",
    .basicsize = sizeof(struct piece),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = piece_slots,
};
