"""Scalar overflow checks: whether a dtype can represent a number, as PyTorch checks when it converts one.

Numbers that are written into tensors are checked, and the arguments of operations that declare ``fits``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from math import isfinite
from typing import Any, NamedTuple

import numpy

from compat._core.types import dtype
from compat._core.types.errors import cpp_name

#: Dtypes with a C++ name in messages; others have their own name and ``_t``.
_OWN = (dtype.int32, dtype.float16, dtype.bfloat16, dtype.float32, dtype.float64)
_NUMBERS = (int, float, complex)


@cache
def _limits(d: dtype.dtype) -> tuple[float, float]:
    info = dtype.finfo(d) if d.is_floating_point else dtype.iinfo(d)
    return info.min, info.max


def _overflows(d: dtype.dtype, value: Any) -> bool:
    if d.is_floating_point and not isfinite(value):
        return False
    least, most = _limits(d)
    return not (-most if _counts_back(d, value) else least) <= value <= most


def _counts_back(d: dtype.dtype, value: Any) -> bool:
    """Whether a negative integer is converted to an unsigned dtype, where it wraps."""
    return isinstance(value, int) and value < 0 and _limits(d)[0] == 0


def fitted(d: dtype.dtype | None, value: Any) -> Any:
    """A number to be written into a tensor of a dtype; the real part of a complex number for real dtypes.

    Args:
        d: the tensor's dtype; bool and None accept any number.
        value: the number; other values are returned unchanged.

    Raises:
        RuntimeError: for a number outside the dtype's limits, NaN for integers, and a complex number for real dtypes.
        OverflowError: for integers that no dtype can represent.

    Example:
        >>> import compat as torch
        >>> fitted(torch.float32, 1 + 0j), fitted(torch.int8, 100), fitted(torch.uint8, -1)
        (1.0, 100, 255)
        >>> fitted(torch.int8, 300)
        Traceback (most recent call last):
        RuntimeError: value cannot be converted to type int8_t without overflow
    """
    if value.__class__ not in _NUMBERS:
        if isinstance(value, numpy.generic) or (isinstance(value, numpy.ndarray) and not value.ndim):
            value = value.item()
        if not isinstance(value, _NUMBERS):
            return value
    value = dtype.plain_number(value)
    if d is None or d is dtype.bool_:
        return value
    if d.is_complex:
        if any(_overflows(d.to_real(), part) for part in (value.real, value.imag)):
            raise _overflow(d)
        return value
    real = value.real if isinstance(value, complex) else value
    if (isinstance(value, complex) and value.imag) or _overflows(d, real):
        raise _overflow(d)
    return real + int(_limits(d)[1]) + 1 if _counts_back(d, real) else real


def filling(d: dtype.dtype, count: int, value: Any) -> Any:
    """``fitted`` for a number that fills ``count`` elements. PyTorch does not check float16 and bfloat16 for a single
    element, so there large numbers become infinite."""
    return fitted(unless_half(d) if count == 1 else d, value)


def _overflow(d: dtype.dtype) -> RuntimeError:
    name = cpp_name(d) if d in _OWN or d.is_complex else f"{d!r}".removeprefix("torch.") + "_t"
    return RuntimeError(f"value cannot be converted to type {name} without overflow")


# ---------------------------------------------------------------- arguments of operations

#: From the dtype of an operation's result to the dtype that must represent a number; None for no check.
Rule = Callable[[dtype.dtype], dtype.dtype | None]


def own(d: dtype.dtype) -> dtype.dtype:
    """The rule for numbers that are converted to the dtype of the result."""
    return d


def widened(d: dtype.dtype) -> dtype.dtype:
    """The rule for numbers of kernels that compute float16 and bfloat16 in float32."""
    return dtype.float32 if d in _HALVES else d


def unless_half(d: dtype.dtype) -> dtype.dtype | None:
    """The rule for numbers that are converted for all dtypes but float16 and bfloat16."""
    return None if d in _HALVES else d


def narrow(d: dtype.dtype) -> dtype.dtype | None:
    """The rule for numbers that are converted for integers, float16 and bfloat16 only."""
    return d if d in _HALVES or d.category < dtype.FLOATING else None


_HALVES = (dtype.float16, dtype.bfloat16)


def fits(names: str, rule: Rule = own) -> dict[str, Rule]:
    """The option ``fits`` of an operation: the dtype rules of its numbers, by parameter."""
    return dict.fromkeys(names.split(), rule)


class Bounds(NamedTuple):
    """The range of numbers of a Python type that a plan accepts unchecked, and the handling of others.

    Attributes:
        least, most: the inclusive bounds; None for complex numbers, which have no order.
        otherwise: converts any other value to such a number, or raises.
    """

    least: float | None
    most: float | None
    otherwise: Callable[[Any], Any]

    def __call__(self, value: Any) -> Any:
        ordered = self.least is not None and self.most is not None
        return value if ordered and self.least <= value <= self.most else self.otherwise(value)

    def written(self, value: str, otherwise: str) -> str:
        """The source of the check, given the names of the number and of the handler."""
        if self.least is None:
            return f"{otherwise}({value})"
        return f"{value} if {self.least!r} <= {value} <= {self.most!r} else {otherwise}({value})"


def checked(number: int) -> int:
    """An integer, if a signed array can hold it.

    Raises:
        TooWide: for a larger one.
    """
    if not -(2**63) <= number < 2**63:
        raise dtype.TooWide("Overflow when unpacking long long")
    return number


_INTEGERS = Bounds(-(2**63), 2**63 - 1, checked)


def bounds(kind: Any, d: dtype.dtype | None) -> Bounds | None:
    """The bounds of a plan for a Python type; None if it accepts all.

    Args:
        kind: the type.
        d: the dtype that must represent the numbers, if any.

    Example:
        >>> bounds(int, dtype.uint8)[:2], bounds(int, None)[1] == 2**63 - 1, bounds(float, dtype.float64)
        ((0, 255), True, None)
    """
    every = _INTEGERS if kind is int else None
    if d is None or d is dtype.bool_ or kind is bool:
        return every
    real = d.to_real()
    least, most = _limits(real)
    if kind is complex:
        return Bounds(None, None, partial(fitted, d))
    if kind is float and real is not dtype.float64:
        return Bounds(least, most, partial(fitted, d))
    if kind in (int, dtype.Wide) and (real is dtype.float16 or real.category == dtype.INTEGER):
        return Bounds(least, most, lambda x: fitted(d, checked(x) if kind is int else x))
    return every
