"""The geometric distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from compat._core.tensor.namespace import torch
from compat.distributions import constraints
from compat.distributions._probs_or_logits import ProbsOrLogits
from compat.distributions.distribution import Distribution
from compat.distributions.utils import broadcast_all, formula
from compat.nn import functional as F

__all__ = ["Geometric"]


class Geometric(ProbsOrLogits, Distribution):
    """The number of failures before the first success.

    Args:
        probs: the probability of success; or
        logits: its log odds.

    Example:
        >>> Geometric(torch.tensor(0.25)).mean
        tensor(3.)
    """

    arg_constraints: ClassVar[Any] = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer
    _expands_ = ("probs", "logits")
    _keeps_ = ("_given",)

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        super().__init__(self._set_param_(probs, logits), validate_args=validate_args)
        if self._validate_args and probs is not None:
            value, fits = self.probs, self.probs > 0
            if not fits.all():
                raise ValueError(
                    f"Expected parameter probs ({type(value).__name__} of shape {tuple(value.shape)}) of distribution "
                    f"{self!r} to be positive but found invalid values:\n{value.data[~fits]}"
                )

    mean = formula(lambda self: 1.0 / self.probs - 1.0)
    mode = formula(lambda self: torch.zeros_like(self.probs))
    variance = formula(lambda self: (1.0 / self.probs - 1.0) / self.probs)

    def sample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        tiny = torch.finfo(self.probs.dtype).tiny
        with torch.no_grad():
            u = self.probs.new_empty(shape).uniform_(tiny, 1)
            return (u.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        value, probs = broadcast_all(value, self.probs)
        probs = probs.clone()
        probs[(probs == 1) & (value == 0)] = 0
        return value * (-probs).log1p() + self.probs.log()

    def entropy(self) -> Any:
        return F.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none") / self.probs
