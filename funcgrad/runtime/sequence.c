// The C twin of run() (sequence.py): the same operations in the same order, by the same functions of NumPy.
#include "slots.h"

static PyObject *ndarray, *asarray, *fit, *kept, *n_dtype, *n_base, *n_nbytes, *n_setflags;
static Py_ssize_t code_buffers, code_numbers, code_results, code_steps, small_bytes;

// A run of operations.
typedef struct {
  PyObject **inputs, **host, **values;  // borrowed; arrays of inputs, once needed; results, until nothing needs them
  Py_ssize_t *last;                     // of each result the last operation that reads it
  Py_ssize_t input_count, value_count;
} Run;

static inline Py_ssize_t small(PyObject *tuple, Py_ssize_t i) { return PyLong_AsSsize_t(PyTuple_GET_ITEM(tuple, i)); }

// ---------------------------------------------------------------- one operation by NumPy

// A rule's result as an array of its dtype; takes over the reference.
static PyObject *fitted(PyObject *found, PyObject *dtype) {
  PyObject *own = PyList_CheckExact(found) ? NULL : PyObject_GetAttr(found, n_dtype), *made;
  if (own == NULL) PyErr_Clear();
  Py_XDECREF(own);  // what was found has it
  if (own == dtype) {
    if ((PyObject *)Py_TYPE(found) == ndarray) return found;
    made = PyObject_CallOneArg(asarray, found);
  } else {
    PyObject *args[] = {found, dtype};
    made = PyObject_Vectorcall(fit, args, 2, NULL);
  }
  Py_DECREF(found);
  return made;
}

// Writes the results of a step; takes over the reference to what its function gave.
static int put(PyObject **values, PyObject *writes, PyObject *dtypes, PyObject *found) {
  if (found == NULL) return -1;
  Py_ssize_t count = PyTuple_GET_SIZE(writes);
  int several = count != 1;
  if (several && (!PyList_CheckExact(found) || PyList_GET_SIZE(found) != count)) {
    PyErr_Format(PyExc_ValueError, "a rule of %zd results gave %R", count, found);
    Py_DECREF(found);
    return -1;
  }
  for (Py_ssize_t i = 0; i < count; i++) {
    PyObject *one = several ? Py_NewRef(PyList_GET_ITEM(found, i)) : Py_NewRef(found);
    one = fitted(one, PyTuple_GET_ITEM(dtypes, i));
    if (one == NULL) {
      Py_DECREF(found);
      return -1;
    }
    Py_XSETREF(values[small(writes, i)], one);
  }
  Py_DECREF(found);
  return 0;
}

enum { MOST = 64 };

// Runs a program's steps on operands, to which it takes over the references, and puts its results in their places.
static int run_steps(PyObject *program, PyObject **given, Py_ssize_t count, PyObject **results) {
  PyObject *start = PyTuple_GET_ITEM(program, 0), *steps = PyTuple_GET_ITEM(program, 1);
  PyObject *outputs = PyTuple_GET_ITEM(program, 2);
  Py_ssize_t size = PyTuple_GET_SIZE(start);
  PyObject *few[MOST], **values = size <= MOST ? few : PyMem_Malloc(size * sizeof(PyObject *));
  int failed = 0;
  if (values == NULL) {
    for (Py_ssize_t i = 0; i < count; i++) Py_DECREF(given[i]);
    PyErr_NoMemory();
    return -1;
  }
  for (Py_ssize_t i = 0; i < size; i++) {
    PyObject *known = PyTuple_GET_ITEM(start, i);
    values[i] = i < count ? given[i] : known == Py_None ? NULL : Py_NewRef(known);
  }
  for (Py_ssize_t s = 0; !failed && s < PyTuple_GET_SIZE(steps); s++) {
    PyObject *step = PyTuple_GET_ITEM(steps, s), *reads = PyTuple_GET_ITEM(step, 1);
    Py_ssize_t n = PyTuple_GET_SIZE(reads);
    PyObject *some[MOST], **args = n <= MOST ? some : PyMem_Malloc(n * sizeof(PyObject *)), *found = NULL;
    if (args == NULL) PyErr_NoMemory();
    for (Py_ssize_t i = 0; args != NULL && i < n; i++) args[i] = values[small(reads, i)];
    if (args != NULL) found = PyObject_Vectorcall(PyTuple_GET_ITEM(step, 0), args, n, NULL);
    if (args != some) PyMem_Free(args);
    failed = put(values, PyTuple_GET_ITEM(step, 2), PyTuple_GET_ITEM(step, 3), found) < 0;
  }
  for (Py_ssize_t i = 0; !failed && i < PyTuple_GET_SIZE(outputs); i++) {
    PyObject *value = values[small(outputs, i)];  // a number that is a result has no dimensions, either
    results[i] = (PyObject *)Py_TYPE(value) == ndarray ? Py_NewRef(value) : PyObject_CallOneArg(asarray, value);
    failed = results[i] == NULL;
  }
  for (Py_ssize_t i = 0; i < size; i++) Py_XDECREF(values[i]);
  if (values != few) PyMem_Free(values);
  return failed ? -1 : 0;
}

