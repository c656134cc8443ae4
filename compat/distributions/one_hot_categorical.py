"""The categorical distribution with one-hot samples."""

from __future__ import annotations

from typing import Any

from compat._core.tensor.namespace import torch
from compat.distributions import constraints
from compat.distributions.categorical import Categorical, OfCategorical
from compat.distributions.utils import formula
from compat.nn import functional as F

__all__ = ["OneHotCategorical", "OneHotCategoricalStraightThrough"]


class OneHotCategorical(OfCategorical):
    """One-hot vectors of categorical variables.

    Args:
        probs: the unnormalized probabilities, along the last dimension; or
        logits: the unnormalized log probabilities.

    Example:
        >>> OneHotCategorical(torch.tensor([0.0, 1.0])).sample()
        tensor([0., 1.])
    """

    support = constraints.one_hot
    has_enumerate_support = True
    _expands_: tuple[str, ...] = ("_categorical",)

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        super().__init__(Categorical(probs, logits), validate_args)

    mean = formula(lambda self: self.probs)
    mode = formula(lambda self: F.one_hot(self.probs.argmax(dim=-1), num_classes=self.probs.shape[-1]).to(self.probs))
    variance = formula(lambda self: self.probs * (1 - self.probs))

    def sample(self, sample_shape: Any = ()) -> Any:
        drawn = self._categorical.sample(sample_shape)
        return F.one_hot(drawn, self._categorical._num_events).to(self.probs)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        return self._categorical.log_prob(value.max(-1)[1])

    def entropy(self) -> Any:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Any:
        n = self.event_shape[0]
        values = torch.eye(n, dtype=self._param.dtype, device=self._param.device)
        values = values.view((n, *(1,) * len(self.batch_shape), n))
        return values.expand((n, *self.batch_shape, n)) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """``OneHotCategorical`` with straight-through gradients of samples with respect to the probabilities.

    Source: Y. Bengio et al., "Estimating or propagating gradients through stochastic neurons", 2013.
    """

    has_rsample = True

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self.sample(sample_shape) + (self.probs - self.probs.detach())
