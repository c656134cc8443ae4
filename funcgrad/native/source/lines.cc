// Sorting, the largest elements, and running sums along one axis: each line of elements by itself.
#include <cstring>
#include <memory>
#include <vector>

#include "panel.h"
#include "parallel.h"
#include "xla/ffi/api/api.h"
#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

namespace funcgrad {
namespace {

// The lines of an array along an axis: line `i` begins at `start(i)`, and `stride` elements lie between its elements.
struct Lines {
  int64_t count, length, stride;

  Lines(ffi::Span<const int64_t> sizes, int64_t axis) : count(1), length(sizes[axis]), stride(1) {
    for (size_t d = 0; d < sizes.size(); ++d) {
      if (int64_t(d) != axis) count *= sizes[d];
      if (int64_t(d) > axis) stride *= sizes[d];
    }
  }

  int64_t start(int64_t i) const { return i / stride * stride * length + i % stride; }
};

// Calls `work(i)` for each i in [0, count), in tasks of so many that they have some thousand `elements` together.
template <class Work>
void for_each_line(ffi::ThreadPool& pool, int64_t count, int64_t length, int64_t elements, const Work& work) {
  const int64_t at_once = std::max<int64_t>(1, elements / length);
  for_each_task(pool, parts(count, at_once), [&](int64_t task) {
    for (int64_t i = task * at_once; i < std::min(count, (task + 1) * at_once); ++i) work(i);
  });
}

// ---------------------------------------------------------------- sorting

// The kinds of numbers. Each has a key, an unsigned number in the same order; -0.0 has that of 0.0, and NaN the largest.
enum class Kind { kUnsigned, kSigned, kFloating };

template <class U, Kind kind, int fraction>
U key_of(U bits) {
  constexpr U sign = U(1) << (8 * sizeof(U) - 1);
  if constexpr (kind == Kind::kUnsigned) return bits;
  if constexpr (kind == Kind::kSigned) return bits ^ sign;
  constexpr U infinity = (sign - 1) >> fraction << fraction;
  const U size = bits & (sign - 1);
  if (size > infinity) return ~U(0);
  if (size == 0) return sign;
  return bits & sign ? ~bits : bits | sign;
}

template <class U>
struct Item {
  U key;
  uint32_t place;
};

// Sorts by the key, equal keys in the order of their places, by insertion into what is sorted already.
template <class U>
void insertion_sort(Item<U>* items, int64_t n) {
  for (int64_t i = 1; i < n; ++i) {
    const Item<U> item = items[i];
    int64_t j = i;
    for (; j > 0 && items[j - 1].key > item.key; --j) items[j] = items[j - 1];
    items[j] = item;
  }
}

// Sorts by the digits of the key, the last first; digits that all keys share are left out. Returns where the result is,
// `items` or `other`. H. H. Seward, "Information sorting in the application of electronic digital computers to business
// operations", MIT Digital Computer Laboratory Report R-232 (1954).
template <class U>
Item<U>* radix_sort(Item<U>* items, Item<U>* other, int64_t n) {
  constexpr int kBits = 8, kDigits = sizeof(U);
  static thread_local uint32_t counts[kDigits][1 << kBits];
  std::memset(counts, 0, sizeof counts);
  for (int64_t i = 0; i < n; ++i)
    for (int d = 0; d < kDigits; ++d) ++counts[d][uint8_t(items[i].key >> (kBits * d))];
  for (int d = 0; d < kDigits; ++d) {
    uint32_t* count = counts[d];
    if (count[uint8_t(items[0].key >> (kBits * d))] == n) continue;
    uint32_t total = 0;
    for (int v = 0; v < 1 << kBits; ++v) {
      const uint32_t here = count[v];
      count[v] = total;
      total += here;
    }
    for (int64_t i = 0; i < n; ++i) other[count[uint8_t(items[i].key >> (kBits * d))]++] = items[i];
    std::swap(items, other);
  }
  return items;
}

template <class U>
Item<U>* sorted(Item<U>* items, Item<U>* other, int64_t n) {
  if (n > 64) return radix_sort(items, other, n);
  insertion_sort(items, n);
  return items;
}

struct Operand {
  const char* from;
  char* to;
  int64_t bytes;
};

template <class U, class Item>
void permute(const Operand& operand, const Lines& lines, int64_t start, const Item* items) {
  const U* from = reinterpret_cast<const U*>(operand.from) + start;
  U* to = reinterpret_cast<U*>(operand.to) + start;
  for (int64_t i = 0; i < lines.length; ++i) to[i * lines.stride] = from[items[i].place * lines.stride];
}

// Memory for items: the thread's, or its own if it is large, so that threads do not keep that.
template <class U>
struct Room {
  explicit Room(int64_t count)
      : own(count > kMostKept ? new Item<U>[count] : nullptr), items(own ? own.get() : scratch<Item<U>, 0>(count)) {}
  std::unique_ptr<Item<U>[]> own;
  Item<U>* const items;
  static constexpr int64_t kMostKept = 1 << 17;
};

// Calls `work.run<U, kind, fraction>()` for the type of the keys; returns whether they have an order here.
template <class Work>
bool for_keys_of(ffi::DataType type, const Work& work) {
  switch (type) {
    case ffi::DataType::PRED:
    case ffi::DataType::U8: work.template run<uint8_t, Kind::kUnsigned, 0>(); return true;
    case ffi::DataType::S8: work.template run<uint8_t, Kind::kSigned, 0>(); return true;
    case ffi::DataType::U16: work.template run<uint16_t, Kind::kUnsigned, 0>(); return true;
    case ffi::DataType::S16: work.template run<uint16_t, Kind::kSigned, 0>(); return true;
    case ffi::DataType::F16: work.template run<uint16_t, Kind::kFloating, 10>(); return true;
    case ffi::DataType::BF16: work.template run<uint16_t, Kind::kFloating, 7>(); return true;
    case ffi::DataType::U32: work.template run<uint32_t, Kind::kUnsigned, 0>(); return true;
    case ffi::DataType::S32: work.template run<uint32_t, Kind::kSigned, 0>(); return true;
    case ffi::DataType::F32: work.template run<uint32_t, Kind::kFloating, 23>(); return true;
    case ffi::DataType::U64: work.template run<uint64_t, Kind::kUnsigned, 0>(); return true;
    case ffi::DataType::S64: work.template run<uint64_t, Kind::kSigned, 0>(); return true;
    case ffi::DataType::F64: work.template run<uint64_t, Kind::kFloating, 52>(); return true;
    default: return false;
  }
}

ffi::Error no_order() { return ffi::Error::InvalidArgument("the dtype of the keys has no order here"); }

struct Sort {
  ffi::ThreadPool& pool;
  const Lines& lines;
  const std::vector<Operand>& operands;

