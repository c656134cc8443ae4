// Loops whose steps treat rows alike: recurrent layers, forwards and backwards.
//
// A step is a short program over rows of numbers: products with matrices that are the same in all steps, and functions
// element by element. No row needs another one, so a thread takes a block of rows through all steps of the loop, and
// meets no other thread until the end. The matrices are laid out once, and what a row computes stays in the first cache.
#include <algorithm>

#include "elementary.h"
#include "product.h"

namespace ffi = xla::ffi;

namespace funcgrad {
namespace {

using Dims = ffi::Span<const int64_t>;

// As `funcgrad/native/loop.py` numbers them.
enum Op { kAdd, kSub, kMul, kDiv, kMax, kMin, kNeg, kTanh, kLogistic, kCopy, kDot };
enum Space { kSlab, kFixed, kSlice, kLiteral, kResult };

struct Value {
  int64_t space, index, offset;
};
struct Instruction {
  int64_t op, out, a, b, columns, depth;
};
struct Slab {
  int64_t width, block;  // `block`: a row for each row of the block; else one, which each row of the block uses in turn
};

template <class T>
std::vector<T> records(Dims numbers) {
  std::vector<T> all(numbers.size() * sizeof(int64_t) / sizeof(T));
  std::memcpy(static_cast<void*>(all.data()), numbers.begin(), numbers.size() * sizeof(int64_t));
  return all;
}

struct Place {
  float* at;
  int64_t step;  // from one row to the next
};

void apply(const Instruction& i, const float* a, const float* b, float* out) {
  using S = Simd<float>;
  const auto each = [&](auto f) {
    int64_t c = 0;
    for (; c + S::kLanes <= i.columns; c += S::kLanes) S::store(out + c, f(S::load(a + c), S::load(b + c)));
    if (const int left = int(i.columns - c))
      S::store_first(out + c, f(S::load_first(a + c, left), S::load_first(b + c, left)), left);
  };
  switch (i.op) {
    case kAdd: return each([](Float x, Float y) { return x + y; });
    case kSub: return each([](Float x, Float y) { return x - y; });
    case kMul: return each([](Float x, Float y) { return x * y; });
    case kDiv: return each([](Float x, Float y) { return x / y; });
    // What is not a number is passed on, as by XLA.
    case kMax: return each([](Float x, Float y) { return x != x ? x : x > y ? x : y; });
    case kMin: return each([](Float x, Float y) { return x != x ? x : x < y ? x : y; });
    case kNeg: return each([](Float x, Float) { return -x; });
    case kTanh: return each([](Float x, Float) { return funcgrad::tanh(x); });
    case kLogistic: return each([](Float x, Float) { return funcgrad::logistic(x); });
    default: std::memmove(out, a, i.columns * sizeof(float));
  }
}

struct Loop {
  std::vector<Value> values;
  std::vector<Instruction> code;
  std::vector<Slab> slabs;
  ffi::Span<const float> literals;
  std::vector<const float*> arguments;
  std::vector<float*> results;
  std::vector<int64_t> widths;         // of arguments and results: elements of a row
  int64_t fixed, carries, length, rows;
  bool reverse;
  std::vector<int64_t> widest;         // of each literal

