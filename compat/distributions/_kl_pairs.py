"""Divergences between families: minus the entropy of p, minus the mean under p of q's log density.

They need only moments of p: its mean and variance, and the means of ``log x`` and ``exp(-x / scale)``.
"""

from __future__ import annotations

import math
from typing import Any

from compat._core.tensor.namespace import torch
from compat.distributions._kl_registry import register_kl
from compat.distributions.bernoulli import Bernoulli
from compat.distributions.beta import Beta
from compat.distributions.binomial import Binomial
from compat.distributions.continuous_bernoulli import ContinuousBernoulli
from compat.distributions.exponential import Exponential
from compat.distributions.gamma import Gamma
from compat.distributions.gumbel import Gumbel
from compat.distributions.laplace import Laplace
from compat.distributions.normal import Normal
from compat.distributions.pareto import Pareto
from compat.distributions.poisson import Poisson
from compat.distributions.uniform import Uniform
from compat.distributions.utils import euler_constant

# ---------------------------------------------------------------- infinite divergences

#: For each distribution, those whose support does not contain its support.
_INFINITE: dict[type, tuple[type, ...]] = {
    Beta: (Pareto,),
    ContinuousBernoulli: (Pareto,),
    Exponential: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gamma: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gumbel: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Laplace: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Normal: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Pareto: (Beta, ContinuousBernoulli, Uniform),
    Poisson: (Bernoulli, Binomial),
}


def _infinite(p: Any, q: Any) -> Any:
    return torch.full_like(p.mean, torch.inf)


for _p, _others in _INFINITE.items():
    for _q in _others:
        register_kl(_p, _q)(_infinite)

# ---------------------------------------------------------------- moments


def _x_log_x(x: Any) -> Any:
    return torch.special.xlogy(x, x)


def _mean_log(p: Any) -> Any:
    """The mean of ``log x``."""
    if isinstance(p, Beta):
        return p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma()
    if isinstance(p, Exponential):
        return -p.rate.log() - euler_constant
    if isinstance(p, Pareto):
        return p.scale.log() + p.alpha.reciprocal()
    return _mean_log_between(p.low, p.high)


def _mean_log_between(low: Any, high: Any) -> Any:
    """The mean of ``log x`` of a uniform x."""
    return (_x_log_x(high) - _x_log_x(low)) / (high - low) - 1


def _log_mean_exp(p: Any, s: Any) -> Any:
    """The logarithm of the mean of ``exp(-s * x)``."""
    if isinstance(p, Exponential):
        return -(s / p.rate).log1p()
    if isinstance(p, Gamma):
        return -p.concentration * (s / p.rate).log1p()
    if isinstance(p, Normal):
        return 0.5 * (s * p.scale).pow(2) - s * p.loc
    width = s * (p.high - p.low)
    return torch.log(-torch.expm1(-width) / width) - s * p.low


# ---------------------------------------------------------------- divergences by the family of q


def _to_normal(p: Any, q: Any) -> Any:
    squares = (p.variance + (p.mean - q.loc).pow(2)) / (2 * q.scale.pow(2))
    return -p.entropy() + 0.5 * math.log(2 * math.pi) + q.scale.log() + squares


def _to_exponential(p: Any, q: Any) -> Any:
    return -p.entropy() - q.rate.log() + q.rate * p.mean


def _to_gamma(p: Any, q: Any) -> Any:
    a = q.concentration
    return -p.entropy() + a.lgamma() - a * q.rate.log() - (a - 1) * _mean_log(p) + q.rate * p.mean


def _to_gumbel(p: Any, q: Any) -> Any:
    tail = torch.exp(q.loc / q.scale + _log_mean_exp(p, q.scale.reciprocal()))
    return -p.entropy() + q.scale.log() + (p.mean - q.loc) / q.scale + tail


def _to_continuous_bernoulli(p: Any, q: Any) -> Any:
    return -p.entropy() - p.mean * q.logits - torch.log1p(-q.probs) - q._cont_bern_log_norm()


def _to_uniform(p: Any, q: Any) -> Any:
    return -p.entropy() + (q.high - q.low).log()


for _p in (Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Laplace, Uniform):
    register_kl(_p, Normal)(_to_normal)
for _p in (Beta, ContinuousBernoulli, Gamma):
    register_kl(_p, Exponential)(_to_exponential)
for _p in (Beta, Exponential):
    register_kl(_p, Gamma)(_to_gamma)
for _p in (Exponential, Gamma, Normal, Uniform):
    register_kl(_p, Gumbel)(_to_gumbel)
register_kl(Beta, ContinuousBernoulli)(_to_continuous_bernoulli)


def _where(finite: Any, divergence: Any) -> Any:
    """The divergence where it is finite, infinity elsewhere."""
    return torch.where(finite, divergence, torch.inf)


@register_kl(Beta, Uniform)
def _beta_uniform(p: Any, q: Any) -> Any:
    return _where((q.low <= 0) & (q.high >= 1), _to_uniform(p, q))


@register_kl(ContinuousBernoulli, Uniform)
def _continuous_bernoulli_uniform(p: Any, q: Any) -> Any:
    return _where((q.low < 0) & (q.high > 1), _to_uniform(p, q))


@register_kl(Pareto, Exponential)
def _pareto_exponential(p: Any, q: Any) -> Any:
    return _where(p.alpha > 1, _to_exponential(p, q))


@register_kl(Pareto, Gamma)
def _pareto_gamma(p: Any, q: Any) -> Any:
    return _where(p.alpha > 1, _to_gamma(p, q))


@register_kl(Pareto, Normal)
def _pareto_normal(p: Any, q: Any) -> Any:
    return _where(p.alpha > 2, _to_normal(p, q))


@register_kl(Uniform, Exponential)
def _uniform_exponential(p: Any, q: Any) -> Any:
    return _where(p.low >= 0, _to_exponential(p, q))


@register_kl(Uniform, Gamma)
def _uniform_gamma(p: Any, q: Any) -> Any:
    return _where(p.low >= 0, _to_gamma(p, q))


@register_kl(Uniform, Beta)
def _uniform_beta(p: Any, q: Any) -> Any:
    a, b = q.concentration1, q.concentration0
    log_beta = a.lgamma() + b.lgamma() - (a + b).lgamma()
    logs = (a - 1) * _mean_log(p) + (b - 1) * _mean_log_between(1 - p.high, 1 - p.low)
    return _where((p.high <= 1) & (p.low >= 0), log_beta - logs - p.entropy())


@register_kl(Uniform, ContinuousBernoulli)
def _uniform_continuous_bernoulli(p: Any, q: Any) -> Any:
    return _where((p.high < 1) & (p.low > 0), _to_continuous_bernoulli(p, q))


@register_kl(Uniform, Pareto)
def _uniform_pareto(p: Any, q: Any) -> Any:
    logs = (q.alpha + 1) * _mean_log(p) - q.alpha.log() - q.alpha * q.scale.log()
    return _where(p.low >= q.scale, logs - p.entropy())


@register_kl(Normal, Laplace)
def _normal_laplace(p: Any, q: Any) -> Any:
    off = (p.loc - q.loc) / p.scale
    deviation = math.sqrt(2 / math.pi) * torch.exp(-0.5 * off.pow(2)) + off * torch.erf(math.sqrt(0.5) * off)
    return -p.entropy() + torch.log(2 * q.scale) + p.scale * deviation / q.scale


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p: Any, q: Any) -> Any:
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)
