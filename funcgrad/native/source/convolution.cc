// Convolutions as products of matrices whose left or right operand are the windows of an image, never materialized.
//
//     out[n, o, i] = sum over c, k of x[n, c, j] * w[o, c, k],    i * stride + k * window_dilation - low = j * dilation
//
// along each spatial axis. Images are copied with their padding, a few at a time, to memory near the processor; in there
// an element's place is the sum of one offset for the position i and one for the tap k, which is all that the tile needs.
//
// *Wide* convolutions have many positions and few taps, as forwards and for the gradient by the input. Where the result
// has its channels last, positions are rows and channels columns; else channels are rows and positions columns.
// *Narrow* ones have few positions and large windows, as the gradient by the kernel, whose batch is channels and whose
// features are images: positions are rows, channels columns, and the sum over images is cut in parts, added up at the end.
#include <algorithm>
#include <array>

#include "product.h"

namespace ffi = xla::ffi;

namespace funcgrad {
namespace {

using Dims = ffi::Span<const int64_t>;

// Positions along one axis whose taps are the same.
struct Phase {
  int64_t first, step, count;    // positions in the result
  std::vector<int32_t> taps;     // of the window
  std::vector<int32_t> tap_at;   // of each tap, the offset of its elements in the copy, in elements along the axis
};

// One spatial axis: of the input, the window, the result.
struct Line {
  int64_t size, window, out, stride, low, dilation, window_dilation;
  int64_t pad = 0, extent = 0;  // of the copy: zeros in front, all elements
  int64_t split = 1, part = 0;  // the copy has those elements together that are `split` apart: `part` each
  int64_t step = 1;             // from one position to the next, in the copy
  std::vector<Phase> phases;

  int64_t place(int64_t q) const { return split == 1 ? q : q % split * part + q / split; }

  // Args: together: whether elements of neighbouring positions are to be side by side.
  void plan(bool together) {
    const int64_t reach = (window - 1) * window_dilation;
    if (dilation == 1) {
      pad = low, extent = (out - 1) * stride + reach + 1;
      if (together && stride > 1) split = stride, part = (extent + split - 1) / split, extent = split * part;
      else step = stride;
      Phase all{0, 1, out, {}, {}};
      for (int64_t k = 0; k < window; ++k) all.taps.push_back(k), all.tap_at.push_back(place(k * window_dilation));
      phases.push_back(all);
      return;
    }
    // Of the dilated input most elements are zero: each phase meets its own taps only. Positions are one apart here.
    int64_t least = 0, most = 0;
    const auto floor = [&](int64_t a) { return a >= 0 ? a / dilation : -((-a + dilation - 1) / dilation); };
    for (int64_t r = 0; r < std::min(dilation, out); ++r) {
      Phase phase{r, dilation, (out - r + dilation - 1) / dilation, {}, {}};
      for (int64_t k = 0; k < window; ++k) {
        const int64_t at = r + k * window_dilation - low, j = floor(at);
        if (j * dilation != at) continue;
        phase.taps.push_back(k), phase.tap_at.push_back(j);
        least = std::min(least, j), most = std::max(most, j + phase.count - 1);
      }
      phases.push_back(phase);
    }
    pad = -least, extent = most - least + 1;
    for (Phase& phase : phases)
      for (int32_t& at : phase.tap_at) at += pad;
  }
};

template <class T>
struct Array {
  T* at;
  int64_t outer, inner;            // strides: batch and feature; outputs and features; batch and outputs
  std::array<int64_t, 2> spatial;  // strides
};

template <class T>
struct Convolution {
  Array<const T> x, w;
  Array<T> out;
  int64_t batch, features, outputs;
  std::array<Line, 2> lines;

