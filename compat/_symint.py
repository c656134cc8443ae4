"""``torch.SymInt``, ``SymFloat``, ``SymBool``: symbolic numbers, and functions that also take plain ones.

Sizes are always known here, under ``torch.compile`` as elsewhere, so nothing makes such a number. The types are there
for programs that ask ``isinstance(n, (int, torch.SymInt))``, the functions for those that are written for both.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

__all__ = [
    "SymBool", "SymFloat", "SymInt", "sym_float", "sym_int", "sym_ite", "sym_max", "sym_min", "sym_not", "sym_sqrt",
    "sym_sum",
]  # fmt: skip


class _Symbol:
    """A number that is not known yet.

    Attributes:
        node: what will know it.
    """

    def __init__(self, node: Any):
        self.node = node


class SymInt(_Symbol):
    """An int that is not known yet.

    Example:
        >>> import compat as torch
        >>> isinstance(torch.ones(3).shape[0], torch.SymInt)
        False
    """

    __module__ = "compat"


class SymFloat(_Symbol):
    """A float that is not known yet."""

    __module__ = "compat"


class SymBool(_Symbol):
    """A bool that is not known yet."""

    __module__ = "compat"


_NUMBERS = (np.integer, np.floating, int, float)


def sym_int(a: Any) -> int:
    """A number as an int, cut off towards zero.

    Example:
        >>> sym_int(-2.5)
        -2
    """
    return int(a)


def sym_float(a: Any) -> float:
    """A number as a float.

    Example:
        >>> sym_float(2)
        2.0
    """
    return float(a)


def sym_sqrt(a: Any) -> float:
    """The square root of a number.

    Raises:
        ValueError: for negative numbers.

    Example:
        >>> sym_sqrt(4)
        2.0
    """
    return math.sqrt(a)


def _check(*numbers: Any) -> None:
    for x in numbers:
        if not isinstance(x, _NUMBERS):
            raise AssertionError(f"expected {_NUMBERS}, got {type(x)}")


def sym_max(a: Any, b: Any) -> Any:
    """The larger of two numbers; a float if one of them is.

    Raises:
        AssertionError: for anything but numbers.

    Example:
        >>> sym_max(3, 2.0)
        3.0
    """
    _check(a, b)
    return float(max(a, b)) if isinstance(a, float) or isinstance(b, float) else max(a, b)


def sym_min(a: Any, b: Any) -> Any:
    """The smaller of two numbers; a float if one of them is.

    Raises:
        AssertionError: for anything but numbers.

    Example:
        >>> sym_min(3, 2)
        2
    """
    _check(a, b)
    return float(min(a, b)) if isinstance(a, float) or isinstance(b, float) else min(a, b)


def sym_not(a: Any) -> bool:
    """Whether a condition does not hold.

    Example:
        >>> sym_not(True)
        False
    """
    return not a


def sym_ite(b: bool, t: Any, f: Any) -> Any:
    """The first of two values of one type if a condition holds, else the second.

    Raises:
        AssertionError: for a condition that is not a bool, and values of different types.

    Example:
        >>> sym_ite(True, 1, 2)
        1
    """
    if not isinstance(b, bool):
        raise AssertionError(f"expected SymBool or bool, got {type(b)}")
    if type(t) is not type(f):
        raise AssertionError(f"type mismatch: {type(t)} vs {type(f)}")
    return t if b else f


def sym_sum(args: Iterable[Any]) -> Any:
    """The sum of some numbers.

    Example:
        >>> sym_sum([1, 2, 3])
        6
    """
    return sum(args)