  template <class U, Kind kind, int fraction>
  void run() const {
    const int64_t n = lines.length;
    for_each_line(pool, lines.count, n, 1 << 12, [&](int64_t line) {
      const Room<U> room(2 * n);
      Item<U>* items = room.items;
      const int64_t start = lines.start(line);
      const U* keys = reinterpret_cast<const U*>(operands[0].from) + start;
      for (int64_t i = 0; i < n; ++i) items[i] = {key_of<U, kind, fraction>(keys[i * lines.stride]), uint32_t(i)};
      const Item<U>* found = sorted(items, items + n, n);
      for (const Operand& operand : operands) switch (operand.bytes) {
        case 1: permute<uint8_t>(operand, lines, start, found); break;
        case 2: permute<uint16_t>(operand, lines, start, found); break;
        case 4: permute<uint32_t>(operand, lines, start, found); break;
        default: permute<uint64_t>(operand, lines, start, found);
      }
    });
  }
};

ffi::Error sort(ffi::ThreadPool pool, int64_t axis, ffi::RemainingArgs args, ffi::RemainingRets rets) {
  std::vector<Operand> operands;
  for (size_t i = 0; i < args.size(); ++i) {
    const ffi::AnyBuffer from = *args.get<ffi::AnyBuffer>(i);
    ffi::Result<ffi::AnyBuffer> to = *rets.get<ffi::AnyBuffer>(i);
    operands.push_back({static_cast<const char*>(from.untyped_data()), static_cast<char*>(to->untyped_data()),
                        int64_t(ffi::ByteWidth(from.element_type()))});
  }
  const ffi::AnyBuffer keys = *args.get<ffi::AnyBuffer>(0);
  const Lines lines(keys.dimensions(), axis);
  return for_keys_of(keys.element_type(), Sort{pool, lines, operands}) ? ffi::Error::Success() : no_order();
}

// ---------------------------------------------------------------- the largest elements

// Keys are inverted here, so that the largest element has the smallest one.
struct Top {
  ffi::ThreadPool& pool;
  const Lines& lines;
  const void* from;
  void* values;
  int32_t* places;
  int64_t most;

