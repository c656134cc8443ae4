// The C twin of erf_of_large (erf.py): the same operations on each element, so the same bits.
#include "buffers.h"

// Comparisons with a NaN are false, so it stays.
INLINE float clamp(float x, float most) {
  x = x < -most ? -most : x;
  return x > most ? most : x;
}

INLINE float erf_of(float x) {
  x = clamp(x, 3.93f);
  float z = x * x, n = z * 2.0419563e-06f, d = z * 3.8003876e-05f;
  n = (n + 2.8480773e-04f) * z;
  n = (n + 3.7796171e-03f) * z;
  n = (n + 5.2790321e-02f) * z;
  n = (n + 1.9078416e-01f) * z;
  n += 1.1283791e+00f;
  d = (d + 1.1652124e-03f) * z;
  d = (d + 1.4997459e-02f) * z;
  d = (d + 1.1425765e-01f) * z;
  d = (d + 5.0241077e-01f) * z;
  d += 1.0f;
  return clamp(x * n / d, 1.0f);
}

typedef void Fill(const float *restrict, float *restrict, Py_ssize_t);

static void fill_anywhere(const float *restrict x, float *restrict out, Py_ssize_t size) {
  for (Py_ssize_t i = 0; i < size; i++) out[i] = erf_of(x[i]);
}

#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target("avx2"))) static void fill_avx2(const float *restrict x, float *restrict out, Py_ssize_t size) {
  for (Py_ssize_t i = 0; i < size; i++) out[i] = erf_of(x[i]);
}

static Fill *fill_here(void) { return __builtin_cpu_supports("avx2") ? fill_avx2 : fill_anywhere; }
#else
static Fill *fill_here(void) { return fill_anywhere; }
#endif

// erf(x, out): fills a contiguous buffer of floats from another of the same size.
static PyObject *erf_buffers(PyObject *module, PyObject *args) {
  Buffers b;
  if (!PyArg_ParseTuple(args, "y*w*", &b.from, &b.into) || !have_one_size(&b)) return NULL;
  Py_BEGIN_ALLOW_THREADS;
  fill_here()(b.from.buf, b.into.buf, b.into.len / (Py_ssize_t)sizeof(float));
  Py_END_ALLOW_THREADS;
  return filled(&b);
}

MODULE("erf", BIND, {"erf", erf_buffers, METH_VARARGS, NULL});

PyMODINIT_FUNC PyInit_erf(void) { return PyModule_Create(&module); }