// An operand as an array; a new reference.
static PyObject *array(Run *run, Py_ssize_t wire) {
  PyObject *value = wire < 0 ? run->inputs[~wire] : run->values[wire];
  if ((PyObject *)Py_TYPE(value) == ndarray) return Py_NewRef(value);
  if (wire < 0 && run->host[~wire] != NULL) return Py_NewRef(run->host[~wire]);
  PyObject *made = PyObject_CallOneArg(asarray, value);
  if (made != NULL && wire < 0) run->host[~wire] = Py_NewRef(made);
  return made;
}

// The operation by NumPy. 1 where that cannot be: NumPy has no rule for these values, or an error is to be explained.
static int by_numpy(Run *run, PyObject *program, PyObject **wires, Py_ssize_t buffers, PyObject **numbers,
                    PyObject **results) {
  PyObject *types = PyTuple_GET_ITEM(program, 3), *given[MOST];
  Py_ssize_t count = 0, all = buffers + PyTuple_GET_SIZE(types);
  for (; count < all; count++) {
    PyObject *one = count < buffers ? array(run, PyLong_AsSsize_t(wires[count]))
                                    : PyObject_CallOneArg(PyTuple_GET_ITEM(types, count - buffers), numbers[count - buffers]);
    if (one == NULL) break;
    given[count] = one;
  }
  if (count == all && run_steps(program, given, count, results) == 0) return 0;
  if (count < all)
    while (count) Py_DECREF(given[--count]);
  if (!PyErr_ExceptionMatches(PyExc_Exception)) return -1;
  PyErr_Clear();
  return 1;
}

// ---------------------------------------------------------------- all operations

// The operation by its executable's own method.
static int by_itself(Run *run, PyObject *now, PyObject *code, PyObject **wires, Py_ssize_t buffers, PyObject **numbers,
                     Py_ssize_t number_count, PyObject **results, Py_ssize_t result_count) {
  PyObject *operands = PyList_New(buffers), *given = PyList_New(number_count), *found = NULL;
  if (operands != NULL && given != NULL) {
    for (Py_ssize_t i = 0; i < buffers; i++) {
      Py_ssize_t wire = PyLong_AsSsize_t(wires[i]);
      PyList_SET_ITEM(operands, i, Py_NewRef(wire < 0 ? run->inputs[~wire] : run->values[wire]));
    }
    for (Py_ssize_t i = 0; i < number_count; i++) PyList_SET_ITEM(given, i, Py_NewRef(numbers[i]));
    PyObject *args[] = {code, operands, given};
    found = PyObject_Vectorcall(now, args, 3, NULL);
  }
  Py_XDECREF(operands);
  Py_XDECREF(given);
  if (found == NULL) return -1;
  PyObject *fast = PySequence_Fast(found, "results are a sequence");
  Py_DECREF(found);
  if (fast == NULL) return -1;
  int failed = PySequence_Fast_GET_SIZE(fast) != result_count;
  if (failed) PyErr_Format(PyExc_ValueError, "%zd results, not %zd", PySequence_Fast_GET_SIZE(fast), result_count);
  for (Py_ssize_t i = 0; !failed && i < result_count; i++) results[i] = Py_NewRef(PySequence_Fast_GET_ITEM(fast, i));
  Py_DECREF(fast);
  return failed ? -1 : 0;
}

