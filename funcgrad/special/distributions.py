"""Statistical distribution functions by incomplete gamma and beta functions: ``…tr`` the lower, ``…trc`` the upper
tail."""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.primitives import elementwise as e
from funcgrad.primitives.special import functions as p
from funcgrad.special.declare import function, negative
from funcgrad.special.gamma import _beta, _betaincc, _gamma, _rgamma

__all__ = [
    "bdtr", "bdtrc", "binom", "chdtr", "chdtrc", "fdtr", "fdtrc", "gdtr", "gdtrc", "nbdtr", "nbdtrc", "pdtr", "pdtrc",
]  # fmt: skip


def _next(k: Any) -> Any:
    """The smallest integer above ``k``."""
    return e.shift(e.floor(k), 1)


def _share(dfn: Any, dfd: Any, x: Any) -> Any:
    """The fraction of a sum of squares due to ``dfn`` of them, if the ratio of the mean squares is ``x``."""
    weight = e.mul(dfn, x)
    return e.div(weight, e.add(dfd, weight))


def _within(k: Any, n: Any, inside: Any, below: float, all_: float) -> Any:
    """``inside(k, n - k)`` for integers 0 <= k < n, and the limits for other operands."""
    k = e.floor(k)
    left = e.sub(n, k)
    usual = e.bitwise_and(e.ge(k, e.number(0, k)), e.gt(left, e.number(0, k)))
    one = e.number(1, k)
    found = inside(e.shift(e.select(usual, k, one), 1), e.select(usual, left, one))
    edge = e.select(e.eq(left, e.number(0, k)), e.number(all_, k), e.number(np.nan, k))
    return e.select(usual, found, e.select(negative(k), e.number(below, k), edge))


def _bdtr(k: Any, n: Any, q: Any) -> Any:
    return _within(k, n, lambda above, left: _betaincc(above, left, q), np.nan, 1.0)


def _bdtrc(k: Any, n: Any, q: Any) -> Any:
    return _within(k, n, lambda above, left: p.betainc(above, left, q), 1.0, 0.0)


def _binom(x: Any, y: Any) -> Any:
    one = e.number(1, x)
    left = e.sub(x, y)
    # 1 / gamma, whose value is 0 with a slope at the poles of gamma; logarithms would be infinite there.
    pole = e.bitwise_or(_whole_and_negative(y), _whole_and_negative(left))
    top, first, second = e.shift(x, 1), e.select(pole, one, e.shift(y, 1)), e.select(pole, one, e.shift(left, 1))
    usual = e.div(one, e.mul(top, _beta(second, first)))
    at_pole = e.mul(_gamma(top), e.mul(_rgamma(e.shift(y, 1)), _rgamma(e.shift(left, 1))))
    found = e.select(pole, at_pole, usual)
    return e.select(_whole_and_negative(x), e.number(np.nan, x), found)


def _whole_and_negative(x: Any) -> Any:
    return e.bitwise_and(negative(x), e.eq(x, e.floor(x)))


chdtr = function(
    "chdtr",
    "v x",
    lambda v, x: p.igamma(e.scale(v, 0.5), e.scale(x, 0.5)),
    "The probability that a chi-square variable with ``v`` degrees of freedom is below ``x``.",
    "chdtr(2.0, 0.0)",
    "0.0",
)
chdtrc = function(
    "chdtrc",
    "v x",
    lambda v, x: p.igammac(e.scale(v, 0.5), e.scale(x, 0.5)),
    "``1 - chdtr(v, x)``.",
    "chdtrc(2.0, 0.0)",
    "1.0",
)  # fmt: skip
gdtr = function(
    "gdtr",
    "a b x",
    lambda a, b, x: p.igamma(b, e.mul(a, x)),
    "The probability that a gamma variable of rate ``a`` and shape ``b`` is below ``x``.",
    "gdtr(1.0, 2.0, 0.0)",
    "0.0",
)
gdtrc = function(
    "gdtrc",
    "a b x",
    lambda a, b, x: p.igammac(b, e.mul(a, x)),
    "``1 - gdtr(a, b, x)``.",
    "gdtrc(1.0, 2.0, 0.0)",
    "1.0",
)
pdtr = function(
    "pdtr",
    "k m",
    lambda k, m: p.igammac(_next(k), m),
    "The probability that a Poisson variable of mean ``m`` is at most ``k``, which is rounded down.",
    "pdtr(3.0, 0.0)",
    "1.0",
)
pdtrc = function("pdtrc", "k m", lambda k, m: p.igamma(_next(k), m), "``1 - pdtr(k, m)``.", "pdtrc(3.0, 0.0)", "0.0")
fdtr = function(
    "fdtr",
    "dfn dfd x",
    lambda dfn, dfd, x: p.betainc(e.scale(dfn, 0.5), e.scale(dfd, 0.5), _share(dfn, dfd, x)),
    "The probability that an F variable with ``dfn`` and ``dfd`` degrees of freedom is below ``x``.",
    "fdtr(2.0, 2.0, 1.0)",
    "0.5",
)
fdtrc = function(
    "fdtrc",
    "dfn dfd x",
    lambda dfn, dfd, x: _betaincc(e.scale(dfn, 0.5), e.scale(dfd, 0.5), _share(dfn, dfd, x)),
    "``1 - fdtr(dfn, dfd, x)``.",
    "fdtrc(2.0, 2.0, 1.0)",
    "0.5",
)
bdtr = function(
    "bdtr",
    "k n p",
    _bdtr,
    "The probability of at most ``k`` successes in ``n`` trials of probability ``p``; ``k`` is rounded down.",
    "bdtr(0.0, 1.0, 0.25)",
    "0.75",
)
bdtrc = function("bdtrc", "k n p", _bdtrc, "``1 - bdtr(k, n, p)``.", "bdtrc(0.0, 1.0, 0.25)", "0.25")
nbdtr = function(
    "nbdtr",
    "k n p",
    lambda k, n, q: p.betainc(n, _next(k), q),
    "The probability of at most ``k`` failures before the ``n``-th success of probability ``p``.",
    "nbdtr(0.0, 1.0, 0.25)",
    "0.25",
)
nbdtrc = function(
    "nbdtrc",
    "k n p",
    lambda k, n, q: _betaincc(n, _next(k), q),
    "``1 - nbdtr(k, n, p)``.",
    "nbdtrc(0.0, 1.0, 0.25)",
    "0.75",
)
binom = function(
    "binom", "x y", _binom, "The binomial coefficient of two real numbers.", "binom(4.0, 2.0).round(4)", "6.0"
)
