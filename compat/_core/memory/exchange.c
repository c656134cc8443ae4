// The C twins of the functions of exchange.py. They call no Python code between a test and the change that depends on it,
// so the interpreter's lock makes them atomic. Objects that are replaced are released at the end: that may run
// finalizers.
#include "slots.h"

static PyObject *UntypedStorage, *n_version, *n_grad, *n_class, *one;
static Py_ssize_t s_buffer, s_version;

static inline int is_plain(PyObject *storage) { return (PyObject *)Py_TYPE(storage) == UntypedStorage; }

// Increments a version: of a storage mostly; None counts nothing. The old number is no object with a finalizer.
static int increment(PyObject *counter) {
  if (counter == Py_None) return 0;
  int mine = is_plain(counter) && slot_get(counter, s_version) != NULL;
  PyObject *version = mine ? Py_NewRef(slot_get(counter, s_version)) : PyObject_GetAttr(counter, n_version);
  PyObject *next = version == NULL ? NULL : PyNumber_Add(version, one);
  Py_XDECREF(version);
  if (next == NULL) return -1;
  if (mine) {
    slot_set(counter, s_version, next);
    return 0;
  }
  int failed = PyObject_SetAttr(counter, n_version, next);
  Py_DECREF(next);
  return failed;
}

static int has_count(const char *name, Py_ssize_t count, Py_ssize_t expected) {
  if (count == expected) return 1;
  PyErr_Format(PyExc_TypeError, "%s() takes %zd arguments, not %zd", name, expected, count);
  return 0;
}

// exchange(storage, read, new, counter)
static PyObject *exchange(PyObject *module, PyObject *const *args, Py_ssize_t count) {
  if (!has_count("exchange", count, 4)) return NULL;
  PyObject *storage = args[0];
  if (!is_plain(storage)) Py_RETURN_NONE;
  if (slot_get(storage, s_buffer) != args[1]) Py_RETURN_FALSE;
  if (increment(args[3]) < 0) return NULL;
  slot_set(storage, s_buffer, Py_NewRef(args[2]));
  Py_RETURN_TRUE;
}

// 1 if all storages have the buffers that were read and no leaf has a gradient, 0 if not, 2 if a storage is of another
// class, -1 for an error.
static int all_unchanged(PyObject *storages, PyObject *read, PyObject *leaves) {
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(storages); i++) {
    PyObject *storage = PyList_GET_ITEM(storages, i);
    if (!is_plain(storage)) return 2;
    if (slot_get(storage, s_buffer) != PyList_GET_ITEM(read, i)) return 0;
  }
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(leaves); i++) {
    PyObject *grad = PyObject_GetAttr(PyList_GET_ITEM(leaves, i), n_grad);
    if (grad == NULL) return -1;
    Py_DECREF(grad);
    if (grad != Py_None) return 0;
  }
  return 1;
}

// exchange_all(storages, read, new, counters, leaves, grads): lists; those of buffers are changed.
static PyObject *exchange_all(PyObject *module, PyObject *const *args, Py_ssize_t count) {
  if (!has_count("exchange_all", count, 6)) return NULL;
  for (Py_ssize_t i = 0; i < 6; i++)
    if (!PyList_Check(args[i]) || PyList_GET_SIZE(args[i]) != PyList_GET_SIZE(args[i < 4 ? 0 : 4])) {
      PyErr_SetString(PyExc_TypeError, "exchange_all() takes lists of equal lengths");
      return NULL;
    }
  int status = all_unchanged(args[0], args[1], args[4]);
  if (status < 0) return NULL;
  if (status == 2) Py_RETURN_NONE;
  if (status == 0) Py_RETURN_FALSE;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(args[3]); i++)
    if (increment(PyList_GET_ITEM(args[3], i)) < 0) return NULL;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(args[0]); i++) {
    // The list keeps the old buffer until the caller releases it.
    PyObject **place = (PyObject **)((char *)PyList_GET_ITEM(args[0], i) + s_buffer), *before = *place;
    *place = PyList_GET_ITEM(args[2], i);
    PyList_SET_ITEM(args[2], i, before);
  }
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(args[4]); i++)
    if (PyObject_SetAttr(PyList_GET_ITEM(args[4], i), n_grad, PyList_GET_ITEM(args[5], i)) < 0) return NULL;
  Py_RETURN_TRUE;
}

// swap(object, name, before, after)
static PyObject *swap(PyObject *module, PyObject *const *args, Py_ssize_t count) {
  if (!has_count("swap", count, 4)) return NULL;
  PyObject *now = PyObject_GetAttr(args[0], args[1]);
  if (now == NULL) return NULL;
  int same = now == args[2];
  if (same && PyObject_SetAttr(args[0], args[1], args[3]) < 0) same = -1;
  Py_DECREF(now);
  return same < 0 ? NULL : PyBool_FromLong(same);
}

// turn(storage, read, kind, buffer)
static PyObject *turn(PyObject *module, PyObject *const *args, Py_ssize_t count) {
  if (!has_count("turn", count, 4)) return NULL;
  PyObject *storage = args[0];
  if (!is_plain(storage)) Py_RETURN_NONE;
  if (slot_get(storage, s_buffer) != args[1]) Py_RETURN_FALSE;
  if (PyObject_SetAttr(storage, n_class, args[2]) < 0) return NULL;
  slot_set(storage, s_buffer, Py_NewRef(args[3]));
  Py_RETURN_TRUE;
}

static PyObject *bump(PyObject *module, PyObject *counter) {
  if (increment(counter) < 0) return NULL;
  Py_RETURN_NONE;
}

// bind(names): what the functions work with, by name.
static PyObject *bind(PyObject *module, PyObject *given) {
  const char *const names[] = {"UntypedStorage", NULL};
  PyObject **places[] = {&UntypedStorage};
  if (bind_objects(given, names, places) < 0) return NULL;
  if ((s_buffer = slot_offset(UntypedStorage, "buffer")) < 0) return NULL;
  if ((s_version = slot_offset(UntypedStorage, "version")) < 0) return NULL;
  Py_RETURN_NONE;
}

MODULE("exchange", BIND, FAST("exchange", exchange), FAST("exchange_all", exchange_all), FAST("swap", swap),
       FAST("turn", turn), {"bump", bump, METH_O, NULL});

PyMODINIT_FUNC PyInit_exchange(void) {
  n_version = PyUnicode_InternFromString("version");
  n_grad = PyUnicode_InternFromString("grad");
  n_class = PyUnicode_InternFromString("__class__");
  one = PyLong_FromLong(1);
  if (n_version == NULL || n_grad == NULL || n_class == NULL || one == NULL) return NULL;
  return PyModule_Create(&module);
}