  void block(int64_t first, int64_t count) const;
};

// A matrix, laid out in panels, and what its products have in common in all steps.
struct Matrix {
  std::vector<Panel<float>> panels;
  std::vector<float> packed;
  Table depth, columns, rows, out_rows;
  std::vector<Target<float>> targets;  // of each panel
};

void Loop::block(int64_t first, int64_t count) const {
  constexpr int lanes = Simd<float>::kLanes;
  std::vector<int64_t> slab_at(slabs.size()), literal_at(literals.size());
  int64_t size = 0;
  const auto room = [&](int64_t elements) {
    const int64_t at = size;
    size += parts(elements, lanes) * lanes;
    return at;
  };
  for (size_t i = 0; i < slabs.size(); ++i) slab_at[i] = room(slabs[i].width * (slabs[i].block ? count : 1));
  for (size_t i = 0; i < literals.size(); ++i) literal_at[i] = room(widest[i]);
  float* memory = scratch<float, 2>(size + lanes);
  for (size_t i = 0; i < literals.size(); ++i)
    std::fill_n(memory + literal_at[i], widest[i], literals[i]);
  for (int64_t i = 0; i < carries; ++i)  // the first slabs
    std::memcpy(memory + slab_at[i], arguments[fixed + i] + first * slabs[i].width,
                count * slabs[i].width * sizeof(float));

  std::vector<Matrix> matrices(code.size());
  for (size_t i = 0; i < code.size(); ++i) {
    const Instruction& in = code[i];
    if (in.op != kDot) continue;
    const bool turned = in.b < 0;  // (columns, depth)
    const float* matrix = arguments[turned ? -1 - in.b : in.b];
    const Table depth = multiples(in.depth, turned ? 1 : in.columns);
    const Table columns = multiples(in.columns, turned ? in.depth : 1);
    const Panels panels(in.columns, lanes);
    const int64_t room = in.depth * panels.widest();
    Matrix& m = matrices[i];
    m.packed.resize(panels.count * room + lanes);
    m.depth = multiples(in.depth), m.columns = multiples(in.columns);
    // A panel serves the rows of all steps.
    for (int64_t p = 0; p < panels.count; ++p) {
      m.panels.push_back(panel_of<float>(matrix, depth.data(), in.depth, columns.data() + panels.first(p),
                                         panels.width(p), panels.vectors(p), count * length, m.packed.data() + p * room));
      m.targets.emplace_back();
      m.targets.back().turn_to(m.columns.data() + panels.first(p), panels.width(p));
    }
  }
  const auto place = [&](int64_t number, int64_t step) -> Place {
    const Value& v = values[number];
    const auto row_of = [&](int64_t width) { return (step * rows + first) * width + v.offset; };
    switch (v.space) {
      case kSlab: return {memory + slab_at[v.index] + v.offset, slabs[v.index].block ? slabs[v.index].width : 0};
      case kFixed: return {const_cast<float*>(arguments[v.index]) + v.offset, 0};
      case kSlice: return {const_cast<float*>(arguments[v.index]) + row_of(widths[v.index]), widths[v.index]};
      case kLiteral: return {memory + literal_at[v.index], 0};
      default: {
        const int64_t width = widths[arguments.size() + v.index];
        return {results[v.index] + row_of(width), width};
      }
    }
  };
  std::vector<Place> outs(code.size()), as(code.size()), bs(code.size());
  for (int64_t t = 0; t < length; ++t) {
    const int64_t step = reverse ? length - 1 - t : t;
    for (size_t i = 0; i < code.size(); ++i) {
      outs[i] = place(code[i].out, step), as[i] = place(code[i].a, step);
      if (code[i].op != kDot) bs[i] = place(code[i].b, step);
    }
    for (size_t i = 0; i < code.size();) {
      if (code[i].op == kDot) {
        Matrix& m = matrices[i];
        if (m.rows.empty()) m.rows = multiples(count, as[i].step), m.out_rows = multiples(count, outs[i].step);
        for (size_t p = 0; p < m.panels.size(); ++p) {
          Target<float>& to = m.targets[p];
          to.at = outs[i].at, to.rows = m.out_rows.data();
          rows_by_panel<float>(int(parts(to.width, lanes)), as[i].at, m.rows.data(), count, m.depth.data(),
                               code[i].depth, m.panels[p], to);
        }
        ++i;
        continue;
      }
      size_t end = i;
      while (end < code.size() && code[end].op != kDot) ++end;
      for (int64_t r = 0; r < count; ++r)
        for (size_t j = i; j < end; ++j)
          apply(code[j], as[j].at + r * as[j].step, bs[j].at + r * bs[j].step, outs[j].at + r * outs[j].step);
      i = end;
    }
  }
  for (int64_t i = 0; i < carries; ++i)
    std::memcpy(results[i] + first * slabs[i].width, memory + slab_at[i], count * slabs[i].width * sizeof(float));
}

ffi::Error loop(ffi::ThreadPool pool, ffi::RemainingArgs arguments, ffi::RemainingRets results, Dims values, Dims code,
                Dims slabs, ffi::Span<const float> literals, int64_t fixed, int64_t carries, int64_t length,
                int64_t rows, bool reverse) {
  Loop l{records<Value>(values), records<Instruction>(code), records<Slab>(slabs), literals};
  l.fixed = fixed, l.carries = carries, l.length = length, l.rows = rows, l.reverse = reverse;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const auto buffer = *arguments.get<ffi::Buffer<ffi::F32>>(i);
    l.arguments.push_back(buffer.typed_data());
    l.widths.push_back(buffer.dimensions().size() ? buffer.dimensions().back() : 1);
  }
  for (size_t i = 0; i < results.size(); ++i) {
    auto buffer = *results.get<ffi::Buffer<ffi::F32>>(i);
    l.results.push_back(buffer->typed_data());
    l.widths.push_back(buffer->dimensions().size() ? buffer->dimensions().back() : 1);
  }
  l.widest.assign(literals.size(), 0);
  for (const Instruction& i : l.code)
    for (int64_t number : {i.a, i.op == kDot ? i.a : i.b}) {
      const Value& v = l.values[number];
      if (v.space == kLiteral) l.widest[v.index] = std::max(l.widest[v.index], i.columns);
    }
  // Blocks follow from sizes alone, as all that is cut.
  const int64_t block = rows >= 32 ? 16 : 8;
  for_each_task(pool, parts(rows, block), [&](int64_t t) {
    l.block(t * block, std::min(block, rows - t * block));
  });
  return ffi::Error::Success();
}

}  // namespace

XLA_FFI_DEFINE_HANDLER_SYMBOL(funcgrad_loop_f32, loop,
                              ffi::Ffi::Bind().Ctx<ffi::ThreadPool>().RemainingArgs().RemainingRets()
                                  .Attr<Dims>("values").Attr<Dims>("code").Attr<Dims>("slabs")
                                  .Attr<ffi::Span<const float>>("literals").Attr<int64_t>("fixed")
                                  .Attr<int64_t>("carries").Attr<int64_t>("length").Attr<int64_t>("rows")
                                  .Attr<bool>("reverse"));

}  // namespace funcgrad
