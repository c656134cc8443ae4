"""Rounding, integer division and remainders."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from funcgrad.arguments import validate
from funcgrad.core import dtypes
from funcgrad.core.primitive import Primitive
from funcgrad.core.tracing import type_of
from funcgrad.numpy.elementwise.declared import named
from funcgrad.numpy.promotion import asoperand, promoted, promoted_pair
from funcgrad.primitives import elementwise as p
from funcgrad.runtime.call_cache import composite

# ---------------------------------------------------------------- division with a remainder


def _real_pair(primitive: Primitive, name: str, what: str, example: str, shown: str) -> Callable[[Any, Any], Any]:
    def function(x: Any, y: Any, /) -> Any:
        x, y = promoted_pair(asoperand(x, name), asoperand(y, name))
        return primitive(x, y)

    document = (
        f"{what}\n\nArgs:\n    x, y: real arrays or numbers that broadcast together; an integer by zero gives 0.\n\n"
        "Returns:\n    An array of the broadcast shape, of the promoted dtype.\n\n"
        "Raises:\n    TypeError: for operands that are not arrays, bools and complex numbers.\n"
        f"    ValueError: for shapes that do not broadcast.\n\nExample:\n    >>> print({example})\n    {shown}\n"
    )
    return named(function, name, document)


remainder = mod = _real_pair(
    p.remainder, "remainder", "The remainder with the sign of ``y``, as Python's ``%``.", "remainder(-1, 3)", "2"
)
floor_divide = _real_pair(
    p.floor_divide,
    "floor_divide",
    "The quotient, rounded towards minus infinity; infinite where ``x`` is or ``y`` is 0.",
    "floor_divide(-1, 3)",
    "-1",
)


def fmod(x: Any, y: Any, /) -> Any:
    """The remainder with the sign of ``x``, as in C.

    Args:
        x, y: real arrays or numbers that broadcast together; an integer by zero gives 0.

    Returns:
        An array of the broadcast shape and the promoted dtype.

    Raises:
        TypeError: for operands that are not arrays, bools, and complex numbers.
        ValueError: for shapes that do not broadcast.

    Example:
        >>> print(fmod(-7.0, 3.0))
        -1.0
    """
    x, y = promoted_pair(asoperand(x, "fmod"), asoperand(y, "fmod"))
    if dtypes.is_inexact(type_of(x).dtype):
        return p.rem(x, y)
    absent = p.eq(y, p.number(0, y))
    return p.select(absent, p.number(0, x), p.rem(x, p.select(absent, p.number(1, y), y)))


def divmod(x: Any, y: Any, /) -> tuple[Any, Any]:
    """``(x // y, x % y)``.

    Args:
        x, y: real arrays or numbers that broadcast together; an integer by zero gives 0 and 0.

    Returns:
        Two arrays of the broadcast shape and the promoted dtype.

    Raises:
        TypeError: for operands that are not arrays, bools, and complex numbers.
        ValueError: for shapes that do not broadcast.

    Example:
        >>> print(*divmod(7, 3))
        2 1
    """
    return floor_divide(x, y), remainder(x, y)


# ---------------------------------------------------------------- rounding


def _rounding(primitive: Primitive, name: str, what: str, example: str, shown: str) -> Callable[[Any], Any]:
    def function(x: Any, /) -> Any:
        (x,) = promoted(asoperand(x, name))
        dtype = type_of(x).dtype
        return x if dtype == dtypes.bool_ or dtypes.is_integer(dtype) else primitive(x)

    document = (
        f"{what} Bools and integers are unchanged; the derivative is 0.\n\n"
        "Args:\n    x: a real array or number.\n\nReturns:\n    An array of the shape and dtype of ``x``.\n\n"
        "Raises:\n    TypeError: for operands that are not arrays, and complex numbers.\n\n"
        f"Example:\n    >>> print({example})\n    {shown}\n"
    )
    return named(function, name, document)


floor = _rounding(p.floor, "floor", "The largest integer not above ``x``.", "floor(-1.5)", "-2.0")
ceil = _rounding(p.ceil, "ceil", "The smallest integer not below ``x``.", "ceil(-1.5)", "-1.0")
trunc = fix = _rounding(p.trunc, "trunc", "``x`` without its fractional part.", "trunc(-1.5)", "-1.0")


def rint(x: Any, /) -> Any:
    """The nearest integer; ties go to the even one; of a complex number, both parts. The derivative is 0.

    Args:
        x: an array or number of any dtype.

    Returns:
        An array of the shape and the dtype of ``x``.

    Raises:
        TypeError: for operands that are not arrays.

    Example:
        >>> print(rint(2.5))
        2.0
    """
    (x,) = promoted(asoperand(x, "rint"))
    dtype = type_of(x).dtype
    if dtypes.is_complex(dtype):
        return p.make_complex(p.round_half_even(p.real(x)), p.round_half_even(p.imag(x)))
    return p.round_half_even(x) if dtypes.is_floating(dtype) else x


@composite
def round(x: Any, /, decimals: int = 0) -> Any:
    """``x`` rounded to a number of decimals; ties go to the even digit.

    Args:
        x: an array or number of any dtype.
        decimals: a static int; if negative, integers are rounded too.

    Returns:
        An array of the shape and the dtype of ``x``.

    Raises:
        TypeError: for operands that are not arrays, or decimals that are not an int.

    Example:
        >>> print(round(1.25, 1), round(1250, -2))
        1.2 1200
    """
    decimals = validate.integer("round", "decimals", decimals)
    if decimals == 0:
        return rint(x)
    (x,) = promoted(asoperand(x, "round"))
    dtype = type_of(x).dtype
    if dtypes.is_complex(dtype):
        return p.make_complex(round(p.real(x), decimals), round(p.imag(x), decimals))
    if not dtypes.is_floating(dtype):
        return x if decimals > 0 or dtype == dtypes.bool_ else _round_whole(x, 10**-decimals)
    if builtins.abs(decimals) > int(np.log10(float(ml_dtypes.finfo(dtype).max))):
        # Out of the dtype's range there is nothing to round, or the result is 0.
        return x if decimals > 0 else p.select(p.is_finite(x), p.mul(x, p.number(0, x)), x)
    unit = p.number(10.0 ** builtins.abs(decimals), x)
    if decimals > 0:
        return p.div(p.round_half_even(p.mul(x, unit)), unit)
    return p.mul(p.round_half_even(p.div(x, unit)), unit)


def _round_whole(x: Any, unit: int) -> Any:
    """Rounds integers to multiples of ``unit``, ties to even."""
    if unit > np.iinfo(type_of(x).dtype).max:
        return p.mul(x, p.number(0, x))
    half, one = p.number(unit // 2, x), p.number(1, x)
    low = p.floor_divide(x, p.number(unit, x))
    rest = p.sub(x, p.mul(low, p.number(unit, x)))
    odd = p.eq(p.bitwise_and(low, one), one)
    up = p.bitwise_or(p.gt(rest, half), p.bitwise_and(p.eq(rest, half), odd))
    return p.mul(p.select(up, p.add(low, one), low), p.number(unit, x))


around = round


@composite
def modf(x: Any, /) -> tuple[Any, Any]:
    """The fractional and the integral part, both with the sign of ``x``.

    Args:
        x: a real array or number.

    Returns:
        Two arrays of the shape of ``x``; of the dtype of ``x``, float32 of bools and integers.

    Raises:
        TypeError: for operands that are not arrays, or complex numbers.

    Example:
        >>> print(*modf(-2.5))
        -0.5 -2.0
    """
    (x,) = promoted(asoperand(x, "modf"), floating=True)
    whole = p.trunc(x)
    return p.select(p.is_finite(x), p.sub(x, whole), p.select(p.ne(x, x), x, p.number(0, x))), whole


__all__ = [
    "around", "ceil", "divmod", "fix", "floor", "floor_divide", "fmod", "mod", "modf", "remainder", "rint", "round",
    "trunc",
]  # fmt: skip
