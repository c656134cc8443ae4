"""The convolution by the native kernel."""

from __future__ import annotations

import math
from typing import Any

import jax
import numpy as np

from funcgrad.core.ir import ArrayType
from funcgrad.core.primitive import Primitive
from funcgrad.native.contraction import MOST_ELEMENTS
from funcgrad.native.library import SUFFIXES
from funcgrad.primitives.convolution import Config, conv

#: Smaller ones are as fast in XLA.
_LEAST_WORK = 1 << 15


def pays(x: ArrayType, w: ArrayType, config: Config) -> bool:
    """Whether the kernel supports it and is faster than XLA; depends only on sizes and dtype."""
    spatial = x.ndim - 2
    if x.dtype not in SUFFIXES or config.groups > 1 or not 1 <= spatial <= 2 or 0 in (*x.shape, *w.shape):
        return False
    axes = config.axes(x.shape, w.shape)
    out, window = math.prod(a.out for a in axes), math.prod(a.window for a in axes)
    if out == 0 or any(a.out <= 0 for a in axes):
        return False
    # Dilated input is skipped per position, so the taps there must be adjacent and computed together.
    if any(d > 1 for d in config.lhs_dilation) and (any(s > 1 for s in config.strides) or window > out):
        return False
    padded = math.prod(a.size * a.base_dilation + abs(a.low) + abs(a.high) for a in axes)
    batch, features = (x.shape[d] for d in config.layout.x[:2])
    outputs = w.shape[config.layout.w[0]]
    if max(batch * features * padded, math.prod(w.shape), batch * outputs * out) > MOST_ELEMENTS:
        return False
    return batch * features * outputs * out * window >= _LEAST_WORK


def _infer(x: ArrayType, w: ArrayType, *, config: Config, reverse: tuple[int, ...]) -> ArrayType:
    return conv.output_types([x, w], {"config": config})[0]


def _lower(x: Any, w: Any, *, config: Config, reverse: tuple[int, ...]) -> Any:
    dtype = np.dtype(x.dtype)
    result = _infer(ArrayType(x.shape, dtype), ArrayType(w.shape, dtype), config=config, reverse=reverse)
    call = jax.ffi.ffi_call(f"funcgrad_conv_{SUFFIXES[dtype]}", jax.ShapeDtypeStruct(result.shape, dtype))
    attributes = {
        **config.layout._asdict(),
        "strides": config.strides,
        "lows": tuple(a.low for a in config.axes(x.shape, w.shape)),
        "dilations": config.lhs_dilation,
        "window_dilations": config.rhs_dilation,
        "reverse": tuple(int(d in reverse) for d in config.layout.w[2:]),
    }
    return call(x, w, **{name: np.array(value, np.int64) for name, value in attributes.items()})


native_conv = Primitive("native_conv", infer=_infer, lower=_lower)
