// The C twin of the loops of the samplers: numbers from the words of a Mersenne Twister, straight into an array. Each
// step rounds as in the NumPy code; a fused multiply-add is fma here, and log1p, cos and sin are the C library's.
#include "twin.h"

#include <math.h>
#include <stdint.h>

#pragma STDC FP_CONTRACT OFF

// NumPy's interface of a bit generator (numpy/random/bitgen.h).
typedef struct {
  void *state;
  uint64_t (*next_uint64)(void *);
  uint32_t (*next_uint32)(void *);
  double (*next_double)(void *);
  uint64_t (*next_raw)(void *);
} Words;

enum { LONG = 1 << 12 };  // elements from which other threads may run meanwhile

static const uint64_t MASK53 = ((uint64_t)1 << 53) - 1;

static inline uint32_t word(Words *w) { return w->next_uint32(w->state); }

// Two words, the first one high.
static inline uint64_t pair(Words *w) {
  uint64_t high = word(w);
  return high << 32 | word(w);
}

static inline double uniform64(Words *w) { return (double)(int64_t)(pair(w) & MASK53) * 0x1p-53; }

// The generator, and the contiguous memory of the array.
static Words *opened(PyObject *capsule, PyObject *array, Py_buffer *out) {
  Words *words = PyCapsule_GetPointer(capsule, "BitGenerator");
  if (words == NULL || PyObject_GetBuffer(array, out, PyBUF_WRITABLE | PyBUF_C_CONTIGUOUS) < 0) return NULL;
  return words;
}

static PyObject *closed(Py_buffer *out, PyObject *result) {
  PyBuffer_Release(out);
  return result;
}

static PyObject *wrong(Py_buffer *out) {
  PyErr_Format(PyExc_ValueError, "elements of %zd bytes", out->itemsize);
  return closed(out, NULL);
}

// ---------------------------------------------------------------- uniform

static void fill_uniform32(Words *w, float *out, Py_ssize_t n, float low, float scale, float high) {
  for (Py_ssize_t i = 0; i < n; i++) {
    float x = fmaf((float)(int32_t)(word(w) & 0xFFFFFF) * 0x1p-24f, scale, low);
    out[i] = x == high ? low : x;
  }
}

static void fill_uniform64(Words *w, double *out, Py_ssize_t n, double low, double scale, double high) {
  for (Py_ssize_t i = 0; i < n; i++) {
    double x = fma(uniform64(w), scale, low);
    out[i] = x == high ? low : x;
  }
}

// uniform(generator, out, low, scale, high): floats or doubles in [low, high).
static PyObject *uniform(PyObject *module, PyObject *args) {
  PyObject *capsule, *array;
  double low, scale, high;
  Py_buffer out;
  if (!PyArg_ParseTuple(args, "OOddd", &capsule, &array, &low, &scale, &high)) return NULL;
  Words *w = opened(capsule, array, &out);
  if (w == NULL) return NULL;
  Py_ssize_t n = out.len / out.itemsize;
  PyThreadState *state = n < LONG ? NULL : PyEval_SaveThread();
  if (out.itemsize == 4) fill_uniform32(w, out.buf, n, (float)low, (float)scale, (float)high);
  else if (out.itemsize == 8) fill_uniform64(w, out.buf, n, low, scale, high);
  if (state != NULL) PyEval_RestoreThread(state);
  return out.itemsize == 4 || out.itemsize == 8 ? closed(&out, Py_NewRef(Py_None)) : wrong(&out);
}

// ---------------------------------------------------------------- normal

static inline void put(Py_buffer *out, Py_ssize_t i, double x) {
  if (out->itemsize == 4) ((float *)out->buf)[i] = (float)x;
  else ((double *)out->buf)[i] = x;
}

// normals(generator, out, mean, std, kept): normals from Box-Muller pairs in double precision, of which `kept`, if it
// is not None, is the first; the second number of the last pair if it is not used.
static PyObject *normals(PyObject *module, PyObject *args) {
  PyObject *capsule, *array, *kept;
  double mean, std, left = 0;
  Py_buffer out;
  if (!PyArg_ParseTuple(args, "OOddO", &capsule, &array, &mean, &std, &kept)) return NULL;
  int has_kept = kept != Py_None, has_left = 0;
  double first = has_kept ? PyFloat_AsDouble(kept) : 0;
  if (first == -1 && PyErr_Occurred()) return NULL;
  Words *w = opened(capsule, array, &out);
  if (w == NULL) return NULL;
  if (out.itemsize != 4 && out.itemsize != 8) return wrong(&out);
  Py_ssize_t n = out.len / out.itemsize, i = 0;
  if (n == 0) return closed(&out, Py_NewRef(kept));
  PyThreadState *state = n < LONG ? NULL : PyEval_SaveThread();
  if (has_kept) put(&out, i++, fma(first, std, mean));
  while (i < n) {
    double angle = 2.0 * 3.14159265358979323846 * uniform64(w), radius = sqrt(-2.0 * log1p(-uniform64(w)));
    double sine = radius * sin(angle);
    put(&out, i++, fma(radius * cos(angle), std, mean));
    if (i < n) put(&out, i++, fma(sine, std, mean));
    else left = sine, has_left = 1;
  }
  if (state != NULL) PyEval_RestoreThread(state);
  return closed(&out, has_left ? PyFloat_FromDouble(left) : Py_NewRef(Py_None));
}

// ---------------------------------------------------------------- integers

// integers(generator, out, low, span, wide): int64 numbers `low` plus a word, or if `wide` a pair, modulo `span`.
static PyObject *integers(PyObject *module, PyObject *args) {
  PyObject *capsule, *array;
  long long low;
  unsigned long long span;
  int wide;
  Py_buffer out;
  if (!PyArg_ParseTuple(args, "OOLKp", &capsule, &array, &low, &span, &wide)) return NULL;
  if (span == 0) {
    PyErr_SetString(PyExc_ValueError, "an empty range");
    return NULL;
  }
  Words *w = opened(capsule, array, &out);
  if (w == NULL) return NULL;
  if (out.itemsize != 8) return wrong(&out);
  Py_ssize_t n = out.len / out.itemsize;
  uint64_t *numbers = out.buf;
  PyThreadState *state = n < LONG ? NULL : PyEval_SaveThread();
  for (Py_ssize_t i = 0; i < n; i++)
    numbers[i] = (uint64_t)low + (wide ? pair(w) % span : word(w) % (uint32_t)span);
  if (state != NULL) PyEval_RestoreThread(state);
  return closed(&out, Py_NewRef(Py_None));
}

// ---------------------------------------------------------------- the module

static PyObject *bind(PyObject *module, PyObject *names) { Py_RETURN_NONE; }

MODULE("filling", BIND, {"uniform", uniform, METH_VARARGS, NULL}, {"normals", normals, METH_VARARGS, NULL},
       {"integers", integers, METH_VARARGS, NULL});

PyMODINIT_FUNC PyInit_filling(void) { return PyModule_Create(&module); }
