/* gyre.Key: the name of an object, 32 bytes. */
#include "module.h"

struct key {
    PyObject_HEAD struct gyre_key key;
};

static PyObject *make(PyTypeObject *type, const struct gyre_key *key)
{
    struct key *self = PyObject_New(struct key, type);
    if (self != NULL)
        self->key = *key;
    return (PyObject *)self;
}

/* Text is taken as UTF-8. False: raised. */
static bool bytes_of(PyObject *given, Py_buffer *view_out)
{
    if (PyUnicode_Check(given)) {
        Py_ssize_t len;
        const char *text = PyUnicode_AsUTF8AndSize(given, &len);
        return text != NULL &&
               PyBuffer_FillInfo(view_out, given, (void *)text, len, 1, PyBUF_SIMPLE) == 0;
    }
    return PyObject_GetBuffer(given, view_out, PyBUF_SIMPLE) == 0;
}

bool gyrepy_key_from(struct gyrepy_state *state, PyObject *given, struct gyre_key *key_out)
{
    if (PyObject_TypeCheck(given, state->key)) {
        *key_out = ((struct key *)given)->key;
        return true;
    }
    Py_buffer view;
    if (!PyUnicode_Check(given) && !PyObject_CheckBuffer(given)) {
        PyErr_Format(PyExc_TypeError, "a key is str, bytes or gyre.Key, not %.100s",
                     Py_TYPE(given)->tp_name);
        return false;
    }
    if (!bytes_of(given, &view))
        return false;
    *key_out = gyre_key_of_bytes(view.buf, (size_t)view.len);
    PyBuffer_Release(&view);
    return true;
}

static PyObject *of(PyObject *type, PyObject *given)
{
    struct gyre_key key;
    if (!gyrepy_key_from(gyrepy_state_of((PyTypeObject *)type), given, &key))
        return NULL;
    return make((PyTypeObject *)type, &key);
}

static PyObject *digest(PyObject *type, PyObject *given)
{
    Py_buffer view;
    if (PyObject_GetBuffer(given, &view, PyBUF_SIMPLE) < 0)
        return NULL;
    PyObject *made = NULL;
    if (view.len == 32) {
        struct gyre_key key = gyre_key_of_digest(view.buf);
        made = make((PyTypeObject *)type, &key);
    } else {
        PyErr_Format(PyExc_ValueError, "a digest has 32 bytes, not %zd", view.len);
    }
    PyBuffer_Release(&view);
    return made;
}

static PyObject *from_hex(PyObject *type, PyObject *given)
{
    const char *text = PyUnicode_Check(given) ? PyUnicode_AsUTF8(given) : NULL;
    struct gyre_key key;
    if (text == NULL || gyre_key_of_hex(text, &key) != GYRE_OK) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError, "64 hexadecimal digits are needed");
        return NULL;
    }
    return make((PyTypeObject *)type, &key);
}

static PyObject *of_url(PyObject *type, PyObject *args)
{
    const char *url, *host;
    if (!PyArg_ParseTuple(args, "ss:url", &url, &host))
        return NULL;
    struct gyre_key key = gyre_key_of_url(url, host);
    return make((PyTypeObject *)type, &key);
}

static bool domain_of(const char *name, enum gyre_domain *domain_out)
{
    static const char *const names[] = {
        [GYRE_DOMAIN_RAW] = "raw",
        [GYRE_DOMAIN_S3] = "s3",
        [GYRE_DOMAIN_URL] = "url",
        [GYRE_DOMAIN_KV] = "kv",
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(name, names[i]) == 0) {
            *domain_out = (enum gyre_domain)i;
            return true;
        }
    }
    PyErr_Format(PyExc_ValueError, "unknown domain '%.50s'; there are raw, s3, url and kv", name);
    return false;
}

