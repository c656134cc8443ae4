"""Sums, products, powers, and the maximum of two."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from funcgrad.core import dtypes
from funcgrad.core.tracing import type_of
from funcgrad.numpy.elementwise.declared import binary, unary
from funcgrad.numpy.promotion import asoperand, astype, promoted, promoted_pair
from funcgrad.primitives import elementwise as p
from funcgrad.runtime.call_cache import composite

# ---------------------------------------------------------------- sums and products


add = binary(p.add, "add", "Sum. Logical or for bools.", "add(1.0, 2.0)", "3.0")


def subtract(x: Any, y: Any, /) -> Any:
    """Difference.

    Args:
        x, y: arrays or numbers that broadcast together.

    Returns:
        An array of the broadcast shape, of the promoted dtype.

    Raises:
        TypeError: for operands that are not arrays, and bools, whose difference is not defined; use ``logical_xor``.
        ValueError: for shapes that do not broadcast.

    Example:
        >>> print(subtract(3.0, 1.0))
        2.0
    """
    x, y = promoted_pair(asoperand(x, "subtract"), asoperand(y, "subtract"))
    return p.sub(x, y)


multiply = binary(p.mul, "multiply", "Product. Logical and for bools.", "multiply(2.0, 3.0)", "6.0")
true_divide = divide = binary(p.div, "divide", "Quotient, floating.", "divide(1, 2)", "0.5", floating=True)
negative = unary(p.neg, "negative", "Negation.", "negative(2.0)", "-2.0")


def positive(x: Any, /) -> Any:
    """``x`` itself, as an array.

    Args:
        x: an array or number.

    Returns:
        An array of the shape and dtype of ``x``.

    Raises:
        TypeError: for operands that are not arrays.

    Example:
        >>> print(positive([1, -2]))
        [ 1 -2]
    """
    return asoperand(x, "positive")


def reciprocal(x: Any, /) -> Any:
    """``1 / x``, floating.

    Args:
        x: an array or number.

    Returns:
        An array of the shape of ``x``, of the dtype of ``x``; float32 of bools and integers.

    Raises:
        TypeError: for operands that are not arrays.

    Example:
        >>> print(reciprocal(4.0))
        0.25
    """
    return divide(1, x)


def square(x: Any, /) -> Any:
    """``x * x``.

    Args:
        x: an array or number.

    Returns:
        An array of the shape and dtype of ``x``.

    Raises:
        TypeError: for operands that are not arrays.

    Example:
        >>> print(square(3.0))
        9.0
    """
    (x,) = promoted(asoperand(x, "square"))
    return x if type_of(x).dtype == dtypes.bool_ else p.square(x)


# ---------------------------------------------------------------- magnitudes and signs


def absolute(x: Any, /) -> Any:
    """The absolute value; of a complex number its modulus, a real array.

    The derivative at 0 is 0.

    Args:
        x: an array or number.

    Returns:
        An array of the shape of ``x``, of the dtype of ``x``, or of its parts.

    Raises:
        TypeError: for operands that are not arrays.

    Example:
        >>> print(absolute(-2.0))
        2.0
    """
    (x,) = promoted(asoperand(x, "absolute"))
    dtype = type_of(x).dtype
    if dtype == dtypes.bool_ or dtype in dtypes.UNSIGNED:
        return x
    return p.complex_abs(x) if dtypes.is_complex(dtype) else p.absolute(x)


abs = absolute


def fabs(x: Any, /) -> Any:
    """The absolute value, floating.

    Args:
        x: an array or number.

    Returns:
        An array of the shape of ``x``, of the dtype of ``x``, or of its parts; float32 of bools and integers.

    Raises:
        TypeError: for operands that are not arrays.

    Example:
        >>> print(fabs(-2))
        2.0
    """
    return absolute(promoted(asoperand(x, "fabs"), floating=True)[0])


def sign(x: Any, /) -> Any:
    """-1, 0 or 1; ``x / |x|`` for complex.

    Args:
        x: an array or number.

    Returns:
        An array of the shape and dtype of ``x``.

    Raises:
        TypeError: for operands that are not arrays, and bools.

    Example:
        >>> print(sign(-3.0))
        -1.0
    """
    (x,) = promoted(asoperand(x, "sign"))
    if dtypes.is_complex(type_of(x).dtype):
        return p.complex_sign(x)
    # Without negative zero.
    return p.select(p.eq(x, p.number(0, x)), p.number(0, x), p.sign(x))


# ---------------------------------------------------------------- powers


def power(x: Any, y: Any, /) -> Any:
    """``x ** y``. A Python integer exponent is computed by repeated multiplication, with an exact derivative.

    Args:
        x, y: arrays or numbers that broadcast together.

    Returns:
        An array of the broadcast shape, of the promoted dtype; int8 of bools.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: for an integer array to a negative Python exponent, and shapes that do not broadcast.

    Example:
        >>> print(power(2.0, 3))
        8.0
    """
    x = asoperand(x, "power")
    if isinstance(y, int) and not isinstance(y, bool) and type_of(x).dtype != dtypes.bool_:
        if y < 0 and not dtypes.is_inexact(type_of(x).dtype):
            raise ValueError(
                f"power: an integer array ({type_of(x)}) to the negative power {y}; convert it to float first"
            )
        (x,) = promoted(x)
        return p.square(x) if y == 2 else p.integer_power(x, exponent=y)
    x, y = promoted(x, asoperand(y, "power"))
    if dtypes.is_inexact(type_of(x).dtype):
        return p.power(x, y)
    return _integer_array_power(x, y)


def _integer_array_power(x: Any, y: Any) -> Any:
    """Integers to integer powers by repeated squaring over the exponent's bits."""
    if type_of(x).dtype == dtypes.bool_:
        x, y = astype(x, dtypes.int8), astype(y, dtypes.int8)
    zero, one = p.number(0, x), p.number(1, x)
    result = p.select(p.lt(y, zero), zero, one)
    for bit in range(8 * type_of(x).dtype.itemsize - (type_of(x).dtype in dtypes.SIGNED)):
        odd = p.ne(p.bitwise_and(y, p.number(1 << bit, y)), zero)
        result, x = p.select(odd, p.mul(result, x), result), p.mul(x, x)
    return result


