"""The exponential distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from compat._core.tensor.namespace import torch
from compat.distributions import constraints
from compat.distributions.exp_family import ExponentialFamily
from compat.distributions.utils import formula

__all__ = ["Exponential"]


class Exponential(ExponentialFamily):
    """Density ``rate * exp(-rate * x)``.

    Args:
        rate: the rate, one over the mean.

    Example:
        >>> Exponential(2.0).mean
        tensor(0.5000)
    """

    arg_constraints: ClassVar[Any] = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0
    rate: Any
    _expands_ = ("rate",)

    def __init__(self, rate: Any, validate_args: bool | None = None):
        super().__init__(self._set_parameters_(rate=rate), validate_args=validate_args)

    mean = formula(lambda self: self.rate.reciprocal())
    mode = formula(lambda self: torch.zeros_like(self.rate))
    stddev = formula(lambda self: self.rate.reciprocal())
    variance = formula(lambda self: self.rate.pow(-2))

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self.rate.new_empty(self._extended_shape(sample_shape)).exponential_() / self.rate

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        return self.rate.log() - self.rate * value

    def cdf(self, value: Any) -> Any:
        self._validate_sample(value)
        return 1 - torch.exp(-self.rate * value)

    def icdf(self, value: Any) -> Any:
        return -torch.log1p(-value) / self.rate

    def entropy(self) -> Any:
        return 1.0 - torch.log(self.rate)

    _natural_params = formula(lambda self: (-self.rate,))

    def _log_normalizer(self, x: Any) -> Any:
        return -torch.log(-x)
