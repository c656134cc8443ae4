"""The gamma function and related ones: beta, incomplete gamma, combinations, zeta."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from funcgrad.arguments import validate
from funcgrad.primitives import elementwise as e
from funcgrad.primitives.special import functions as p
from funcgrad.runtime.call_cache import composite
from funcgrad.special.declare import function, operands

__all__ = [
    "gamma", "gammaln", "loggamma", "gammasgn", "rgamma", "digamma", "psi", "polygamma", "multigammaln",
    "gammainc", "gammaincc", "beta", "betaln", "betainc", "betaincc", "factorial", "comb", "poch", "zeta",
]  # fmt: skip


def _sign(x: Any) -> Any:
    """The sign of gamma: below 0 it changes at every pole, where it is NaN; at -0.0 the pole is negative."""
    floor = e.floor(x)
    odd = e.ne(e.rem(floor, e.number(2, x)), e.number(0, x))
    sign = e.select(odd, e.number(-1, x), e.number(1, x))
    sign = e.select(e.eq(x, floor), e.number(np.nan, x), sign)
    sign = e.select(e.ne(x, x), x, sign)
    zero = e.select(e.lt(e.div(e.number(1, x), x), e.number(0, x)), e.number(-1, x), e.number(1, x))
    return e.select(e.gt(x, e.number(0, x)), e.number(1, x), e.select(e.eq(x, e.number(0, x)), zero, sign))


def _gamma(x: Any) -> Any:
    return e.mul(_sign(x), e.exp(e.lgamma(x)))


def _rgamma(x: Any) -> Any:
    # 1 / gamma is 0 at a pole of gamma, with a slope: by 1 / gamma(x) = x / gamma(x + 1) elsewhere.
    pole = e.bitwise_and(e.le(x, e.number(0, x)), e.eq(x, e.floor(x)))
    away = e.select(pole, e.shift(x, 0.5), x)
    usual = e.mul(_sign(away), e.exp(e.neg(e.lgamma(away))))
    # The slope at x = -n is (-1)**n n!.
    count = e.stop_gradient(e.select(pole, e.neg(x), e.number(0, x)))
    even = e.eq(e.rem(count, e.number(2, x)), e.number(0, x))
    slope = e.mul(e.exp(e.lgamma(e.shift(count, 1))), e.select(even, e.number(1, x), e.number(-1, x)))
    return e.select(pole, e.mul(e.sub(x, e.stop_gradient(x)), slope), usual)


def _loggamma(x: Any) -> Any:
    # Below 0 the logarithm is complex, even where gamma is positive: its path avoids the poles.
    return e.lgamma(e.select(e.lt(x, e.number(0, x)), e.number(np.nan, x), x))


def _betaln(a: Any, b: Any) -> Any:
    return e.sub(e.add(e.lgamma(a), e.lgamma(b)), e.lgamma(e.add(a, b)))


def _beta(a: Any, b: Any) -> Any:
    sign = e.mul(e.mul(_sign(a), _sign(b)), _sign(e.add(a, b)))
    return e.mul(sign, e.exp(_betaln(a, b)))


def _betaincc(a: Any, b: Any, x: Any) -> Any:
    # 1 - x would lose the digits of small x.
    small = e.lt(x, e.number(0.5, x))
    rest = e.select(small, e.number(0.5, x), e.sub(e.number(1, x), x))
    return e.select(small, e.sub(e.number(1, x), p.betainc(a, b, x)), p.betainc(b, a, rest))


def _factorial(n: Any) -> Any:
    negative = e.lt(n, e.number(0, n))
    return e.select(negative, e.number(0, n), _gamma(e.shift(e.select(negative, e.number(0, n), n), 1)))


def _comb(n: Any, k: Any) -> Any:
    one = e.number(1, n)
    inside = e.bitwise_and(e.le(k, n), e.ge(k, e.number(0, k)))
    n, k = e.select(inside, n, one), e.select(inside, k, one)
    logs = e.sub(e.lgamma(e.add(n, one)), e.add(e.lgamma(e.add(k, one)), e.lgamma(e.add(e.sub(n, k), one))))
    return e.select(inside, e.exp(logs), e.number(0, n))


def _poch(z: Any, m: Any) -> Any:
    end = e.add(z, m)
    return e.mul(e.mul(_sign(end), _sign(z)), e.exp(e.sub(e.lgamma(end), e.lgamma(z))))


gamma = function(
    "gamma", "x", _gamma, "The gamma function; ``gamma(n + 1)`` is the factorial of n.", "gamma(5.0)", "24..."
)
gammaln = function(
    "gammaln", "x", e.lgamma, "The logarithm of the absolute value of the gamma function.", "gammaln(2.0)", "0.0"
)
loggamma = function("loggamma", "x", _loggamma, "``gammaln``, not a number below 0.", "loggamma(2.0)", "0.0")
gammasgn = function("gammasgn", "x", _sign, "The sign of the gamma function.", "gammasgn(-0.5)", "-1.0")
rgamma = function("rgamma", "x", _rgamma, "One over the gamma function.", "rgamma(2.0)", "1.0")
digamma = psi = function(
    "digamma", "x", e.digamma, "The derivative of ``gammaln``.", "digamma(1.0).round(4)", "-0.5772"
)
gammainc = function(
    "gammainc",
    "a x",
    p.igamma,
    "The regularized lower incomplete gamma function: the probability that a gamma variable is below ``x``.\n\n"
    "Of its derivatives by ``a`` there are two.",
    "gammainc(1.0, 0.0)",
    "0.0",
)
gammaincc = function("gammaincc", "a x", p.igammac, "``1 - gammainc(a, x)``.", "gammaincc(1.0, 0.0)", "1.0")
beta = function("beta", "a b", _beta, "``gamma(a) gamma(b) / gamma(a + b)``.", "beta(1.0, 1.0)", "1.0")
betaln = function(
    "betaln", "a b", _betaln, "The logarithm of the absolute value of ``beta``.", "betaln(1.0, 1.0)", "0.0"
)
betainc = function(
    "betainc",
    "a b x",
    p.betainc,
    "The regularized incomplete beta function: the probability that a beta variable is below ``x``.\n\n"
    "Of its derivatives by ``a`` and ``b`` there are two in all.",
    "betainc(1.0, 1.0, 0.25)",
    "0.25",
)
betaincc = function(
    "betaincc",
    "a b x",
    _betaincc,
    "``1 - betainc(a, b, x)``.",
    "betaincc(1.0, 1.0, 0.25)",
    "0.75",
)
factorial = function(
    "factorial", "n", _factorial, "``gamma(n + 1)``, 0 for negative ``n``.", "factorial(3.0).round(4)", "6.0"
)
comb = function(
    "comb", "n k", _comb, "How many ways there are to choose ``k`` of ``n``.", "comb(4.0, 2.0).round(4)", "6.0"
)
poch = function(
    "poch", "z m", _poch, "Pochhammer's symbol: ``gamma(z + m) / gamma(z)``.", "poch(1.0, 3.0).round(4)", "6.0"
)


@composite
def polygamma(n: int, x: Any) -> Any:
    """The ``n``-th derivative of ``digamma``.

    Args:
        n: a Python integer, or an array of integers, which broadcasts with ``x``.
        x: a real array or number; integers are converted to float32.

    Returns:
        A floating array of the broadcast shape and the promoted dtype.

    Raises:
        TypeError: for operands that are not arrays, and for complex ``x``.
        ValueError: for a negative Python integer, and for shapes that do not broadcast.

    Example:
        >>> print(polygamma(1, 1.0).round(4))
        1.6449
    """
    if isinstance(n, (int, np.integer)):
        n = validate.integer("polygamma", "n", n, least=0)
        (x,) = operands("polygamma", x)
        if n < 2:
            return e.trigamma(x) if n else e.digamma(x)
        return e.polygamma(e.number(float(n), x), x)
    n, x = operands("polygamma", n, x)
    return e.select(
        e.eq(n, e.number(0, n)), e.digamma(x), e.polygamma(e.select(e.eq(n, e.number(0, n)), e.number(1, n), n), x)
    )


def multigammaln(a: Any, d: int) -> Any:
    """The logarithm of the multivariate gamma function of dimension ``d``.

    Source: the definition, ``pi**(d (d - 1) / 4)`` times the product of ``gamma(a - j / 2)`` for ``j`` below ``d``.

    Args:
        a: a real array or number; integers are converted to float32; above ``(d - 1) / 2``.
        d: a positive integer.

    Returns:
        A floating array of the shape of ``a``, and of its dtype if that is floating.

    Raises:
        TypeError: for operands that are not arrays, for complex ``a``, and for a ``d`` that is not an integer.
        ValueError: for a ``d`` below 1.

    Example:
        >>> print(multigammaln(2.0, 1))
        0.0
    """
    d = validate.integer("multigammaln", "d", d, least=1)
    (a,) = operands("multigammaln", a)
    total = e.number(d * (d - 1) / 4 * math.log(math.pi), a)
    for j in range(d):
        total = e.add(total, e.lgamma(e.shift(a, -j / 2)))
    return total


def zeta(x: Any, q: Any = 1.0) -> Any:
    """Hurwitz's zeta function, the sum of ``(k + q)**-x`` over ``k`` from 0; Riemann's for ``q = 1``.

    Args:
        x, q: real arrays or numbers that broadcast together; ``x`` above 1, ``q`` positive.

    Returns:
        A floating array of the broadcast shape and the promoted dtype.

    Raises:
        TypeError: for operands that are not arrays, or complex ones.
        ValueError: for shapes that do not broadcast.

    Example:
        >>> print(zeta(2.0).round(4))
        1.6449
    """
    return p.zeta(*operands("zeta", x, q))
