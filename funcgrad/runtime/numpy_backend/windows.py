"""Rules of convolutions and windowed reductions: all windows as one strided view."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcgrad.runtime.numpy_backend.shape import pad
from funcgrad.runtime.numpy_backend.table import RULES, NotHere, rule


def _views(x: Any, axes: Sequence[Any], value: Any) -> Any:
    """All windows over the last axes of ``x``: its leading axes, the window positions, and the window's axes."""
    lead = x.ndim - len(axes)
    idle = (0,) * lead
    x = pad(
        x,
        value,
        low=(*idle, *[a.low for a in axes]),
        high=(*idle, *[a.high for a in axes]),
        interior=(*idle, *[a.base_dilation - 1 for a in axes]),
    )
    places = [s * a.stride for s, a in zip(x.strides[lead:], axes)]
    inside = [s * a.window_dilation for s, a in zip(x.strides[lead:], axes)]
    shape = (*x.shape[:lead], *[a.out for a in axes], *[a.window for a in axes])
    return np.lib.stride_tricks.as_strided(x, shape, (*x.strides[:lead], *places, *inside), writeable=False)


@rule("conv")
def _conv(x: Any, w: Any, *, config: Any) -> Any:
    axes = config.axes(x.shape, w.shape)
    if x.dtype.kind not in "fc" or 0 in (*x.shape, *w.shape) or any(a.out == 0 for a in axes):
        raise NotHere
    layout, groups, n = config.layout, config.groups, len(axes)
    dtype = x.dtype
    if dtype == np.float16:
        x, w = x.astype(np.float32), w.astype(np.float32)
    windows = _views(np.transpose(x, layout.x), axes, x.dtype.type(0))
    kernels = np.split(np.transpose(w, layout.w), groups)
    images = np.split(windows, groups, 1)
    summed = ([1, *range(2 + n, 2 + 2 * n)], [1, *range(2, 2 + n)])
    out = np.concatenate([np.tensordot(i, k, summed) for i, k in zip(images, kernels)], -1)
    back = sorted(range(n + 2), key=layout.out.__getitem__)
    return np.transpose(np.moveaxis(out, -1, 1), back).astype(dtype, copy=False)


def _reduction(function: Callable[..., Any], neutral: Callable[[np.dtype], Any]) -> Callable[..., Any]:
    def run(x: Any, *, window: Any) -> Any:
        axes = window.axes(x.shape)
        if x.dtype.kind != "f" or x.dtype.itemsize < 4 or any(a.out == 0 for a in axes):
            raise NotHere
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
            raise NotHere  # XLA has rules for several NaNs, and for padding beside equal elements
        views = _views(x, axes, x.dtype.type(neutral))
        flat = views.reshape(*[a.out for a in axes], math.prod(a.window for a in axes))
        chosen = np.asarray(function(flat, -1))
        found = np.take_along_axis(flat, chosen[..., None], -1)[..., 0]
        if not np.all(np.isfinite(found)):
            raise NotHere  # a window of padding
        return [found, chosen.astype(np.int32)]

    return run


RULES.update({"window_argmax": _position(np.argmax, -np.inf), "window_argmin": _position(np.argmin, np.inf)})
