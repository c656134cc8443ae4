"""The multinomial distribution."""

from __future__ import annotations

from typing import Any

from compat._core.tensor.namespace import torch
from compat.distributions import constraints
from compat.distributions.binomial import Binomial
from compat.distributions.categorical import Categorical, OfCategorical
from compat.distributions.utils import broadcast_all, formula

__all__ = ["Multinomial"]


class Multinomial(OfCategorical):
    """The number of occurrences of each class in ``total_count`` draws.

    Args:
        total_count: the number of draws.
        probs: the unnormalized probabilities, along the last dimension; or
        logits: the unnormalized log probabilities.

    Raises:
        NotImplementedError: if ``total_count`` is not an int.

    Example:
        >>> Multinomial(10, torch.tensor([1.0, 1.0])).mean
        tensor([5., 5.])
    """

    _expands_ = ("_categorical", "_binomial")
    _keeps_ = ("total_count",)

    def __init__(self, total_count: int = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        categorical = Categorical(probs, logits)
        self._binomial = Binomial(total_count=total_count, probs=categorical.probs)
        super().__init__(categorical, validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:
        return constraints.multinomial(self.total_count)

    mean = formula(lambda self: self.probs * self.total_count)
    variance = formula(lambda self: self.total_count * self.probs * (1 - self.probs))

    def sample(self, sample_shape: Any = ()) -> Any:
        drawn = self._categorical.sample((self.total_count, *sample_shape)).movedim(0, -1)
        counts = drawn.new_zeros(self._extended_shape(sample_shape))
        counts.scatter_add_(-1, drawn, torch.ones_like(drawn))
        return counts.type_as(self.probs)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        logits = logits.clone()
        ways = torch.lgamma(value.sum(-1) + 1) - torch.lgamma(value + 1).sum(-1)
        logits[(value == 0) & (logits == -torch.inf)] = 0
        return ways + (logits * value).sum(-1)

    def entropy(self) -> Any:
        n = torch.tensor(self.total_count)
        counts = self._binomial.enumerate_support(expand=False)[1:]
        likely = torch.exp(self._binomial.log_prob(counts))
        ways = (likely * torch.lgamma(counts + 1)).sum([0, -1])
        return n * self._categorical.entropy() - torch.lgamma(n + 1) + ways