  // The best of a line in a heap with the last of them on top, which the next better one replaces.
  template <class U, class Key>
  const Item<U>* selected(Item<U>* best, const Key& key) const {
    const auto before = [](const Item<U>& a, const Item<U>& b) {
      return a.key < b.key || (a.key == b.key && a.place < b.place);
    };
    for (int64_t i = 0; i < most; ++i) best[i] = {key(i), uint32_t(i)};
    std::make_heap(best, best + most, before);
    for (int64_t i = most; i < lines.length; ++i) {
      const U found = key(i);
      if (found >= best[0].key) continue;
      std::pop_heap(best, best + most, before);
      best[most - 1] = {found, uint32_t(i)};
      std::push_heap(best, best + most, before);
    }
    std::sort_heap(best, best + most, before);
    return best;
  }

  template <class U, Kind kind, int fraction>
  void run() const {
    const int64_t n = lines.length;
    const bool all = most > n / kFewest;
    for_each_line(pool, lines.count, n, 1 << 13, [&](int64_t line) {
      const Room<U> room(all ? 2 * n : most);
      Item<U>* items = room.items;
      const U* keys = static_cast<const U*>(from) + line * n;
      const auto key = [keys](int64_t i) { return U(~key_of<U, kind, fraction>(keys[i])); };
      if (all)
        for (int64_t i = 0; i < n; ++i) items[i] = {key(i), uint32_t(i)};
      const Item<U>* best = all ? sorted(items, items + n, n) : selected(items, key);
      for (int64_t i = 0; i < most; ++i) {
        static_cast<U*>(values)[line * most + i] = keys[best[i].place];
        places[line * most + i] = int32_t(best[i].place);
      }
    });
  }

  static constexpr int64_t kFewest = 16;  // a smaller part of a line than one in so many is selected, not sorted
};

ffi::Error top(ffi::ThreadPool pool, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> values,
               ffi::ResultBuffer<ffi::S32> places) {
  const Lines lines(x.dimensions(), x.dimensions().size() - 1);
  const int64_t most = values->dimensions().back();
  const Top work{pool, lines, x.untyped_data(), values->untyped_data(), places->typed_data(), most};
  return for_keys_of(x.element_type(), work) ? ffi::Error::Success() : no_order();
}

// ---------------------------------------------------------------- running sums and products

// `Wide` is the type of the running value: float64 for float32, as in PyTorch.
template <class T, class Wide, class Combine>
struct Run {
  int64_t length, step;  // the step from one element of a line to the next
  const T* from;
  T* to;
  bool backwards;
  Wide first;
  Combine combine;

  // Lines that begin at consecutive elements.
  void side_by_side(int64_t start, int64_t count) const {
    Wide running[kSideBySide];
    std::fill(running, running + count, first);
    for (int64_t i = 0; i < length; ++i) {
      const int64_t at = start + (backwards ? length - 1 - i : i) * step;
      for (int64_t c = 0; c < count; ++c) {
        running[c] = combine(running[c], Wide(from[at + c]));
        to[at + c] = T(running[c]);
      }
    }
  }

