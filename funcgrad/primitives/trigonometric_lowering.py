"""The lowering of trigonometric functions of float32 and shorter numbers on the CPU, in float64.

XLA calls the C library for each element, which takes 5 to 12 times as long as these polynomials in vector registers.
The result is rounded once, so it is nearly always the float32 number next to the exact value.
``interpreters/vectors.py`` says where they are used.

Sine and cosine take the fraction of a turn, ``x / (2 pi)`` modulo 1, as a sum of products with parts of ``1 / (2 pi)``
so short that each product is exact, after M. Payne and R. Hanek, "Radian reduction for trigonometric functions", ACM
SIGNUM Newsletter 18 (1983).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from jax import lax
from numpy.polynomial import Chebyshev, Polynomial

#: The bits of a part: a product with a float32 number, which has 24, fits into the 53 of float64. The parts reach as
#: far as the largest number's exponent, 128, and the bits that are lost near a multiple of a quarter turn.
_PART, _BITS = 29, 200
#: 1 / (2 pi), to more digits than these bits have.
_TURNS_IN_A_RADIAN = Fraction(
    "0.15915494309189533576888376337251436203445964574045644874766734405889679763422653509011380276625308595607284272675"
)


def _parts() -> list[float]:
    """1 / (2 pi) as a sum of parts of few bits, the largest first."""
    parts: list[float] = []
    rest = _TURNS_IN_A_RADIAN
    for bits in range(_PART + 2, _BITS, _PART):  # the number begins two bits after the point
        part = Fraction(math.floor(rest * 2**bits), 2**bits)
        parts.append(float(part))
        rest -= part
    return parts


def _arctangent() -> list[float]:
    """The coefficients of a polynomial in ``t**2`` that is ``atan(t) / t`` for ``0 <= t <= 1``, up to 1e-10."""

    def ratio(z: np.ndarray) -> np.ndarray:
        t = np.sqrt(z)
        return np.arctan(t) / t

    return list(Chebyshev.interpolate(ratio, 13, (0, 1)).convert(kind=Polynomial).coef)


_PARTS = _parts()
#: The Taylor series of the sine and the cosine, up to a quarter of pi.
_SINE = [(-1) ** k / math.factorial(2 * k + 1) for k in range(5)]
_COSINE = [(-1) ** k / math.factorial(2 * k) for k in range(6)]
_ARCTANGENT = _arctangent()


def _like(x: Any, value: float) -> Any:
    return lax.full_like(x, value)


def _polynomial(coefficients: Sequence[float], x: Any) -> Any:
    total = _like(x, coefficients[-1])
    for c in reversed(coefficients[:-1]):
        total = total * x + _like(x, c)
    return total


def _quarters(x: Any) -> tuple[Any, Any, Any]:
    """The number of quarter turns next to an angle of any size, modulo 4; and the sine and cosine of the rest."""
    rounded = lambda t: lax.round(t, lax.RoundingMethod.TO_NEAREST_EVEN)
    turns = _like(x, 0.0)
    for part in _PARTS:
        product = x * _like(x, part)
        turns = turns + (product - rounded(product))
    quarters = rounded(turns * _like(x, 4.0))
    rest = (turns - quarters * _like(x, 0.25)) * _like(x, 2 * math.pi)
    square = rest * rest
    return lax.convert_element_type(quarters, np.int32), rest * _polynomial(_SINE, square), _polynomial(_COSINE, square)


def _bit(quarters: Any, bit: int) -> Any:
    return lax.ne(lax.bitwise_and(quarters, lax.full_like(quarters, bit)), lax.full_like(quarters, 0))


def _turned(quarters: Any, sine: Any, cosine: Any) -> Any:
    """The sine after some quarter turns."""
    found = lax.select(_bit(quarters, 1), cosine, sine)
    return lax.select(_bit(quarters, 2), -found, found)


def _near_zero(x: Any, found: Any) -> Any:
    """The result, which is ``x`` for zeros, whose sign stays, and for denormal numbers, which XLA takes for zeros."""
    return lax.select(lax.eq(x, _like(x, 0.0)), x, found)


def _sin(x: Any) -> Any:
    return _near_zero(x, _turned(*_quarters(x)))


def _cos(x: Any) -> Any:
    quarters, sine, cosine = _quarters(x)
    return _turned(quarters + lax.full_like(quarters, 1), sine, cosine)


def _tan(x: Any) -> Any:
    quarters, sine, cosine = _quarters(x)
    odd = _bit(quarters, 1)
    return _near_zero(x, lax.select(odd, -cosine, sine) / lax.select(odd, sine, cosine))


def _atan2(y: Any, x: Any) -> Any:
    height, width = lax.abs(y), lax.abs(x)
    small, large = lax.min(height, width), lax.max(height, width)
    # Zeros have the angle of 0 / 1, infinities that of 1 / 1.
    large = lax.select(lax.eq(large, _like(x, 0.0)), _like(x, 1.0), large)
    ratio = lax.select(lax.eq(small, _like(x, math.inf)), _like(x, 1.0), small / large)
    angle = ratio * _polynomial(_ARCTANGENT, ratio * ratio)
    angle = lax.select(lax.gt(height, width), _like(x, math.pi / 2) - angle, angle)
    negative = lax.lt(lax.bitcast_convert_type(x, np.int64), lax.full_like(x, 0, np.int64))
    angle = lax.select(negative, _like(x, math.pi) - angle, angle)
    signed = lax.bitwise_or(
        lax.bitcast_convert_type(angle, np.int64),
        lax.bitwise_and(lax.bitcast_convert_type(y, np.int64), lax.full_like(y, np.iinfo(np.int64).min, np.int64)),
    )
    return lax.bitcast_convert_type(signed, np.float64)


def _atan(x: Any) -> Any:
    return _near_zero(x, _atan2(x, _like(x, 1.0)))


def _other_leg(x: Any) -> Any:
    one = _like(x, 1.0)
    return lax.sqrt((one - x) * (one + x))


def _asin(x: Any) -> Any:
    return _near_zero(x, _atan2(x, _other_leg(x)))


def _acos(x: Any) -> Any:
    return _atan2(_other_leg(x), x)


def _in_float64(compute: Callable[..., Any]) -> Callable[..., Any]:
    """The lowering for shorter numbers by a function of float64."""

    def lower(*xs: Any) -> Any:
        wide = [lax.convert_element_type(x, np.float64) for x in xs]
        return lax.convert_element_type(compute(*wide), xs[0].dtype)

    return lower


#: The lowerings by primitive.
LOWERINGS: dict[str, Callable[..., Any]] = {
    "sin": _in_float64(_sin),
    "cos": _in_float64(_cos),
    "tan": _in_float64(_tan),
    "asin": _in_float64(_asin),
    "acos": _in_float64(_acos),
    "atan": _in_float64(_atan),
    "atan2": _in_float64(_atan2),
}
