"""Rules of convolutions and windowed reductions: all windows as one strided view."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from funcgrad.core.caching import memoized
from funcgrad.primitives.geometry import Axis, Dims
from funcgrad.runtime.numpy_backend.table import RULES, NotEquivalent, rule

_Slices = tuple[slice, ...]


class _Geometry(NamedTuple):
    """How windows over the last axes of an array are viewed.

    Attributes:
        shape: of the padded array.
        inside: where the elements go in it.
        kept: the elements that do, since negative padding crops.
        views: the shape of the view: leading axes, window positions, the window's axes.
        steps: the view's strides, in elements.
    """

    shape: Dims
    inside: _Slices
    kept: _Slices
    views: Dims
    steps: Dims


@memoized("geometry of windows in NumPy", 4096)
def _geometry(shape: Dims, axes: tuple[Axis, ...]) -> _Geometry:
    lead = len(shape) - len(axes)
    sizes, inside, kept = list(shape[:lead]), [slice(None)] * lead, [slice(None)] * lead
    for a in axes:
        size = max(0, a.low + max(0, a.size - 1) * a.base_dilation + min(a.size, 1) + a.high)
        first = max(0, -(a.low // a.base_dilation))  # the first element that is not cropped
        begin = a.low + first * a.base_dilation
        count = max(0, min(a.size - first, -(-(size - begin) // a.base_dilation)))
        sizes.append(size)
        inside.append(slice(begin, begin + count * a.base_dilation, a.base_dilation))
        kept.append(slice(first, first + count))
    steps = [math.prod(sizes[i + 1 :]) for i in range(len(sizes))]
    views = (*shape[:lead], *[a.out for a in axes], *[a.window for a in axes])
    places = [s * a.stride for s, a in zip(steps[lead:], axes)]
    within = [s * a.window_dilation for s, a in zip(steps[lead:], axes)]
    return _Geometry(tuple(sizes), tuple(inside), tuple(kept), views, (*steps[:lead], *places, *within))


def _views(x: Any, axes: Sequence[Axis], value: Any, order: Sequence[int] | None = None) -> Any:
    """All windows over the last axes of ``x``: its leading axes, the window positions, and the window's axes; ``order``
    permutes these."""
    g = _geometry(x.shape, tuple(axes))
    padded = np.full(g.shape, value, x.dtype)
    padded[g.inside] = x[g.kept]
    order = range(len(g.views)) if order is None else order
    size = x.itemsize
    return np.ndarray([g.views[i] for i in order], x.dtype, padded, 0, [g.steps[i] * size for i in order])


class _Convolution(NamedTuple):
    """How a convolution is computed as products of matrices.

    Attributes:
        axes: the spatial axes.
        order: of the windows' axes: positions, features and window; or features, window and positions.
        positions_last: whether the order is the latter. What is longer comes last, since it is copied in runs.
        back: the order of the result's axes.
    """

    axes: list[Axis]
    order: list[int]
    positions_last: bool
    back: list[int]


@memoized("convolutions in NumPy", 4096)
def _convolution(x: Dims, w: Dims, config: Any) -> _Convolution:
    n, axes = len(x) - 2, config.axes(x, w)
    positions, window = range(2, 2 + n), range(2 + n, 2 + 2 * n)
    last = math.prod(a.out for a in axes) > math.prod(a.window for a in axes)
    order = [0, 1, *window, *positions] if last else [0, *positions, 1, *window]
    # Where the product has the images, the features and the positions.
    made = (0, 1, *range(2, n + 2)) if last else (0, n + 1, *range(1, n + 1))
    return _Convolution(axes, order, last, [made[i] for i in sorted(range(n + 2), key=config.layout.out.__getitem__)])


@rule("conv")
def _conv(x: Any, w: Any, *, config: Any) -> Any:
    how = _convolution(x.shape, w.shape, config)
    if x.dtype.kind not in "fc" or 0 in (*x.shape, *w.shape) or any(a.out == 0 for a in how.axes):
        raise NotEquivalent
    dtype = x.dtype
    if dtype == np.float16:
        x, w = x.astype(np.float32), w.astype(np.float32)
    windows = _views(x.transpose(config.layout.x), how.axes, 0, how.order)
    kernels = w.transpose(config.layout.w)
    product, features = (_positions_last, 1) if how.positions_last else (_positions_first, len(how.axes) + 1)
    if config.groups == 1:
        out = product(windows, kernels)
    else:
        images = np.split(windows, config.groups, features)
        out = np.concatenate([product(i, k) for i, k in zip(images, np.split(kernels, config.groups))], features)
    return out.transpose(how.back).astype(dtype, copy=False)


def _positions_first(windows: Any, kernels: Any) -> Any:
    """Each window times each kernel: images, positions, the kernels' features."""
    flat = kernels.reshape(len(kernels), -1)
    return (windows.reshape(-1, flat.shape[1]) @ flat.T).reshape(*windows.shape[: kernels.ndim - 1], -1)


def _positions_last(windows: Any, kernels: Any) -> Any:
    """Each kernel times each window: images, the kernels' features, positions."""
    flat, positions = kernels.reshape(len(kernels), -1), windows.shape[kernels.ndim :]
    out = flat @ windows.reshape(len(windows), flat.shape[1], -1)
    return out.reshape(len(windows), len(kernels), *positions)


def _elements(views: Any, ndim: int) -> list[Any]:
    """The elements of windows, which are the last axes but the first ``ndim``: each for all windows."""
    return [views[(..., *place)] for place in np.ndindex(views.shape[ndim:])]


def _reduction(function: Callable[..., Any], neutral: Callable[[np.dtype], Any]) -> Callable[..., Any]:
    def run(x: Any, *, window: Any) -> Any:
        axes = window.axes(x.shape)
        if x.dtype.kind != "f" or x.dtype.itemsize < 4 or any(a.out == 0 for a in axes):
            raise NotEquivalent
        return function(_views(x, axes, neutral(x.dtype)), axis=tuple(range(x.ndim, 2 * x.ndim)))

    return run


RULES.update({
    "window_sum": _reduction(np.sum, lambda dtype: dtype.type(0)),
    "window_max": _reduction(np.max, lambda dtype: dtype.type(-np.inf)),
    "window_min": _reduction(np.min, lambda dtype: dtype.type(np.inf)),
})  # fmt: skip


def _position(better: np.ufunc, function: np.ufunc, neutral: float) -> Callable[..., Any]:
    """
    Args:
        better: whether an element is to be chosen rather than an earlier one.
        function: the one of two elements that is chosen.
        neutral: the element that never is.
    """

    def run(x: Any, *, window: Any) -> list[Any]:
        axes = window.axes(x.shape)
        if x.dtype.kind != "f" or any(a.out == 0 for a in axes) or not np.all(np.isfinite(x)):
            raise NotEquivalent  # XLA has rules for several NaNs, and for padding beside equal elements
        first, *others = _elements(_views(x, axes, x.dtype.type(neutral)), x.ndim)
        kind = np.int8 if len(others) < 128 else np.int32
        found, chosen = np.array(first), np.zeros(first.shape, kind)
        for i, each in enumerate(others, 1):
            # Without a branch for each element, which takes several times as long where it is mispredicted.
            np.maximum(chosen, better(each, found) * kind(i), out=chosen)
            function(found, each, out=found)
        if not np.all(np.isfinite(found)):
            raise NotEquivalent  # a window of padding
        return [found, chosen.astype(np.int32)]

    return run


RULES.update({
    "window_argmax": _position(np.greater, np.maximum, -np.inf),
    "window_argmin": _position(np.less, np.minimum, np.inf),
})  # fmt: skip
