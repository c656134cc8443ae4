// Functions of vectors of float32, to within two units in the last place.
#pragma once

#include "tile.h"

namespace funcgrad {

using Float = Simd<float>::Vector;
typedef int32_t Int __attribute__((vector_size(kBytes)));

inline Float splat(float x) { return x - Float{}; }
inline Float lesser(Float a, Float b) { return a < b ? a : b; }
inline Float greater(Float a, Float b) { return a > b ? a : b; }

// exp(y) = power + rest, where power is of two: `rest` keeps what is lost of y near zero.
struct Exponential {
  Float power, rest;
};

// y = n log 2 + r with |r| at most half of log 2; the series of exp(r) - 1 up to r^7, times 2^n. Beyond +-87 as there.
inline Exponential exponential(Float y) {
  y = lesser(greater(y, splat(-87.f)), splat(87.f));
  const Float magic = splat(12582912.f);  // 1.5 * 2^23, which rounds to whole numbers
  const Float n = (y * 1.44269504088896341f + magic) - magic;
  const Float r = (y - n * 0.693145751953125f) - n * 1.42860677e-6f;
  Float p = splat(1.f / 5040);
  p = p * r + 1.f / 720;
  p = p * r + 1.f / 120;
  p = p * r + 1.f / 24;
  p = p * r + 1.f / 6;
  p = p * r + 0.5f;
  p = p * (r * r) + r;
  const Int bits = (__builtin_convertvector(n, Int) + 127) << 23;
  Float power;
  std::memcpy(&power, &bits, sizeof power);
  return {power, power * p};
}

// What is not a number stays so, which the bounds above would hide.
inline Float logistic(Float x) {
  const Exponential e = exponential(-x);
  const Float y = 1.f / (1.f + (e.power + e.rest));
  return x != x ? x : y;
}

// With m = exp(-2|x|) - 1, which is exact near zero: -m / (2 + m), with the sign of x.
inline Float tanh(Float x) {
  const Float size = x < 0.f ? -x : x;
  const Exponential e = exponential(-2.f * size);
  const Float m = e.rest + (e.power - 1.f);
  const Float t = -m / (2.f + m);
  return x != x ? x : x < 0.f ? -t : t;
}

}  // namespace funcgrad
