// Scaled dot-product attention and its gradients, for blocks of queries whose scores stay in the cache.
#include <cmath>
#include <limits>
#include <optional>

#include "elementary.h"
#include "product.h"

namespace ffi = xla::ffi;

namespace funcgrad {
namespace {

constexpr int lanes = Simd<float>::kLanes;
// The scores of so many queries at once at most, and so many scores, if that leaves a tile of queries.
constexpr int64_t kQueries = 64, kScores = 1 << 16;
// So many keys at once in the backward pass, whose gradients stay in the cache.
constexpr int64_t kKeys = 256;
// So many queries at least share the panels that a task packs.
constexpr int64_t kSharing = 128;

// An array of batch elements, heads, rows and columns, with any strides.
template <class T>
struct Heads {
  T* at;
  int64_t sizes[4] = {1, 1, 1, 1}, strides[4] = {0, 0, 0, 0};

  // Axis d is axis order[d] of the buffer.
  Heads(T* at, ffi::Span<const int64_t> dimensions, ffi::Span<const int64_t> order) : at(at) {
    for (int d = 0; d < 4; ++d) {
      sizes[d] = dimensions[order[d]], strides[d] = 1;
      for (size_t i = order[d] + 1; i < dimensions.size(); ++i) strides[d] *= dimensions[i];
    }
  }
  T* head(int64_t i) const { return at + i / sizes[1] * strides[0] + i % sizes[1] * strides[1]; }
  int64_t heads() const { return sizes[0] * sizes[1]; }
  Table rows() const { return multiples(sizes[2], strides[2]); }
  Table columns() const { return multiples(sizes[3], strides[3]); }
};

// A right operand of products in panels.
struct Right {
  Panels panels;
  Table depth, columns;  // its offsets

  Right(Table depth, Table columns)
      : panels(columns.size(), lanes), depth(std::move(depth)), columns(std::move(columns)) {}
  int64_t steps() const { return depth.size(); }
  int64_t elements() const { return panels.count * panels.widest() * steps() + lanes; }
  void pack_to(const float* from, float* to) const {
    for (int64_t i = 0; i < panels.count; ++i, to += panels.widest() * steps())
      pack<float>(from, depth.data(), steps(), columns.data() + panels.first(i), panels.width(i), panels.vectors(i),
                  to);
  }
};

// A left operand of products.
struct Left {
  const float* at;
  const Table& rows;
  const Table& depth;
};

// to[r, c] = sum over the first `steps` of the depth of left[r, k] * right[k, c], for `count` rows from the `first` on,
// and for columns up to the panel with column `limit` - 1. Added to what is there if `add`.
void multiply(const Left& left, int64_t first, int64_t count, int64_t steps, const Right& right, const float* packed,
              int64_t limit, float* to, const int32_t* to_rows, const int32_t* to_columns, bool add) {
  for (int64_t i = 0; i < right.panels.count && right.panels.first(i) < limit; ++i) {
    const int vectors = right.panels.vectors(i);
    Target<float> target{to, to_rows};
    target.turn_to(to_columns + right.panels.first(i), right.panels.width(i));
    target.add = add;
    const float* panel = packed + i * right.panels.widest() * right.steps();
    for (int64_t k = 0; k < steps; k += kDepth, panel += kDepth * vectors * lanes, target.add = true)
      rows_by_panel<float>(vectors, left.at, left.rows.data() + first, count, left.depth.data() + k,
                           std::min(kDepth, steps - k), Panel<float>{panel, vectors * lanes}, target);
  }
}

// exp(x), 0 where that is too small for a number, and not a number where x is not.
inline Float weight(Float x) {
  const Exponential e = exponential(x);
  const Float y = x < -87.f ? Float{} : e.power + e.rest;
  return x != x ? x : y;
}

template <int n>
struct Part {
  typedef float Vector __attribute__((vector_size(n * 4)));
};

// All lanes combined, halves with halves.
template <int n = lanes, class Combine>
inline float reduced(typename Part<n>::Vector v, const Combine& combine) {
  if constexpr (n == 2) {
    return combine(v[0], v[1]);
  } else {
    typename Part<n / 2>::Vector half[2];
    std::memcpy(&half, &v, sizeof v);
    return reduced<n / 2>(combine(half[0], half[1]), combine);
  }
}
inline float total(Float v) {
  return reduced(v, [](auto a, auto b) { return a + b; });
}

// The inner product of `count` elements that are so far apart.
float inner_product(const float* x, int64_t x_step, const float* y, int64_t y_step, int64_t count) {
  Float sums{};
  int64_t i = 0;
  if (x_step == 1 && y_step == 1)
    for (; i + lanes <= count; i += lanes) sums += Simd<float>::load(x + i) * Simd<float>::load(y + i);
  float sum = total(sums);
  for (; i < count; ++i) sum += x[i * x_step] * y[i * y_step];
  return sum;
}

// What both directions need: sizes, the scores' scale and mask, and which keys a query has.
struct Scores {
  int64_t heads, rows, keys;  // heads of a batch element
  int64_t period;             // rows of one head of the queries, whose positions begin at zero
  int64_t wide, block;        // what is stored of a row of scores, and how many rows
  float scale;
  bool causal;
  const Heads<const float>* mask;
  Table scored;   // the rows of a block of scores
  Table columns;  // of scores

