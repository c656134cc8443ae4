"""The uniform distribution."""

from __future__ import annotations

from typing import Any

from compat._core.tensor.namespace import torch
from compat.distributions import constraints
from compat.distributions.distribution import Distribution
from compat.distributions.utils import formula

__all__ = ["Uniform"]


class Uniform(Distribution):
    """Uniformly distributed numbers in ``[low, high)``.

    Args:
        low, high: the bounds.

    Example:
        >>> Uniform(0.0, 4.0).log_prob(torch.tensor(1.0)).exp()
        tensor(0.2500)
    """

    has_rsample = True
    low: Any
    high: Any
    _expands_ = ("low", "high")

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None):
        super().__init__(self._set_parameters_(low=low, high=high), validate_args=validate_args)

    @property
    def arg_constraints(self) -> Any:
        return {"low": constraints.less_than(self.high), "high": constraints.greater_than(self.low)}

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        return constraints.interval(self.low, self.high)

    mean = formula(lambda self: (self.high + self.low) / 2)
    mode = formula(lambda self: torch.nan * self.high)
    stddev = formula(lambda self: (self.high - self.low) / 12**0.5)
    variance = formula(lambda self: (self.high - self.low).pow(2) / 12)

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        drawn = torch.rand(shape, dtype=self.low.dtype, device=self.low.device)
        return self.low + drawn * (self.high - self.low)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        within = self.low.le(value).type_as(self.low).mul(self.high.gt(value).type_as(self.low))
        return torch.log(within) - torch.log(self.high - self.low)

    def cdf(self, value: Any) -> Any:
        self._validate_sample(value)
        return ((value - self.low) / (self.high - self.low)).clamp(min=0, max=1)

    def icdf(self, value: Any) -> Any:
        return value * (self.high - self.low) + self.low

    def entropy(self) -> Any:
        return torch.log(self.high - self.low)
