"""Bits and divisors of integers, and the parts of floating-point numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.arguments import validate
from funcgrad.core import dtypes
from funcgrad.core.tracing import type_of
from funcgrad.numpy import elementwise as e
from funcgrad.numpy import reductions as r
from funcgrad.numpy.promotion import asoperand, astype, promoted, promoted_pair
from funcgrad.numpy.shape import concatenate, expand_dims, moveaxis, reshape
from funcgrad.numpy.shape.reshaping import along_axis
from funcgrad.primitives import elementwise as p
from funcgrad.primitives import integers
from funcgrad.primitives.shape import full
from funcgrad.runtime.call_cache import composite

_ORDER = {"big": np.arange(7, -1, -1, dtype=np.uint8), "little": np.arange(8, dtype=np.uint8)}


def _bit_order(bitorder: str, name: str) -> np.ndarray:
    if bitorder not in _ORDER:
        raise ValueError(f'{name}: bitorder must be "big" or "little", got {bitorder!r}')
    return _ORDER[bitorder]


@composite
def packbits(x: Any, /, axis: int | None = None, bitorder: str = "big") -> Any:
    """Packs groups of eight booleans into uint8, padded with zeros at the end.

    Args:
        x: an array of bools or integers, where nonzero is true.
        axis: the axis; by default the flattened array.
        bitorder: ``"big"``, the first one is the highest bit, or ``"little"``.

    Returns:
        A uint8 array, an eighth as long along ``axis``, rounded up; a vector without ``axis``.

    Raises:
        TypeError: for operands that are not arrays, and floating or complex numbers.
        ValueError: for an unknown ``bitorder``; NumPy's ``AxisError`` for an axis out of range.

    Example:
        >>> print(packbits([1, 0, 1, 0, 0, 0, 0, 1, 1]))
        [161 128]
    """
    x = asoperand(x, "packbits")
    if dtypes.is_inexact(type_of(x).dtype):
        raise TypeError(f"packbits: takes integers and bools, got {type_of(x)}")
    x, axis = along_axis(x, axis, "packbits")
    bits = p.cast(moveaxis(e.not_equal(x, 0), axis, -1), dtype=dtypes.uint8)
    *lead, n = type_of(bits).shape
    bits = concatenate([bits, full(np.uint8(0), (*lead, -n % 8))], -1)
    weighed = p.shift_left(reshape(bits, (*lead, -(-n // 8), 8)), _bit_order(bitorder, "packbits"))
    return moveaxis(r.sum(weighed, -1, dtypes.uint8), -1, axis)


@composite
def unpackbits(x: Any, /, axis: int | None = None, count: int | None = None, bitorder: str = "big") -> Any:
    """Unpacks bytes to bits: eight 0s and 1s, uint8, for each.

    Args:
        x: a uint8 array.
        axis: the axis; by default the flattened array.
        count: the number of bits to keep, zero-padded; if negative, the number to drop.
        bitorder: as for ``packbits``.

    Returns:
        A uint8 array, ``count`` or eight times as long along ``axis``; a vector without ``axis``.

    Raises:
        TypeError: for anything but uint8.
        ValueError: for an unknown ``bitorder``; NumPy's ``AxisError`` for an axis out of range.

    Example:
        >>> print(unpackbits(np.array([5], np.uint8)))
        [0 0 0 0 0 1 0 1]
    """
    x = asoperand(x, "unpackbits")
    if type_of(x).dtype != dtypes.uint8:
        raise TypeError(f"unpackbits: takes uint8 arrays, got {type_of(x)}")
    x, axis = along_axis(x, axis, "unpackbits")
    rows = moveaxis(x, axis, -1)
    *lead, n = type_of(rows).shape
    bits = p.bitwise_and(p.shift_right(expand_dims(rows, -1), _bit_order(bitorder, "unpackbits")), np.uint8(1))
    bits = reshape(bits, (*lead, 8 * n))
    if count is not None:
        count = validate.integer("unpackbits", "count", count)
        wanted = count if count >= 0 else 8 * n + count
        bits = concatenate([bits, full(np.uint8(0), (*lead, max(wanted - 8 * n, 0)))], -1)[..., :wanted]
    return moveaxis(bits, -1, axis)


def bitwise_count(x: Any, /) -> Any:
    """The number of 1 bits of the absolute value, as uint8.

    Args:
        x: integers.

    Returns:
        A uint8 array of the shape of ``x``.

    Raises:
        TypeError: for operands that are not arrays of integers; bools are not accepted.

    Example:
        >>> print(bitwise_count([7, -8]))
        [3 1]
    """
    return p.cast(p.population_count(e.absolute(x)), dtype=dtypes.uint8)


def _both_integers(x: Any, y: Any, name: str) -> tuple[Any, Any]:
    x, y = promoted_pair(asoperand(x, name), asoperand(y, name))
    if not dtypes.is_integer(type_of(x).dtype):
        raise TypeError(f"{name}: takes integers, got {type_of(x)}")
    return e.absolute(x), e.absolute(y)


def gcd(x: Any, y: Any, /) -> Any:
    """The greatest common divisor of integers.

    Args:
        x, y: integers; bools among them count as 0 and 1.

    Returns:
        An array of the broadcast shape and the promoted dtype.

    Raises:
        TypeError: for operands that are not arrays, floating or complex numbers, and bools alone.
        ValueError: for shapes that do not broadcast.

    Example:
        >>> print(gcd(12, 20))
        4
    """
    return integers.gcd(*_both_integers(x, y, "gcd"))


@composite
def lcm(x: Any, y: Any, /) -> Any:
    """The least common multiple of integers.

    Args:
        x, y: integers; bools among them count as 0 and 1.

    Returns:
        An array of the broadcast shape and the promoted dtype.

    Raises:
        TypeError: for operands that are not arrays, floating or complex numbers, and bools alone.
        ValueError: for shapes that do not broadcast.

    Example:
        >>> print(lcm(4, 6))
        12
    """
    divisor = gcd(x, y)
    x, y = _both_integers(x, y, "lcm")
    none = p.eq(divisor, p.number(0, divisor))
    return p.mul(p.div(x, p.select(none, p.number(1, divisor), divisor)), y)


# ---------------------------------------------------------------- floating-point numbers


_FIELDS = {2: (10, 15), 4: (23, 127), 8: (52, 1023)}


@composite
def frexp(x: Any, /) -> tuple[Any, Any]:
    """The mantissa, in [0.5, 1), and the exponent of 2, int32, whose product is the number.

    Subnormal numbers are treated as zero, as in XLA.

    Args:
        x: an array or number; integers and bools are taken as float32.

    Returns:
        Two arrays of the shape of ``x``: the mantissa, of its dtype, and the exponent, int32. Infinities and NaN are
        their own mantissa, with exponent 0.

    Raises:
        TypeError: for operands that are not arrays.

    Example:
        >>> print(*frexp(6.0))
        0.75 3
    """
    (x,) = promoted(asoperand(x, "frexp"), floating=True)
    dtype = type_of(x).dtype
    if dtype not in (dtypes.float16, dtypes.float32, dtypes.float64):
        mantissa, exponent = frexp(astype(x, dtypes.float32))
        return astype(mantissa, dtype), exponent
    width, bias = _FIELDS[dtype.itemsize]
    signed = {2: dtypes.int16, 4: dtypes.int32, 8: dtypes.int64}[dtype.itemsize]
    mask = signed.type((1 << (8 * dtype.itemsize - 1 - width)) - 1)
    field = p.bitwise_and(p.shift_right_logical(p.bitcast(x, dtype=signed), signed.type(width)), mask)
    usual = p.bitwise_and(p.is_finite(x), p.ne(field, signed.type(0)))
    exponent = p.select(usual, p.sub(p.cast(field, dtype=dtypes.int32), np.int32(bias - 1)), np.int32(0))
    return _times_power(x, p.neg(exponent)), exponent


def _times_power(x: Any, exponent: Any) -> Any:
    """``x`` times 2 to an integer power, in two steps, since a single factor may overflow."""
    half = p.div(exponent, p.number(2, exponent))
    for part in (half, p.sub(exponent, half)):
        x = p.mul(x, p.power(p.number(2, x), p.cast(part, dtype=type_of(x).dtype)))
    return x


@composite
def ldexp(x: Any, exponent: Any, /) -> Any:
    """``x`` times 2 to a power.

    Args:
        x: an array or number; integers and bools are taken as float32.
        exponent: integers; bools are not accepted.

    Returns:
        An array of the broadcast shape and the floating dtype of ``x``.

    Raises:
        TypeError: for operands that are not arrays, or exponents that are not integers.
        ValueError: for shapes that do not broadcast.

    Example:
        >>> print(ldexp(0.75, 3))
        6.0
    """
    (x,) = promoted(asoperand(x, "ldexp"), floating=True)
    exponent = asoperand(exponent, "ldexp")
    if not dtypes.is_integer(type_of(exponent).dtype):
        raise TypeError(f"ldexp: the exponent must be an integer, got {type_of(exponent)}")
    return _times_power(x, promoted(exponent)[0] if not isinstance(exponent, int) else np.int32(exponent))


@composite
def spacing(x: Any, /) -> Any:
    """The distance to the next representable number, away from zero, with the sign of ``x``.

    Args:
        x: real numbers; integers and bools are taken as float32.

    Returns:
        An array of the shape of ``x`` and its floating dtype; NaN for infinite numbers and NaN.

    Raises:
        TypeError: for operands that are not arrays, and complex numbers.

    Example:
        >>> print(spacing(1.0))
        1.1920929e-07
    """
    (x,) = promoted(asoperand(x, "spacing"), floating=True)
    beyond = p.select(p.lt(x, p.number(0, x)), p.number(-np.inf, x), p.number(np.inf, x))
    return p.select(p.is_finite(x), p.sub(p.nextafter(x, beyond), x), p.number(np.nan, x))


__all__ = ["bitwise_count", "frexp", "gcd", "lcm", "ldexp", "packbits", "spacing", "unpackbits"]
