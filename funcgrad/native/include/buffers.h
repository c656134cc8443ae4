// What the C twins of functions of arrays share: they fill a buffer from another of the same size, and work with no
// Python object.
#ifndef FUNCGRAD_BUFFERS_H
#define FUNCGRAD_BUFFERS_H

#include "twin.h"

#pragma STDC FP_CONTRACT OFF

#ifdef __GNUC__
#define INLINE static inline __attribute__((always_inline))
#else
#define INLINE static inline
#endif

typedef struct {
  Py_buffer from, into;
} Buffers;

static PyObject *filled(Buffers *b) {
  PyBuffer_Release(&b->from);
  PyBuffer_Release(&b->into);
  return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

// Otherwise releases them, with an error set.
static int have_one_size(Buffers *b) {
  if (b->from.len == b->into.len) return 1;
  PyErr_Format(PyExc_ValueError, "%zd bytes of arguments for %zd of results", b->from.len, b->into.len);
  filled(b);
  return 0;
}

static PyObject *bind(PyObject *module, PyObject *names) { Py_RETURN_NONE; }

#endif