static inline Py_ssize_t count_of(PyObject *code, Py_ssize_t slot) { return PyLong_AsSsize_t(slot_get(code, slot)); }

// Finds what reads each result last; operations that do not exist stand for callers.
static int find_last(Run *run, PyObject *codes, PyObject **wires, Py_ssize_t wire_count, PyObject *outputs) {
  for (Py_ssize_t i = 0; i < run->value_count; i++) run->last[i] = -1;
  Py_ssize_t at = 0, many = PyList_GET_SIZE(codes);
  for (Py_ssize_t i = 0; i < many; i++)
    for (Py_ssize_t end = at + count_of(PyList_GET_ITEM(codes, i), code_buffers); at < end && at < wire_count; at++) {
      Py_ssize_t wire = PyLong_AsSsize_t(wires[at]);
      if (wire >= run->value_count || ~wire >= run->input_count) {
        PyErr_SetString(PyExc_IndexError, "a wire leads nowhere");
        return -1;
      }
      if (wire >= 0) run->last[wire] = i;
    }
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(outputs); i++)
    run->last[PyLong_AsSsize_t(PyList_GET_ITEM(outputs, i))] = many;
  return 0;
}

static int run_all(Run *run, PyObject *codes, PyObject **wires, PyObject **numbers, PyObject *now) {
  Py_ssize_t at = 0, number = 0, result = 0;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(codes); i++) {
    PyObject *code = PyList_GET_ITEM(codes, i), *program = slot_get(code, code_steps);
    Py_ssize_t buffers = count_of(code, code_buffers), results = count_of(code, code_results);
    Py_ssize_t count = PyTuple_GET_SIZE(slot_get(code, code_numbers));
    int status = 1;
    if (program != NULL && program != Py_None && buffers + count <= MOST) {
      Py_INCREF(program);
      status = by_numpy(run, program, wires + at, buffers, numbers + number, run->values + result);
      Py_DECREF(program);
    }
    if (status > 0)
      status = by_itself(run, now, code, wires + at, buffers, numbers + number, count, run->values + result, results);
    if (status < 0) return -1;
    for (Py_ssize_t end = at + buffers; at < end; at++) {
      Py_ssize_t wire = PyLong_AsSsize_t(wires[at]);
      if (wire >= 0 && run->last[wire] == i) Py_CLEAR(run->values[wire]);
    }
    for (Py_ssize_t end = result + results; result < end; result++)
      if (run->last[result] < 0) Py_CLEAR(run->values[result]);
    number += count;
  }
  return 0;
}

// Whether nothing else has an array's memory, and it is small. -1 for an error.
static int is_small(PyObject *array) {
  PyObject *base = PyObject_GetAttr(array, n_base), *bytes = PyObject_GetAttr(array, n_nbytes);
  int found = base == NULL || bytes == NULL ? -1 : base == Py_None && PyLong_AsSsize_t(bytes) <= small_bytes;
  Py_XDECREF(base);
  Py_XDECREF(bytes);
  return found;
}

// A result as kept() (programs.py) keeps it; a new reference. The run has the only other one if it is alone.
static PyObject *keep(PyObject *value) {
  if ((PyObject *)Py_TYPE(value) != ndarray) return Py_NewRef(value);
  int alone = Py_REFCNT(value) == 1, small = alone ? is_small(value) : 0;
  if (small < 0) return NULL;
  if (small) {
    PyObject *done = PyObject_CallMethodOneArg(value, n_setflags, Py_False);
    if (done == NULL) return NULL;
    Py_DECREF(done);
    return Py_NewRef(value);
  }
  PyObject *args[] = {value, alone ? Py_True : Py_False};
  return PyObject_Vectorcall(kept, args, 2, NULL);
}

