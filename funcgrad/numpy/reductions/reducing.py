"""Shared parts of reductions: axes and masks."""

from __future__ import annotations

import math
from typing import Any

from funcgrad.arguments import validate
from funcgrad.core import dtypes
from funcgrad.core.primitive import Primitive
from funcgrad.core.tracing import type_of
from funcgrad.numpy import elementwise as e
from funcgrad.numpy.promotion import asoperand, astype, promoted
from funcgrad.numpy.shape import reshape
from funcgrad.primitives import elementwise as p

Axis = int | tuple[int, ...] | None


def with_axes(x: Any, axes: tuple[int, ...], keepdims: bool, out: Any) -> Any:
    if not keepdims:
        return out
    return reshape(out, tuple(1 if i in axes else n for i, n in enumerate(type_of(x).shape)))


def reduced(primitive: Primitive, x: Any, axis: Axis, keepdims: bool, name: str) -> Any:
    axes = validate.axes(name, axis, type_of(x).ndim)
    return with_axes(x, axes, keepdims, primitive(x, axes=axes) if axes else x)


def summable(x: Any, dtype: Any, name: str) -> Any:
    """Sums and products of bools and small ints are int64 (or uint64), as in NumPy."""
    (x,) = promoted(asoperand(x, name))
    if dtype is not None:
        return astype(x, dtypes.canonical(dtype))
    own = type_of(x).dtype
    if own == dtypes.bool_ or own in dtypes.SIGNED:
        return astype(x, dtypes.int64)
    return astype(x, dtypes.uint64) if own in dtypes.UNSIGNED else x


def masked(x: Any, where: Any, neutral: Any) -> Any:
    """``x`` with the reduction's identity at the elements that ``where`` excludes."""
    return x if where is None else e.where(where, x, p.number(neutral, x))


def count(x: Any, axis: Axis, name: str) -> int:
    shape = type_of(x).shape
    return math.prod(shape[a] for a in validate.axes(name, axis, len(shape)))
