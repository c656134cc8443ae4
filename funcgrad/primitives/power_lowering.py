"""The lowering of powers of float32 and shorter numbers on the CPU, in float64: ``2 ** (y * log2(x))``."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from jax import lax

from funcgrad.primitives.float64_lowering import in_float64, interpolated, like, polynomial, rounded


def _pattern(value: float) -> int:
    return int(np.float64(value).view(np.int64))


#: The bits of a mantissa; and 2 to this power, in whose pattern a small integer that is added stands in the last bits.
_MANTISSA, _SHIFT = 52, 2.0**52
#: The exponent of 1 in a pattern.
_BIAS = 1023


def _logarithm() -> list[float]:
    """The coefficients of a polynomial in ``z**2`` that is ``log2((1 + z) / (1 - z)) / z`` for a mantissa between the
    roots of 1/2 and 2, ``(1 + z) / (1 - z)``; up to 2e-12."""
    largest = (math.sqrt(2) - 1) / (math.sqrt(2) + 1)

    def ratio(square: np.ndarray) -> np.ndarray:
        z = np.sqrt(square)
        return np.log2((1 + z) / (1 - z)) / z

    return interpolated(ratio, 6, 0, largest**2)


_LOGARITHM = _logarithm()
#: 2 to the power of a fraction, up to 2e-14.
_POWER = interpolated(np.exp2, 9, -0.5, 0.5)


def _integer(x: Any, value: int) -> Any:
    return lax.full_like(x, value, np.int64)


def _log2(x: Any) -> Any:
    """The logarithm of zero, a positive number of float32's size or infinity."""
    bits = lax.bitcast_convert_type(x, np.int64)
    # The exponent changes at the root of 1/2, not at 1, near which the logarithm is small.
    biased = bits + _integer(x, _pattern(1.0) - _pattern(math.sqrt(0.5)))
    exponent = lax.shift_right_logical(biased, _integer(x, _MANTISSA))
    scale = lax.shift_left(exponent, _integer(x, _MANTISSA)) - _integer(x, _pattern(1.0))
    mantissa = lax.bitcast_convert_type(bits - scale, np.float64)
    shifted = lax.bitcast_convert_type(lax.bitwise_or(exponent, _integer(x, _pattern(_SHIFT))), np.float64)
    z = (mantissa - like(x, 1.0)) / (mantissa + like(x, 1.0))
    found = (shifted - like(x, _SHIFT + _BIAS)) + z * polynomial(_LOGARITHM, z * z)
    found = lax.select(lax.eq(x, like(x, math.inf)), x, found)
    return lax.select(lax.eq(x, like(x, 0.0)), like(x, -math.inf), found)


def _exp2(x: Any) -> Any:
    """The power of 2; beyond the range of float32 any number beyond it."""
    x = lax.clamp(like(x, -200.0), x, like(x, 200.0))
    whole = rounded(x)
    exponent = lax.bitcast_convert_type(whole + like(x, _SHIFT + _BIAS), np.int64)
    scale = lax.bitcast_convert_type(lax.shift_left(exponent, _integer(x, _MANTISSA)), np.float64)
    return polynomial(_POWER, x - whole) * scale


def _pow(x: Any, y: Any) -> Any:
    zero, one = like(x, 0.0), like(x, 1.0)
    logarithm = _log2(lax.abs(x))
    # Any power of 1 or -1 has the size 1, an infinite one, too.
    found = _exp2(lax.select(lax.eq(logarithm, zero), zero, y * logarithm))
    is_whole, half = lax.eq(rounded(y), y), y * like(x, 0.5)
    is_odd = is_whole & lax.ne(rounded(half), half)
    has_sign = lax.lt(lax.bitcast_convert_type(x, np.int64), _integer(x, 0))
    found = lax.select(has_sign & is_odd, -found, found)
    is_root = lax.lt(x, zero) & lax.gt(x, like(x, -math.inf)) & ~is_whole
    found = lax.select(is_root | lax.ne(x, x) | lax.ne(y, y), like(x, math.nan), found)
    return lax.select(lax.eq(y, zero) | lax.eq(x, one), one, found)


#: The lowerings by primitive.
LOWERINGS: dict[str, Callable[..., Any]] = {"pow": in_float64(_pow)}
