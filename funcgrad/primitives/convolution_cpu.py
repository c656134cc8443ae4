"""How a convolution is computed on the CPU, where XLA's own way is good for some shapes only.

What XLA does badly there (``python -m benchmarks lowering`` measures it again):

- Images whose channels do not come last it turns round, before and after. A kernel of one element is a product of
  matrices without that.
- Inside loops it does not turn them round, and then has no fast code for them. So they are turned here.
- Of more than 16 channels without padding it materializes all windows of all images, several times the size of the
  input, before it multiplies; with padding it does not, unless the results are larger than the input, when it is slow
  for another reason. So the padding is our own, and one row more, which it has to take away.
- Of few channels a loop that materializes the windows image by image is faster.
- For groups of one channel it has no fast code; they are sums of products of whole images.

A convolution has one of two forms. *Wide*: many results of small windows, as forwards and for the gradient by the
input; the sum is over features and the window. *Narrow*: few results of large windows, as the gradient by the kernel
has them, whose batch is channels and whose features are images. Both are sums over the elements of something small,
the window or the results, which are called taps here.
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

# XLA uses a library where there are more channels than this, of either kind.
_LIBRARY_CHANNELS = 16
# Windows of up to so many elements, over all channels, are better materialized image by image: wide and narrow.
_FEW_ELEMENTS, _FEWER_ELEMENTS = 32, 16


class Problem(NamedTuple):
    """A convolution of (batch, features, ...) with kernels (outputs, features, ...).

    Attributes:
        x, w: the shapes.
        axes: the spatial axes.
        groups: of the features.
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
        """The smaller of the two."""
        return self.out if self.narrow else self.window

    @property
    def places(self) -> Dims:
        """The larger of the two."""
        return self.window if self.narrow else self.out

    def starts(self, tap: Dims) -> Dims:
        """Where in the padded input the elements are that meet a tap."""
        return tuple(t * (a.stride if self.narrow else a.window_dilation) for t, a in zip(tap, self.axes, strict=True))

    @property
    def steps(self) -> Dims:
        """How far apart they are."""
        return tuple(a.window_dilation if self.narrow else a.stride for a in self.axes)

    def padded(self, x: Any) -> Any:
        """The input with its padding, for any number of axes in front."""
        idle = [(0, 0, 0)] * (x.ndim - len(self.axes))
        config = [*idle, *[(a.low, a.high, a.base_dilation - 1) for a in self.axes]]
        return lax.pad(x, x.dtype.type(0), config) if any(c != (0, 0, 0) for c in config) else x

    def at(self, x: Any, tap: Dims) -> Any:
        """Of the padded input, the elements that meet a tap."""
        for d, (start, step, count) in enumerate(zip(self.starts(tap), self.steps, self.places, strict=True)):
            x = lax.slice_in_dim(x, start, start + (count - 1) * step + 1, step, x.ndim - len(self.axes) + d)
        return x


def form_of(problem: Problem, dtype: np.dtype) -> Form:
    """The way that is the fastest, as far as was measured; see the module."""
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


# ---------------------------------------------------------------- XLA's own


def by_xla(x: Any, w: Any, problem: Problem) -> Any:
    """XLA's convolution, with channels last."""
    n = len(problem.axes)
    last = (0, n + 1, *range(1, n + 1))
    x = lax.transpose(x, (0, *range(2, n + 2), 1))
    padding = [(a.low, a.high) for a in problem.axes]
    if _padded_by_us(problem):
        # One more row than wanted, which the convolution takes away; behind a barrier, or XLA would add the two up.
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
    """Whether XLA materializes all windows first, or does not call its library, and would with other padding.

    The library's code wants results no larger than the input, and padding of any kind.
    """
    library = len(problem.axes) == 2 and problem.groups == 1 and max(problem.x[1], problem.w[0]) > _LIBRARY_CHANNELS
    if not library or any(a.base_dilation > 1 for a in problem.axes):
        return False
    return all(a.low == a.high == 0 for a in problem.axes) or any(a.out > a.size for a in problem.axes)


# ---------------------------------------------------------------- products of matrices


def by_matrix(x: Any, w: Any, problem: Problem) -> Any:
    """Where there is one tap: the products of all images' matrices with the kernel's, or with those of its images."""
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
    """Windows materialized for one image after the other, so that they stay in the processor's cache."""
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
    """All windows of one image (channels, ...): a matrix of (taps, channels) by places."""
    x = problem.padded(image)
    n = len(problem.axes)
    # One axis after the other, each whole: fewer elements are picked one by one.
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
    """``x`` with all axes after the first ``lead`` as one."""
    return lax.reshape(x, (*x.shape[:lead], math.prod(x.shape[lead:])))


def _product(x: Any, y: Any, dx: int, dy: int) -> Any:
    return lax.dot_general(x, y, (((dx,), (dy,)), ((), ())), precision=lax.Precision.HIGHEST)


def _products(x: Any, y: Any, dx: int, dy: int) -> Any:
    return lax.dot_general(x, y, (((dx,), (dy,)), ((0,), (0,))), precision=lax.Precision.HIGHEST)


# ---------------------------------------------------------------- groups of one channel


def by_channel(x: Any, w: Any, problem: Problem) -> Any:
    """Groups of one channel: for each tap a product, element by element, which XLA fuses into one loop."""
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