  bool plain() const {  // whether the input can be read where it lies
    for (const Line& l : lines)
      if (l.pad || l.split > 1 || l.extent != l.size) return false;
    return true;
  }
  int64_t plane() const { return lines[0].extent * lines[1].extent; }
};

// A copy of one plane of the input, with its padding.
template <class T>
void copy_plane(const Convolution<T>& c, const T* from, T* to) {
  const Line &h = c.lines[0], &w = c.lines[1];
  const int64_t sy = c.x.spatial[0], sx = c.x.spatial[1];
  for (int64_t y = 0; y < h.extent; ++y, to += w.extent) {
    const int64_t j = y - h.pad;
    std::memset(to, 0, w.extent * sizeof(T));
    if (j < 0 || j >= h.size) continue;
    const T* row = from + j * sy;
    const int64_t first = std::max<int64_t>(0, -w.pad);
    const int64_t last = std::min(w.size, (w.split == 1 ? w.extent : w.split * w.part) - w.pad);
    if (last <= first) continue;
    if (w.split == 1 && sx == 1) std::memcpy(to + first + w.pad, row + first, (last - first) * sizeof(T));
    else
      for (int64_t i = first; i < last; ++i) to[w.place(i + w.pad)] = row[i * sx];
  }
}

// Where the elements of an image are: in a copy, or where they lie.
struct Strides {
  int64_t image, feature, y, x;
};

template <class T>
Strides strides_of(const Convolution<T>& c, bool images_are_features) {
  if (!c.plain()) {
    const int64_t plane = c.plane();
    const int64_t planes = images_are_features ? c.batch : c.features;
    return {planes * plane, plane, c.lines[1].extent, 1};
  }
  const Strides s{c.x.outer, c.x.inner, c.x.spatial[0], c.x.spatial[1]};
  return images_are_features ? Strides{s.feature, s.image, s.y, s.x} : s;
}

// Images [first, last), copied if they need to be.
template <class T>
const T* images(const Convolution<T>& c, int64_t first, int64_t last, bool images_are_features) {
  const int64_t image = images_are_features ? c.x.inner : c.x.outer;
  const int64_t feature = images_are_features ? c.x.outer : c.x.inner;
  if (c.plain()) return c.x.at + first * image;
  const int64_t plane = c.plane(), planes = images_are_features ? c.batch : c.features;
  T* copy = scratch<T, 1>((last - first) * planes * plane + Simd<T>::kLanes);
  for (int64_t i = first; i < last; ++i)
    for (int64_t f = 0; f < planes; ++f)
      copy_plane(c, c.x.at + i * image + f * feature, copy + ((i - first) * planes + f) * plane);
  return copy;
}

// Tables of one pair of phases.
struct Tables {
  Table x_positions, out_positions;  // by (image,) position
  Table x_taps, w_taps;              // by feature and tap
};

template <class T>
Tables tables_of(const Convolution<T>& c, const Strides& s, const Phase& py, const Phase& px, int64_t group,
                 bool features_last) {
  Tables t;
  for (int64_t g = 0; g < group; ++g)
    for (int64_t y = 0; y < py.count; ++y)
      for (int64_t x = 0; x < px.count; ++x) {
        t.x_positions.push_back(g * s.image + y * c.lines[0].step * s.y + x * c.lines[1].step * s.x);
        t.out_positions.push_back(g * c.out.outer + (py.first + y * py.step) * c.out.spatial[0] +
                                  (px.first + x * px.step) * c.out.spatial[1]);
      }
  const auto add = [&](int64_t f, size_t y, size_t x) {
    t.x_taps.push_back(f * s.feature + py.tap_at[y] * s.y + px.tap_at[x] * s.x);
    t.w_taps.push_back(f * c.w.inner + py.taps[y] * c.w.spatial[0] + px.taps[x] * c.w.spatial[1]);
  };
  const int64_t ny = py.taps.size(), nx = px.taps.size();
  if (features_last) {
    for (int64_t y = 0; y < ny; ++y)
      for (int64_t x = 0; x < nx; ++x)
        for (int64_t f = 0; f < c.features; ++f) add(f, y, x);
  } else {
    for (int64_t f = 0; f < c.features; ++f)
      for (int64_t y = 0; y < ny; ++y)
        for (int64_t x = 0; x < nx; ++x) add(f, y, x);
  }
  return t;
}

// rows by columns, of which all rows and so many columns are computed at once.
template <class T>
void block(const T* left, const Table& left_rows, const Table& left_depth, const T* right, const Table& right_depth,
           const Table& right_columns, T* out, const Table& out_rows, const Table& out_columns, int64_t first_column,
           int64_t last_column, int64_t first_row, int64_t last_row, bool add) {
  constexpr int lanes = Simd<T>::kLanes;
  const int64_t depth = left_depth.size(), rows = last_row - first_row;
  const Panels panels(last_column - first_column, lanes);
  T* packed = scratch<T, 0>(std::min(depth, kDepth) * panels.widest() + lanes);
  for (int64_t i = 0; i < panels.count; ++i) {
    const int64_t column = first_column + panels.first(i);
    const int width = panels.width(i), vectors = panels.vectors(i);
    Target<T> to{out, out_rows.data() + first_row};
    to.turn_to(out_columns.data() + column, width);
    to.add = add;
    for (int64_t k = 0; k < depth || k == 0; k += kDepth, to.add = true) {
      const int64_t steps = std::min(kDepth, depth - k);
      Panel<T> panel{packed, vectors * lanes};
      if (steps > 0)
        panel = panel_of<T>(right, right_depth.data() + k, steps, right_columns.data() + column, width, vectors, rows,
                            packed);
      rows_by_panel<T>(vectors, left, left_rows.data() + first_row, rows, left_depth.data() + k, steps, panel, to);
    }
  }
}

template <class T>
void wide(ffi::ThreadPool& pool, const Convolution<T>& c) {
  const bool channels_last = c.out.inner == 1 && c.outputs > 1;
  const Strides s = strides_of(c, false);
  const int64_t taps = c.lines[0].window * c.lines[1].window, positions = c.lines[0].out * c.lines[1].out;
  const int64_t work = std::max<int64_t>(positions * c.features * taps * c.outputs, 1);
  const int64_t large = task_of(c.batch * work);
  // So many images a task, so that results are cut by sizes alone.
  const int64_t group = std::clamp<int64_t>(large / work, 1, std::max<int64_t>(c.batch / 8, 1));
  const int64_t cuts = c.batch / group >= 8 ? 1 : std::clamp<int64_t>(work / large, 1, 8);
  struct Part {
    const Tables tables;
    int64_t count;  // positions of one image
  };
  std::vector<Part> phases;
  for (const Phase& py : c.lines[0].phases)
    for (const Phase& px : c.lines[1].phases)
      if (py.count && px.count)
        phases.push_back({tables_of(c, s, py, px, group, s.feature == 1), py.count * px.count});
  const Table w_outputs = multiples(c.outputs, c.w.outer), out_outputs = multiples(c.outputs, c.out.inner);
  const int64_t groups = (c.batch + group - 1) / group;
  for_each_task(pool, groups * cuts, [&](int64_t task) {
    const int64_t first = task / cuts * group, last = std::min(first + group, c.batch), part = task % cuts;
    const T* x = images(c, first, last, false);
    T* out = c.out.at + first * c.out.outer;
    for (const Part& phase : phases) {
      const Tables& t = phase.tables;
      const int64_t count = phase.count * (last - first);
      // The parts begin at whole vectors.
      const auto edge = [&](int64_t p) { return p == cuts ? count : count * p / cuts / 16 * 16; };
      const int64_t begin = edge(part), end = edge(part + 1);
      if (begin == end) continue;
      if (channels_last)
        block<T>(x, t.x_positions, t.x_taps, c.w.at, t.w_taps, w_outputs, out, t.out_positions, out_outputs, 0,
                 c.outputs, begin, end, false);
      else
        block<T>(c.w.at, w_outputs, t.w_taps, x, t.x_taps, t.x_positions, out, out_outputs, t.out_positions, begin, end,
                 0, c.outputs, false);
    }
  });
}

template <class T>
void narrow(ffi::ThreadPool& pool, const Convolution<T>& c) {
  const Strides s = strides_of(c, true);
  const Phase &py = c.lines[0].phases[0], &px = c.lines[1].phases[0];
  const int64_t taps = py.taps.size() * px.taps.size();
  const int64_t rows = c.batch * py.count * px.count;
  // So many images at once, and so many sums beside one another: by sizes alone.
  const int64_t chunk = std::clamp<int64_t>(256 / taps, 1, c.features);
  const int64_t chunks = (c.features + chunk - 1) / chunk;
  const int64_t sums = std::clamp<int64_t>(rows * taps * c.features * c.outputs / kSmallTask, 1, std::min<int64_t>(chunks, 16));
  Table x_rows, out_rows, sum_rows;
  for (int64_t b = 0; b < c.batch; ++b)
    for (int64_t y = 0; y < py.count; ++y)
      for (int64_t x = 0; x < px.count; ++x) {
        x_rows.push_back(b * s.feature + y * c.lines[0].step * s.y + x * c.lines[1].step * s.x);
        out_rows.push_back(b * c.out.outer + y * c.out.spatial[0] + x * c.out.spatial[1]);
        sum_rows.push_back(sum_rows.size() * c.outputs);
      }
  Table x_depth, w_depth;
  for (int64_t i = 0; i < chunk; ++i)
    for (size_t y = 0; y < py.taps.size(); ++y)
      for (size_t x = 0; x < px.taps.size(); ++x) {
        x_depth.push_back(i * s.image + py.tap_at[y] * s.y + px.tap_at[x] * s.x);
        w_depth.push_back(i * c.w.inner + py.taps[y] * c.w.spatial[0] + px.taps[x] * c.w.spatial[1]);
      }
  const Table w_outputs = multiples(c.outputs, c.w.outer), side_by_side = multiples(c.outputs, 1);
  const int64_t size = rows * c.outputs;
  std::vector<T> partial(sums * size);
  for_each_task(pool, sums, [&](int64_t sum) {
    const int64_t begin = chunks * sum / sums, end = chunks * (sum + 1) / sums;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i * chunk, last = std::min(first + chunk, c.features);
      const T* x = images(c, first, last, true);
      Table xd = x_depth, wd = w_depth;
      xd.resize((last - first) * taps), wd.resize((last - first) * taps);
      block<T>(x, x_rows, xd, c.w.at + first * c.w.inner, wd, w_outputs, partial.data() + sum * size, sum_rows,
               side_by_side, 0, c.outputs, 0, rows, i > begin);
    }
  });
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t o = 0; o < c.outputs; ++o) {
      T total = partial[r * c.outputs + o];
      for (int64_t i = 1; i < sums; ++i) total += partial[i * size + r * c.outputs + o];
      c.out.at[out_rows[r] + o * c.out.inner] = total;
    }
}

