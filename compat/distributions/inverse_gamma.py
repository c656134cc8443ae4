"""The inverse gamma distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from compat._core.tensor.namespace import torch
from compat.distributions import constraints
from compat.distributions.gamma import Gamma
from compat.distributions.transformed_distribution import TransformedDistribution
from compat.distributions.transforms import PowerTransform
from compat.distributions.utils import formula

__all__ = ["InverseGamma"]


class InverseGamma(TransformedDistribution):
    """``1 / X`` for a gamma variable X.

    Args:
        concentration, rate: the parameters of X.

    Example:
        >>> InverseGamma(torch.tensor([2.0]), torch.tensor([3.0])).mean
        tensor([3.])
    """

    arg_constraints: ClassVar[Any] = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True
    _stored_ = ()

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None):
        base = Gamma(concentration, rate, validate_args=validate_args)
        super().__init__(base, PowerTransform(-base.rate.new_ones(())), validate_args=validate_args)

    @property
    def concentration(self) -> Any:
        """The concentration of X."""
        return self.base_dist.concentration

    @property
    def rate(self) -> Any:
        """The rate of X."""
        return self.base_dist.rate

    mean = formula(lambda self: torch.where(self.concentration > 1, self.rate / (self.concentration - 1), torch.inf))
    mode = formula(lambda self: self.rate / (self.concentration + 1))

    @property
    def variance(self) -> Any:
        a = self.concentration
        found = self.rate.square() / ((a - 1).square() * (a - 2))
        return torch.where(a > 2, found, torch.inf)

    def entropy(self) -> Any:
        a = self.concentration
        return a + self.rate.log() + a.lgamma() - (1 + a) * a.digamma()
