"""The half-normal distribution."""

from __future__ import annotations

import math
from typing import Any

from compat.distributions._half import Half
from compat.distributions.normal import Normal
from compat.distributions.utils import formula

__all__ = ["HalfNormal"]


class HalfNormal(Half):
    """``|X|`` for a normal variable X with mean 0.

    Args:
        scale: the standard deviation of X.

    Example:
        >>> HalfNormal(1.0).mean
        tensor(0.7979)
    """

    _stored_ = ()

    def __init__(self, scale: Any, validate_args: bool | None = None):
        super().__init__(Normal(0, scale, validate_args=False), validate_args=validate_args)

    mean = formula(lambda self: self.scale * math.sqrt(2 / math.pi))
    variance = formula(lambda self: self.scale.pow(2) * (1 - 2 / math.pi))
