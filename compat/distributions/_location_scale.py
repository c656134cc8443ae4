"""What distributions of all numbers share that are moved and stretched."""

from __future__ import annotations

from typing import Any, ClassVar

from compat.distributions import constraints
from compat.distributions.distribution import Distribution
from compat.distributions.utils import formula

__all__ = ["LocationScale"]


class LocationScale(Distribution):
    """``loc + scale * X`` of an X on the whole line that is symmetric about 0, where it is likeliest.

    A class says in ``_expands`` that it is made up of the two, and defines ``rsample``, ``log_prob`` and the rest.

    Args:
        loc: the median, and the mean if there is one.
        scale: how far it is spread.
    """

    arg_constraints: ClassVar[Any] = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    loc: Any
    scale: Any

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None):
        super().__init__(self._take(loc=loc, scale=scale), validate_args=validate_args)

    mean = formula(lambda self: self.loc)
    mode = formula(lambda self: self.loc)
