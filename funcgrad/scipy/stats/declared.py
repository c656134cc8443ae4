"""Distributions without a module of their own, each declared by a few functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from funcgrad.numpy import elementwise as n
from funcgrad.scipy.stats.declare import Continuous, Discrete, Function
from funcgrad.special import (
    betainc,
    betaincc,
    betaln,
    expit,
    gammaincc,
    gammaln,
    i0e,
    log_expit,
    log_ndtr,
    logit,
    xlog1py,
    xlogy,
)

# ---------------------------------------------------------------- continuous

_HALF_LOG_TAU = math.log(2 * math.pi) / 2


def _flip(f: Function) -> Function:
    return lambda z, *shapes: f(-z, *shapes)


def _cauchy_cdf(z: Any) -> Any:
    # By the complementary angle, which is accurate for small probabilities.
    return n.atan2(1.0, -z) / math.pi


def _gumbel_logcdf(z: Any) -> Any:
    return -n.exp(-z)


logistic = Continuous(
    "logistic", {}, "The logistic distribution.",
    lambda z: log_expit(z) + log_expit(-z),
    cdf=expit, sf=_flip(expit), logcdf=log_expit, logsf=_flip(log_expit), ppf=logit,
)  # fmt: skip
cauchy = Continuous(
    "cauchy", {}, "The Cauchy distribution.",
    lambda z: -n.log1p(n.square(z)) - math.log(math.pi),
    cdf=_cauchy_cdf, sf=_flip(_cauchy_cdf), ppf=lambda q: n.tan(math.pi * (q - 0.5)),
)  # fmt: skip
gumbel_r = Continuous(
    "gumbel_r", {}, "Gumbel's distribution of the largest value.",
    lambda z: -z - n.exp(-z),
    cdf=lambda z: n.exp(_gumbel_logcdf(z)), sf=lambda z: -n.expm1(_gumbel_logcdf(z)), logcdf=_gumbel_logcdf,
    ppf=lambda q: -n.log(-n.log(q)),
)  # fmt: skip
gumbel_l = Continuous(
    "gumbel_l", {}, "Gumbel's distribution of the smallest value.",
    lambda z: z - n.exp(z),
    cdf=lambda z: -n.expm1(-n.exp(z)), sf=lambda z: n.exp(-n.exp(z)), logsf=lambda z: -n.exp(z),
    ppf=lambda q: n.log(-n.log1p(-q)),
)  # fmt: skip


pareto = Continuous(
    "pareto", {"b": "the exponent, positive."}, "The Pareto distribution, from 1 on.",
    lambda z, b: n.log(b) - (b + 1) * n.log(z), (1.0, np.inf),
    cdf=lambda z, b: -n.expm1(-b * n.log(z)), sf=lambda z, b: z**-b, logsf=lambda z, b: -b * n.log(z),
    ppf=lambda q, b: n.exp(-n.log1p(-q) / b),
)  # fmt: skip


def _power(z: Any, beta: Any) -> Any:
    return n.abs(z) ** beta


def _gennorm_cdf(z: Any, beta: Any) -> Any:
    tail = gammaincc(1 / beta, _power(z, beta)) / 2
    return n.where(z < 0, tail, 1 - tail)


gennorm = Continuous(
    "gennorm", {"beta": "the exponent, positive."},
    "The generalized normal distribution, with density like ``exp(-abs(x) ** beta)``.",
    lambda z, beta: n.log(beta / 2) - gammaln(1 / beta) - _power(z, beta),
    cdf=_gennorm_cdf, sf=_flip(_gennorm_cdf),
)  # fmt: skip


def _log_mass(a: Any, b: Any) -> Any:
    """The log probability of a normal variable between two bounds, computed in the lighter tail."""
    mirrored = a > 0
    low, high = n.where(mirrored, -b, a), n.where(mirrored, -a, b)
    upper = log_ndtr(high)
    return upper + n.log1p(-n.exp(log_ndtr(low) - upper))


def _truncated(z: Any, a: Any, b: Any) -> Any:
    return n.where((z >= a) & (z <= b), -n.square(z) / 2 - _HALF_LOG_TAU - _log_mass(a, b), -np.inf)


def _truncnorm_logcdf(z: Any, a: Any, b: Any) -> Any:
    there = (z > a) & (z < b)
    return n.where(there, _log_mass(a, n.where(there, z, b)) - _log_mass(a, b), n.where(z <= a, -np.inf, 0.0))


truncnorm = Continuous(
    "truncnorm", {"a": "where it begins, before it is moved and stretched.", "b": "where it ends."},
    "The normal distribution cut off at ``a`` and ``b``.",
    _truncated,
    cdf=lambda z, a, b: n.exp(_truncnorm_logcdf(z, a, b)), logcdf=_truncnorm_logcdf,
    sf=lambda z, a, b: n.exp(_truncnorm_logcdf(-z, -b, -a)), logsf=lambda z, a, b: _truncnorm_logcdf(-z, -b, -a),
)  # fmt: skip
vonmises = Continuous(
    "vonmises", {"kappa": "how concentrated it is."}, "Von Mises' distribution of angles; it has no ``cdf`` here.",
    lambda z, kappa: kappa * (n.cos(z) - 1) - n.log(i0e(kappa)) - 2 * _HALF_LOG_TAU,
)  # fmt: skip
wrapcauchy = Continuous(
    "wrapcauchy", {"c": "how concentrated it is, between 0 and 1."},
    "The Cauchy distribution wound around the circle, from 0 to 2 pi; it has no ``cdf`` here.",
    lambda z, c: n.log1p(-n.square(c)) - n.log1p(n.square(c) - 2 * c * n.cos(z)) - 2 * _HALF_LOG_TAU,
    (0.0, 2 * math.pi),
)  # fmt: skip

# ---------------------------------------------------------------- discrete


def _log_choose(count: Any, k: Any) -> Any:
    return gammaln(count + 1) - gammaln(k + 1) - gammaln(count - k + 1)


bernoulli = Discrete(
    "bernoulli", {"p": "a probability."}, "1 with the probability ``p``, else 0.",
    lambda k, p: xlogy(k, p) + xlog1py(1 - k, -p), lambda p: (0.0, 1.0),
    cdf=lambda k, p: 1 - p, sf=lambda k, p: p,
)  # fmt: skip
binom = Discrete(
    "binom", {"n": "how many trials.", "p": "a probability."},
    "How many of ``n`` trials succeed, each with the probability ``p``.",
    lambda k, count, p: _log_choose(count, k) + xlogy(k, p) + xlog1py(count - k, -p), lambda count, p: (0.0, count),
    cdf=lambda k, count, p: betaincc(k + 1, count - k, p), sf=lambda k, count, p: betainc(k + 1, count - k, p),
)  # fmt: skip
geom = Discrete(
    "geom", {"p": "a probability."}, "How many trials it takes to succeed once, each with the probability ``p``.",
    lambda k, p: xlog1py(k - 1, -p) + n.log(p), lambda p: (1.0, np.inf),
    cdf=lambda k, p: -n.expm1(k * n.log1p(-p)), sf=lambda k, p: n.exp(k * n.log1p(-p)),
)  # fmt: skip
nbinom = Discrete(
    "nbinom", {"n": "how many successes.", "p": "a probability."},
    "How many trials fail before ``n`` have succeeded, each with the probability ``p``.",
    lambda k, count, p: gammaln(k + count) - gammaln(k + 1) - gammaln(count) + xlogy(count, p) + xlog1py(k, -p),
    cdf=lambda k, count, p: betainc(count, k + 1, p), sf=lambda k, count, p: betaincc(count, k + 1, p),
)  # fmt: skip
betabinom = Discrete(
    "betabinom", {"n": "how many trials.", "a": "of the beta distribution.", "b": "of the beta distribution."},
    "How many of ``n`` trials succeed, where the probability has a beta distribution.",
    lambda k, count, a, b: _log_choose(count, k) + betaln(k + a, count - k + b) - betaln(a, b),
    lambda count, a, b: (0.0, count),
)  # fmt: skip