pow = power
float_power = binary(p.power, "float_power", "Power, floating.", "float_power(2, 3)", "8.0", floating=True)

# ---------------------------------------------------------------- maximum and minimum


maximum = binary(
    p.maximum, "maximum", "The larger of two; NaN if either is; ties share the derivative.", "maximum(1.0, 2.0)", "2.0"
)
minimum = binary(
    p.minimum, "minimum", "The smaller of two; NaN if either is; ties share the derivative.", "minimum(1.0, 2.0)", "1.0"
)


@composite
def fmax(x: Any, y: Any, /) -> Any:
    """The maximum of two; if one is NaN, the other.

    Args:
        x, y: arrays or numbers that broadcast together.

    Returns:
        An array of the broadcast shape, of the promoted dtype.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: for shapes that do not broadcast.

    Example:
        >>> print(fmax(1.0, np.nan))
        1.0
    """
    x, y = promoted_pair(asoperand(x, "fmax"), asoperand(y, "fmax"))
    return p.select(p.ne(x, x), y, p.select(p.ne(y, y), x, p.maximum(x, y)))


@composite
def fmin(x: Any, y: Any, /) -> Any:
    """The minimum of two; if one is NaN, the other.

    Args:
        x, y: arrays or numbers that broadcast together.

    Returns:
        An array of the broadcast shape, of the promoted dtype.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: for shapes that do not broadcast.

    Example:
        >>> print(fmin(1.0, np.nan))
        1.0
    """
    x, y = promoted_pair(asoperand(x, "fmin"), asoperand(y, "fmin"))
    return p.select(p.ne(x, x), y, p.select(p.ne(y, y), x, p.minimum(x, y)))


def clip(x: Any, min: Any = None, max: Any = None, *, a_min: Any = None, a_max: Any = None) -> Any:
    """``x`` limited to between ``min`` and ``max`` (also called ``a_min`` and ``a_max``); either may be None.

    Args:
        x: a real array or number.
        min, max, a_min, a_max: arrays or numbers that broadcast with it.

    Returns:
        An array of the broadcast shape. Its dtype is that of ``x``, or the promoted one if a bound is of another kind
        (floating for integer ``x``).

    Raises:
        TypeError: for operands that are not arrays, and complex numbers.
        ValueError: for shapes that do not broadcast.

    Example:
        >>> print(clip(3.0, 0.0, 1.0))
        1.0
        >>> clip(np.float32(3), 0.0, np.ones(1)).dtype
        dtype('float32')
    """
    x = asoperand(x, "clip")
    low, high = (_bound(x, given) for given in ((a_min if min is None else min), (a_max if max is None else max)))
    if low is not None and high is not None:
        x, low, high = promoted(x, low, high)
        return p.clamp(low, x, high)
    if low is not None:
        return maximum(x, low)
    return minimum(x, high) if high is not None else x


def _bound(x: Any, bound: Any) -> Any:
    """``bound`` for ``clip``: a number of the kind of ``x`` is converted to its dtype, saturating."""
    if bound is None:
        return None
    bound = asoperand(bound, "clip")
    wanted, own = type_of(x).dtype, type_of(bound).dtype
    if wanted == own or type_of(x).weak or type_of(bound).weak:
        return bound
    if dtypes.is_floating(wanted) and dtypes.is_floating(own):
        return astype(bound, wanted)
    if not (dtypes.is_integer(wanted) and dtypes.is_integer(own)):
        return bound
    limits = np.iinfo(wanted), np.iinfo(own)
    least, most = builtins.max(limit.min for limit in limits), builtins.min(limit.max for limit in limits)
    return astype(p.clamp(p.number(least, bound), bound, p.number(most, bound)), wanted)


__all__ = [
    "abs", "absolute", "add", "clip", "divide", "fabs", "float_power", "fmax", "fmin", "maximum", "minimum",
    "multiply", "negative", "positive", "pow", "power", "reciprocal", "sign", "square", "subtract", "true_divide",
]  # fmt: skip
