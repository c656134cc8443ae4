"""The Dirichlet distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from compat._core.tensor.namespace import torch
from compat.autograd.function import Function, once_differentiable
from compat.distributions import constraints
from compat.distributions.exp_family import ExponentialFamily
from compat.distributions.utils import formula
from compat.nn import functional as F

__all__ = ["Dirichlet"]


class _Dirichlet(Function):
    """Samples with implicit gradients with respect to the parameters."""

    @staticmethod
    def forward(ctx: Any, concentration: Any) -> Any:
        shares = torch._sample_dirichlet(concentration)
        ctx.save_for_backward(shares, concentration)
        return shares

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, ct: Any) -> Any:
        shares, concentration = ctx.saved_tensors
        total = concentration.sum(-1, keepdim=True).expand_as(concentration)
        return torch._dirichlet_grad(shares, concentration, total) * (ct - (shares * ct).sum(-1, keepdim=True))


class Dirichlet(ExponentialFamily):
    """Vectors of positive numbers with sum one, of density proportional to the product of ``x ** (concentration - 1)``.

    Args:
        concentration: positive, along the last dimension.

    Example:
        >>> Dirichlet(torch.tensor([1.0, 3.0])).mean
        tensor([0.2500, 0.7500])
    """

    arg_constraints: ClassVar[Any] = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True
    _expands_ = ("concentration",)

    def __init__(self, concentration: Any, validate_args: bool | None = None):
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args=validate_args)

    def rsample(self, sample_shape: Any = ()) -> Any:
        return _Dirichlet.apply(self.concentration.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        a = self.concentration
        return torch.xlogy(a - 1.0, value).sum(-1) + torch.lgamma(a.sum(-1)) - torch.lgamma(a).sum(-1)

    mean = formula(lambda self: self.concentration / self.concentration.sum(-1, True))

    @property
    def mode(self) -> Any:
        more = (self.concentration - 1).clamp(min=0.0)
        likely = more / more.sum(-1, True)
        corners = (self.concentration < 1).all(dim=-1)
        likely[corners] = F.one_hot(likely[corners].argmax(dim=-1), more.shape[-1]).to(likely)
        return likely

    @property
    def variance(self) -> Any:
        total = self.concentration.sum(-1, True)
        return self.concentration * (total - self.concentration) / (total.pow(2) * (total + 1))

    def entropy(self) -> Any:
        a, k = self.concentration, self.concentration.shape[-1]
        total = a.sum(-1)
        sums = (k - total) * torch.digamma(total) + ((a - 1.0) * torch.digamma(a)).sum(-1)
        return torch.lgamma(a).sum(-1) - torch.lgamma(total) - sums

    _natural_params = formula(lambda self: (self.concentration,))

    def _log_normalizer(self, x: Any) -> Any:
        return x.lgamma().sum(-1) - torch.lgamma(x.sum(-1))