  // Lines of consecutive elements, one after the other: several at once, since each addition waits for the one before.
  template <int count>
  void in_a_row(int64_t start) const {
    Wide running[count];
    std::fill(running, running + count, first);
    for (int64_t i = 0; i < length; ++i) {
      const int64_t at = start + (backwards ? length - 1 - i : i);
#pragma GCC unroll 8
      for (int64_t c = 0; c < count; ++c) {
        running[c] = combine(running[c], Wide(from[at + c * length]));
        to[at + c * length] = T(running[c]);
      }
    }
  }

  static constexpr int64_t kSideBySide = 64, kInARow = 4;
};

template <class T, class Wide, class Combine>
void run_lines(ffi::ThreadPool& pool, const Lines& lines, const T* from, T* to, bool backwards, Wide first,
               const Combine& combine) {
  const Run<T, Wide, Combine> run{lines.length, lines.stride, from, to, backwards, first, combine};
  const int64_t n = lines.length, most = lines.stride == 1 ? run.kInARow : run.kSideBySide;
  // Blocks of lines: of one group of lines side by side, or of any if each is in a row.
  const int64_t group = lines.stride == 1 ? lines.count : lines.stride;
  const int64_t blocks_of_group = parts(group, most), blocks = lines.count / group * blocks_of_group;
  for_each_line(pool, blocks, n * std::min(group, most), 1 << 14, [&](int64_t block) {
    const int64_t first_line = block % blocks_of_group * most, count = std::min(most, group - first_line);
    if (lines.stride > 1) run.side_by_side(block / blocks_of_group * group * n + first_line, count);
    else if (count == run.kInARow) run.template in_a_row<run.kInARow>(first_line * n);
    else for (int64_t line = 0; line < count; ++line) run.template in_a_row<1>((first_line + line) * n);
  });
}

template <ffi::DataType type, class Wide>
ffi::Error run(ffi::ThreadPool pool, int64_t axis, bool backwards, bool product, ffi::Buffer<type> x,
               ffi::ResultBuffer<type> out) {
  const Lines lines(x.dimensions(), axis);
  using T = ffi::NativeType<type>;
  const T* from = x.typed_data();
  T* to = out->typed_data();
  if (product) run_lines(pool, lines, from, to, backwards, Wide(1), [](Wide a, Wide b) { return a * b; });
  else run_lines(pool, lines, from, to, backwards, Wide(0), [](Wide a, Wide b) { return a + b; });
  return ffi::Error::Success();
}

}  // namespace

XLA_FFI_DEFINE_HANDLER_SYMBOL(funcgrad_sort, sort,
                              ffi::Ffi::Bind().Ctx<ffi::ThreadPool>().Attr<int64_t>("axis").RemainingArgs()
                                  .RemainingRets());

XLA_FFI_DEFINE_HANDLER_SYMBOL(funcgrad_top, top,
                              ffi::Ffi::Bind().Ctx<ffi::ThreadPool>().Arg<ffi::AnyBuffer>().Ret<ffi::AnyBuffer>()
                                  .Ret<ffi::Buffer<ffi::S32>>());

#define FUNCGRAD_RUN(name, type, wide)                                                                             \
  XLA_FFI_DEFINE_HANDLER_SYMBOL(name, (run<type, wide>),                                                           \
                                ffi::Ffi::Bind().Ctx<ffi::ThreadPool>().Attr<int64_t>("axis").Attr<bool>("backwards") \
                                    .Attr<bool>("product").Arg<ffi::Buffer<type>>().Ret<ffi::Buffer<type>>())

FUNCGRAD_RUN(funcgrad_run_f32, ffi::F32, double);
FUNCGRAD_RUN(funcgrad_run_f64, ffi::F64, double);
FUNCGRAD_RUN(funcgrad_run_s32, ffi::S32, uint32_t);
FUNCGRAD_RUN(funcgrad_run_s64, ffi::S64, uint64_t);

}  // namespace funcgrad
