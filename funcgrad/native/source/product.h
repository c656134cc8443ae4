// Products of matrices of any strides, in tasks.
#pragma once

#include <algorithm>
#include <cmath>
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

// So much of the depth at once that a panel stays in the second cache, and so much that it stays in the first one beside
// packed rows of the left operand.
constexpr int64_t kDepth = 512, kDepthPacked = (33 << 10) / (kVectors * kBytes);
// A task is worth so many multiplications at most and at least, and a packed panel at least so many rows; a thread gets so
// many tasks of a product whose rows are packed.
constexpr int64_t kLargeTask = 1 << 24, kSmallTask = 1 << 19, kLeastRows = 64, kTasks = 4;
// So many elements of packed panels stay in the second cache, beside rows of the left operand, for a block of the depth.
constexpr int64_t kPacked = 1 << 17;
// With fewer, waking another thread takes as long as it saves.
constexpr int64_t kAlone = 3 << 20;

// How many multiplications a task is to be, of so many in all.
inline int64_t task_of(int64_t work) { return std::clamp(work / 16, kSmallTask, kLargeTask); }

// 0, stride, 2 * stride, ...
inline Table multiples(int64_t count, int64_t stride = 1) {
  Table t(count);
  for (int64_t i = 0; i < count; ++i) t[i] = int32_t(i * stride);
  return t;
}

// How a product is divided: a task computes a range of rows in a group of panels. Results depend on the blocks of the
// depth only, which follow from sizes alone.
struct Division {
  int64_t batches, rows, columns, depth;
  Panels panels;
  int64_t ranges = 0, height = 0;  // of rows
  int64_t groups = 0, group = 0;   // of panels
  int64_t block = 0;               // steps of the depth at once
  int64_t each = 1;                // items of a task
  bool far = false;                // whether steps of the left operand's rows are on different lines of the cache

  template <class T>
  static Division of(const Product<T>& p, int64_t threads) {
    Division d{int64_t(p.out_at.size()), int64_t(p.left_rows.size()), int64_t(p.out_columns.size()),
               int64_t(p.left_depth.size()), Panels(p.out_columns.size(), Simd<T>::kLanes)};
    if (!d.work()) return d;  // no items
    const int64_t task = task_of(d.work()), all = d.panels.count;
    constexpr int lanes = Simd<T>::kLanes;
    d.far = d.depth > 1 && std::abs(p.left_depth[1] - p.left_depth[0]) > lanes;
    // Of whole vectors, since packing transposes squares of them.
    d.block = std::min(parts(parts(d.depth, parts(d.depth, d.far ? kDepthPacked : kDepth)), lanes) * lanes, d.depth);
    // Tasks of the same rows or panels pack the same numbers: so they are square, or high if rows are not packed. A
    // block of either stays in the second cache.
    const int64_t share = d.batches * d.rows * d.columns / (kTasks * threads);
    const int64_t area = std::max(task / d.depth, d.far ? share : 0);
    const int64_t most = kPacked / d.block, columns = std::min(most, d.columns);
    const int64_t high = d.far ? int64_t(std::sqrt(area)) : area / (kVectors * lanes);
    d.ranges = parts(d.rows, std::max(area / columns, std::clamp(high, kLeastRows, most)));
    d.height = parts(parts(d.rows, d.ranges), kRows) * kRows;
    const int64_t wide = std::min(area / d.height, columns);
    d.groups = parts(all, std::clamp<int64_t>(wide * all / d.columns, 1, all));
    d.group = parts(all, d.groups);
    d.each = std::max<int64_t>(task * all / (d.group * d.columns * d.depth * d.height), 1);
    return d;
  }
  int64_t work() const { return batches * rows * columns * depth; }
  int64_t items() const { return batches * groups * ranges; }
};

// Computes items of a product on one thread, which keeps the panels of its last group: the next item may be of the same.
template <class T>
class Multiplier {
 public:
  Multiplier(const Product<T>& p, const Division& d) : p_(p), d_(d), kept_(-1) {
    // Rows are packed if several panels read them.
    packs_left_ = d.far && d.group > 1;
    keeps_ = d.ranges > 1 && d.rows > 2 * kFewRows && d.group * d.panels.widest() * d.depth <= 2 * kPacked;
    if (!packs_left_) return;
    packed_depth_ = multiples(d.block, lanes);
    for (int64_t r = 0; r < d.height; ++r) packed_rows_.push_back(int32_t(r / lanes * lanes * d.block + r % lanes));
  }