template <class T>
Array<T> array(T* at, Dims sizes, Dims layout) {
  int64_t strides[8], stride = 1;
  for (size_t d = sizes.size(); d-- > 0; stride *= sizes[d]) strides[d] = stride;
  Array<T> a{at, strides[layout[0]], strides[layout[1]], {0, 0}};
  for (size_t i = 2; i < layout.size(); ++i) a.spatial[i + 2 - layout.size() + 0] = strides[layout[i]];
  return a;
}

template <ffi::DataType type>
ffi::Error convolve(ffi::ThreadPool pool, ffi::Buffer<type> x, ffi::Buffer<type> w, ffi::ResultBuffer<type> out,
                    Dims x_layout, Dims w_layout, Dims out_layout, Dims strides, Dims lows, Dims dilations,
                    Dims window_dilations, Dims reverse) {
  using T = ffi::NativeType<type>;
  Convolution<T> c{array<const T>(x.typed_data(), x.dimensions(), x_layout),
                   array<const T>(w.typed_data(), w.dimensions(), w_layout),
                   array<T>(out->typed_data(), out->dimensions(), out_layout),
                   x.dimensions()[x_layout[0]], x.dimensions()[x_layout[1]], w.dimensions()[w_layout[0]], {}};
  const size_t axes = strides.size();
  int64_t window = 1, result = 1;
  for (size_t i = 0; i < 2; ++i) {
    Line& line = c.lines[i];
    if (i + axes < 2) line = {1, 1, 1, 1, 0, 1, 1};
    else {
      const size_t d = i + axes - 2;
      line = {x.dimensions()[x_layout[d + 2]], w.dimensions()[w_layout[d + 2]], out->dimensions()[out_layout[d + 2]],
              strides[d], lows[d], dilations[d], window_dilations[d]};
      if (reverse[d]) {
        c.w.at += (line.window - 1) * c.w.spatial[i];
        c.w.spatial[i] = -c.w.spatial[i];
      }
    }
    window *= line.window, result *= line.out;
  }
  const bool is_narrow = window > result;
  const bool columns_are_positions = !is_narrow && !(c.out.inner == 1 && c.outputs > 1);
  c.lines[0].plan(false);
  c.lines[1].plan(columns_are_positions);
  if (is_narrow) narrow(pool, c);
  else wide(pool, c);
  return ffi::Error::Success();
}

}  // namespace

#define FUNCGRAD_CONVOLVE(name, type)                                                                              \
  XLA_FFI_DEFINE_HANDLER_SYMBOL(name, (convolve<type>),                                                            \
                                ffi::Ffi::Bind().Ctx<ffi::ThreadPool>().Arg<ffi::Buffer<type>>()                   \
                                    .Arg<ffi::Buffer<type>>().Ret<ffi::Buffer<type>>()                             \
                                    .Attr<Dims>("x").Attr<Dims>("w").Attr<Dims>("out").Attr<Dims>("strides")       \
                                    .Attr<Dims>("lows").Attr<Dims>("dilations").Attr<Dims>("window_dilations")      \
                                    .Attr<Dims>("reverse"))

FUNCGRAD_CONVOLVE(funcgrad_conv_f32, ffi::F32);
FUNCGRAD_CONVOLVE(funcgrad_conv_f64, ffi::F64);

}  // namespace funcgrad
