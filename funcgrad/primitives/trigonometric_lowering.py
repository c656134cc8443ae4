"""The lowering of trigonometric functions of float32 and shorter numbers on the CPU, in float64.

Sine and cosine take the fraction of a turn, ``x / (2 pi)`` modulo 1, as a sum of products with parts of ``1 / (2 pi)``
so short that each product is exact, after M. Payne and R. Hanek, "Radian reduction for trigonometric functions", ACM
SIGNUM Newsletter 18 (1983). A large number is a multiple of a power of two, whose own fraction of a turn has the parts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from jax import lax

from funcgrad.primitives.float64_lowering import in_float64, interpolated, like, polynomial, rounded

#: The bits of a part: a product with a float32 number, which has 24, fits into the 53 of float64.
_PART = 29
#: The powers of two. Numbers of at least ``2 ** (power + 23)`` are multiples of one; below ``2 ** (power + 58)`` the
#: product of the multiple with what two parts leave is less than a turn, so its error is less than 2 ** -53.
_POWERS = (0, 35, 70)
#: 1 / (2 pi), to more digits than these bits have.
_TURNS_IN_A_RADIAN = Fraction(
    "0.15915494309189533576888376337251436203445964574045644874766734405889679763422653509011380276625308595607284272675"
)


def _parts(power: int) -> list[float]:
    """The fraction of ``2 ** power / (2 pi)`` as a sum of two parts, the larger first, and what they leave."""
    rest = _TURNS_IN_A_RADIAN * 2**power % 1
    parts: list[float] = []
    for bits in (_PART, 2 * _PART):
        part = Fraction(math.floor(rest * 2**bits), 2**bits)
        parts.append(float(part))
        rest -= part
    return [*parts, float(rest)]


def _sine() -> list[float]:
    """The coefficients of a polynomial in ``t**2`` that is ``sin(pi t) / t`` for ``abs(t) <= 1 / 2``, up to 1e-10."""

    def ratio(z: np.ndarray) -> np.ndarray:
        t = np.sqrt(z)
        return np.sin(np.pi * t) / t

    return interpolated(ratio, 5, 0, 0.25)


def _arctangent() -> list[float]:
    """The coefficients of a polynomial in ``t**2`` that is ``atan(t) / t`` for ``0 <= t <= 1``, up to 1e-10."""

    def ratio(z: np.ndarray) -> np.ndarray:
        t = np.sqrt(z)
        return np.arctan(t) / t

    return interpolated(ratio, 13, 0, 1)


_PARTS = [_parts(power) for power in _POWERS]
_SINE = _sine()
_ARCTANGENT = _arctangent()


def _half_turns(x: Any) -> Any:
    """An angle of any size in half turns, modulo 2."""
    size = lax.abs(x)
    medium, large = (lax.ge(size, like(x, 2.0 ** (power + 23))) for power in _POWERS[1:])

    def by_size(values: Sequence[float]) -> Any:
        return lax.select(large, like(x, values[2]), lax.select(medium, like(x, values[1]), like(x, values[0])))

    multiple = x * by_size([2.0**-power for power in _POWERS])
    first, second, rest = (multiple * by_size(parts) for parts in zip(*_PARTS))
    turns = ((first - rounded(first)) + (second - rounded(second))) + rest
    return turns * like(x, 2.0)


def _sine_of(half_turns: Any) -> Any:
    """The sine of at most a quarter turn."""
    return half_turns * polynomial(_SINE, half_turns * half_turns)


def _negated_if_odd(count: Any, x: Any) -> Any:
    last_bit = lax.bitwise_and(lax.convert_element_type(count, np.int32), lax.full_like(count, 1, np.int32))
    return lax.select(lax.eq(last_bit, lax.full_like(last_bit, 0)), x, -x)


def _near_zero(x: Any, found: Any) -> Any:
    """The result, which is ``x`` for zeros, whose sign stays, and for denormal numbers, which XLA takes for zeros."""
    return lax.select(lax.eq(x, like(x, 0.0)), x, found)


def _sin(x: Any) -> Any:
    angle = _half_turns(x)
    count = rounded(angle)
    return _near_zero(x, _negated_if_odd(count, _sine_of(angle - count)))


def _cos(x: Any) -> Any:
    angle, quarter = _half_turns(x), like(x, 0.5)
    count = rounded(angle + quarter)
    return _negated_if_odd(count, _sine_of(angle - (count - quarter)))  # the difference is exact


def _tan(x: Any) -> Any:
    angle = _half_turns(x)
    rest = angle - rounded(angle)
    complement = _sine_of(like(x, 0.5) - lax.abs(rest))
    return _near_zero(x, _sine_of(rest) / complement)


def _atan2(y: Any, x: Any) -> Any:
    height, width = lax.abs(y), lax.abs(x)
    small, large = lax.min(height, width), lax.max(height, width)
    # Zeros have the angle of 0 / 1, infinities that of 1 / 1.
    large = lax.select(lax.eq(large, like(x, 0.0)), like(x, 1.0), large)
    ratio = lax.select(lax.eq(small, like(x, math.inf)), like(x, 1.0), small / large)
    angle = ratio * polynomial(_ARCTANGENT, ratio * ratio)
    angle = lax.select(lax.gt(height, width), like(x, math.pi / 2) - angle, angle)
    negative = lax.lt(lax.bitcast_convert_type(x, np.int64), lax.full_like(x, 0, np.int64))
    angle = lax.select(negative, like(x, math.pi) - angle, angle)
    signed = lax.bitwise_or(
        lax.bitcast_convert_type(angle, np.int64),
        lax.bitwise_and(lax.bitcast_convert_type(y, np.int64), lax.full_like(y, np.iinfo(np.int64).min, np.int64)),
    )
    return lax.bitcast_convert_type(signed, np.float64)


def _atan(x: Any) -> Any:
    return _near_zero(x, _atan2(x, like(x, 1.0)))


def _other_leg(x: Any) -> Any:
    one = like(x, 1.0)
    return lax.sqrt((one - x) * (one + x))


def _asin(x: Any) -> Any:
    return _near_zero(x, _atan2(x, _other_leg(x)))


def _acos(x: Any) -> Any:
    return _atan2(_other_leg(x), x)


#: The lowerings by primitive.
LOWERINGS: dict[str, Callable[..., Any]] = {
    "sin": in_float64(_sin),
    "cos": in_float64(_cos),
    "tan": in_float64(_tan),
    "asin": in_float64(_asin),
    "acos": in_float64(_acos),
    "atan": in_float64(_atan),
    "atan2": in_float64(_atan2),
}
