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


@memoized("convolutions in NumPy", 4096)
def _convolution(x: Dims, w: Dims, config: Any) -> tuple[list[Axis], list[int], list[int]]:
    """The spatial axes, the order of the windows' axes for a product, and the order of the result's axes."""
    n, axes = len(x) - 2, config.axes(x, w)
    order = [0, *range(2, 2 + n), 1, *range(2 + n, 2 + 2 * n)]
    # The product has the features last.
    back = [(0, n + 1, *range(1, n + 1))[i] for i in sorted(range(n + 2), key=config.layout.out.__getitem__)]
    return axes, order, back


@rule("conv")
def _conv(x: Any, w: Any, *, config: Any) -> Any:
    axes, order, back = _convolution(x.shape, w.shape, config)
    if x.dtype.kind not in "fc" or 0 in (*x.shape, *w.shape) or any(a.out == 0 for a in axes):
        raise NotEquivalent
    dtype = x.dtype
    if dtype == np.float16:
        x, w = x.astype(np.float32), w.astype(np.float32)
    windows = _views(x.transpose(config.layout.x), axes, 0, order)
    kernels = w.transpose(config.layout.w)
    places, groups = windows.shape[: len(axes) + 1], config.groups
    if groups == 1:
        out = _product(windows, kernels)
    else:
        images = np.split(windows, groups, len(places))
        out = np.concatenate([_product(i, k) for i, k in zip(images, np.split(kernels, groups))], -1)
    return out.reshape(*places, -1).transpose(back).astype(dtype, copy=False)


def _product(windows: Any, kernels: Any) -> Any:
    """Each window times each kernel."""
    flat = kernels.reshape(len(kernels), -1)
    return windows.reshape(-1, flat.shape[1]) @ flat.T


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


def _position(function: Callable[..., Any], neutral: float) -> Callable[..., Any]:
    def run(x: Any, *, window: Any) -> list[Any]:
        axes = window.axes(x.shape)
        if x.dtype.kind != "f" or any(a.out == 0 for a in axes) or not np.all(np.isfinite(x)):
            raise NotEquivalent  # XLA has rules for several NaNs, and for padding beside equal elements
        views = _views(x, axes, x.dtype.type(neutral))
        flat = views.reshape(*[a.out for a in axes], math.prod(a.window for a in axes))
        chosen = np.asarray(function(flat, -1))
        found = np.take_along_axis(flat, chosen[..., None], -1)[..., 0]
        if not np.all(np.isfinite(found)):
            raise NotEquivalent  # a window of padding
        return [found, chosen.astype(np.int32)]

    return run


RULES.update({"window_argmax": _position(np.argmax, -np.inf), "window_argmin": _position(np.argmin, np.inf)})
