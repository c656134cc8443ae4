"""Location-scale families."""

from __future__ import annotations

from typing import Any, ClassVar

from compat.distributions import constraints
from compat.distributions.distribution import Distribution
from compat.distributions.utils import formula

__all__ = ["LocationScale"]


class LocationScale(Distribution):
    """``loc + scale * X`` for an X on the real line, symmetric about its mode 0.

    A subclass lists the parameters in ``_expands_``, and defines ``rsample``, ``log_prob`` and other methods.

    Args:
        loc: the median, and the mean if it exists.
        scale: the scale.
    """

    arg_constraints: ClassVar[Any] = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    loc: Any
    scale: Any

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None):
        super().__init__(self._set_parameters_(loc=loc, scale=scale), validate_args=validate_args)

    mean = formula(lambda self: self.loc)
    mode = formula(lambda self: self.loc)
