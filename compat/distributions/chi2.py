"""The chi-squared distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from compat.distributions import constraints
from compat.distributions.gamma import Gamma

__all__ = ["Chi2"]


class Chi2(Gamma):
    """The sum of ``df`` squared standard normal variables.

    Args:
        df: the degrees of freedom; any positive number.

    Example:
        >>> Chi2(torch.tensor([3.0])).mean
        tensor([3.])
    """

    arg_constraints: ClassVar[Any] = {"df": constraints.positive}
    _expands_ = ("concentration", "rate")

    def __init__(self, df: Any, validate_args: bool | None = None):
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    @property
    def df(self) -> Any:
        """The degrees of freedom."""
        return self.concentration * 2
