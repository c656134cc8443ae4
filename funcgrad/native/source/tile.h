// The micro-kernel: a tile of a product of matrices, held in vector registers while the depth is walked.
//
// The left operand is read where it lies, one number at a time: its rows are pointers, and a table says how far from
// these each step of the depth is. So the same kernel serves matrices of any strides and the windows of a convolution.
// The right operand is a packed panel: for each step of the depth, `Vectors` vectors side by side.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__AVX__)
#include <immintrin.h>
#endif

namespace funcgrad {

// The tile's rows, and vectors in each: what the registers hold beside one row of the panel.
#if defined(__AVX512F__)
constexpr int kBytes = 64, kRows = 8, kVectors = 3;
#elif defined(__AVX__)
constexpr int kBytes = 32, kRows = 4, kVectors = 3;
#elif defined(__aarch64__)
constexpr int kBytes = 16, kRows = 6, kVectors = 4;
#else
constexpr int kBytes = 16, kRows = 4, kVectors = 3;
#endif

template <class T>
struct Simd {
  typedef T Vector __attribute__((vector_size(kBytes)));
  static constexpr int kLanes = kBytes / int(sizeof(T));

  static inline Vector load(const T* from) {
    Vector v;
    std::memcpy(&v, from, sizeof v);
    return v;
  }
  static inline void store(T* to, Vector v) { std::memcpy(to, &v, sizeof v); }

  // The first `count` lanes; zeros, and nothing read or written, in those after.
  static inline Vector load_first(const T* from, int count) {
#if defined(__AVX512F__)
    if constexpr (sizeof(T) == 4) return (Vector)_mm512_maskz_loadu_ps(__mmask16((1u << count) - 1), from);
    else return (Vector)_mm512_maskz_loadu_pd(__mmask8((1u << count) - 1), from);
#else
    Vector v = {};
    std::memcpy(&v, from, count * sizeof(T));
    return v;
#endif
  }
  static inline void store_first(T* to, Vector v, int count) {
#if defined(__AVX512F__)
    if constexpr (sizeof(T) == 4) _mm512_mask_storeu_ps(to, __mmask16((1u << count) - 1), (__m512)v);
    else _mm512_mask_storeu_pd(to, __mmask8((1u << count) - 1), (__m512d)v);
#else
    std::memcpy(to, &v, count * sizeof(T));
#endif
  }
};

// Whether offsets grow by one.
inline bool adjacent(const int32_t* offsets, int64_t count) {
  bool all = true;
  for (int64_t i = 1; i < count; ++i) all &= offsets[i] == offsets[i - 1] + 1;
  return all;
}

// Where a tile goes: row r, column c at `at[rows[r] + columns[c]]`.
template <class T>
struct Target {
  T* at;
  const int32_t* rows;
  const int32_t* columns;
  int width;          // columns that there are
  unsigned together;  // bit v: whether the columns of vector v are side by side
  bool all_together;  // whether all columns are
  bool add;           // to what is there

  // Towards `width` columns.
  void turn_to(const int32_t* first, int count) {
    columns = first, width = count, together = 0, all_together = adjacent(columns, width);
    constexpr int lanes = Simd<T>::kLanes;
    for (int v = 0; v * lanes < width; ++v) {
      const int left = width - v * lanes;
      together |= unsigned(adjacent(columns + v * lanes, left < lanes ? left : lanes)) << v;
    }
  }
};

template <class T, int Rows, int Vectors>
inline void put(typename Simd<T>::Vector (&acc)[Rows][Vectors], const Target<T>& to) {
  using S = Simd<T>;
  constexpr int lanes = S::kLanes;
  if (to.all_together && to.width == Vectors * lanes) {
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) {
      T* at = to.at + to.rows[r] + to.columns[0];
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v, at += lanes) S::store(at, to.add ? S::load(at) + acc[r][v] : acc[r][v]);
    }
    return;
  }
