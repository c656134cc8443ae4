"""What lowerings of functions of float32 and shorter numbers on the CPU, which compute in float64, have in common.

XLA calls the C library for each element, which takes 2 to 12 times as long as polynomials in vector registers. The
result is rounded once, so it is nearly always the float32 number next to the exact value. ``interpreters/vectors.py``
says where they are used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jax import lax
from numpy.polynomial import Chebyshev, Polynomial


def like(x: Any, value: float) -> Any:
    """A number for each element of ``x``."""
    return lax.full_like(x, value)


def rounded(x: Any) -> Any:
    """The nearest integers."""
    return lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)


def interpolated(function: Callable[[np.ndarray], np.ndarray], degree: int, low: float, high: float) -> list[float]:
    """The coefficients of the polynomial that equals a function in Chebyshev's points of an interval."""
    return list(Chebyshev.interpolate(function, degree, (low, high)).convert(kind=Polynomial).coef)


def polynomial(coefficients: Sequence[float], x: Any) -> Any:
    """The value of a polynomial, by Horner's rule."""
    total = like(x, coefficients[-1])
    for c in reversed(coefficients[:-1]):
        total = total * x + like(x, c)
    return total


def once(result: Any, x: Any) -> Any:
    """The result divided by a one that XLA does not know. XLA does not repeat a division, so it stores the result if it
    has several users, instead of computing these many short operations for each. LLVM knows the one, and does not
    divide."""
    whole = np.dtype(f"int{8 * x.dtype.itemsize}")
    pattern = lax.bitcast_convert_type(x, whole)
    nothing = lax.shift_right_logical(pattern, lax.full_like(pattern, 8 * x.dtype.itemsize))
    one = lax.bitwise_or(nothing, lax.full_like(pattern, np.ones((), x.dtype).view(whole)))
    return result / lax.bitcast_convert_type(one, x.dtype)


def in_float64(compute: Callable[..., Any]) -> Callable[..., Any]:
    """The lowering for shorter numbers by a function of float64."""

    def lower(*xs: Any) -> Any:
        wide = [lax.convert_element_type(x, np.float64) for x in xs]
        return once(lax.convert_element_type(compute(*wide), xs[0].dtype), xs[0])

    return lower