  // For scores of `at_once` keys at once.
  Scores(const Heads<const float>& q, int64_t keys, int64_t at_once, float scale, bool causal, int64_t period,
         const Heads<const float>* mask)
      : heads(q.sizes[1]), rows(q.sizes[2]), keys(keys), period(period), scale(scale), causal(causal), mask(mask) {
    // An odd number of vectors, so that rows begin in different sets of the cache.
    wide = (parts(at_once, lanes) | 1) * lanes;
    // A causal mask leaves out more, the fewer queries are in a block.
    const int64_t most = causal ? std::clamp(rows / 4, kQueries / 2, kQueries) : kQueries;
    block = std::clamp(kScores / wide, int64_t(kRows), most) / kRows * kRows;
    scored = multiples(block, wide), columns = multiples(wide);
  }
  int64_t keys_of(int64_t row) const { return causal ? std::min(row % period + 1, keys) : keys; }
  int64_t keys_of(int64_t first, int64_t count) const {
    int64_t most = 0;
    for (int64_t r = first; r < first + count; ++r) most = std::max(most, keys_of(r));
    return most;
  }

  // The scaled and masked products of a row with `count` keys from the `first` on, in place; -inf in what is left of the
  // last vector.
  void finish(int64_t head, int64_t row, int64_t first, int64_t count, float* x) const {
    const Float factor = splat(scale);
    for (int64_t j = 0; j < count; j += lanes) Simd<float>::store(x + j, Simd<float>::load(x + j) * factor);
    if (mask) {
      // An axis of size 1 serves all batch elements, heads, rows or keys.
      const int64_t* const sizes = mask->sizes;
      const float* const add = mask->at + head / heads % sizes[0] * mask->strides[0] +
                               head % heads % sizes[1] * mask->strides[1] + row % sizes[2] * mask->strides[2] +
                               first % sizes[3] * mask->strides[3];
      const int64_t step = sizes[3] > 1 ? mask->strides[3] : 0;
      if (step == 1) for (int64_t j = 0; j < count; ++j) x[j] += add[j];
      else for (int64_t j = 0; j < count; ++j) x[j] += add[j * step];
    }
    for (int64_t j = count; j % lanes; ++j) x[j] = -std::numeric_limits<float>::infinity();
  }
};

// The weights of a row in place, from finished scores, zeros up to `end`; returns the logarithm of their sum before.
float softmax(float* x, int64_t count, int64_t end) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  Float most = splat(-infinity);
  for (int64_t j = 0; j < count; j += lanes) most = greater(most, Simd<float>::load(x + j));
  const float maximum = reduced(most, [](auto a, auto b) { return a > b ? a : b; });
  Float sums{};
  // A row whose scores are all -inf has weights of zero. The maximum may miss what is not a number, the sum does not.
  const Float shift = splat(maximum == -infinity ? 0.f : maximum);
  for (int64_t j = 0; j < count; j += lanes) {
    const Float w = weight(Simd<float>::load(x + j) - shift);
    sums += w;
    Simd<float>::store(x + j, w);
  }
  const float all = total(sums), sum = all == 0.f ? 1.f : all;
  const Float inverse = splat(1.f / sum);
  for (int64_t j = 0; j < count; j += lanes) Simd<float>::store(x + j, Simd<float>::load(x + j) * inverse);
  std::fill(x + count, x + end, 0.f);
  return shift[0] + std::log(sum);
}

using Input = Heads<const float>;
using Output = Heads<float>;

// Ranges of queries of heads, on one thread, which keeps the panels of its last head.
class Forward {
 public:
  Forward(const Scores& s, const Input& q, const Input& k, const Input& v, const Output& out, float* logsumexp)
      : s_(s), q_(q), k_(k), v_(v), out_(out), logsumexp_(logsumexp), keys_(k.columns(), k.rows()),
        values_(v.rows(), v.columns()), rows_(q.rows()), width_(q.columns()), out_rows_(out.rows()),
        out_columns_(out.columns()) {}

