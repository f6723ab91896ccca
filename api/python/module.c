/* The module itself: its types, gyre.Error, and what the library's errors look like in Python. */
#include "module.h"

struct gyrepy_state *gyrepy_state_of(PyTypeObject *type)
{
    return PyModule_GetState(PyType_GetModule(type));
}

static const char *kind_name(enum gyre_err_kind kind)
{
    switch (kind) {
    case GYRE_KIND_EXPECTED: return "expected";
    case GYRE_KIND_RETRY: return "retry";
    case GYRE_KIND_CALLER: return "caller";
    case GYRE_KIND_RESOURCE: return "resource";
    case GYRE_KIND_MEDIUM: return "medium";
    }
    return "unknown";
}

/* Sets attribute `name` of an exception to text. */
static bool set_text(PyObject *exception, const char *name, const char *text)
{
    PyObject *value = PyUnicode_FromString(text);
    bool set = value != NULL && PyObject_SetAttrString(exception, name, value) == 0;
    Py_XDECREF(value);
    return set;
}

void gyrepy_raise(struct gyrepy_state *state, gyre_err err, const char *message)
{
    const char *text = message != NULL && message[0] != '\0' ? message : gyre_err_text(err);
    PyObject *exception = PyObject_CallFunction(state->error, "s", text);
    if (exception != NULL && set_text(exception, "code", gyre_err_name(err)) &&
        set_text(exception, "kind", kind_name(gyre_err_kind(err))))
        PyErr_SetObject(state->error, exception);
    Py_XDECREF(exception);
}

static int traverse(PyObject *module, visitproc visit, void *arg)
{
    struct gyrepy_state *state = PyModule_GetState(module);
    Py_VISIT(state->error);
    Py_VISIT(state->key);
    Py_VISIT(state->store);
    Py_VISIT(state->object);
    Py_VISIT(state->piece);
    Py_VISIT(state->writer);
    return 0;
}

static int clear(PyObject *module)
{
    struct gyrepy_state *state = PyModule_GetState(module);
    Py_CLEAR(state->error);
    Py_CLEAR(state->key);
    Py_CLEAR(state->store);
    Py_CLEAR(state->object);
    Py_CLEAR(state->piece);
    Py_CLEAR(state->writer);
    return 0;
}

static void free_module(void *module)
{
    clear(module);
}

/* Makes a type; those with a name are reached from the module. */
static bool add_type(PyObject *module, PyType_Spec *spec, bool named, PyTypeObject **type_out)
{
    *type_out = (PyTypeObject *)PyType_FromModuleAndSpec(module, spec, NULL);
    return *type_out != NULL && (!named || PyModule_AddType(module, *type_out) == 0);
}

static int execute(PyObject *module)
{
    struct gyrepy_state *state = PyModule_GetState(module);
    state->error = PyErr_NewExceptionWithDoc(
        "gyre.Error",
        "What the store answered when it could not do as asked.\n\n"
        "code: the error's name, such as 'NO_SPACE'; kind: 'expected', 'retry', 'caller',\n"
        "'resource' or 'medium'.",
        NULL, NULL);
    if (state->error == NULL || PyModule_AddObjectRef(module, "Error", state->error) < 0)
        return -1;
    if (!add_type(module, &gyrepy_key_spec, true, &state->key) ||
        !add_type(module, &gyrepy_store_spec, true, &state->store) ||
        !add_type(module, &gyrepy_object_spec, true, &state->object) ||
        !add_type(module, &gyrepy_piece_spec, false, &state->piece) ||
        !add_type(module, &gyrepy_writer_spec, true, &state->writer))
        return -1;
    return PyModule_AddStringConstant(module, "__version__", gyre_version());
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, execute}, {0, NULL}};

struct PyModuleDef gyrepy_module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "gyre",
    .m_doc = "A persistent object cache in memory-mapped files, read without copies.\n\n"
             "    with gyre.Store('cache', size=1 << 30) as store:\n"
             "        store.put('name', b'bytes', meta=b'about them')\n"
             "        with store.get('name') as found:\n"
             "            view = memoryview(found)\n",
    .m_size = sizeof(struct gyrepy_state),
    .m_slots = slots,
    .m_traverse = traverse,
    .m_clear = clear,
    .m_free = free_module,
};

PyMODINIT_FUNC PyInit_gyre(void)
{
    return PyModuleDef_Init(&gyrepy_module);
}
