"""The half-Cauchy distribution."""

from __future__ import annotations

from typing import Any

from compat._core.tensor.namespace import torch
from compat.distributions._half import Half
from compat.distributions.cauchy import Cauchy
from compat.distributions.utils import formula

__all__ = ["HalfCauchy"]


class HalfCauchy(Half):
    """``|X|`` for a Cauchy variable X with median 0.

    Args:
        scale: the scale of X.

    Example:
        >>> HalfCauchy(1.0).cdf(torch.tensor(1.0))
        tensor(0.5000)
    """

    _stored_ = ()

    def __init__(self, scale: Any, validate_args: bool | None = None):
        super().__init__(Cauchy(0, scale, validate_args=False), validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return torch.full(self._extended_shape(), torch.inf, dtype=self.scale.dtype, device=self.scale.device)

    variance = formula(lambda self: self.base_dist.variance)