  void operator()(int64_t item) {
    const int64_t range = item % d_.ranges, group = item / d_.ranges, batch = group / d_.groups;
    const int64_t first = range * d_.height, count = std::min(d_.height, d_.rows - first);
    const int64_t begin = group % d_.groups * d_.group, end = std::min(begin + d_.group, d_.panels.count);
    if (count <= 0) return;
    const bool kept = keeps_ && kept_ == group;
    kept_ = group;
    const int64_t room = keeps_ ? d_.depth * d_.group : d_.block;
    T* const packed = scratch<T, 0>(room * d_.panels.widest() + lanes);
    const T *left = p_.left + p_.left_at[batch], *right = p_.right + p_.right_at[batch];
    for (int64_t k = 0; k < d_.depth; k += d_.block) {
      const int64_t steps = std::min(d_.block, d_.depth - k);
      const T* packed_left = packs_left_ ? pack_rows(left, first, count, k, steps) : nullptr;
      for (int64_t i = begin; i < end; ++i) {
        const int width = d_.panels.width(i), vectors = d_.panels.vectors(i);
        const int32_t *depth = p_.right_depth.data() + k, *columns = p_.right_columns.data() + d_.panels.first(i);
        T* const to = keeps_ ? packed + ((i - begin) * d_.depth + k) * d_.panels.widest() : packed;
        Panel<T> panel{to, vectors * lanes};
        if (!keeps_) panel = panel_of<T>(right, depth, steps, columns, width, vectors, count, to);
        else if (!kept) pack<T>(right, depth, steps, columns, width, vectors, to);
        Target<T> target{p_.out + p_.out_at[batch], p_.out_rows.data() + first};
        target.turn_to(p_.out_columns.data() + d_.panels.first(i), width);
        target.add = k > 0;
        if (packs_left_)
          rows_by_panel<T>(vectors, packed_left, packed_rows_.data(), count, packed_depth_.data(), steps, panel, target);
        else
          rows_by_panel<T>(vectors, left, p_.left_rows.data() + first, count, p_.left_depth.data() + k, steps, panel,
                           target);
      }
    }
  }

 private:
  static constexpr int lanes = Simd<T>::kLanes;

  // Rows in strips of a vector's lanes: for each step of the depth a vector.
  const T* pack_rows(const T* left, int64_t first, int64_t count, int64_t k, int64_t steps) {
    T* const room = scratch<T, 2>(parts(count, lanes) * lanes * d_.block + lanes);
    const int32_t *rows = p_.left_rows.data() + first, *depth = p_.left_depth.data() + k;
    if (!adjacent(rows, count)) {
      for (int64_t r = 0; r < count; r += lanes)
        pack<T>(left, depth, steps, rows + r, int(std::min<int64_t>(lanes, count - r)), 1, room + r * d_.block);
      return room;
    }
    // All strips at each step, so that each page of the operand is read once.
    for (int64_t j = 0; j < steps; ++j) {
      const T* from = left + depth[j] + rows[0];
      T* to = room + j * lanes;
      int64_t r = 0;
      for (; r + lanes <= count; r += lanes, to += lanes * d_.block) Simd<T>::store(to, Simd<T>::load(from + r));
      if (r < count) Simd<T>::store(to, Simd<T>::load_first(from + r, int(count - r)));
    }
    return room;
  }

  const Product<T>& p_;
  const Division d_;
  int64_t kept_;  // the group of the panels in memory
  bool packs_left_, keeps_;
  Table packed_rows_, packed_depth_;
};

template <class T>
void multiply(xla::ffi::ThreadPool& pool, const Product<T>& p) {
  const Division d = Division::of(p, pool.num_threads());
  Multiplier<T> multiplier(p, d);
  if (d.work() < kAlone) {
    for (int64_t i = 0; i < d.items(); ++i) multiplier(i);
    return;
  }
  for_each_task(pool, parts(d.items(), d.each), [&d, multiplier](int64_t t) mutable {
    for (int64_t i = t * d.each; i < std::min(d.items(), (t + 1) * d.each); ++i) multiplier(i);
  });
}

}  // namespace funcgrad
