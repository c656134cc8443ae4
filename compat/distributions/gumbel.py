"""The Gumbel distribution."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from compat._core.tensor.namespace import torch
from compat.distributions import constraints
from compat.distributions.transformed_distribution import TransformedDistribution
from compat.distributions.transforms import AffineTransform, ExpTransform
from compat.distributions.uniform import Uniform
from compat.distributions.utils import euler_constant, formula

__all__ = ["Gumbel"]


class Gumbel(TransformedDistribution):
    """Cumulative distribution ``exp(-exp(-(x - loc) / scale))``.

    Args:
        loc: the mode.
        scale: the scale.

    Example:
        >>> Gumbel(0.0, 1.0).mean
        tensor(0.5772)
    """

    arg_constraints: ClassVar[Any] = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    loc: Any
    scale: Any
    _stored_ = ("loc", "scale")

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None):
        self._set_parameters_(loc=loc, scale=scale)
        limits = torch.finfo(self.loc.dtype)
        low, high = [torch.full_like(self.loc, end) for end in (limits.tiny, 1 - limits.eps)]
        log = ExpTransform().inv
        flip = AffineTransform(loc=0, scale=-torch.ones_like(self.scale))
        transforms = [log, flip, ExpTransform().inv, AffineTransform(loc=loc, scale=-self.scale)]
        super().__init__(Uniform(low, high, validate_args=validate_args), transforms, validate_args=validate_args)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        y = (self.loc - value) / self.scale
        return y - y.exp() - self.scale.log()

    mean = formula(lambda self: self.loc + self.scale * euler_constant)
    mode = formula(lambda self: self.loc)
    stddev = formula(lambda self: math.pi / math.sqrt(6) * self.scale)
    variance = formula(lambda self: self.stddev.pow(2))

    def entropy(self) -> Any:
        return self.scale.log() + (1 + euler_constant)
