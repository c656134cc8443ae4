// Products of matrices of any strides, in tasks.
#pragma once

#include <algorithm>
#include <vector>

#include "panel.h"
#include "parallel.h"

namespace funcgrad {

using Table = std::vector<int32_t>;

// out[i, r, c] = sum over k of left[i, r, k] * right[i, k, c], each element at the sum of its offsets.
template <class T>
struct Product {
  const T* left;
  const T* right;
  T* out;
  Table left_at, right_at, out_at;  // by batch element
  Table left_rows, out_rows;        // by row
  Table left_depth, right_depth;    // by step of the depth
  Table right_columns, out_columns; // by column
};

// So much of the depth at once that a panel stays in the second cache.
constexpr int64_t kDepth = 512;
// A task is worth so many multiplications at most and at least, and a packed panel at least so many rows.
constexpr int64_t kLargeTask = 1 << 22, kSmallTask = 1 << 19, kLeastRows = 64;
// With fewer, waking another thread takes as long as it saves.
constexpr int64_t kAlone = 3 << 20;

// How many multiplications a task is to be, of so many in all. It follows from sizes alone, and so do results.
inline int64_t task_of(int64_t work) { return std::clamp(work / 16, kSmallTask, kLargeTask); }

inline int64_t parts(int64_t count, int64_t size) { return (count + size - 1) / size; }

// 0, stride, 2 * stride, ...
inline Table multiples(int64_t count, int64_t stride = 1) {
  Table t(count);
  for (int64_t i = 0; i < count; ++i) t[i] = int32_t(i * stride);
  return t;
}

// The width of panels in vectors, for so many columns: as even as it goes. The last may be narrower.
inline int panel_vectors(int64_t columns, int lanes) {
  const int64_t vectors = parts(columns, lanes);
  return int(parts(vectors, parts(vectors, kVectors)));
}

template <class T>
void multiply(xla::ffi::ThreadPool& pool, const Product<T>& p) {
  constexpr int lanes = Simd<T>::kLanes;
  const int64_t batches = p.out_at.size(), rows = p.left_rows.size(), columns = p.out_columns.size(),
                depth = p.left_depth.size();
  const int wide = panel_vectors(columns, lanes) * lanes;
  const int64_t panels = (columns + wide - 1) / wide;
  const int64_t work = batches * rows * columns * depth, task = task_of(work);
  int64_t height = std::max<int64_t>(task / (wide * std::max<int64_t>(depth, 1)), kLeastRows);
  const int64_t ranges = std::max<int64_t>((rows + height - 1) / height, 1);
  height = ((rows + ranges - 1) / ranges + kRows - 1) / kRows * kRows;
  const int64_t items = batches * panels * ranges;
  const int64_t each = std::max<int64_t>(task / (wide * std::max<int64_t>(depth, 1) * height), 1);
  const auto item = [&](int64_t i) {
    const int64_t range = i % ranges, panel = i / ranges % panels, batch = i / ranges / panels;
    const int64_t first = range * height, count = std::min(height, rows - first);
    const int64_t column = panel * wide;
    const int width = int(std::min<int64_t>(wide, columns - column));
    if (count <= 0) return;
    const int vectors = int(parts(width, lanes));
    const int64_t block = std::min(depth, kDepth);
    T* packed = scratch<T, 0>(block * wide + lanes);
    Target<T> to{p.out + p.out_at[batch], p.out_rows.data() + first};
    to.turn_to(p.out_columns.data() + column, width);
    for (int64_t k = 0; k < depth; k += block, to.add = true) {
      const int64_t steps = std::min(block, depth - k);
      const Panel<T> ready = panel_of<T>(p.right + p.right_at[batch], p.right_depth.data() + k, steps,
                                         p.right_columns.data() + column, width, vectors, count, packed);
      rows_by_panel<T>(vectors, p.left + p.left_at[batch], p.left_rows.data() + first, count, p.left_depth.data() + k,
                       steps, ready, to);
    }
  };
  if (work < kAlone) {
    for (int64_t i = 0; i < items; ++i) item(i);
    return;
  }
  for_each_task(pool, (items + each - 1) / each, [&](int64_t t) {
    for (int64_t i = t * each; i < std::min(items, (t + 1) * each); ++i) item(i);
  });
}

}  // namespace funcgrad
