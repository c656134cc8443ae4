// The C twin of normals_from_bits32 (boxmuller.py): the same operations on each pair, so the same bits. A fused
// multiply-add is fmaf here.
#include "buffers.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { ROW = 8 };  // pairs that stand together: eight first words, then eight second ones

INLINE int32_t bits_of(float x) {
  int32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

INLINE float float_of(int32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

// sqrt(-2 log(1 - u)) for u = (word mod 2**24) / 2**24.
INLINE float radius_of(uint32_t word) {
  int32_t bits = bits_of((float)((1 << 24) - (int32_t)(word & 0xFFFFFF)));
  int32_t exponent = (bits - 0x3F3504F3) >> 23;
  float x = float_of((int32_t)((uint32_t)bits - ((uint32_t)exponent << 23))) - 1.0f, z = x * x;
  float e = (float)(exponent - 24);
  float y = fmaf(x, 7.0376836292e-2f, -1.1514610310e-1f);
  y = fmaf(y, x, 1.1676998740e-1f);
  y = fmaf(y, x, -1.2420140846e-1f);
  y = fmaf(y, x, 1.4249322787e-1f);
  y = fmaf(y, x, -1.6668057665e-1f);
  y = fmaf(y, x, 2.0000714765e-1f);
  y = fmaf(y, x, -2.4999993993e-1f);
  y = fmaf(y, x, 3.3333331174e-1f);
  y *= x;
  y = fmaf(y, z, e * -2.12194440e-4f);
  y -= z * 0.5f;
  x += y;
  x += e * 0.693359375f;
  return sqrtf(x * -2.0f);
}

// The cosine and the sine of 2 pi v for v = (word mod 2**24) / 2**24.
INLINE void angle_of(uint32_t word, float *cosine, float *sine) {
  float x = (float)(int32_t)(word & 0xFFFFFF) * 0x1p-24f;
  x *= (float)(2 * 3.14159265358979323846);
  int32_t octant = ((int32_t)(x * 1.27323954473516f) + 1) & -2;
  float y = (float)octant;
  x += y * -0.78515625f;
  x += y * -2.4187564849853515625e-4f;
  x = fmaf(y, -3.77489497744594108e-8f, x);
  float z = x * x;
  float s = fmaf(fmaf(z, -1.9515295891e-4f, 8.3321608736e-3f), z, -1.6666654611e-1f);
  s *= z;
  s = fmaf(s, x, x);
  float c = fmaf(fmaf(z, 2.443315711809948e-5f, -1.388731625493765e-3f), z, 4.166664568298827e-2f);
  c *= z;
  c = fmaf(c, z, -0.5f * z);
  c += 1.0f;
  // Swap and negate the two, according to the octant.
  int32_t swap = -((octant >> 1) & 1), cb = bits_of(c), sb = bits_of(s), other = (cb ^ sb) & swap;
  *cosine = float_of((int32_t)((uint32_t)(cb ^ other) ^ ((uint32_t)((octant + 2) & 4) << 29)));
  *sine = float_of((int32_t)((uint32_t)(sb ^ other) ^ ((uint32_t)(octant & 4) << 29)));
}

INLINE void fill(const uint32_t *restrict words, float *restrict out, Py_ssize_t rows, float mean, float std) {
  for (Py_ssize_t row = 0; row < rows; row++, words += 2 * ROW, out += 2 * ROW) {
    float radius[ROW], cosine[ROW], sine[ROW];
    for (int i = 0; i < ROW; i++) radius[i] = radius_of(words[i]);
    for (int i = 0; i < ROW; i++) angle_of(words[ROW + i], &cosine[i], &sine[i]);
    for (int i = 0; i < ROW; i++) out[i] = fmaf(cosine[i] * radius[i], std, mean);
    for (int i = 0; i < ROW; i++) out[ROW + i] = fmaf(sine[i] * radius[i], std, mean);
  }
}

typedef void Fill(const uint32_t *, float *, Py_ssize_t, float, float);

static void fill_anywhere(const uint32_t *words, float *out, Py_ssize_t rows, float mean, float std) {
  fill(words, out, rows, mean, std);
}

#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target("avx2,fma"))) static void fill_fused(const uint32_t *words, float *out, Py_ssize_t rows,
                                                           float mean, float std) {
  fill(words, out, rows, mean, std);
}

static Fill *fill_here(void) {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? fill_fused : fill_anywhere;
}
#else
static Fill *fill_here(void) { return fill_anywhere; }
#endif

// normals(words, out, mean, std): fills a buffer of floats from one of as many words, sixteen at a time.
static PyObject *normals(PyObject *module, PyObject *args) {
  Buffers b;
  float mean, std;
  if (!PyArg_ParseTuple(args, "y*w*ff", &b.from, &b.into, &mean, &std) || !have_one_size(&b)) return NULL;
  Py_BEGIN_ALLOW_THREADS;
  fill_here()(b.from.buf, b.into.buf, b.into.len / (Py_ssize_t)(2 * ROW * sizeof(float)), mean, std);
  Py_END_ALLOW_THREADS;
  return filled(&b);
}

MODULE("boxmuller", BIND, {"normals", normals, METH_VARARGS, NULL});

PyMODINIT_FUNC PyInit_boxmuller(void) { return PyModule_Create(&module); }