static PyObject *of_parts(PyObject *type, PyObject *args)
{
    enum { PARTS_MAX = 8 };
    struct gyrepy_state *state = gyrepy_state_of((PyTypeObject *)type);
    Py_ssize_t n = PyTuple_Size(args) - 1;
    PyObject *name = n >= 1 ? PyTuple_GetItem(args, 0) : NULL;
    const char *domain_name = name != NULL && PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : NULL;
    enum gyre_domain domain;
    if (domain_name == NULL || n > PARTS_MAX) {
        if (!PyErr_Occurred())
            PyErr_Format(PyExc_TypeError, "parts() takes a domain's name and 1 to %d parts",
                         PARTS_MAX);
        return NULL;
    }
    if (!domain_of(domain_name, &domain))
        return NULL;
    Py_buffer views[PARTS_MAX];
    struct iovec parts[PARTS_MAX];
    Py_ssize_t held = 0;
    PyObject *made = NULL;
    for (; held < n; held++) {
        if (!bytes_of(PyTuple_GetItem(args, held + 1), &views[held]))
            goto out;
        parts[held] = (struct iovec){views[held].buf, (size_t)views[held].len};
    }
    struct gyre_key key;
    gyre_err err = gyre_key_of_parts(domain, parts, (size_t)n, &key);
    if (err == GYRE_OK)
        made = make((PyTypeObject *)type, &key);
    else
        gyrepy_raise(state, err, "only the last part of a key may hold zero bytes");
out:
    while (held > 0)
        PyBuffer_Release(&views[--held]);
    return made;
}

static PyObject *to_hex(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    char hex[65];
    gyre_key_to_hex(&((struct key *)self)->key, hex);
    return PyUnicode_FromString(hex);
}

static PyObject *to_bytes(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return PyBytes_FromStringAndSize((const char *)((struct key *)self)->key.bytes, 32);
}

static PyObject *repr(PyObject *self)
{
    char hex[65];
    gyre_key_to_hex(&((struct key *)self)->key, hex);
    return PyUnicode_FromFormat("gyre.Key.from_hex('%s')", hex);
}

static Py_hash_t hash(PyObject *self)
{
    Py_hash_t value;
    memcpy(&value, ((struct key *)self)->key.bytes, sizeof value);
    return value == -1 ? -2 : value;
}

static PyObject *compare(PyObject *self, PyObject *other, int op)
{
    if (Py_TYPE(self) != Py_TYPE(other) || (op != Py_EQ && op != Py_NE))
        Py_RETURN_NOTIMPLEMENTED;
    bool equal = memcmp(((struct key *)self)->key.bytes, ((struct key *)other)->key.bytes, 32) == 0;
    return PyBool_FromLong(equal == (op == Py_EQ));
}

static void dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyMethodDef methods[] = {
    {"of", of, METH_O | METH_CLASS, "of(name): the SHA-256 of bytes, or of text in UTF-8."},
    {"digest", digest, METH_O | METH_CLASS, "digest(bytes): 32 bytes computed already."},
    {"from_hex", from_hex, METH_O | METH_CLASS, "from_hex(text): 64 hexadecimal digits."},
    {"url", of_url, METH_VARARGS | METH_CLASS, "url(url, host): the key of a URL on a host."},
    {"parts", of_parts, METH_VARARGS | METH_CLASS,
     "parts(domain, *parts): a key in one of the domains 'raw', 's3', 'url' and 'kv', which never\n"
     "collide. Only the last part may hold zero bytes."},
    {"hex", to_hex, METH_NOARGS, "hex(): 64 lower-case digits."},
    {"__bytes__", to_bytes, METH_NOARGS, "The 32 bytes."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "The name of an object: 32 bytes. Made by of, digest, from_hex, url and parts."},
    {Py_tp_methods, methods},
    {Py_tp_repr, repr},
    {Py_tp_hash, hash},
    {Py_tp_richcompare, compare},
    {Py_tp_dealloc, dealloc},
    {0, NULL},
};

PyType_Spec gyrepy_key_spec = {
    .name = "gyre.Key",
    .basicsize = sizeof(struct key),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};
