"""Convolution algorithms for the CPU, where XLA's own is fast for some shapes only.

Weaknesses of XLA there (``python -m benchmarks lowering`` measures them):

- It transposes images that are not channels-last before and after. A 1x1 kernel is a matrix product without that.
- Inside loops it does not transpose them, and then has no fast code for them. So they are transposed here.
- For more than 16 channels without padding it materializes all windows of all images (im2col), several times the size
  of the input; with padding it does not, unless the results are larger than the input, where it is slow for another
  reason. So the padding is explicit, plus one row that XLA has to crop.
- For few channels, im2col in a loop over images is faster.
- It has no fast code for depthwise convolutions; they are computed as sums of elementwise products.

A convolution has one of two forms. *Wide*: many results of small windows, as the forward pass and the gradient with
respect to the input; it sums over features and the window. *Narrow*: few results of large windows, as the gradient with
respect to the kernel, whose batch is channels and whose features are images. Both sum over the elements of a small
axis, called taps here: the window or the results.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from jax import lax

from funcgrad.core import dtypes
from funcgrad.primitives.geometry import Axis

Dims = tuple[int, ...]
Form = Callable[[Any, Any, "Problem"], Any]

# XLA calls an optimized library for more input and output channels than this.
_LIBRARY_CHANNELS = 16
# Windows of up to so many elements over all channels are materialized image by image: wide and narrow.
_FEW_ELEMENTS, _FEWER_ELEMENTS = 32, 16


class Problem(NamedTuple):
    """A convolution of (batch, features, ...) with kernels (outputs, features, ...).

    Attributes:
        x, w: the shapes.
        axes: the spatial axes.
        groups: the number of feature groups.
    """

    x: Dims
    w: Dims
    axes: tuple[Axis, ...]
    groups: int

    @property
    def window(self) -> Dims:
        return tuple(a.window for a in self.axes)

    @property
    def out(self) -> Dims:
        return tuple(a.out for a in self.axes)

    @property
    def narrow(self) -> bool:
        """Whether the windows are larger than the results."""
        return math.prod(self.window) > math.prod(self.out)

    @property
    def taps(self) -> Dims:
        """The smaller of window and results."""
        return self.out if self.narrow else self.window

    @property
    def places(self) -> Dims:
        """The larger of window and results."""
        return self.window if self.narrow else self.out

    def starts(self, tap: Dims) -> Dims:
        """The offsets of the taps in the padded input."""
        return tuple(t * (a.stride if self.narrow else a.window_dilation) for t, a in zip(tap, self.axes, strict=True))

    @property
    def steps(self) -> Dims:
        """The stride between the elements of a tap."""
        return tuple(a.window_dilation if self.narrow else a.stride for a in self.axes)

    def padded(self, x: Any) -> Any:
        """The padded input, with any number of leading axes."""
        idle = [(0, 0, 0)] * (x.ndim - len(self.axes))
        config = [*idle, *[(a.low, a.high, a.base_dilation - 1) for a in self.axes]]
        return lax.pad(x, x.dtype.type(0), config) if any(c != (0, 0, 0) for c in config) else x

    def at(self, x: Any, tap: Dims) -> Any:
        """The elements of the padded input that a tap multiplies."""
        for d, (start, step, count) in enumerate(zip(self.starts(tap), self.steps, self.places, strict=True)):
            x = lax.slice_in_dim(x, start, start + (count - 1) * step + 1, step, x.ndim - len(self.axes) + d)
        return x


def form_of(problem: Problem, dtype: np.dtype) -> Form:
    """The fastest algorithm, as measured; see the module docstring."""
    x, w, axes, groups, narrow = problem.x, problem.w, problem.axes, problem.groups, problem.narrow
    if dtype not in (dtypes.float32, dtypes.float64) or not axes or 0 in (*x, *w, *problem.out):
        return by_xla
    if groups > 1:
        return by_channel if (x[0] if narrow else w[1]) == 1 else by_xla
    if any(a.base_dilation > 1 for a in axes):
        return by_xla
    taps, outputs = math.prod(problem.taps), w[0]
    if taps == 1:
        return by_matrix if outputs <= math.prod(problem.places) else by_xla
    elements = taps * (x[0] if narrow else x[1])
    few = elements <= (_FEWER_ELEMENTS if narrow else _FEW_ELEMENTS)
    return by_image if few and outputs > 1 else by_xla


# ---------------------------------------------------------------- XLA's convolution


def by_xla(x: Any, w: Any, problem: Problem) -> Any:
    """XLA's convolution in channels-last layout."""
    n = len(problem.axes)
    last = (0, n + 1, *range(1, n + 1))
    x = lax.transpose(x, (0, *range(2, n + 2), 1))
    padding = [(a.low, a.high) for a in problem.axes]
    if _padded_by_us(problem):
        # One extra row, which negative padding crops; behind a barrier, or XLA would add the two up.
        (low, high), *rest = padding
        x = lax.pad(x, x.dtype.type(0), [(0, 0, 0), (low, high + 1, 0), *[(*p, 0) for p in rest], (0, 0, 0)])
        x, padding = lax.optimization_barrier(x), [(0, -1), *[(0, 0) for _ in rest]]
    out = lax.conv_general_dilated(
        x,
        lax.transpose(w, (*range(2, n + 2), 1, 0)),
        [a.stride for a in problem.axes],
        padding,
        [a.base_dilation for a in problem.axes],
        [a.window_dilation for a in problem.axes],
        lax.ConvDimensionNumbers(last, (n + 1, n, *range(n)), last),
        feature_group_count=problem.groups,
        precision=lax.Precision.HIGHEST,
    )
    return lax.transpose(out, last)


