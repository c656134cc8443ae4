"""Comparisons, logic, bits, and selection."""

from __future__ import annotations

from typing import Any

from funcgrad.core import dtypes
from funcgrad.core.tracing import Tracer, array_classes, type_of
from funcgrad.numpy.elementwise.declared import binary, unary
from funcgrad.numpy.promotion import asoperand, promoted, promoted_pair
from funcgrad.primitives import elementwise as p
from funcgrad.runtime.call_cache import composite

# ---------------------------------------------------------------- comparisons


equal = binary(p.eq, "equal", "Whether equal.", "equal(1, 1.0)", "True")
not_equal = binary(p.ne, "not_equal", "Whether different.", "not_equal(1, 2)", "True")
less = binary(p.lt, "less", "Whether smaller.", "less(1, 2)", "True")
less_equal = binary(p.le, "less_equal", "Whether not larger.", "less_equal(2, 2)", "True")
greater = binary(p.gt, "greater", "Whether larger.", "greater(1, 2)", "False")
greater_equal = binary(p.ge, "greater_equal", "Whether not smaller.", "greater_equal(2, 2)", "True")

# ---------------------------------------------------------------- bits


bitwise_and = binary(p.bitwise_and, "bitwise_and", "Bits set in both.", "bitwise_and(6, 3)", "2")
bitwise_or = binary(p.bitwise_or, "bitwise_or", "Bits set in either.", "bitwise_or(6, 3)", "7")
bitwise_xor = binary(p.bitwise_xor, "bitwise_xor", "Bits set in one.", "bitwise_xor(6, 3)", "5")
bitwise_left_shift = left_shift = binary(p.shift_left, "left_shift", "Bits moved up.", "left_shift(3, 2)", "12")
bitwise_right_shift = right_shift = binary(p.shift_right, "right_shift", "Bits moved down.", "right_shift(12, 2)", "3")
bitwise_invert = invert = bitwise_not = unary(p.logical_not, "invert", "Bits flipped.", "invert(6)", "-7")

# ---------------------------------------------------------------- logic


def _truth(x: Any, name: str) -> Any:
    if isinstance(x, Tracer) and x.type.dtype == dtypes.bool_:
        return x
    x = asoperand(x, name)
    type = type_of(x)
    return x if type.dtype == dtypes.bool_ else p.ne(x, type.dtype.type(0))


def logical_not(x: Any, /) -> Any:
    """Whether ``x`` is zero.

    Args:
        x: an array or number.

    Returns:
        An array of the shape of ``x``, of bools.

    Raises:
        TypeError: for operands that are not arrays.

    Example:
        >>> print(logical_not([True, False]))
        [False  True]
    """
    return p.logical_not(_truth(x, "logical_not"))


def logical_and(x: Any, y: Any, /) -> Any:
    """Whether both are nonzero.

    Args:
        x, y: arrays or numbers that broadcast together.

    Returns:
        An array of the broadcast shape, of bools.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: for shapes that do not broadcast.

    Example:
        >>> print(logical_and([True, True], [True, False]))
        [ True False]
    """
    return p.bitwise_and(_truth(x, "logical_and"), _truth(y, "logical_and"))


def logical_or(x: Any, y: Any, /) -> Any:
    """Whether either is nonzero.

    Args:
        x, y: arrays or numbers that broadcast together.

    Returns:
        An array of the broadcast shape, of bools.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: for shapes that do not broadcast.

    Example:
        >>> print(logical_or([True, False], False))
        [ True False]
    """
    return p.bitwise_or(_truth(x, "logical_or"), _truth(y, "logical_or"))


def logical_xor(x: Any, y: Any, /) -> Any:
    """Whether exactly one is nonzero.

    Args:
        x, y: arrays or numbers that broadcast together.

    Returns:
        An array of the broadcast shape, of bools.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: for shapes that do not broadcast.

    Example:
        >>> print(logical_xor([True, True], [True, False]))
        [False  True]
    """
    return p.bitwise_xor(_truth(x, "logical_xor"), _truth(y, "logical_xor"))


