"""The binomial distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from compat._core.tensor.namespace import torch
from compat.distributions import constraints
from compat.distributions._probs_or_logits import ProbsOrLogits
from compat.distributions.distribution import Distribution
from compat.distributions.utils import formula

__all__ = ["Binomial"]


class Binomial(ProbsOrLogits, Distribution):
    """The number of successes in ``total_count`` independent trials.

    Args:
        total_count: the number of trials.
        probs: the probability of each; or
        logits: its log odds.

    Example:
        >>> Binomial(2, torch.tensor(0.5)).log_prob(torch.tensor(1.0)).exp()
        tensor(0.5000)
    """

    arg_constraints: ClassVar[Any] = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True
    total_count: Any
    _expands_ = ("total_count", "probs", "logits")
    _keeps_ = ("_given",)

    def __init__(self, total_count: Any = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        super().__init__(self._set_count_and_param_(total_count, probs, logits), validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self.total_count)

    mean = formula(lambda self: self.total_count * self.probs)
    mode = formula(lambda self: ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count))
    variance = formula(lambda self: self.total_count * self.probs * (1 - self.probs))

    def sample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        with torch.no_grad():
            return torch.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        n, logits = self.total_count, self.logits
        # The positive part, with derivative one half at zero.
        positive = (logits.clamp(min=0) + logits - logits.clamp(max=0)) / 2
        scale = n * positive + n * torch.log1p(torch.exp(-torch.abs(logits))) - torch.lgamma(n + 1)
        return value * logits - torch.lgamma(value + 1) - torch.lgamma(n - value + 1) - scale

    def entropy(self) -> Any:
        logs = self.log_prob(self._all_values_("entropy", False))
        return -(torch.exp(logs) * logs).sum(0)

    def enumerate_support(self, expand: bool = True) -> Any:
        return self._all_values_("enumerate_support", expand)

    def _all_values_(self, what: str, expand: bool) -> Any:
        count = int(self.total_count.max())
        if self.total_count.min() != count:
            raise NotImplementedError(f"Inhomogeneous total count not supported by `{what}`.")
        return self._integers_(1 + count, self._param.dtype, expand)