  void operator()(int64_t head, int64_t first, int64_t last) {
    float* const keys = scratch<float, 3>(keys_.elements() + values_.elements());
    float* const values = keys + keys_.elements();
    if (kept_ != head) keys_.pack_to(k_.head(head), keys), values_.pack_to(v_.head(head), values);
    kept_ = head;
    float* const scores = scratch<float, 4>(s_.block * s_.wide + lanes);
    for (int64_t r = first; r < last; r += s_.block) {
      const int64_t count = std::min(s_.block, last - r), most = s_.keys_of(r, count);
      multiply({q_.head(head), rows_, width_}, r, count, width_.size(), keys_, keys, most, scores, s_.scored.data(),
               s_.columns.data(), false);
      for (int64_t i = 0; i < count; ++i) {
        float* const x = scores + i * s_.wide;
        const int64_t seen = s_.keys_of(r + i);
        s_.finish(head, r + i, 0, seen, x);
        logsumexp_[head * s_.rows + r + i] = softmax(x, seen, most);
      }
      multiply({scores, s_.scored, s_.columns}, 0, count, most, values_, values, out_.sizes[3], out_.head(head),
               out_rows_.data() + r, out_columns_.data(), false);
    }
  }

 private:
  const Scores& s_;
  const Input &q_, &k_, &v_;
  const Output& out_;
  float* logsumexp_;
  Right keys_, values_;
  Table rows_, width_, out_rows_, out_columns_;
  int64_t kept_ = -1;
};

// A part of a table.
inline Table part(const Table& table, int64_t first, int64_t last) {
  return Table(table.begin() + first, table.begin() + last);
}

// The gradients of heads, each computed by one thread.
class Backward {
 public:
  struct Operands {
    Input ct, q, k, v, out;
    const float *logsumexp, *ct_logsumexp;
    Output grad_q, grad_k, grad_v;
  };

  Backward(const Scores& s, const Operands& o)
      : s_(s), o_(o), keys_(multiples(s.wide)), q_{o.q.rows(), o.q.columns()}, k_{o.k.rows(), o.k.columns()},
        v_{o.v.rows(), o.v.columns()}, ct_{o.ct.rows(), o.ct.columns()}, grad_q_{o.grad_q.rows(), o.grad_q.columns()},
        grad_k_{o.grad_k.rows(), o.grad_k.columns()}, grad_v_{o.grad_v.rows(), o.grad_v.columns()} {}

  void operator()(int64_t head) {
    float* const means = scratch<float, 6>(s_.rows);
    const Input &ct = o_.ct, &out = o_.out;
    for (int64_t r = 0; r < s_.rows; ++r)
      means[r] = inner_product(ct.head(head) + r * ct.strides[2], ct.strides[3], out.head(head) + r * out.strides[2],
                               out.strides[3], ct.sizes[3]) - o_.ct_logsumexp[head * s_.rows + r];
    for (int64_t first = 0; first < s_.keys; first += kKeys)
      block_of_keys(head, first, std::min(first + kKeys, s_.keys), means);
  }

 private:
  struct Offsets {
    Table rows, columns;
  };
  // A block of keys and values, packed in three ways.
  struct Block {
    int64_t first, last;
    Right keys, values, by_key;
    const float *packed_keys, *packed_values, *packed_by_key;
  };

