// Packing the right operand of a product: for each step of the depth a row of so many vectors, zeros behind the last.
#pragma once

#include <algorithm>
#include <vector>

#include "tile.h"

namespace funcgrad {

inline int64_t parts(int64_t count, int64_t size) { return (count + size - 1) / size; }

// W vectors as the rows of a square, turned: log W rounds, each of which shuffles the halves of all rows together.
template <class T>
inline void transpose(typename Simd<T>::Vector (&rows)[Simd<T>::kLanes]) {
  constexpr int n = Simd<T>::kLanes;
  typename Simd<T>::Vector next[n];
  for (int size = 1; size < n; size *= 2) {
    for (int i = 0; i < n / 2; ++i) {
      const auto a = rows[i], b = rows[i + n / 2];
      if constexpr (n == 16) {
        next[2 * i] = __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
        next[2 * i + 1] = __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
      } else if constexpr (n == 8) {
        next[2 * i] = __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
        next[2 * i + 1] = __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
      } else if constexpr (n == 4) {
        next[2 * i] = __builtin_shufflevector(a, b, 0, 4, 1, 5);
        next[2 * i + 1] = __builtin_shufflevector(a, b, 2, 6, 3, 7);
      } else {
        next[2 * i] = __builtin_shufflevector(a, b, 0, 2);
        next[2 * i + 1] = __builtin_shufflevector(a, b, 1, 3);
      }
    }
    std::memcpy(&rows, &next, sizeof next);
  }
}

// Columns of the operand, as far as they lie side by side.
struct Run {
  int32_t from;  // in the operand
  int32_t to;    // in the panel
  int32_t length;
};

// Of columns, the runs that a panel begins with, none longer than a vector.
inline int runs_of(const int32_t* columns, int width, int lanes, Run* runs) {
  int count = 0;
  for (int c = 0; c < width;) {
    int end = c + 1;
    while (end < width && end - c < lanes && columns[end] == columns[c] + (end - c)) ++end;
    runs[count++] = {columns[c], c, end - c};
    c = end;
  }
  return count;
}

// panel[k, c] = right[depth[k] + columns[c]], rows of `vectors` vectors. Behind the panel is room for a vector.
template <class T>
void pack(const T* right, const int32_t* depth, int64_t steps, const int32_t* columns, int width, int vectors,
          T* panel) {
  using S = Simd<T>;
  constexpr int lanes = S::kLanes;
  const int step = vectors * lanes;
  Run runs[kVectors * lanes];
  const int count = runs_of(columns, width, lanes, runs);
  if (count <= 4 * vectors || width < lanes / 2) {
    for (int64_t k = 0; k < steps; ++k, panel += step) {
      const T* from = right + depth[k];
      for (int i = 0; i < count; ++i)
        S::store(panel + runs[i].to, runs[i].length == lanes ? S::load(from + runs[i].from)
                                                             : S::load_first(from + runs[i].from, runs[i].length));
      // The last store may have gone into the next row, which is written later; what it left of this one is zero.
      for (int c = runs[count - 1].to + lanes; c < step; c += lanes) S::store(panel + c, typename S::Vector{});
    }
    return;
  }
  for (int64_t k = 0; k < steps;) {
    // The last square overlaps the one before it.
    if (steps - k < lanes && steps >= lanes && adjacent(depth + steps - lanes, lanes)) k = steps - lanes;
    if (steps - k < lanes || !adjacent(depth + k, lanes)) {
      T* to = panel + k * step;
      const T* from = right + depth[k];
      for (int c = 0; c < width; ++c) to[c] = from[columns[c]];
      for (int c = width; c < step; ++c) to[c] = 0;
      ++k;
      continue;
    }
    for (int v = 0; v < vectors; ++v) {
      typename S::Vector square[lanes];
      for (int j = 0; j < lanes; ++j) {
        const int c = v * lanes + j;
        square[j] = c < width ? S::load(right + depth[k] + columns[c]) : typename S::Vector{};
      }
      transpose<T>(square);
      for (int j = 0; j < lanes; ++j) S::store(panel + (k + j) * step + v * lanes, square[j]);
    }
    k += lanes;
  }
}

// Of a product, the columns in panels: as even as whole vectors allow.
struct Panels {
  int64_t columns, lanes, count;

  Panels(int64_t columns, int lanes)
      : columns(columns), lanes(lanes), count(parts(parts(columns, lanes), kVectors)) {}
  int64_t first(int64_t i) const { return std::min(parts(columns, lanes) * i / count * lanes, columns); }
  int width(int64_t i) const { return int(first(i + 1) - first(i)); }
  int vectors(int64_t i) const { return int(parts(width(i), lanes)); }
  // Elements of a row of the widest.
  int64_t widest() const { return parts(parts(columns, lanes), std::max<int64_t>(count, 1)) * lanes; }
};

// Whether a row is only read by so few tiles that it is not worth moving.
constexpr int64_t kFewRows = 64;

// The panel of so many columns: in place, if it lies as panels do and serves few rows, or else packed in `room`.
template <class T>
Panel<T> panel_of(const T* right, const int32_t* depth, int64_t steps, const int32_t* columns, int width, int vectors,
                  int64_t rows, T* room) {
  const int wide = vectors * Simd<T>::kLanes;
  if (rows <= kFewRows && width == wide && adjacent(columns, width)) {
    const int64_t step = steps > 1 ? depth[1] - depth[0] : 0;
    bool even = true;
    for (int64_t k = 2; k < steps; ++k) even &= depth[k] - depth[k - 1] == step;
    if (even) return {right + depth[0] + columns[0], step};
  }
  pack<T>(right, depth, steps, columns, width, vectors, room);
  return {room, wide};
}

}  // namespace funcgrad
