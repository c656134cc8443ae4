"""Applies a primitive's rules; shared by forward mode, reverse mode and transposition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from funcgrad.core.errors import NonDifferentiableError, here
from funcgrad.core.ir import ArrayType
from funcgrad.core.primitive import Primitive, Rule
from funcgrad.core.tracing import state, type_of
from funcgrad.primitives.collectives import Over, psum_p
from funcgrad.primitives.elementwise import add
from funcgrad.primitives.reductions import reduce_sum
from funcgrad.primitives.shape import broadcast, reshape, zeros


def abstract(x: Any) -> ArrayType:
    return x if isinstance(x, ArrayType) else type_of(x)


def accumulate(a: Any, b: Any) -> Any:
    """The sum of two tangents or cotangents, ``None`` being zero."""
    return b if a is None else a if b is None else add(a, b)


def sum_to(x: Any, target: ArrayType) -> Any:
    """``x`` summed over the axes along which an operand of type ``target`` was broadcast."""
    shape = type_of(x).shape
    if shape == target.shape:
        return x
    lead = len(shape) - target.ndim
    axes = (*range(lead), *[i + lead for i, n in enumerate(target.shape) if n == 1 and shape[i + lead] != 1])
    summed = reduce_sum(x, axes=axes)
    return summed if type_of(summed).shape == target.shape else reshape(summed, shape=target.shape)


def spread_to(x: Any, shape: tuple[int, ...]) -> Any:
    """``x`` broadcast to ``shape`` by NumPy's rule."""
    mine = type_of(x).shape
    if mine == shape:
        return x
    return broadcast(x, shape=shape, dims=tuple(range(len(shape) - len(mine), len(shape))))


def no_rule(primitive: Primitive) -> NonDifferentiableError:
    return NonDifferentiableError(
        f"the primitive {primitive.name!r} has no derivative rule; it was reached at {here()}"
    )


def linear_rule(primitive: Primitive, index: int) -> Rule | None:
    """The transpose rule of operand ``index``, or None if the primitive is not linear in it."""
    rules = primitive.transpose
    if rules is None or callable(rules):
        return rules
    return rules[index]


def pull(primitive: Primitive, index: int, ct: Any, out: Any, operands: Sequence[Any], params: dict[str, Any]) -> Any:
    """The cotangent of operand ``index``; ``None`` if the derivative with respect to it is zero.

    The primitive must be linear in an operand that is given as its type (``ArrayType``).
    """
    if primitive.partials is not None:
        rule = primitive.partials[index]
        if rule is None:
            return None
        result = rule(ct, out, *operands, **params)
    else:
        rule = linear_rule(primitive, index)
        if rule is None:
            return None
        if callable(primitive.transpose):
            result = rule(ct, index, operands, **params)
        else:
            known = list(operands)
            known[index] = abstract(operands[index])
            result = rule(ct, *known, **params)
    if primitive.elementwise:
        result = sum_to(result, abstract(operands[index]))
    if state.axes:
        types = [abstract(x) for x in operands]
        return summed_over(result, primitive.common(types, params) - types[index].varying)
    return result


def summed_over(ct: Any, axes: frozenset[str]) -> Any:
    """The cotangent of a value that is replicated along some mesh axes, but was treated as varying there."""
    return ct if ct is None or not axes else psum_p(ct, over=Over(tuple(sorted(axes)), True))


def summed_pullback(primitive: Primitive, cts: Sequence[Any], types: Sequence[ArrayType], params: dict) -> list[Any]:
    """The results of a pullback of ``primitive``, as cotangents of operands of ``types``."""
    if not state.axes:
        return list(cts)
    if primitive.exact:
        return [None if ct is None else summed_over(ct, type_of(ct).varying - t.varying) for ct, t in zip(cts, types)]
    axes = primitive.common(types, params)
    return [summed_over(ct, axes - t.varying) for ct, t in zip(cts, types)]


def push(
    primitive: Primitive, primals: Sequence[Any], tangents: Sequence[Any], out: Any, params: dict[str, Any]
) -> Any:
    """The tangent of a primitive with ``partials`` or ``transpose``; ``None`` where it is zero."""
    if primitive.partials is None:
        return _push_linear(primitive, primals, tangents, params)
    total = None
    for rule, tangent in zip(primitive.partials, tangents, strict=True):
        if tangent is not None and rule is not None:
            term = spread_to(rule(tangent, out, *primals, **params), type_of(out).shape)
            total = accumulate(total, term)
    return total


def _push_linear(primitive: Primitive, primals: Sequence[Any], tangents: Sequence[Any], params: dict[str, Any]) -> Any:
    linear = [linear_rule(primitive, i) is not None for i in range(len(primals))]
    live = [i for i, t in enumerate(tangents) if t is not None and linear[i]]
    if not live:
        return None
    if primitive.bilinear:
        total = None
        for i in live:
            total = accumulate(total, primitive(*primals[:i], tangents[i], *primals[i + 1 :], **params))
        return total
    operands = [
        (zeros(type_of(p)) if t is None else t) if is_linear else p
        for p, t, is_linear in zip(primals, tangents, linear, strict=True)
    ]
    return primitive(*operands, **params)
