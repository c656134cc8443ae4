"""The Bernoulli distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from compat._core.tensor.namespace import torch
from compat.distributions import constraints
from compat.distributions._probs_or_logits import ProbsOrLogits
from compat.distributions.exp_family import ExponentialFamily
from compat.distributions.utils import broadcast_all, formula
from compat.nn import functional as F

__all__ = ["Bernoulli"]


class Bernoulli(ProbsOrLogits, ExponentialFamily):
    """1 with a probability, else 0.

    Args:
        probs: the probability; or
        logits: its log odds.

    Example:
        >>> Bernoulli(torch.tensor([0.25])).log_prob(torch.tensor([1.0])).exp()
        tensor([0.2500])
    """

    arg_constraints: ClassVar[Any] = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0
    _expands_ = ("probs", "logits")
    _keeps_ = ("_given",)

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        super().__init__(self._set_param_(probs, logits), validate_args=validate_args)

    mean = formula(lambda self: self.probs)

    @property
    def mode(self) -> Any:
        likely = (self.probs >= 0.5).to(self.probs)
        likely[self.probs == 0.5] = torch.nan
        return likely

    variance = formula(lambda self: self.probs * (1 - self.probs))

    def sample(self, sample_shape: Any = ()) -> Any:
        with torch.no_grad():
            return torch.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return -F.binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Any:
        return F.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Any:
        return self._integers_(2, self._param.dtype, expand)

    _natural_params = formula(lambda self: (torch.logit(self.probs),))

    def _log_normalizer(self, x: Any) -> Any:
        return torch.log1p(torch.exp(x))