def _padded_by_us(problem: Problem) -> bool:
    """Whether XLA would be faster with other padding: it materializes all windows first, or does not call its library.

    The library requires results no larger than the input, and nonzero padding.
    """
    library = len(problem.axes) == 2 and problem.groups == 1 and max(problem.x[1], problem.w[0]) > _LIBRARY_CHANNELS
    if not library or any(a.base_dilation > 1 for a in problem.axes):
        return False
    return all(a.low == a.high == 0 for a in problem.axes) or any(a.out > a.size for a in problem.axes)


# ---------------------------------------------------------------- matrix products


def by_matrix(x: Any, w: Any, problem: Problem) -> Any:
    """For one tap: the products of all images' matrices with the kernel's matrix, or per image."""
    x = _rows(problem.at(problem.padded(x), (0,) * len(problem.axes)), 2)
    w = _rows(w, 2)
    if problem.narrow:
        images = _products(lax.transpose(x, (1, 0, 2)), lax.transpose(w, (1, 0, 2)), 2, 2)
        out = lax.reduce_sum(images, (0,))
    else:
        kernels = lax.broadcast(lax.reshape(w, problem.w[:2]), (problem.x[0],))
        out = _products(kernels, x, 2, 1)
    return lax.reshape(out, (problem.x[0], problem.w[0], *problem.out))


def by_image(x: Any, w: Any, problem: Problem) -> Any:
    """im2col for one image at a time, so that windows stay in the processor's cache."""
    return (_narrow_by_image if problem.narrow else _wide_by_image)(x, w, problem)


def _wide_by_image(x: Any, w: Any, problem: Problem) -> Any:
    images, outputs = problem.x[0], problem.w[0]
    kernel = _rows(lax.transpose(w, (0, *range(2, w.ndim), 1)), 1)

    def step(i: Any, out: Any) -> Any:
        image = lax.squeeze(lax.dynamic_slice_in_dim(x, i, 1), (0,))
        results = _product(kernel, _windows(image, problem), 1, 0)
        return lax.dynamic_update_slice_in_dim(out, lax.reshape(results, (1, outputs, *problem.out)), i, 0)

    return lax.fori_loop(np.int32(0), np.int32(images), step, lax.full((images, outputs, *problem.out), 0, x.dtype))


def _narrow_by_image(x: Any, w: Any, problem: Problem) -> Any:
    channels, images, outputs, taps = problem.x[0], problem.x[1], problem.w[0], math.prod(problem.taps)

    def step(i: Any, total: Any) -> Any:
        image = lax.squeeze(lax.dynamic_slice_in_dim(x, i, 1, 1), (1,))
        kernel = _rows(lax.squeeze(lax.dynamic_slice_in_dim(w, i, 1, 1), (1,)), 1)
        return lax.add(total, _product(kernel, _windows(image, problem), 1, 1))

    start = lax.full((outputs, taps * channels), 0, x.dtype)
    total = lax.fori_loop(np.int32(0), np.int32(images), step, start)
    split = lax.reshape(total, (outputs, *problem.taps, channels))
    return lax.transpose(split, (split.ndim - 1, 0, *range(1, split.ndim - 1)))


