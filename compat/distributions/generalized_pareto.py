"""The generalized Pareto distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from compat._core.tensor.namespace import torch
from compat.distributions import constraints
from compat.distributions.distribution import Distribution
from compat.distributions.utils import formula

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    """Survival function ``(1 + concentration * (x - loc) / scale) ** (-1 / concentration)``.

    Args:
        loc: the threshold.
        scale: the scale.
        concentration: the tail index; 0 gives an exponential distribution.

    Example:
        >>> GeneralizedPareto(0.0, 1.0, 0.5).cdf(torch.tensor(2.0))
        tensor(0.7500)
    """

    arg_constraints: ClassVar[Any] = {
        "loc": constraints.real,
        "scale": constraints.positive,
        "concentration": constraints.real,
    }
    has_rsample = True
    loc: Any
    scale: Any
    concentration: Any
    _expands_ = ("loc", "scale", "concentration")

    def __init__(self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None):
        shape = self._set_parameters_(loc=loc, scale=scale, concentration=concentration)
        super().__init__(shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        end = torch.where(self.concentration < 0, self.loc - self.scale / self.concentration, torch.inf)
        return constraints.interval(self.loc, end)

    def _zero_(self) -> tuple[Any, Any]:
        """The mask of zero concentrations, and the concentration with these replaced by 1."""
        zero = torch.isclose(self.concentration, torch.zeros_like(self.concentration))
        return zero, torch.where(zero, torch.ones_like(self.concentration), self.concentration)

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        return self.icdf(torch.rand(shape, dtype=self.loc.dtype, device=self.loc.device))

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        z = (value - self.loc) / self.scale
        zero, c = self._zero_()
        power = 1 / c + torch.ones_like(z)
        falls = torch.where(power == 0, power, power * torch.log1p(c * z))
        return -self.scale.log() - torch.where(zero, z, falls)

    def log_survival_function(self, value: Any) -> Any:
        """The log survival function."""
        self._validate_sample(value)
        z = (value - self.loc) / self.scale
        zero, c = self._zero_()
        return torch.where(zero, -z, -torch.log1p(c * z) / c)

    def log_cdf(self, value: Any) -> Any:
        """The logarithm of ``cdf``."""
        return torch.log1p(-torch.exp(self.log_survival_function(value)))

    def cdf(self, value: Any) -> Any:
        return torch.exp(self.log_cdf(value))

    def icdf(self, value: Any) -> Any:
        zero, c = self._zero_()
        log_rest = torch.log1p(-value)
        found = self.loc + self.scale / c * torch.expm1(-c * log_rest)
        return torch.where(zero, self.loc - self.scale * log_rest, found)

    @property
    def mean(self) -> Any:
        there = self.concentration < 1
        c = torch.where(there, self.concentration, 0.5)
        return torch.where(there, self.loc + self.scale / (1 - c), torch.nan)

    mode = formula(lambda self: self.loc)

    @property
    def variance(self) -> Any:
        there = self.concentration < 0.5
        c = torch.where(there, self.concentration, 0.25)
        return torch.where(there, self.scale**2 / ((1 - c) ** 2 * (1 - 2 * c)), torch.nan)

    def entropy(self) -> Any:
        return torch.broadcast_to(torch.log(self.scale) + self.concentration + 1, self._batch_shape)
