"""Kullback-Leibler divergences within families."""

from __future__ import annotations

from typing import Any

from compat._core.tensor.namespace import torch
from compat.distributions._kl_registry import _functions as _KL_REGISTRY  # noqa: F401 (PyTorch's name)
from compat.distributions._kl_registry import kl_divergence, register_kl
from compat.distributions.bernoulli import Bernoulli
from compat.distributions.beta import Beta
from compat.distributions.binomial import Binomial
from compat.distributions.categorical import Categorical
from compat.distributions.cauchy import Cauchy
from compat.distributions.continuous_bernoulli import ContinuousBernoulli
from compat.distributions.dirichlet import Dirichlet
from compat.distributions.exp_family import ExponentialFamily
from compat.distributions.exponential import Exponential
from compat.distributions.gamma import Gamma
from compat.distributions.geometric import Geometric
from compat.distributions.gumbel import Gumbel
from compat.distributions.half_normal import HalfNormal
from compat.distributions.independent import Independent
from compat.distributions.laplace import Laplace
from compat.distributions.lowrank_multivariate_normal import (
    LowRankMultivariateNormal,
    lowrank_logdet,
    lowrank_mahalanobis,
)
from compat.distributions.multivariate_normal import MultivariateNormal, half_logdet, mahalanobis
from compat.distributions.normal import Normal
from compat.distributions.one_hot_categorical import OneHotCategorical
from compat.distributions.pareto import Pareto
from compat.distributions.poisson import Poisson
from compat.distributions.transformed_distribution import TransformedDistribution
from compat.distributions.uniform import Uniform
from compat.distributions.utils import _sum_rightmost, euler_constant
from compat.nn import functional as F

__all__ = ["kl_divergence", "register_kl"]


# ---------------------------------------------------------------- univariate


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Any, q: Any) -> Any:
    happens = p.probs * (F.softplus(-q.logits) - F.softplus(-p.logits))
    happens[q.probs == 0] = torch.inf
    happens[p.probs == 0] = 0
    not_so = (1 - p.probs) * (F.softplus(q.logits) - F.softplus(p.logits))
    not_so[q.probs == 1] = torch.inf
    not_so[p.probs == 1] = 0
    return happens + not_so


@register_kl(Beta, Beta)
def _beta(p: Any, q: Any) -> Any:
    p1, p0, q1, q0 = p.concentration1, p.concentration0, q.concentration1, q.concentration0
    scale = q1.lgamma() + q0.lgamma() + (p1 + p0).lgamma() - p1.lgamma() - p0.lgamma() - (q1 + q0).lgamma()
    both = (q1 + q0 - p1 - p0) * (p1 + p0).digamma()
    return scale + (p1 - q1) * p1.digamma() + (p0 - q0) * p0.digamma() + both


@register_kl(Binomial, Binomial)
def _binomial(p: Any, q: Any) -> Any:
    if (p.total_count < q.total_count).any():
        raise NotImplementedError("KL between Binomials where q.total_count > p.total_count is not implemented")
    each = p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p()
    return torch.where(p.total_count > q.total_count, torch.inf, p.total_count * each)


@register_kl(Categorical, Categorical)
def _categorical(p: Any, q: Any) -> Any:
    terms = p.probs * (p.logits - q.logits)
    terms[(q.probs == 0).expand_as(terms)] = torch.inf
    terms[(p.probs == 0).expand_as(terms)] = 0
    return terms.sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p: Any, q: Any) -> Any:
    return _categorical(p._categorical, q._categorical)


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Any, q: Any) -> Any:
    """Source: F. Chyzak and F. Nielsen, "A closed-form formula for the KL divergence between Cauchy
    distributions", 2019."""
    return ((p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)).log() - (4 * p.scale * q.scale).log()


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p: Any, q: Any) -> Any:
    scales = p._cont_bern_log_norm() + torch.log1p(-p.probs) - q._cont_bern_log_norm() - torch.log1p(-q.probs)
    return p.mean * (p.logits - q.logits) + scales


@register_kl(Exponential, Exponential)
def _exponential(p: Any, q: Any) -> Any:
    ratio = q.rate / p.rate
    return -ratio.log() + ratio - 1


@register_kl(ExponentialFamily, ExponentialFamily)
def _exponential_family(p: Any, q: Any) -> Any:
    """A Bregman divergence of the normalizer."""
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot "
            "                            be computed using Bregman divergences"
        )
    at_p = [n.detach().requires_grad_() for n in p._natural_params]
    normalizer = p._log_normalizer(*at_p)
    gradients = torch.autograd.grad(normalizer.sum(), at_p, create_graph=True)
    found = q._log_normalizer(*q._natural_params) - normalizer
    for mine, others, gradient in zip(at_p, q._natural_params, gradients):
        found = found - _sum_rightmost((others - mine) * gradient, len(q.event_shape))
    return found


