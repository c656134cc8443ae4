"""The negative binomial distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from compat._core.tensor.namespace import torch
from compat.distributions import constraints
from compat.distributions._probs_or_logits import ProbsOrLogits
from compat.distributions.distribution import Distribution
from compat.distributions.gamma import Gamma
from compat.distributions.utils import formula, lazy_property
from compat.nn import functional as F

__all__ = ["NegativeBinomial"]


class NegativeBinomial(ProbsOrLogits, Distribution):
    """The number of successes before ``total_count`` failures.

    Args:
        total_count: the number of failures; any non-negative number.
        probs: the probability of success; or
        logits: its log odds.

    Example:
        >>> NegativeBinomial(3, torch.tensor(0.5)).mean
        tensor(3.)
    """

    arg_constraints: ClassVar[Any] = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer
    total_count: Any
    _expands_ = ("total_count", "probs", "logits")
    _keeps_ = ("_given",)

    def __init__(self, total_count: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        super().__init__(self._set_count_and_param_(total_count, probs, logits), validate_args=validate_args)

    mean = formula(lambda self: self.total_count * torch.exp(self.logits))
    mode = formula(lambda self: ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0))
    variance = formula(lambda self: self.mean / torch.sigmoid(-self.logits))

    @lazy_property
    def _gamma(self) -> Any:
        return Gamma(concentration=self.total_count, rate=torch.exp(-self.logits), validate_args=False)

    def sample(self, sample_shape: Any = ()) -> Any:
        with torch.no_grad():
            return torch.poisson(self._gamma.sample(sample_shape=sample_shape))

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        n = self.total_count
        found = n * F.logsigmoid(-self.logits) + value * F.logsigmoid(self.logits)
        scale = -torch.lgamma(n + value) + torch.lgamma(1.0 + value) + torch.lgamma(n)
        return found - scale.masked_fill(n + value == 0.0, 0.0)