def where(condition: Any, x: Any, y: Any, /) -> Any:
    """``x`` where ``condition`` is nonzero, ``y`` elsewhere; the three broadcast together.

    The cotangent of the unselected side is zero, but its derivative is computed: keep both sides finite.

    Args:
        condition: booleans, or numbers, where nonzero is true.
        x, y: arrays or numbers.

    Returns:
        An array of the broadcast shape, of the dtype that ``x`` and ``y`` promote to.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: for shapes that do not broadcast.

    Example:
        >>> print(where(True, 1.0, 2.0))
        1.0
    """
    if x.__class__ not in array_classes or y.__class__ not in array_classes:
        x, y = asoperand(x, "where"), asoperand(y, "where")
    x, y = promoted_pair(x, y)
    return p.select(_truth(condition, "where"), x, y)


# ---------------------------------------------------------------- finite and infinite


def isnan(x: Any, /) -> Any:
    """Whether NaN.

    Args:
        x: an array or number.

    Returns:
        An array of the shape of ``x``, of bools.

    Raises:
        TypeError: for operands that are not arrays.

    Example:
        >>> print(isnan([1.0, float("inf"), float("nan")]))
        [False False  True]
    """
    x = asoperand(x, "isnan")
    return p.ne(x, x)


def isfinite(x: Any, /) -> Any:
    """Whether neither infinite nor NaN; of a complex number, both parts.

    Args:
        x: an array or number.

    Returns:
        An array of the shape of ``x``, of bools.

    Raises:
        TypeError: for operands that are not arrays.

    Example:
        >>> print(isfinite([1.0, float("inf"), float("nan")]))
        [ True False False]
    """
    (x,) = promoted(asoperand(x, "isfinite"))
    dtype = type_of(x).dtype
    if dtypes.is_complex(dtype):
        return p.bitwise_and(p.is_finite(p.real(x)), p.is_finite(p.imag(x)))
    return p.is_finite(x) if dtypes.is_floating(dtype) else p.eq(x, x)


@composite
def isinf(x: Any, /) -> Any:
    """Whether infinite; of a complex number, either part.

    Args:
        x: an array or number.

    Returns:
        An array of the shape of ``x``, of bools.

    Raises:
        TypeError: for operands that are not arrays.

    Example:
        >>> print(isinf([1.0, float("inf"), float("nan")]))
        [False  True False]
    """
    (x,) = promoted(asoperand(x, "isinf"))
    if dtypes.is_complex(type_of(x).dtype):
        return p.bitwise_or(isinf(p.real(x)), isinf(p.imag(x)))
    return p.bitwise_and(p.logical_not(isfinite(x)), p.logical_not(isnan(x)))


@composite
def isposinf(x: Any, /) -> Any:
    """Whether infinite and positive.

    Args:
        x: a real array or number.

    Returns:
        An array of the shape of ``x``, of bools.

    Raises:
        TypeError: for operands that are not arrays, and complex numbers.

    Example:
        >>> print(isposinf([float("-inf"), float("inf")]))
        [False  True]
    """
    return logical_and(isinf(x), greater(x, 0))


@composite
def isneginf(x: Any, /) -> Any:
    """Whether infinite and negative.

    Args:
        x: a real array or number.

    Returns:
        An array of the shape of ``x``, of bools.

    Raises:
        TypeError: for operands that are not arrays, and complex numbers.

    Example:
        >>> print(isneginf([float("-inf"), float("inf")]))
        [ True False]
    """
    return logical_and(isinf(x), less(x, 0))


__all__ = [
    "bitwise_and", "bitwise_invert", "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift",
    "bitwise_xor", "equal", "greater", "greater_equal", "invert", "isfinite", "isinf", "isnan", "isneginf",
    "isposinf", "left_shift", "less", "less_equal", "logical_and", "logical_not", "logical_or", "logical_xor",
    "not_equal", "right_shift",
]  # fmt: skip