#pragma GCC unroll 4
  for (int v = 0; v < Vectors; ++v) {
    const int count = to.width - v * lanes;
    if (count <= 0) return;
    const int32_t* columns = to.columns + v * lanes;
    const bool full = count >= lanes;
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) {
      T* row = to.at + to.rows[r];
      if (to.together >> v & 1) {
        T* at = row + columns[0];
        if (to.add) acc[r][v] += full ? S::load(at) : S::load_first(at, count);
        if (full) S::store(at, acc[r][v]);
        else S::store_first(at, acc[r][v], count);
      } else {
        T values[lanes];
        S::store(values, acc[r][v]);
        for (int c = 0; c < (full ? lanes : count); ++c) row[columns[c]] = to.add ? row[columns[c]] + values[c] : values[c];
      }
    }
  }
}

// The left operand is prefetched so many steps ahead if they are so many bytes apart that the processor does not do so by
// itself, and so many that it pays.
constexpr int64_t kAhead = 32, kFarApart = 256, kLeastSteps = 256;

// Rows of numbers that vectors are made of: a packed panel, or a matrix that lies as one does.
template <class T>
struct Panel {
  const T* at;
  int64_t step;  // from one row to the next
};

// to[r, c] = sum over k of left[rows[r] + depth[k]] * panel[k, c], in the order of k, each with one rounding where the
// machine has fused multiply-add: a sum is the same in whichever tile it is computed.
template <class T, int Rows, int Vectors>
__attribute__((noinline)) void tile(const T* left, const int32_t* rows, const int32_t* depth, int64_t steps,
                                    const Panel<T>& panel, const Target<T>& to) {
  using S = Simd<T>;
  typename S::Vector acc[Rows][Vectors] = {};
  const T* row[Rows];
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) row[r] = left + rows[r];
  const T* at = panel.at;
  const auto step = [&](int64_t k) __attribute__((always_inline)) {
    const ptrdiff_t offset = depth[k];
    typename S::Vector right[Vectors];
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) right[v] = S::load(at + v * S::kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) {
      const T x = row[r][offset];
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) acc[r][v] += x * right[v];
    }
    at += panel.step;
  };
  const bool far = steps >= kLeastSteps && (depth[1] - depth[0]) * int64_t(sizeof(T)) >= kFarApart;
  int64_t k = 0;
  if (far)
    for (; k < steps - kAhead; ++k) {
      __builtin_prefetch(row[0] + depth[k + kAhead], 0, 2);
      step(k);
    }
  // Fewer instructions: beside a busy thread of the same core their decoding is what limits a tile.
#pragma GCC unroll 4
  for (; k < steps; ++k) step(k);
  put<T, Rows, Vectors>(acc, to);
}

// All rows against one panel.
template <class T, int Vectors>
void rows_by_panel(const T* left, const int32_t* rows, int64_t count, const int32_t* depth, int64_t steps,
                   const Panel<T>& panel, Target<T> to) {
  constexpr int half = kRows / 2;
  int64_t r = 0;
  for (; r + kRows <= count; r += kRows, to.rows += kRows)
    tile<T, kRows, Vectors>(left, rows + r, depth, steps, panel, to);
  for (; r + half <= count; r += half, to.rows += half)
    tile<T, half, Vectors>(left, rows + r, depth, steps, panel, to);
  for (; r < count; ++r, ++to.rows) tile<T, 1, Vectors>(left, rows + r, depth, steps, panel, to);
}

template <class T>
void rows_by_panel(int vectors, const T* left, const int32_t* rows, int64_t count, const int32_t* depth, int64_t steps,
                   const Panel<T>& panel, const Target<T>& to) {
  switch (vectors) {
    case 1: return rows_by_panel<T, 1>(left, rows, count, depth, steps, panel, to);
    case 2: return rows_by_panel<T, 2>(left, rows, count, depth, steps, panel, to);
    case 3: return rows_by_panel<T, 3>(left, rows, count, depth, steps, panel, to);
    default: return rows_by_panel<T, kVectors>(left, rows, count, depth, steps, panel, to);
  }
}

}  // namespace funcgrad