  void block_of_keys(int64_t head, int64_t first, int64_t last, const float* means) {
    Block b{first, last, Right(k_.columns, part(k_.rows, first, last)), Right(v_.columns, part(v_.rows, first, last)),
            Right(part(k_.rows, first, last), k_.columns), nullptr, nullptr, nullptr};
    float* const keys = scratch<float, 3>(b.keys.elements() + b.values.elements() + b.by_key.elements());
    float *const values = keys + b.keys.elements(), *const by_key = values + b.values.elements();
    b.keys.pack_to(o_.k.head(head), keys);
    b.values.pack_to(o_.v.head(head), values);
    b.by_key.pack_to(o_.k.head(head), by_key);
    b.packed_keys = keys, b.packed_values = values, b.packed_by_key = by_key;
    clear(o_.grad_k, head, first, last), clear(o_.grad_v, head, first, last);
    for (int64_t r = 0; r < s_.rows; r += s_.block) queries(head, r, b, means);
  }

  void queries(int64_t head, int64_t r, const Block& b, const float* means) {
    const int64_t count = std::min(s_.block, s_.rows - r), most = std::min(s_.keys_of(r, count), b.last) - b.first;
    if (most <= 0) return;
    const int64_t area = s_.block * s_.wide;
    float *const weights = scratch<float, 4>(2 * area + lanes), *const grads = weights + area;
    multiply({o_.q.head(head), q_.rows, q_.columns}, r, count, q_.columns.size(), b.keys, b.packed_keys, most, weights,
             s_.scored.data(), s_.columns.data(), false);
    multiply({o_.ct.head(head), ct_.rows, ct_.columns}, r, count, ct_.columns.size(), b.values, b.packed_values, most,
             grads, s_.scored.data(), s_.columns.data(), false);
    for (int64_t i = 0; i < count; ++i)
      row(head, r + i, b, most, means[r + i], weights + i * s_.wide, grads + i * s_.wide);
    multiply({grads, s_.scored, s_.columns}, 0, count, most, b.by_key, b.packed_by_key, k_.columns.size(),
             o_.grad_q.head(head), grad_q_.rows.data() + r, grad_q_.columns.data(), b.first > 0);
    over_queries(weights, o_.ct.head(head), ct_, r, count, most, o_.grad_v.head(head), grad_v_, b.first);
    over_queries(grads, o_.q.head(head), q_, r, count, most, o_.grad_k.head(head), grad_k_, b.first);
  }

  // Products to weights, and the weights' gradients to those of the products, with zeros up to `end`.
  void row(int64_t head, int64_t row, const Block& b, int64_t end, float mean, float* w, float* g) const {
    const int64_t count = std::clamp(s_.keys_of(row) - b.first, int64_t(0), end);
    s_.finish(head, row, b.first, count, w);
    const Float shift = splat(o_.logsumexp[head * s_.rows + row]), less = splat(mean), factor = splat(s_.scale);
    for (int64_t j = 0; j < count; j += lanes) {
      const Float x = weight(Simd<float>::load(w + j) - shift), d = Simd<float>::load(g + j) - less;
      Simd<float>::store(w + j, x);
      Simd<float>::store(g + j, x * d * factor);
    }
    // Behind the last key there may be anything, also what is not a number.
    std::fill(g + count, g + end, 0.f);
    std::fill(w + count, w + end, 0.f);
  }

  // to[first + key, c] += sum over the block's queries of x[query, key] * right[query, c].
  void over_queries(const float* x, const float* right, const Offsets& at, int64_t r, int64_t count, int64_t most,
                    float* to, const Offsets& to_at, int64_t first) const {
    const Right packing(part(at.rows, r, r + count), at.columns);
    float* const packed = scratch<float, 5>(packing.elements());
    packing.pack_to(right, packed);
    multiply({x, keys_, s_.scored}, 0, most, count, packing, packed, at.columns.size(), to, to_at.rows.data() + first,
             to_at.columns.data(), true);
  }

  static void clear(const Output& x, int64_t head, int64_t first, int64_t last) {
    float* const at = x.head(head);
    for (int64_t r = first; r < last; ++r)
      for (int64_t c = 0; c < x.sizes[3]; ++c) at[r * x.strides[2] + c * x.strides[3]] = 0;
  }

