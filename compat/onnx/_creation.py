"""ONNX translations of factories with dynamic sizes; others are constants."""

from __future__ import annotations

from typing import Any

import numpy as np

from compat.onnx._builder import Builder
from compat.onnx._table import Value, aten


def _filled(b: Builder, node: Any, value: Any) -> str:
    """A tensor filled with one number."""
    number = value.to(b, node.meta["val"]) if isinstance(value, Value) else b.like(value, node.meta["val"])
    return str(b.op("Expand", number, b.ints(*b.shapes[node][0])))


@aten(
    "zeros", "empty", "empty_strided", "new_zeros", "new_empty", "new_empty_strided", "zeros_like", "empty_like", "zero"
)
def _zeros(b: Builder, node: Any, *args: Any, **rest: Any) -> str:
    return _filled(b, node, 0)


@aten("ones", "new_ones", "ones_like")
def _ones(b: Builder, node: Any, *args: Any, **rest: Any) -> str:
    return _filled(b, node, 1)


@aten("full")
def _full(b: Builder, node: Any, size: Any, value: Any, **rest: Any) -> str:
    return _filled(b, node, value)


@aten("new_full")
def _new_full(b: Builder, node: Any, x: Value, size: Any, value: Any, **rest: Any) -> str:
    return _filled(b, node, value)


@aten("full_like", "fill")
def _full_like(b: Builder, node: Any, x: Value, value: Any, **rest: Any) -> str:
    return _filled(b, node, value)


@aten("copy")
def _copy(b: Builder, node: Any, x: Value, source: Value, *rest: Any) -> str:
    return str(b.op("Expand", source.to(b, x.tensor), b.ints(*b.shapes[node][0])))


@aten("arange")
def _arange(b: Builder, node: Any, *bounds: Any, **rest: Any) -> str:
    like = node.meta["val"]
    first, last, step = (0, bounds[0], 1) if len(bounds) == 1 else (*bounds, 1)[:3]
    return str(b.op("Range", *[b.op("Squeeze", b.like(v, like)) for v in (first, last, step)]))


@aten("eye")
def _eye(b: Builder, node: Any, *sizes: Any, **rest: Any) -> str:
    like = node.meta["val"]
    ones = b.op("Expand", b.like(1, like), b.ints(*b.shapes[node][0]))
    return str(b.op("Trilu", b.op("Trilu", ones, b.constant(0, np.int64), upper=1), b.constant(0, np.int64), upper=0))
