"""Folded symmetric distributions."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from compat._core.tensor.namespace import torch
from compat.distributions import constraints
from compat.distributions.transformed_distribution import TransformedDistribution
from compat.distributions.transforms import AbsTransform
from compat.distributions.utils import formula

__all__ = ["Half"]


class Half(TransformedDistribution):
    """``|X|`` for an X that is symmetric about 0.

    Args:
        base_distribution: the distribution of X.
    """

    arg_constraints: ClassVar[Any] = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _stored_: tuple[str, ...] = ()

    def __init__(self, base_distribution: Any, validate_args: bool | None = None):
        super().__init__(base_distribution, AbsTransform(), validate_args=validate_args)

    scale = formula(lambda self: self.base_dist.scale)
    mode = formula(lambda self: torch.zeros_like(self.scale))

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        value = torch.as_tensor(value, dtype=self.scale.dtype, device=self.scale.device)
        found = self.base_dist.log_prob(value) + math.log(2)
        return torch.where(value >= 0, found, -torch.inf)

    def cdf(self, value: Any) -> Any:
        self._validate_sample(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, prob: Any) -> Any:
        return self.base_dist.icdf((prob + 1) / 2)

    def entropy(self) -> Any:
        return self.base_dist.entropy() - math.log(2)
