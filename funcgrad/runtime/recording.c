// The C twin of Recording._gather (recording.py): the same lists of the same operations.
#include "slots.h"

static PyObject *Deferred, *ndarray, *shared;
static Py_ssize_t deferred_value;

static int append_number(PyObject *list, Py_ssize_t number) {
  PyObject *boxed = PyLong_FromSsize_t(number);
  if (boxed == NULL) return -1;
  int failed = PyList_Append(list, boxed);
  Py_DECREF(boxed);
  return failed;
}

typedef struct {
  PyObject *codes, *wires, *inputs, *hosted, *numbers, *pending;
  Places places;
} Gathering;

static int is_shared(PyObject *value) {
  PyObject *identity = PyLong_FromVoidPtr(value);
  if (identity == NULL) return -1;
  int found = PyDict_Contains(shared, identity);
  Py_DECREF(identity);
  return found;
}

// The wire of an operand that has none yet. 1 where it is another thread's, which has not been run; -1 for an error.
static int new_input(Gathering *g, PyObject *buffer, Py_ssize_t *wire) {
  PyObject *value = buffer;
  Place *known = NULL;
  if ((PyObject *)Py_TYPE(buffer) == Deferred) {  // a result of an earlier window
    value = slot_get(buffer, deferred_value);
    if (value == NULL) return 1;
    known = places_find(&g->places, value);
  }
  if (known != NULL && known->key != NULL) {
    *wire = known->value;
  } else {
    Py_ssize_t place = PyList_GET_SIZE(g->inputs);
    *wire = ~place;
    if ((PyObject *)Py_TYPE(value) == ndarray) {
      PyObject *entry = Py_BuildValue("nO", place, buffer);
      if (entry == NULL) return -1;
      int failed = PyList_Append(g->hosted, entry);
      Py_DECREF(entry);
      if (failed < 0) return -1;
    }
    if (PyList_Append(g->inputs, value) < 0) return -1;
    int constant = is_shared(value);
    if (constant < 0 || (!constant && places_set(&g->places, value, *wire) < 0)) return -1;
  }
  return value == buffer ? 0 : places_set(&g->places, buffer, *wire);
}

static int gather_operands(Gathering *g, PyObject *buffers) {
  PyObject *fast = PySequence_Fast(buffers, "operands are a sequence");
  if (fast == NULL) return -1;
  int status = 0;
  for (Py_ssize_t i = 0; status == 0 && i < PySequence_Fast_GET_SIZE(fast); i++) {
    PyObject *buffer = PySequence_Fast_GET_ITEM(fast, i);
    Place *known = places_find(&g->places, buffer);
    Py_ssize_t wire = known->value;
    if (known->key == NULL) status = new_input(g, buffer, &wire);
    if (status == 0) status = append_number(g->wires, wire);
  }
  Py_DECREF(fast);
  return status;
}

static int gather_operation(Gathering *g, PyObject *operation) {
  if (!PyTuple_Check(operation) || PyTuple_GET_SIZE(operation) != 4) {
    PyErr_SetString(PyExc_TypeError, "an operation is (code, buffers, numbers, results)");
    return -1;
  }
  if (PyList_Append(g->codes, PyTuple_GET_ITEM(operation, 0)) < 0) return -1;
  int status = gather_operands(g, PyTuple_GET_ITEM(operation, 1));
  if (status != 0) return status;
  PyObject *numbers = PyTuple_GET_ITEM(operation, 2), *results = PyTuple_GET_ITEM(operation, 3);
  Py_ssize_t count = PySequence_Size(numbers), end = PyList_GET_SIZE(g->numbers);
  if (count < 0 || (count > 0 && PyList_SetSlice(g->numbers, end, end, numbers) < 0)) return -1;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(results); i++) {
    PyObject *result = PyTuple_GET_ITEM(results, i);
    if (places_set(&g->places, result, PyList_GET_SIZE(g->pending)) < 0) return -1;
    if (PyList_Append(g->pending, result) < 0) return -1;
  }
  return 0;
}

// gather(operations, codes, wires, inputs, hosted, numbers, pending): fills the lists. False where an operand is the
// result of an operation that another thread has recorded and not yet run.
static PyObject *gather(PyObject *module, PyObject *const *args, Py_ssize_t count) {
  if (count != 7) return PyErr_Format(PyExc_TypeError, "gather() takes 7 arguments, not %zd", count);
  Gathering g = {args[1], args[2], args[3], args[4], args[5], args[6]};
  PyObject *operations = PySequence_Fast(args[0], "operations are a sequence");
  if (operations == NULL) return NULL;
  Py_ssize_t many = PySequence_Fast_GET_SIZE(operations);
  int status = places_begin(&g.places, 2 * (size_t)many);
  for (Py_ssize_t i = 0; status == 0 && i < PySequence_Fast_GET_SIZE(operations); i++)
    status = gather_operation(&g, PySequence_Fast_GET_ITEM(operations, i));
  places_end(&g.places);
  Py_DECREF(operations);
  return status < 0 ? NULL : PyBool_FromLong(status == 0);
}

// bind(names): what the functions work with, by name.
static PyObject *bind(PyObject *module, PyObject *given) {
  const char *const names[] = {"Deferred", "ndarray", "shared", NULL};
  PyObject **places[] = {&Deferred, &ndarray, &shared};
  if (bind_objects(given, names, places) < 0) return NULL;
  deferred_value = slot_offset(Deferred, "value");
  if (deferred_value < 0) return NULL;
  Py_RETURN_NONE;
}

MODULE("recording", BIND, FAST("gather", gather));

PyMODINIT_FUNC PyInit_recording(void) { return PyModule_Create(&module); }
