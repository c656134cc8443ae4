// The C twin of Watch.holds (guards.py): the same comparisons in the same order.
#include "../_core/tensor/tensor.h"

static PyObject *TensorState, *Autograd, *n_meta, *n_grad;
static Py_ssize_t w_tensor, w_storage, w_layout, w_offset, w_rg, w_grad, w_strict, m_grad;
static PyMethodDef *dict_get;

// The outcome of a comparison.
enum { CHANGED = 0, SAME = 1, ERROR = -1 };

// A new reference to get(key); most often ``get`` is the method of a dictionary.
static PyObject *got(PyObject *get, PyObject *key) {
  if (PyCFunction_CheckExact(get) && ((PyCFunctionObject *)get)->m_ml == dict_get) {
    PyObject *found = PyDict_GetItemWithError(PyCFunction_GET_SELF(get), key);
    if (found == NULL && PyErr_Occurred()) return NULL;
    return Py_NewRef(found == NULL ? Py_None : found);
  }
  return PyObject_CallOneArg(get, key);
}

// Whether entries (get, key, expected) find what is expected: that object, or an equal one of its class.
static int found_again(PyObject *entries, int identical) {
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(entries); i++) {
    PyObject *entry = PyList_GET_ITEM(entries, i), *expected = PyTuple_GET_ITEM(entry, 2);
    PyObject *found = got(PyTuple_GET_ITEM(entry, 0), PyTuple_GET_ITEM(entry, 1));
    if (found == NULL) return ERROR;
    int differs = found != expected;
    if (differs && !identical && Py_IS_TYPE(found, Py_TYPE(expected)))
      differs = PyObject_RichCompareBool(found, expected, Py_NE);
    Py_DECREF(found);
    if (differs) return differs < 0 ? ERROR : CHANGED;
  }
  return SAME;
}

static int lengths_hold(PyObject *entries) {
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(entries); i++) {
    PyObject *entry = PyList_GET_ITEM(entries, i);
    Py_ssize_t length = PyObject_Size(PyTuple_GET_ITEM(entry, 0));
    if (length < 0) return ERROR;
    if (length != PyLong_AsSsize_t(PyTuple_GET_ITEM(entry, 1))) return CHANGED;
  }
  return SAME;
}

// Whether an attribute of a tensor is the object that a slot of its state has.
static int attribute_is(PyObject *t, Py_ssize_t offset, PyObject *name, PyObject *expected) {
  PyObject *found = of_tensor(t, offset, name);
  if (found == NULL) return ERROR;
  Py_DECREF(found);  // the tensor has it
  return found == expected ? SAME : CHANGED;
}

static int gradient_holds(PyObject *t, PyObject *expected, int strict) {
  PyObject *meta = of_tensor(t, t_meta, n_meta);
  if (meta == NULL) return ERROR;
  PyObject *grad = Py_IS_TYPE(meta, (PyTypeObject *)Autograd) ? slot_get(meta, m_grad) : NULL;
  grad = meta == Py_None ? Py_NewRef(Py_None) : grad != NULL ? Py_NewRef(grad) : PyObject_GetAttr(meta, n_grad);
  Py_DECREF(meta);
  if (grad == NULL) return ERROR;
  int holds = grad == expected || !(strict || grad == Py_None || expected == Py_None);
  Py_DECREF(grad);
  return holds ? SAME : CHANGED;
}

static int offset_holds(PyObject *t, PyObject *expected) {
  PyObject *found = of_tensor(t, t_offset, n_offset);
  if (found == NULL) return ERROR;
  int same = PyObject_RichCompareBool(found, expected, Py_EQ);
  Py_DECREF(found);
  return same;
}

static int state_holds(PyObject *state) {
  PyObject *t = slot_get(state, w_tensor);
  int status = attribute_is(t, t_storage, n_storage, slot_get(state, w_storage));
  if (status == SAME) status = attribute_is(t, t_rg, n_rg, slot_get(state, w_rg));
  if (status == SAME) status = gradient_holds(t, slot_get(state, w_grad), slot_get(state, w_strict) == Py_True);
  if (status == SAME) status = attribute_is(t, t_layout, n_layout, slot_get(state, w_layout));
  return status == SAME ? offset_holds(t, slot_get(state, w_offset)) : status;
}

// holds(same, simple, lengths, states): whether everything is as it was.
static PyObject *holds(PyObject *module, PyObject *const *args, Py_ssize_t count) {
  if (count != 4) return PyErr_Format(PyExc_TypeError, "holds() takes 4 arguments, not %zd", count);
  int status = found_again(args[0], 1);
  if (status == SAME) status = found_again(args[1], 0);
  if (status == SAME) status = lengths_hold(args[2]);
  for (Py_ssize_t i = 0; status == SAME && i < PyList_GET_SIZE(args[3]); i++)
    status = state_holds(PyList_GET_ITEM(args[3], i));
  return status == ERROR ? NULL : PyBool_FromLong(status);
}

// bind(names): what the guards work with, by name.
static PyObject *bind(PyObject *module, PyObject *given) {
  PyObject *get = NULL;
  const char *const names[] = {"TensorState", "Autograd", "get", NULL};
  PyObject **places[] = {&TensorState, &Autograd, &get};
  if (bind_tensor(given) < 0 || bind_objects(given, names, places) < 0) return NULL;
  if (!PyCFunction_CheckExact(get)) return PyErr_Format(PyExc_TypeError, "get is not a method of a dictionary");
  dict_get = ((PyCFunctionObject *)get)->m_ml;
  const Slot slots[] = {
      {&w_tensor, &TensorState, "tensor"}, {&w_storage, &TensorState, "storage"}, {&w_layout, &TensorState, "layout"},
      {&w_offset, &TensorState, "offset"}, {&w_rg, &TensorState, "requires_grad"}, {&w_grad, &TensorState, "grad"},
      {&w_strict, &TensorState, "strict"}, {&m_grad, &Autograd, "grad"},
  };
  if (find_slots(slots, sizeof(slots) / sizeof(*slots)) < 0) return NULL;
  Py_RETURN_NONE;
}

MODULE("guards", BIND, FAST("holds", holds));

PyMODINIT_FUNC PyInit_guards(void) {
  const Name names[] = {{&n_meta, "_autograd_state_"}, {&n_grad, "grad"}};
  if (intern_tensor_names() < 0 || intern_names(names, 2) < 0) return NULL;
  return PyModule_Create(&module);
}
