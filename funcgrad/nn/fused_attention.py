"""Scaled dot-product attention as one operation, and its backward pass.

On a CPU a native kernel computes both for a few queries at a time, so that the scores of all queries are never stored.
Elsewhere, and in derivatives of higher order, they are the operations of ``forward`` and ``backward``.

Queries, keys, values and results are ``(n, heads, rows, width)``. If several heads of the queries share one of the
keys, their queries are consecutive rows of that head.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from funcgrad.control.call import jvp_call
from funcgrad.core import dtypes
from funcgrad.core.caching import memoized
from funcgrad.core.ir import ArrayType, Program
from funcgrad.core.primitive import Primitive
from funcgrad.core.tracing import type_of
from funcgrad.interpreters.lower import lowered
from funcgrad.interpreters.reverse import Pullback, vjp_from_jvp
from funcgrad.interpreters.staging import stage
from funcgrad.numpy.reductions.exponentials import minus_maximum
from funcgrad.primitives import elementwise as e
from funcgrad.primitives.contraction import dot
from funcgrad.primitives.reductions import reduce_max
from funcgrad.primitives.shape import broadcast, expanded, iota, moved, reduce_sum, reshape, zeros

#: With fewer multiplications the operations one by one are as fast, by NumPy or fused with others by XLA.
_LEAST_WORK = 1 << 18


def product(x: Any, y: Any, x_axis: int, y_axis: int) -> Any:
    """The products of matrices with two batch axes, summed over an axis of each."""
    return dot(x, y, contract=((x_axis,), (y_axis,)), batch=((0, 1), (0, 1)))


def scores(query: Any, key: Any, mask: Any, *, scale: float, causal: bool, queries: int) -> Any:
    """``(n, heads, rows, keys)``: the scaled products with the mask added, ``-inf`` for keys after a query.

    Args:
        mask: None, or numbers that broadcast to the scores; those for ``queries`` rows are repeated.
        queries: the number of consecutive rows that are one head's queries.
    """
    found = product(e.scale(query, scale), key, 3, 3)
    n, heads, rows, keys = shape = type_of(found).shape
    if rows != queries:
        by_head = (rows // queries, queries)
        found = reshape(found, shape=(n, heads, *by_head, keys))
        if mask is not None:
            n, heads, own, keys = type_of(mask).shape
            mask = reshape(mask, shape=(n, heads, *(by_head if own == rows else (1, own)), keys))
    if mask is not None:
        found = e.add(found, mask)
    if causal:
        place, other = (iota(shape=(queries, shape[3]), axis=axis, dtype=dtypes.int32) for axis in (0, 1))
        found = e.select(e.ge(place, other), found, e.number(-math.inf, found))
    return found if rows == queries else reshape(found, shape=shape)


def exponentials(x: Any, axis: int) -> tuple[Any, Any, Any, Any]:
    """The exponentials of ``x`` less its maxima along an axis, and their sums; zero and 1 where all elements are -inf.

    Returns:
        The exponentials, the sums, the maxima, and the mask of rows of -inf; all but the first with the axis of size 1.
    """
    maximum = e.stop_gradient(expanded(reduce_max(x, axes=(axis,)), axis))
    masked = e.eq(maximum, e.number(-math.inf, maximum))
    weights = e.exp(minus_maximum(x, maximum, e.select(masked, e.number(0, maximum), maximum)))
    total = expanded(reduce_sum(weights, axes=(axis,)), axis)
    return weights, e.select(masked, e.number(1, total), total), maximum, masked


def forward(
    query: Any, key: Any, value: Any, mask: Any = None, *, scale: float, causal: bool, queries: int
) -> list[Any]:
    """The averages of the values, and the logarithms of the sums of the scores' exponentials, ``(n, heads, rows)``.

    A row whose keys are all masked by ``-inf`` gives zeros.
    """
    found = scores(query, key, mask, scale=scale, causal=causal, queries=queries)
    weights, total, maximum, masked = exponentials(found, 3)
    return [e.div(product(weights, value, 3, 2), total), logarithms_of(total, maximum, masked)]


def logarithms_of(total: Any, maximum: Any, masked: Any) -> Any:
    """The logarithms of the sums of exponentials, from results of ``exponentials`` along the last axis of four."""
    found = e.select(masked, e.number(0, total), e.add(maximum, e.log(total)))
    return reshape(found, shape=type_of(found).shape[:3])


def backward(
    ct: Any, query: Any, key: Any, value: Any, out: Any, logarithms: Any, ct_logarithms: Any, mask: Any = None,
    *, scale: float, causal: bool, queries: int,
) -> list[Any]:  # fmt: skip
    """The cotangents of queries, keys and values, from those of the results of ``forward``."""
    found = scores(query, key, mask, scale=scale, causal=causal, queries=queries)
    weights, ct_scores = weights_and_cotangents(found, ct, value, out, logarithms, ct_logarithms)
    ct_scores = e.scale(ct_scores, scale)
    return [product(ct_scores, key, 3, 2), product(ct_scores, query, 2, 2), product(weights, ct, 2, 2)]


def weights_and_cotangents(
    scores: Any, ct: Any, value: Any, out: Any, logarithms: Any, ct_logarithms: Any
) -> tuple[Any, Any]:
    """The weights of the values, and the cotangents of the scores."""
    weights = e.exp(e.sub(scores, expanded(logarithms, 3)))
    inner = expanded(e.sub(reduce_sum(e.mul(ct, out), axes=(3,)), ct_logarithms), 3)
    return weights, e.mul(weights, e.sub(product(ct, value, 3, 3), inner))


# ---------------------------------------------------------------- as primitives


@memoized("attention as programs", 1024)
def _program(function: Callable[..., list[Any]], types: tuple[ArrayType, ...], params: tuple) -> Program:
    return stage(lambda *xs: function(*xs, **dict(params)), types, name=function.__name__)


class _Fused:
    """A function that is one operation if it is large: a primitive with the function's program as a parameter.

    Calling it takes the function's arguments. The other parameters are for the kernel.

    Attributes:
        query: the position of the queries among the operands, before that of the keys.
        before_mask: the number of operands before the mask.
    """

    def __init__(
        self, name: str, function: Callable[..., list[Any]], query: int, before_mask: int, vjp: Any = None
    ) -> None:
        self.function, self.query, self.before_mask = function, query, before_mask
        self.primitive = Primitive(
            name,
            infer=lambda *types, program, **_: program.output_types,
            lower=lambda *xs, program, **_: lowered(program)(*xs),
            jvp=lambda primals, tangents, *, program, **_: jvp_call(primals, tangents, program=program),
            vjp=vjp,
            batch=self._batch,
            multiple=True,
        )

    def __call__(self, *operands: Any, **params: Any) -> list[Any]:
        operands = tuple(x for x in operands if x is not None)  # there may be no mask
        query, key = (type_of(x) for x in operands[self.query : self.query + 2])
        large = query.dtype == dtypes.float32 and query.size * key.shape[2] >= _LEAST_WORK
        return (self.bind if large else self.function)(*operands, **params)

    def bind(self, *operands: Any, **params: Any) -> list[Any]:
        """Calls it as one operation."""
        types = tuple(type_of(x) for x in operands)
        program = _program(self.function, types, tuple(params.items()))
        found: list[Any] = self.primitive(*operands, program=program, **params)
        return found

    def _batch(
        self, size: int, operands: Sequence[Any], dims: Sequence[int | None], *, program: Program, **params: Any
    ) -> tuple[list[Any], list[int]]:
        plain = self.before_mask
        merged = [_merged(size, x, d) for x, d in zip(operands[:plain], dims[:plain], strict=True)]
        for mask, dim in zip(operands[plain:], dims[plain:], strict=True):
            merged.append(_merged_mask(size, mask, dim, type_of(merged[0]).shape[0] // size))
        outs = self.bind(*merged, **params)
        shapes = [type_of(x).shape for x in outs]
        separate = [reshape(x, shape=(size, s[0] // size, *s[1:])) for x, s in zip(outs, shapes, strict=True)]
        return separate, [0] * len(outs)


def _merged(size: int, x: Any, dim: int | None) -> Any:
    """An operand with the batch axis merged into the first one."""
    shape = type_of(x).shape
    if dim is None:
        x = broadcast(x, shape=(size, *shape), dims=tuple(range(1, len(shape) + 1)))
    else:
        x = moved(x, dim, 0)
    _, first, *rest = type_of(x).shape
    return reshape(x, shape=(size * first, *rest))


def _merged_mask(size: int, mask: Any, dim: int | None, count: int) -> Any:
    """A mask for ``size`` times ``count`` batch elements; its first axis may have size one."""
    shape, at = type_of(mask).shape, int(dim == 0)
    if shape[at] == 1:
        if dim is None:
            return mask
        whole = (*shape[:at], count, *shape[at + 1 :])
        mask = broadcast(mask, shape=whole, dims=tuple(range(len(shape)))) if count > 1 else mask
    return _merged(size, mask, dim)


def _forward_vjp(operands: Sequence[Any], needs: Sequence[bool], params: dict[str, Any]) -> tuple[list[Any], Pullback]:
    if len(needs) > attention.before_mask and needs[-1]:
        return vjp_from_jvp(attention.primitive, operands, needs, params)
    out, logarithms = attention.primitive(*operands, **params)
    own = {name: value for name, value in params.items() if name != "program"}

    def pullback(cotangents: Sequence[Any]) -> list[Any]:
        ct, ct_logarithms = (
            zeros(type_of(x)) if found is None else found
            for found, x in zip(cotangents, (out, logarithms), strict=True)
        )
        query, key, value, *mask = operands
        found = attention_cotangents.bind(ct, query, key, value, out, logarithms, ct_logarithms, *mask, **own)
        return [g if n else None for g, n in zip([*found, *[None] * len(mask)], needs, strict=True)]

    return [out, logarithms], pullback


attention = _Fused("attention_forward", forward, query=0, before_mask=3, vjp=_forward_vjp)
attention_cotangents = _Fused("attention_backward", backward, query=1, before_mask=7)
