// The contraction of two arrays: axes with the same label are one axis of the product.
#include <algorithm>

#include "product.h"

namespace ffi = xla::ffi;

namespace funcgrad {
namespace {

using Labels = ffi::Span<const int64_t>;

struct Axis {
  int64_t label, size, stride;
};

std::vector<Axis> axes_of(ffi::Span<const int64_t> sizes, Labels labels) {
  std::vector<Axis> axes(labels.size());
  int64_t stride = 1;
  for (size_t d = labels.size(); d-- > 0; stride *= sizes[d]) axes[d] = {labels[d], sizes[d], stride};
  return axes;
}

const Axis* find(const std::vector<Axis>& axes, int64_t label) {
  for (const Axis& a : axes)
    if (a.label == label) return &a;
  return nullptr;
}

// The offsets in `within` of all positions along the axes in `order`, the last going fastest.
Table offsets(const std::vector<Axis>& order, const std::vector<Axis>& within) {
  Table table{0};
  for (const Axis& axis : order) {
    const int64_t stride = find(within, axis.label)->stride;
    Table next;
    next.reserve(table.size() * axis.size);
    for (int32_t base : table)
      for (int64_t i = 0; i < axis.size; ++i) next.push_back(int32_t(base + i * stride));
    table = std::move(next);
  }
  return table;
}

template <ffi::DataType type>
ffi::Error contract(ffi::ThreadPool pool, ffi::Buffer<type> x, ffi::Buffer<type> y, ffi::ResultBuffer<type> out,
                    Labels x_labels, Labels y_labels, Labels out_labels) {
  using T = ffi::NativeType<type>;
  auto left = axes_of(x.dimensions(), x_labels), right = axes_of(y.dimensions(), y_labels);
  const auto result = axes_of(out->dimensions(), out_labels);
  const T *left_data = x.typed_data(), *right_data = y.typed_data();
  // Columns are what lies side by side in the result.
  if (!result.empty() && !find(right, result.back().label)) {
    std::swap(left, right);
    std::swap(left_data, right_data);
  }
  std::vector<Axis> batch, rows, columns, depth;
  for (const Axis& a : result) (!find(right, a.label) ? rows : !find(left, a.label) ? columns : batch).push_back(a);
  for (const Axis& a : right)
    if (!find(result, a.label)) depth.push_back(a);
  Product<T> p{left_data, right_data, out->typed_data(),
               offsets(batch, left), offsets(batch, right), offsets(batch, result),
               offsets(rows, left), offsets(rows, result),
               offsets(depth, left), offsets(depth, right),
               offsets(columns, right), offsets(columns, result)};
  multiply(pool, p);
  return ffi::Error::Success();
}

}  // namespace

#define FUNCGRAD_CONTRACT(name, type)                                                                             \
  XLA_FFI_DEFINE_HANDLER_SYMBOL(name, (contract<type>),                                                           \
                                ffi::Ffi::Bind().Ctx<ffi::ThreadPool>().Arg<ffi::Buffer<type>>()                  \
                                    .Arg<ffi::Buffer<type>>().Ret<ffi::Buffer<type>>()                            \
                                    .Attr<Labels>("x").Attr<Labels>("y").Attr<Labels>("out"))

FUNCGRAD_CONTRACT(funcgrad_dot_f32, ffi::F32);
FUNCGRAD_CONTRACT(funcgrad_dot_f64, ffi::F64);

}  // namespace funcgrad
