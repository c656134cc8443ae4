"""Logistic functions, entropies, and exponentials and logarithms that are accurate near 0 or 1."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from funcgrad.core.tracing import type_of
from funcgrad.numpy import elementwise as n
from funcgrad.numpy import reductions
from funcgrad.numpy.promotion import asoperand
from funcgrad.numpy.reductions import log_softmax, softmax
from funcgrad.primitives import elementwise as e
from funcgrad.runtime.call_cache import composite
from funcgrad.special.declare import function, operands

__all__ = [
    "expit", "logit", "log_expit", "softplus", "xlogy", "xlog1py", "entr", "rel_entr", "kl_div", "boxcox", "boxcox1p",
    "inv_boxcox", "exprel", "sinc", "exp2", "expm1", "log1p", "cbrt", "logsumexp", "softmax", "log_softmax",
]  # fmt: skip

exp2, expm1, log1p, cbrt, sinc = n.exp2, n.expm1, n.log1p, n.cbrt, n.sinc

# ---------------------------------------------------------------- helpers


def _zero(x: Any) -> Any:
    return e.eq(x, e.number(0, x))


def _positive(x: Any) -> Any:
    return e.gt(x, e.number(0, x))


def _softplus(x: Any) -> Any:
    return e.add(e.maximum(x, e.number(0, x)), e.log1p(e.exp(e.neg(e.absolute(x)))))


def _polynomial(x: Any, coefficients: Sequence[float]) -> Any:
    total = e.number(coefficients[-1], x)
    for c in coefficients[-2::-1]:
        total = e.shift(e.mul(total, x), c)
    return total


def _exprel(x: Any) -> Any:
    # Near 0 by Taylor series, for derivatives there.
    near = e.lt(e.absolute(x), e.number(0.125, x))
    series = _polynomial(e.select(near, x, e.number(0, x)), [1 / math.factorial(k + 1) for k in range(10)])
    far = e.select(near, e.number(1, x), x)
    return e.select(near, series, e.div(e.expm1(far), far))


def _nothing(x: Any, y: Any, least: float) -> Any:
    """Whether ``x`` is 0, where the logarithm of ``y`` may be infinite or NaN."""
    infinite = e.bitwise_or(e.le(y, e.number(least, y)), e.eq(y, e.number(np.inf, y)))
    return e.bitwise_and(_zero(x), infinite)


def _xlogy(x: Any, y: Any) -> Any:
    none = _nothing(x, y, 0)
    return e.mul(x, e.log(e.select(none, e.number(1, y), y)))


def _xlog1py(x: Any, y: Any) -> Any:
    none = _nothing(x, y, -1)
    return e.mul(x, e.log1p(e.select(none, e.number(0, y), y)))


def _entr(x: Any) -> Any:
    negative = e.lt(x, e.number(0, x))
    safe = e.select(negative, e.number(1, x), x)
    return e.select(negative, e.number(-np.inf, x), e.neg(_xlogy(safe, safe)))


def _divergence(x: Any, y: Any, inside: Any, edge: Any) -> Any:
    """``inside`` for positive operands, ``edge`` if ``x`` is 0, NaN if one is NaN, infinity elsewhere."""
    both = e.bitwise_and(_positive(x), _positive(y))
    safe_x, safe_y = e.select(both, x, e.number(1, x)), e.select(both, y, e.number(1, y))
    at_edge = e.bitwise_and(_zero(x), e.ge(y, e.number(0, y)))
    total = e.add(x, y)
    beyond = e.select(e.ne(total, total), total, e.number(np.inf, x))
    return e.select(both, inside(safe_x, safe_y), e.select(at_edge, edge(x, y), beyond))


def _rel_entr(x: Any, y: Any) -> Any:
    return _divergence(x, y, lambda x, y: e.mul(x, e.sub(e.log(x), e.log(y))), lambda x, y: x)


def _kl_div(x: Any, y: Any) -> Any:
    def inside(x: Any, y: Any) -> Any:
        return e.add(e.sub(e.mul(x, e.sub(e.log(x), e.log(y))), x), y)

    return _divergence(x, y, inside, lambda x, y: y)


def _boxcox(x: Any, lmbda: Any) -> Any:
    log = e.log(x)
    return e.mul(log, _exprel(e.mul(lmbda, log)))


def _boxcox1p(x: Any, lmbda: Any) -> Any:
    log = e.log1p(x)
    return e.mul(log, _exprel(e.mul(lmbda, log)))


def _inv_boxcox(y: Any, lmbda: Any) -> Any:
    zero = _zero(lmbda)
    safe = e.select(zero, e.number(1, lmbda), lmbda)
    return e.exp(e.select(zero, y, e.div(e.log1p(e.mul(safe, y)), safe)))


# ---------------------------------------------------------------- functions

expit = function("expit", "x", e.logistic, "``1 / (1 + exp(-x))``.", "expit(0.0)", "0.5")
logit = function(
    "logit",
    "p",
    lambda x: e.sub(e.log(x), e.log1p(e.neg(x))),
    "``log(p / (1 - p))``, the inverse of ``expit``.",
    "logit(0.5)",
    "0.0",
)
log_expit = function(
    "log_expit", "x", lambda x: e.neg(_softplus(e.neg(x))), "The logarithm of ``expit``.", "log_expit(-100.0)", "-100.0"
)
softplus = function("softplus", "x", _softplus, "``log(1 + exp(x))``, without overflow.", "softplus(100.0)", "100.0")
xlogy = function("xlogy", "x y", _xlogy, "``x log(y)``, and 0 where ``x`` is.", "xlogy(0.0, 0.0)", "0.0")
xlog1py = function("xlog1py", "x y", _xlog1py, "``x log(1 + y)``, and 0 where ``x`` is.", "xlog1py(0.0, -1.0)", "0.0")
entr = function("entr", "x", _entr, "``-x log(x)``, 0 at 0 and minus infinity below.", "entr(1.0)", "-0.0")
rel_entr = function(
    "rel_entr",
    "x y",
    _rel_entr,
    "``x log(x / y)``, 0 where ``x`` is, and infinity for an argument that is not a probability.",
    "rel_entr(1.0, 1.0)",
    "0.0",
)
kl_div = function(
    "kl_div",
    "x y",
    _kl_div,
    "``x log(x / y) - x + y``.",
    "kl_div(1.0, 1.0)",
    "0.0",
)
boxcox = function(
    "boxcox", "x lmbda", _boxcox, "``(x**lmbda - 1) / lmbda``, ``log(x)`` for 0.", "boxcox(1.0, 0.5)", "0.0"
)
boxcox1p = function("boxcox1p", "x lmbda", _boxcox1p, "``boxcox(1 + x, lmbda)``.", "boxcox1p(0.0, 0.5)", "0.0")
inv_boxcox = function("inv_boxcox", "y lmbda", _inv_boxcox, "The inverse of ``boxcox``.", "inv_boxcox(0.0, 0.5)", "1.0")
exprel = function("exprel", "x", _exprel, "``(exp(x) - 1) / x``, 1 at 0.", "exprel(0.0)", "1.0")


@composite
def logsumexp(
    a: Any,
    axis: int | tuple[int, ...] | None = None,
    b: Any = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: Any = None,
) -> Any:
    """``log(sum(b * exp(a)))`` along axes, without overflow.

    Args:
        a: a real array; integers are converted to float32.
        axis: one or several; by default all.
        b: real factors that broadcast with ``a``; by default 1.
        keepdims: whether to keep the axes, with size 1.
        return_sign: whether to return the sign of the sum too; otherwise a negative sum gives NaN.
        where: booleans: the elements to include.

    Returns:
        The logarithm, a floating array of the shape of ``a``, broadcast with ``b``, without the axes; or the pair of
        the logarithm of the absolute value and the sign.

    Raises:
        TypeError: for operands that are not arrays, for complex ones, and for an axis that is not an integer.
        ValueError: for shapes that do not broadcast, and for an axis out of range or repeated.

    Example:
        >>> print(logsumexp(np.array([1000.0, 1000.0])).round(4))
        1000.6931
    """
    if where is not None:
        b = n.where(asoperand(where, "logsumexp"), 1.0 if b is None else b, 0.0)
    a, b = operands("logsumexp", a, 1.0 if b is None else b)
    # Excluded elements must not affect the maximum.
    counted = n.where(n.equal(b, 0), -np.inf, a)
    high = e.stop_gradient(reductions.max(counted, axis=axis, keepdims=True)) if type_of(counted).size else -np.inf
    high = n.where(n.isfinite(high), high, 0.0)
    total, sign = _log_of_sum(b, n.subtract(counted, high), axis)
    found = n.add(total, high)
    if not keepdims:
        found, sign = (reductions.sum(x, axis=axis) for x in (found, sign))
    if return_sign:
        return found, sign
    return n.where(n.less(sign, 0), np.nan, found)


def _log_of_sum(b: Any, below: Any, axis: Any) -> tuple[Any, Any]:
    """The logarithm of ``abs(sum(b * exp(below)))`` and the sum's sign, for nonpositive ``below``.

    Exponentials equal to one are summed separately, so that small terms are not lost.
    """
    one = n.equal(below, 0)
    small = n.where(one, n.expm1(n.where(one, below, 0.0)), n.exp(below))
    ones, rest = (reductions.sum(n.multiply(b, x), axis=axis, keepdims=True) for x in (one, small))
    apart = n.logical_and(n.greater(ones, 0), n.greater(rest, n.multiply(ones, -0.5)))
    safe, whole = n.where(apart, ones, 1.0), n.where(apart, 1.0, n.add(ones, rest))
    near = n.add(n.log(safe), n.log1p(n.divide(n.where(apart, rest, 0.0), safe)))
    return n.where(apart, near, n.log(n.abs(whole))), n.where(apart, 1.0, n.sign(whole))
