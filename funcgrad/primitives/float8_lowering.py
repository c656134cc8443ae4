"""The lowering of casts to 8-bit floating-point dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np
from jax import lax

from funcgrad.core import dtypes


def to_float8(x: Any, dtype: np.dtype) -> Any:
    """Casts float32 to 8 bits, as ``dtypes.as_float8``."""
    if dtype == dtypes.float8_e8m0fnu:
        return lax.bitcast_convert_type(_exponents(x), dtype)
    undefined = lax.ne(x, x)
    if dtype == dtypes.float8_e4m3fn:
        limit = lax.full_like(x, 448.0)
        x = lax.select(undefined, x, lax.clamp(lax.neg(limit), x, limit))
    found = lax.convert_element_type(x, dtype)
    if dtype not in (dtypes.float8_e4m3fn, dtypes.float8_e5m2):
        return found
    bits = lax.bitcast_convert_type(x, np.uint32)
    ones = lax.convert_element_type(lax.shift_right_logical(bits, lax.full_like(bits, 24)), np.uint8)
    ones = lax.bitwise_or(ones, lax.full_like(ones, 0x7F))
    return lax.select(undefined, lax.bitcast_convert_type(ones, dtype), found)


def _exponents(x: Any) -> Any:
    """The exponents of float32 values as uint8, rounded by the mantissa; all ones for NaN and infinity."""
    bits = lax.bitcast_convert_type(x, np.uint32)
    at = lambda n: lax.full_like(bits, n)
    exponent = lax.bitwise_and(lax.shift_right_logical(bits, at(23)), at(0xFF))
    rest = lax.bitwise_and(bits, at(0x7FFFFF))
    half = at(0x400000)
    up = lax.bitwise_or(lax.gt(rest, half), lax.bitwise_and(lax.eq(rest, half), lax.gt(exponent, at(0))))
    up = lax.bitwise_and(up, lax.lt(exponent, at(0xFF)))
    return lax.convert_element_type(lax.add(exponent, lax.convert_element_type(up, np.uint32)), np.uint8)
