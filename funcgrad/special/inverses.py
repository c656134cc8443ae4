"""Inverses of distribution functions with respect to their argument, and of data transformations.

``p`` is a probability; outside [0, 1] the result is NaN. Derivatives with respect to ``p`` and the parameters are
implicit; second derivatives with respect to a parameter exist if the function itself has them.
"""

from __future__ import annotations

from typing import Any

from funcgrad.primitives import elementwise as e
from funcgrad.primitives.special import inverses as p
from funcgrad.special.declare import function

__all__ = [
    "bdtri", "betainccinv", "betaincinv", "chdtri", "fdtri", "gammainccinv", "gammaincinv", "gdtrix", "inv_boxcox1p",
    "nbdtri", "ndtri_exp", "pdtri", "stdtr", "stdtrit",
]  # fmt: skip


def _fdtri(dfn: Any, dfd: Any, y: Any) -> Any:
    # The complement is accurate for probabilities near 1.
    share = p.betainc_inverse(e.scale(dfn, 0.5), e.scale(dfd, 0.5), y)
    rest = p.betaincc_inverse(e.scale(dfd, 0.5), e.scale(dfn, 0.5), y)
    return e.div(e.mul(dfd, share), e.mul(dfn, rest))


def _bdtri(k: Any, n: Any, y: Any) -> Any:
    whole = e.floor(k)
    return p.betaincc_inverse(e.shift(whole, 1), e.sub(n, whole), y)


def _inv_boxcox1p(y: Any, lmbda: Any) -> Any:
    zero = e.eq(lmbda, e.number(0, lmbda))
    safe = e.select(zero, e.number(1, lmbda), lmbda)
    return e.expm1(e.select(zero, y, e.div(e.log1p(e.mul(safe, y)), safe)))


gammaincinv = function(
    "gammaincinv",
    "a p",
    p.igamma_inverse,
    "Where ``gammainc(a, x)`` is ``p``: the quantile of a gamma variable.",
    "gammaincinv(1.0, 0.5).round(4)",
    "0.6931",
)
gammainccinv = function(
    "gammainccinv",
    "a p",
    p.igammac_inverse,
    "Where ``gammaincc(a, x)`` is ``p``, however small that is.",
    "gammainccinv(1.0, 1e-30).round(2)",
    "69.08",
)
betaincinv = function(
    "betaincinv",
    "a b p",
    p.betainc_inverse,
    "Where ``betainc(a, b, x)`` is ``p``: the quantile of a beta variable.",
    "betaincinv(1.0, 1.0, 0.25).round(4)",
    "0.25",
)
betainccinv = function(
    "betainccinv",
    "a b p",
    p.betaincc_inverse,
    "Where ``betaincc(a, b, x)`` is ``p``, however small that is.",
    "betainccinv(1.0, 1.0, 0.25).round(4)",
    "0.75",
)
chdtri = function(
    "chdtri",
    "v p",
    lambda v, y: e.scale(p.igammac_inverse(e.scale(v, 0.5), y), 2),
    "Where ``chdtrc(v, x)`` is ``p``: what a chi-square variable is above with that probability.",
    "chdtri(2.0, 0.5).round(4)",
    "1.3863",
)
gdtrix = function(
    "gdtrix",
    "a b p",
    lambda a, b, y: e.div(p.igamma_inverse(b, y), a),
    "Where ``gdtr(a, b, x)`` is ``p``: the quantile of a gamma variable of rate ``a`` and shape ``b``.",
    "gdtrix(2.0, 1.0, 0.5).round(4)",
    "0.3466",
)
fdtri = function(
    "fdtri",
    "dfn dfd p",
    _fdtri,
    "Where ``fdtr(dfn, dfd, x)`` is ``p``: the quantile of an F variable.",
    "fdtri(2.0, 2.0, 0.5).round(4)",
    "1.0",
)
pdtri = function(
    "pdtri",
    "k p",
    lambda k, y: p.igammac_inverse(e.shift(e.floor(k), 1), y),
    "The mean ``m`` for which ``pdtr(k, m)`` is ``p``.",
    "pdtri(0.0, 0.5).round(4)",
    "0.6931",
)
bdtri = function(
    "bdtri",
    "k n p",
    _bdtri,
    "The probability of success for which ``bdtr(k, n, x)`` is ``p``.",
    "bdtri(0.0, 1.0, 0.75).round(4)",
    "0.25",
)
nbdtri = function(
    "nbdtri",
    "k n p",
    lambda k, n, y: p.betainc_inverse(n, e.shift(e.floor(k), 1), y),
    "The probability of success for which ``nbdtr(k, n, x)`` is ``p``.",
    "nbdtri(0.0, 1.0, 0.25).round(4)",
    "0.25",
)
stdtr = function(
    "stdtr",
    "df t",
    p.student,
    "The probability that Student's variable with ``df`` degrees of freedom is below ``t``.",
    "stdtr(1.0, 1.0).round(4)",
    "0.75",
)
stdtrit = function(
    "stdtrit",
    "df p",
    p.student_inverse,
    "Where ``stdtr(df, t)`` is ``p``: the quantile of Student's variable.",
    "stdtrit(1.0, 0.75).round(4)",
    "1.0",
)
ndtri_exp = function(
    "ndtri_exp",
    "y",
    p.log_ndtr_inverse,
    "Where ``log_ndtr(x)`` is ``y``: the quantile of a normal variable, of a probability's logarithm.",
    "ndtri_exp(-1000.0).round(3)",
    "-44.616",
)
inv_boxcox1p = function(
    "inv_boxcox1p", "y lmbda", _inv_boxcox1p, "The inverse of ``boxcox1p``.", "inv_boxcox1p(0.0, 0.5)", "0.0"
)
