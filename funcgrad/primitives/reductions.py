"""Reductions and cumulative operations along axes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jax import lax

from funcgrad.core import dtypes
from funcgrad.core.ir import ArrayType
from funcgrad.core.primitive import Primitive, Rule
from funcgrad.core.tracing import type_of
from funcgrad.primitives.elementwise import add, cast, div, eq, mul, number, select
from funcgrad.primitives.shape import (
    Dims,
    check_axis,
    concatenate,
    full,
    kept,
    reduce_sum,
    reduction_batch,
    reduction_infer,
    reshape,
    reverse,
    slice_,
    spread_back,
    transpose,
)


def _extreme(name: str, lower: Callable[..., Any]) -> Primitive:
    def jvp(primals: Sequence[Any], tangents: Sequence[Any], *, axes: Dims) -> tuple[Any, Any]:
        (x,), (t,) = primals, tangents
        out = primitive(x, axes=axes)
        # Tied elements share the derivative evenly.
        chosen = cast(eq(x, spread_back(out, type_of(x).shape, axes)), dtype=type_of(x).dtype)
        share = div(chosen, spread_back(reduce_sum(chosen, axes=axes), type_of(x).shape, axes))
        return out, reduce_sum(mul(t, share), axes=axes)

    primitive = Primitive(
        name,
        infer=reduction_infer(name, needs_elements=True),
        lower=lower,
        jvp=jvp,
        batch=reduction_batch(lambda: primitive),
    )
    return primitive


reduce_max = _extreme("reduce_max", lambda x, *, axes: lax.reduce_max(x, axes))
reduce_min = _extreme("reduce_min", lambda x, *, axes: lax.reduce_min(x, axes))


def _prod_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, axes: Dims) -> tuple[Any, Any]:
    # The derivative with respect to a factor is the product of all the others, computed from both ends without
    # division, so zeros need no special case.
    (x,), (t,) = primals, tangents
    shape = type_of(x).shape
    left = kept(shape, axes)
    flat = (*(shape[i] for i in left), math.prod(shape[a] for a in axes))

    def flatten(v: Any) -> Any:
        return reshape(transpose(v, permutation=(*left, *axes)), shape=flat)

    f, tf = flatten(x), flatten(t)
    last = len(flat) - 1
    others = mul(_exclusive(f, last, False), _exclusive(f, last, True))
    return reduce_prod(x, axes=axes), reduce_sum(mul(tf, others), axes=(last,))


def _exclusive(x: Any, axis: int, from_end: bool) -> Any:
    shape = type_of(x).shape
    n = shape[axis]
    if n == 0:
        return x
    one = full(number(1, x), (*shape[:axis], 1, *shape[axis + 1 :]))
    start, limit = [0] * len(shape), list(shape)
    start[axis], limit[axis] = (1, n) if from_end else (0, n - 1)
    rest = slice_(x, start=tuple(start), limit=tuple(limit), strides=(1,) * len(shape))
    products = cumulative_prod(rest, axis=axis, reverse=from_end)
    return concatenate(*([products, one] if from_end else [one, products]), axis=axis)


reduce_prod = Primitive(
    "prod",
    infer=reduction_infer("prod", needs_elements=False),
    lower=lambda x, *, axes: lax.reduce_prod(x, axes),
    jvp=_prod_jvp,
    batch=reduction_batch(lambda: reduce_prod),
)

reduce_any = Primitive(
    "any",
    infer=reduction_infer("any", needs_elements=False),
    lower=lambda x, *, axes: lax.reduce_or(x, axes),
    batch=reduction_batch(lambda: reduce_any),
    differentiable=False,
)
reduce_all = Primitive(
    "all",
    infer=reduction_infer("all", needs_elements=False),
    lower=lambda x, *, axes: lax.reduce_and(x, axes),
    batch=reduction_batch(lambda: reduce_all),
    differentiable=False,
)


# ---------------------------------------------------------------- argmin and argmax


def _arg_infer(name: str) -> Rule:
    def infer(x: ArrayType, *, axis: int, dtype: np.dtype) -> ArrayType:
        check_axis(name, axis, x)
        if x.shape[axis] == 0:
            raise ValueError(f"{name}: has no value over axis {axis} of {x}, which is empty")
        return ArrayType((*x.shape[:axis], *x.shape[axis + 1 :]), dtypes.canonical(dtype))

    return infer


def _arg_extreme(name: str, lower: Callable[..., Any]) -> Primitive:
    def batch(
        size: int, operands: Sequence[Any], dims: Sequence[int], *, axis: int, dtype: np.dtype
    ) -> tuple[Any, int]:
        dim = dims[0]
        axis += axis >= dim
        return primitive(operands[0], axis=axis, dtype=dtype), dim - (axis < dim)

    primitive = Primitive(
        name,
        infer=_arg_infer(name),
        lower=lambda x, *, axis, dtype: lower(x, axis, dtype),
        batch=batch,
        differentiable=False,
    )
    return primitive


argmax = _arg_extreme("argmax", lax.argmax)
argmin = _arg_extreme("argmin", lax.argmin)


# ---------------------------------------------------------------- cumulative


def _cumulative(name: str, lower: Callable[..., Any], jvp: Rule | None = None, linear: bool = False) -> Primitive:
    def infer(x: ArrayType, *, axis: int, reverse: bool) -> ArrayType:
        check_axis(name, axis, x)
        return x

    def batch(size: int, operands: Sequence[Any], dims: Sequence[int], *, axis: int, reverse: bool) -> tuple[Any, int]:
        return primitive(operands[0], axis=axis + (axis >= dims[0]), reverse=reverse), dims[0]

    primitive = Primitive(
        name,
        infer=infer,
        lower=lambda x, *, axis, reverse: lower(x, axis=axis, reverse=reverse),
        transpose=(lambda ct, x, *, axis, reverse: primitive(ct, axis=axis, reverse=not reverse),) if linear else None,
        jvp=jvp,
        batch=batch,
    )
    return primitive


def _doubling(x: Any, t: Any, axis: int, from_end: bool, combine: Rule) -> tuple[Any, Any]:
    """An inclusive scan of pairs by recursive doubling: log2(n) steps of whole-array arithmetic.

    Source: Hillis and Steele, "Data parallel algorithms", CACM 29 (1986).
    """
    n = type_of(x).shape[axis]
    step = 1
    if from_end:
        x, t = reverse(x, axes=(axis,)), reverse(t, axes=(axis,))
    while step < n:
        (x0, x1, xh), (t0, t1, th) = _shifted(x, axis, step), _shifted(t, axis, step)
        a, b = combine(x0, t0, x1, t1)
        x, t = concatenate(xh, a, axis=axis), concatenate(th, b, axis=axis)
        step *= 2
    if from_end:
        x, t = reverse(x, axes=(axis,)), reverse(t, axes=(axis,))
    return x, t


def _shifted(x: Any, axis: int, step: int) -> tuple[Any, Any, Any]:
    shape = type_of(x).shape
    n = shape[axis]

    def part(a: int, b: int) -> Any:
        start, limit = [0] * len(shape), list(shape)
        start[axis], limit[axis] = a, b
        return slice_(x, start=tuple(start), limit=tuple(limit), strides=(1,) * len(shape))

    return part(0, n - step), part(step, n), part(0, step)


def _cumprod_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, axis: int, reverse: bool) -> tuple[Any, Any]:
    def combine(x0: Any, t0: Any, x1: Any, t1: Any) -> tuple[Any, Any]:
        return mul(x0, x1), add(mul(t0, x1), mul(t1, x0))

    tangent = _doubling(primals[0], tangents[0], axis, reverse, combine)[1]
    return cumulative_prod(primals[0], axis=axis, reverse=reverse), tangent


def _running_extreme_jvp(primitive: Callable[[], Primitive]) -> Rule:
    def jvp(primals: Sequence[Any], tangents: Sequence[Any], *, axis: int, reverse: bool) -> tuple[Any, Any]:
        (x,), (t,) = primals, tangents
        out = primitive()(x, axis=axis, reverse=reverse)

        def combine(x0: Any, t0: Any, x1: Any, t1: Any) -> tuple[Any, Any]:
            from funcgrad.primitives.elementwise import maximum, minimum

            best = (maximum if primitive() is cumulative_max else minimum)(x0, x1)
            half = number(0.5, t0)
            tie = mul(add(t0, t1), half)
            return best, select(eq(x0, x1), tie, select(eq(best, x0), t0, t1))

        return out, _doubling(x, t, axis, reverse, combine)[1]

    return jvp


cumulative_sum = _cumulative("cumsum", lax.cumsum, linear=True)
cumulative_prod = _cumulative("cumprod", lax.cumprod, _cumprod_jvp)
cumulative_max = _cumulative("cummax", lax.cummax, _running_extreme_jvp(lambda: cumulative_max))
cumulative_min = _cumulative("cummin", lax.cummin, _running_extreme_jvp(lambda: cumulative_min))

__all__ = [
    "argmax", "argmin", "cumulative_max", "cumulative_min", "cumulative_prod", "cumulative_sum",
    "reduce_all", "reduce_any", "reduce_max", "reduce_min", "reduce_prod", "reduce_sum",
]  # fmt: skip