@register_kl(Gamma, Gamma)
def _gamma(p: Any, q: Any) -> Any:
    a, b = p.concentration, q.concentration
    found = b * (p.rate / q.rate).log() + torch.lgamma(b) - torch.lgamma(a)
    return found + (a - b) * torch.digamma(a) + (q.rate - p.rate) * (a / p.rate)


@register_kl(Geometric, Geometric)
def _geometric(p: Any, q: Any) -> Any:
    return -p.entropy() - torch.log1p(-q.probs) / p.probs - q.logits


@register_kl(Gumbel, Gumbel)
def _gumbel(p: Any, q: Any) -> Any:
    ratio, off = p.scale / q.scale, (q.loc - p.loc) / q.scale
    tail = torch.exp(off + (1 + ratio).lgamma())
    return -ratio.log() - off + ratio * euler_constant + tail - (1 + euler_constant)


@register_kl(Laplace, Laplace)
def _laplace(p: Any, q: Any) -> Any:
    ratio, off = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + off / q.scale + ratio * torch.exp(-off / p.scale) - 1


@register_kl(Normal, Normal)
def _normal(p: Any, q: Any) -> Any:
    ratio = (p.scale / q.scale).pow(2)
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).pow(2) - 1 - ratio.log())


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p: Any, q: Any) -> Any:
    return _normal(p.base_dist, q.base_dist)


@register_kl(Pareto, Pareto)
def _pareto(p: Any, q: Any) -> Any:
    ratio = q.alpha / p.alpha
    found = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return torch.where(p.scale < q.scale, torch.inf, found)


@register_kl(Poisson, Poisson)
def _poisson(p: Any, q: Any) -> Any:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Uniform, Uniform)
def _uniform(p: Any, q: Any) -> Any:
    found = ((q.high - q.low) / (p.high - p.low)).log()
    return torch.where((q.low > p.low) | (q.high < p.high), torch.inf, found)


# ---------------------------------------------------------------- multivariate


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Any, q: Any) -> Any:
    a, b = p.concentration, q.concentration
    total = a.sum(-1)
    scale = total.lgamma() - b.sum(-1).lgamma() - (a.lgamma() - b.lgamma()).sum(-1)
    return scale + ((a - b) * (a.digamma() - total.digamma().unsqueeze(-1))).sum(-1)


def _logdet(p: Any) -> Any:
    """The log determinant of the covariance."""
    if isinstance(p, MultivariateNormal):
        return 2 * half_logdet(p._unbroadcasted_scale_tril)
    factor, diagonal = p._split_
    return lowrank_logdet(factor, diagonal, p._capacitance_tril)


def _squared(q: Any, x: Any) -> Any:
    """``x.T @ inv(covariance) @ x``."""
    if isinstance(q, MultivariateNormal):
        return mahalanobis(q._unbroadcasted_scale_tril, x)
    factor, diagonal = q._split_
    return lowrank_mahalanobis(factor, diagonal, x, q._capacitance_tril)


def _roots(p: Any) -> list[Any]:
    """A matrix whose product with its transpose is the covariance."""
    if isinstance(p, MultivariateNormal):
        return [p._unbroadcasted_scale_tril]
    factor, diagonal = p._split_
    return [factor, torch.diag_embed(diagonal.sqrt())]


def _normal_vectors(p: Any, q: Any) -> Any:
    if p.event_shape != q.event_shape:
        raise ValueError(
            "KL-divergence between two (Low Rank) Multivariate Normals with                          different event "
            "shapes cannot be computed"
        )
    # The trace of inv(covariance of q) @ covariance of p, column by column.
    trace = sum(_squared(_along_columns(q), root.mT).sum(-1) for root in _roots(p))
    return 0.5 * (_logdet(q) - _logdet(p) + trace + _squared(q, q.loc - p.loc) - p.event_shape[0])


def _along_columns(q: Any) -> Any:
    """The distribution with a batch dimension added at the end."""
    made = q.__new__(type(q))
    names = ("_unbroadcasted_scale_tril", "_unbroadcasted_cov_factor", "_capacitance_tril")
    for name in names:
        if name in q.__dict__:
            setattr(made, name, getattr(q, name).unsqueeze(-3))
    if "_unbroadcasted_cov_diag" in q.__dict__:
        made._unbroadcasted_cov_diag = q._unbroadcasted_cov_diag.unsqueeze(-2)
    return made


for _p in (MultivariateNormal, LowRankMultivariateNormal):
    for _q in (MultivariateNormal, LowRankMultivariateNormal):
        register_kl(_p, _q)(_normal_vectors)


# ---------------------------------------------------------------- composed distributions


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: Any, q: Any) -> Any:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Independent, Independent)
def _independent(p: Any, q: Any) -> Any:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError
    return _sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)