def _windows(image: Any, problem: Problem) -> Any:
    """All windows of one image (channels, ...): a matrix of (taps, channels) by positions."""
    x = problem.padded(image)
    n = len(problem.axes)
    # Axis by axis, each as a whole slice: fewer elements are gathered individually.
    for d in reversed(range(n)):
        count, step, at = problem.places[d], problem.steps[d], x.ndim - n + d
        starts = [problem.starts((0,) * d + (t,) + (0,) * (n - d - 1))[d] for t in range(problem.taps[d])]
        parts = [lax.slice_in_dim(x, s, s + (count - 1) * step + 1, step, at) for s in starts]
        x = parts[0] if len(parts) == 1 else lax.concatenate([lax.expand_dims(p, (0,)) for p in parts], 0)
        x = lax.expand_dims(x, (0,)) if len(parts) == 1 else x
        if d:
            x = lax.optimization_barrier(x)
    return lax.reshape(x, (math.prod(problem.taps) * image.shape[0], math.prod(problem.places)))


def _rows(x: Any, lead: int) -> Any:
    """``x`` with all axes after the first ``lead`` flattened."""
    return lax.reshape(x, (*x.shape[:lead], math.prod(x.shape[lead:])))


def _product(x: Any, y: Any, dx: int, dy: int) -> Any:
    return lax.dot_general(x, y, (((dx,), (dy,)), ((), ())), precision=lax.Precision.HIGHEST)


def _products(x: Any, y: Any, dx: int, dy: int) -> Any:
    return lax.dot_general(x, y, (((dx,), (dy,)), ((0,), (0,))), precision=lax.Precision.HIGHEST)


# ---------------------------------------------------------------- depthwise


def by_channel(x: Any, w: Any, problem: Problem) -> Any:
    """Depthwise convolution: for each tap an elementwise product, which XLA fuses into one loop."""
    return (_narrow_by_channel if problem.narrow else _wide_by_channel)(x, w, problem)


def _taps(problem: Problem) -> list[Dims]:
    return list(product(*map(range, problem.taps)))


def _wide_by_channel(x: Any, w: Any, problem: Problem) -> Any:
    images, groups, each = problem.x[0], problem.groups, problem.w[0] // problem.groups
    shape = (images, groups, each, *problem.out)
    padded = problem.padded(x)
    total: Any = None
    for tap in _taps(problem):
        seen = lax.broadcast_in_dim(problem.at(padded, tap), shape, (0, 1, *range(3, len(shape))))
        weight = lax.squeeze(lax.slice(w, (0, 0, *tap), (*w.shape[:1], 1, *[t + 1 for t in tap])), range(1, w.ndim))
        part = lax.mul(seen, lax.broadcast_in_dim(lax.reshape(weight, (groups, each)), shape, (1, 2)))
        total = part if total is None else lax.add(total, part)
    return lax.reshape(total, (images, problem.w[0], *problem.out))


def _narrow_by_channel(x: Any, w: Any, problem: Problem) -> Any:
    groups, outputs = problem.groups, problem.w[0]
    features, each = problem.w[1], outputs // groups
    shape = (groups, each, features, *problem.window)
    padded = lax.reshape(problem.padded(x), (groups, features, *problem.padded(x).shape[2:]))
    kernel = lax.reshape(w, shape)
    parts = []
    for tap in _taps(problem):
        seen = lax.broadcast_in_dim(problem.at(padded, tap), shape, (0, *range(2, len(shape))))
        parts.append(lax.reduce_sum(lax.mul(seen, kernel), tuple(range(2, len(shape)))))
    out = lax.concatenate([lax.reshape(p, (outputs, 1)) for p in parts], 1)
    return lax.reshape(out, (1, outputs, *problem.out))


# ---------------------------------------------------------------- any layout


def lower(x: Any, w: Any, layout: tuple[Dims, Dims, Dims], axes: tuple[Axis, ...], groups: int) -> Any:
    """The convolution of arrays in any layout."""
    x, w = lax.transpose(x, layout[0]), lax.transpose(w, layout[1])
    problem = Problem(x.shape, w.shape, axes, groups)
    out = form_of(problem, x.dtype)(x, w, problem)
    return lax.transpose(out, tuple(sorted(range(out.ndim), key=layout[2].__getitem__)))


__all__ = ["Problem", "by_channel", "by_image", "by_matrix", "by_xla", "form_of", "lower"]