// run(codes, wires, inputs, numbers, outputs, now): lists, and a function of a code, its operands and its numbers.
static PyObject *run(PyObject *module, PyObject *const *args, Py_ssize_t count) {
  if (count != 6) return PyErr_Format(PyExc_TypeError, "run() takes 6 arguments, not %zd", count);
  PyObject *codes = args[0], *outputs = args[4], *made = NULL;
  if (!PyList_Check(codes) || !PyList_Check(outputs)) return PyErr_Format(PyExc_TypeError, "codes and outputs are lists");
  PyObject *wires = PySequence_Fast(args[1], "wires are a sequence");
  PyObject *inputs = PySequence_Fast(args[2], "inputs are a sequence");
  PyObject *numbers = PySequence_Fast(args[3], "numbers are a sequence");
  Run r = {NULL};
  if (wires == NULL || inputs == NULL || numbers == NULL) goto end;
  Py_ssize_t reads = 0, given = 0;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(codes); i++) {
    PyObject *code = PyList_GET_ITEM(codes, i);
    reads += count_of(code, code_buffers);
    given += PyTuple_GET_SIZE(slot_get(code, code_numbers));
    r.value_count += count_of(code, code_results);
  }
  if (reads != PySequence_Fast_GET_SIZE(wires) || given != PySequence_Fast_GET_SIZE(numbers)) {
    PyErr_Format(PyExc_ValueError, "%zd wires and %zd numbers, not %zd and %zd", PySequence_Fast_GET_SIZE(wires),
                 PySequence_Fast_GET_SIZE(numbers), reads, given);
    goto end;
  }
  r.input_count = PySequence_Fast_GET_SIZE(inputs);
  r.inputs = PySequence_Fast_ITEMS(inputs);
  r.host = PyMem_Calloc(r.input_count + 1, sizeof(PyObject *));
  r.values = PyMem_Calloc(r.value_count + 1, sizeof(PyObject *));
  r.last = PyMem_Calloc(r.value_count + 1, sizeof(Py_ssize_t));
  PyObject **all = PySequence_Fast_ITEMS(wires);
  if (r.host == NULL || r.values == NULL || r.last == NULL) PyErr_NoMemory();
  else if (find_last(&r, codes, all, reads, outputs) == 0 &&
           run_all(&r, codes, all, PySequence_Fast_ITEMS(numbers), args[5]) == 0)
    made = PyList_New(PyList_GET_SIZE(outputs));
  for (Py_ssize_t i = 0; made != NULL && i < PyList_GET_SIZE(outputs); i++) {
    PyObject *one = keep(r.values[PyLong_AsSsize_t(PyList_GET_ITEM(outputs, i))]);
    if (one == NULL) Py_CLEAR(made);
    else PyList_SET_ITEM(made, i, one);
  }
end:
  for (Py_ssize_t i = 0; r.host != NULL && i < r.input_count; i++) Py_XDECREF(r.host[i]);
  for (Py_ssize_t i = 0; r.values != NULL && i < r.value_count; i++) Py_XDECREF(r.values[i]);
  PyMem_Free(r.host);
  PyMem_Free(r.values);
  PyMem_Free(r.last);
  Py_XDECREF(wires);
  Py_XDECREF(inputs);
  Py_XDECREF(numbers);
  return made;
}

// bind(names): what the functions work with, by name.
static PyObject *bind(PyObject *module, PyObject *given) {
  PyObject *code = NULL, *most = NULL;
  const char *const names[] = {"ndarray", "asarray", "fit", "kept", "small", "Executable", NULL};
  PyObject **places[] = {&ndarray, &asarray, &fit, &kept, &most, &code};
  if (bind_objects(given, names, places) < 0) return NULL;
  n_dtype = PyUnicode_InternFromString("dtype");
  n_base = PyUnicode_InternFromString("base");
  n_nbytes = PyUnicode_InternFromString("nbytes");
  n_setflags = PyUnicode_InternFromString("setflags");
  small_bytes = PyLong_AsSsize_t(most);
  code_buffers = slot_offset(code, "buffers");
  code_numbers = slot_offset(code, "numbers");
  code_results = slot_offset(code, "results");
  code_steps = slot_offset(code, "steps");
  if (n_dtype == NULL || n_base == NULL || n_nbytes == NULL || n_setflags == NULL) return NULL;
  if (small_bytes < 0 || code_buffers < 0 || code_numbers < 0 || code_results < 0 || code_steps < 0) return NULL;
  Py_RETURN_NONE;
}

MODULE("sequence", BIND, FAST("run", run));

PyMODINIT_FUNC PyInit_sequence(void) { return PyModule_Create(&module); }
