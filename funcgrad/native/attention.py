"""Scaled dot-product attention and its gradients by native kernels, which never store the scores of all queries."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from funcgrad.core.ir import ArrayType
from funcgrad.core.primitive import Primitive
from funcgrad.native.contraction import MOST_ELEMENTS

Order = tuple[int, ...]

#: One thread computes the gradients of a head; with fewer heads XLA uses more threads.
_LEAST_HEADS = 2


def pays(name: str, types: Sequence[ArrayType]) -> bool:
    """Whether the kernel supports the operands, and is faster than XLA; depends only on sizes and dtypes.

    Args:
        types: those of the operands of an ``attention_forward`` or ``attention_backward``.
    """
    n, heads, _, _ = types[0].shape
    if any(t.dtype != np.float32 or not 0 < math.prod(t.shape) <= MOST_ELEMENTS for t in types):
        return False
    return name == "attention_forward" or n * heads >= _LEAST_HEADS


def _shape(sizes: Sequence[int], order: Order) -> tuple[int, ...]:
    """The shape of an array whose axis ``order[d]`` has the size ``sizes[d]``."""
    return tuple(sizes[order.index(i)] for i in range(len(order)))


def _sizes(x: Any, order: Order) -> list[int]:
    return [x.shape[i] for i in order]


def _forward_results(*operands: Any, orders: tuple[Order, ...]) -> list[tuple[int, ...]]:
    query, _, value = map(_sizes, operands[:3], orders[:3])
    return [_shape([*query[:3], value[3]], orders[-2]), tuple(query[:3])]


def _backward_results(*operands: Any, orders: tuple[Order, ...]) -> list[tuple[int, ...]]:
    return [
        _shape(_sizes(x, own), order) for x, own, order in zip(operands[1:4], orders[1:4], orders[-3:], strict=True)
    ]


def _primitive(name: str, results: Any) -> Primitive:
    def infer(*types: ArrayType, orders: tuple[Order, ...], **_: Any) -> list[ArrayType]:
        return [ArrayType(shape, types[0].dtype) for shape in results(*types, orders=orders)]

    def lower(*xs: Any, orders: tuple[Order, ...], scale: float, causal: bool, queries: int) -> list[Any]:
        shapes = [jax.ShapeDtypeStruct(s, xs[0].dtype) for s in results(*xs, orders=orders)]
        call = jax.ffi.ffi_call(f"funcgrad_{name}_f32", shapes)
        flat = np.array([d for order in orders for d in order or range(4)], np.int64)
        return list(call(*xs, orders=flat, scale=np.float32(scale), causal=np.bool_(causal), queries=np.int64(queries)))

    return Primitive(f"native_{name}", infer=infer, lower=lower, multiple=True)


#: As the primitives of these names, with arrays in any order of axes: axis d of an operand or a result is axis
#: ``order[d]`` of the array. ``orders`` has those of the operands and then of the results, empty for fewer axes than
#: four.
NATIVE = {
    "attention_forward": _primitive("attention_forward", _forward_results),
    "attention_backward": _primitive("attention_backward", _backward_results),
}
