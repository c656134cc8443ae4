"""The categorical distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from compat._core.tensor.namespace import torch
from compat.distributions import constraints
from compat.distributions._probs_or_logits import ProbsOrLogits
from compat.distributions.distribution import Distribution
from compat.distributions.utils import formula

__all__ = ["Categorical"]


class Categorical(ProbsOrLogits, Distribution):
    """The index of one of several classes.

    Args:
        probs: the unnormalized probabilities, along the last dimension; or
        logits: the unnormalized log probabilities.

    Example:
        >>> Categorical(torch.tensor([1.0, 3.0])).probs
        tensor([0.2500, 0.7500])
    """

    arg_constraints: ClassVar[Any] = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True
    _binary_ = False
    _expands_ = ("probs", "logits")
    _keeps_ = ("_given", "_num_events")

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        given = self._given_param_(probs, logits)
        if given.dim() < 1:
            raise ValueError(f"`{self._given}` parameter must be at least one-dimensional.")
        if probs is not None:
            self.probs = probs / probs.sum(-1, keepdim=True)
        else:
            self.logits = logits - logits.logsumexp(dim=-1, keepdim=True)
        self._num_events = given.shape[-1]
        super().__init__(given.shape[:-1], validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self._num_events - 1)

    @property
    def mean(self) -> Any:
        return torch.full(self._extended_shape(), torch.nan, dtype=self.probs.dtype, device=self.probs.device)

    mode = formula(lambda self: self.probs.argmax(dim=-1))
    variance = formula(lambda self: self.mean)

    def sample(self, sample_shape: Any = ()) -> Any:
        rows = self.probs.reshape(-1, self._num_events)
        drawn = torch.multinomial(rows, torch.Size(sample_shape).numel(), True).T
        return drawn.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        value, logs = torch.broadcast_tensors(value.long().unsqueeze(-1), self.logits)
        return logs.gather(-1, value[..., :1]).squeeze(-1)

    def entropy(self) -> Any:
        logits = torch.clamp(self.logits, min=torch.finfo(self.logits.dtype).min)
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Any:
        return self._integers_(self._num_events, torch.long, expand)


class OfCategorical(Distribution):
    """A distribution based on a ``Categorical``, with its probabilities."""

    arg_constraints: ClassVar[Any] = {"probs": constraints.simplex, "logits": constraints.real_vector}
    _categorical: Categorical

    def __init__(self, categorical: Categorical, validate_args: bool | None = None):
        self._categorical = categorical
        super().__init__(categorical.batch_shape, categorical.param_shape[-1:], validate_args=validate_args)

    def _new(self, *args: Any, **kwargs: Any) -> Any:
        return self._categorical._new(*args, **kwargs)

    _param = formula(lambda self: self._categorical._param)

    @property
    def probs(self) -> Any:
        """The probabilities, (..., categories)."""
        return self._categorical.probs

    @property
    def logits(self) -> Any:
        """The log probabilities, (..., categories)."""
        return self._categorical.logits

    @property
    def param_shape(self) -> Any:
        """The size of ``probs`` and ``logits``."""
        return self._categorical.param_shape