  const Scores& s_;
  const Operands& o_;
  Table keys_;  // offsets of keys in a row of scores
  Offsets q_, k_, v_, ct_, grad_q_, grad_k_, grad_v_;
};

using Order = ffi::Span<const int64_t>;
using Buffer = ffi::Buffer<ffi::F32>;
using Result = ffi::ResultBuffer<ffi::F32>;

Input input(const ffi::AnyBuffer& x, Order orders, int i) {
  return Input(x.typed_data<float>(), x.dimensions(), Order(orders.begin() + 4 * i, 4));
}
Output output(Result& x, Order orders, int i) {
  return Output(x->typed_data(), x->dimensions(), Order(orders.begin() + 4 * i, 4));
}

ffi::Error attention_forward(ffi::ThreadPool pool, float scale, bool causal, int64_t period, Order orders,
                             ffi::RemainingArgs args, Result out, Result logsumexp) {
  const Input q = input(*args.get<ffi::AnyBuffer>(0), orders, 0), k = input(*args.get<ffi::AnyBuffer>(1), orders, 1),
              v = input(*args.get<ffi::AnyBuffer>(2), orders, 2);
  const Output result = output(out, orders, args.size());
  std::optional<Input> mask;
  if (args.size() > 3) mask = input(*args.get<ffi::AnyBuffer>(3), orders, 3);
  const Scores s(q, k.sizes[2], k.sizes[2], scale, causal, period, mask ? &*mask : nullptr);
  const int64_t each = s.rows * s.keys * (q.sizes[3] + v.sizes[3]), all = q.heads() * each;
  const int64_t ranges = std::clamp(parts(each, task_of(all)), int64_t(1), parts(s.rows, kSharing));
  const int64_t height = parts(parts(s.rows, ranges), s.block) * s.block;
  Forward forward(s, q, k, v, result, logsumexp->typed_data());
  const auto item = [&s, ranges, height](Forward& on, int64_t i) {
    const int64_t first = i % ranges * height;
    on(i / ranges, first, std::min(first + height, s.rows));
  };
  const int64_t items = q.heads() * ranges;
  if (all < kAlone) {
    for (int64_t i = 0; i < items; ++i) item(forward, i);
  } else {
    for_each_task(pool, items, [forward, &item](int64_t i) mutable { item(forward, i); });
  }
  return ffi::Error::Success();
}

ffi::Error attention_backward(ffi::ThreadPool pool, float scale, bool causal, int64_t period, Order orders,
                              ffi::RemainingArgs args, Result grad_q, Result grad_k, Result grad_v) {
  const int inputs = args.size();
  const auto arg = [&](int i) { return input(*args.get<ffi::AnyBuffer>(i), orders, i); };
  const auto numbers = [&](int i) { return args.get<ffi::AnyBuffer>(i)->typed_data<float>(); };
  const Backward::Operands o{arg(0), arg(1), arg(2), arg(3), arg(4), numbers(5), numbers(6),
                             output(grad_q, orders, inputs), output(grad_k, orders, inputs + 1),
                             output(grad_v, orders, inputs + 2)};
  std::optional<Input> mask;
  if (inputs > 7) mask = arg(7);
  const Scores s(o.q, o.k.sizes[2], std::min(o.k.sizes[2], kKeys), scale, causal, period, mask ? &*mask : nullptr);
  Backward backward(s, o);
  if (o.q.heads() * s.rows * s.keys * (3 * o.q.sizes[3] + 2 * o.v.sizes[3]) < kAlone) {
    for (int64_t i = 0; i < o.q.heads(); ++i) backward(i);
  } else {
    for_each_task(pool, o.q.heads(), backward);
  }
  return ffi::Error::Success();
}

}  // namespace

#define FUNCGRAD_ATTENTION                                                                                      \
  ffi::Ffi::Bind().Ctx<ffi::ThreadPool>().Attr<float>("scale").Attr<bool>("causal").Attr<int64_t>("queries")     \
      .Attr<Order>("orders").RemainingArgs()

XLA_FFI_DEFINE_HANDLER_SYMBOL(funcgrad_attention_forward_f32, attention_forward,
                              FUNCGRAD_ATTENTION.Ret<Buffer>().Ret<Buffer>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(funcgrad_attention_backward_f32, attention_backward,
                              FUNCGRAD_ATTENTION.Ret<Buffer>().Ret<Buffer>().Ret<Buffer>());

}  // namespace funcgrad
