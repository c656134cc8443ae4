"""Logsumexp and softmax."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes

from funcgrad.arguments import validate
from funcgrad.core.tracing import type_of
from funcgrad.numpy.promotion import asoperand, promoted
from funcgrad.numpy.reductions.extremes import max
from funcgrad.numpy.reductions.reducing import Axis, masked, with_axes
from funcgrad.numpy.reductions.totals import sum
from funcgrad.numpy.shape import reshape
from funcgrad.primitives import elementwise as p
from funcgrad.primitives.shape import reduce_sum
from funcgrad.runtime.call_cache import composite


@composite
def logsumexp(x: Any, axis: Axis = None, *, keepdims: bool = False) -> Any:
    """``log(sum(exp(x)))`` without overflow.

    Args:
        x: a real array or number.
        axis: one or several; by default all.
        keepdims: whether to keep the axes, with size 1.

    Returns:
        An array of the remaining axes; of the dtype of ``x``, float32 of bools and integers; ``-inf`` over no
        elements.

    Raises:
        TypeError: for operands that are not arrays, complex numbers, or an axis that is not an int.
        ValueError: for an axis out of range or repeated.

    Example:
        >>> print(logsumexp([1000.0, 1000.0]))
        1000.6931
    """
    (x,) = promoted(asoperand(x, "logsumexp"), floating=True)
    high = p.stop_gradient(max(x, axis, keepdims=True)) if type_of(x).size else p.number(0, x)
    high = p.select(p.is_finite(high), high, p.number(0, high))
    axes = validate.axes("logsumexp", axis, type_of(x).ndim)
    total = p.log(reduce_sum(p.exp(p.sub(x, high)), axes=axes))
    shifted = p.add(total, reshape(high, type_of(total).shape)) if type_of(x).size else total
    return with_axes(x, axes, keepdims, shifted)


def minus_maximum(x: Any, peak: Any, shift: Any) -> Any:
    """``x - peak``, where ``peak`` is the maximum of ``x``, so that no exponential overflows.

    The comparison prevents a fused multiply-add: if ``x`` is a product ``a * b``, the compiler may compute ``a * b -
    peak`` without rounding the product. For large numbers the result could be so large that its exponential overflows.

    Args:
        shift: the number to subtract: ``peak``, but a finite one where that is ``-inf``. It must be another value than
            ``peak`` to XLA, which otherwise stores the maximum for each element: a softmax of 1024 rows of 1000 then
            takes 1.35 times as long on a CPU.
    """
    return p.sub(p.select(p.gt(x, peak), peak, x), shift)


def _ruled_out(x: Any, where: Any) -> Any:
    """``x`` with the dtype's minimum at the elements that ``where`` excludes: finite, so that derivatives are."""
    return x if where is None else masked(x, where, float(ml_dtypes.finfo(type_of(x).dtype).min))


@composite
def softmax(x: Any, axis: int = -1, where: Any = None) -> Any:
    """``exp(x) / sum(exp(x))`` along an axis, without overflow.

    Args:
        x: an array of any dtype, of at least one axis.
        axis: one or several.
        where: a mask, True for the elements to include; the result is 0 for the others.

    Returns:
        An array of the shape of ``x``; of the dtype of ``x``, float32 of bools and integers.

    Raises:
        TypeError: for operands that are not arrays, or an axis that is not an int.
        ValueError: along an axis of no elements, one out of range or repeated, or for a mask that does not
            broadcast.

    Example:
        >>> print(softmax([0.0, 0.0]))
        [0.5 0.5]
    """
    (x,) = promoted(asoperand(x, "softmax"), floating=True)
    x = _ruled_out(x, where)
    weights = p.exp(p.sub(x, p.stop_gradient(max(x, axis, keepdims=True))))
    return masked(p.div(weights, sum(weights, axis, keepdims=True)), where, 0)


@composite
def log_softmax(x: Any, axis: int = -1, where: Any = None) -> Any:
    """The logarithm of ``softmax``, exact where that underflows.

    Args:
        x: an array of any dtype, of at least one axis.
        axis: one or several.
        where: a mask, True for the elements to include; the result is ``-inf`` for the others.

    Returns:
        An array of the shape of ``x``; of the dtype of ``x``, float32 of bools and integers.

    Raises:
        TypeError: for operands that are not arrays, or an axis that is not an int.
        ValueError: along an axis of no elements, one out of range or repeated, or for a mask that does not
            broadcast.

    Example:
        >>> print(log_softmax([0.0, 1000.0]))
        [-1000.     0.]
    """
    (x,) = promoted(asoperand(x, "log_softmax"), floating=True)
    x = _ruled_out(x, where)
    shifted = p.sub(x, p.stop_gradient(max(x, axis, keepdims=True)))
    return masked(p.sub(shifted, p.log(sum(p.exp(shifted), axis, keepdims=True))), where, -math.inf)


__all__ = ["log_softmax", "logsumexp", "softmax"]
