"""Small functions: powers of ten, angles in degrees, Huber losses, complete elliptic integrals."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from funcgrad.primitives import elementwise as e
from funcgrad.special.declare import function, negative

__all__ = [
    "cosdg", "cosm1", "cotdg", "ellipk", "ellipkm1", "exp10", "huber", "pseudo_huber", "radian", "sindg", "tandg",
]  # fmt: skip


def _turned(x: Any) -> tuple[Any, Any]:
    """The sine and cosine of degrees, by exact reduction to quarter turns."""
    quarters = e.stop_gradient(e.round_half_even(e.scale(x, 1 / 90)))
    rest = e.scale(e.sub(x, e.scale(quarters, 90)), math.pi / 180)
    sine, cosine = e.sin(rest), e.cos(rest)
    place = e.sub(quarters, e.scale(e.floor(e.scale(quarters, 0.25)), 4))
    odd = e.eq(e.rem(place, e.number(2, x)), e.number(1, x))

    def signed(value: Any, negative: Any) -> Any:
        return e.select(negative, e.neg(value), value)

    sine_negative = e.ge(place, e.number(2, x))
    cosine_negative = e.bitwise_or(e.eq(place, e.number(1, x)), e.eq(place, e.number(2, x)))
    return (
        signed(e.select(odd, cosine, sine), sine_negative),
        signed(e.select(odd, sine, cosine), cosine_negative),
    )


def _tandg(x: Any) -> Any:
    sine, cosine = _turned(x)
    return e.div(sine, cosine)


def _cotdg(x: Any) -> Any:
    sine, cosine = _turned(x)
    return e.div(cosine, sine)


def _cosm1(x: Any) -> Any:
    sine = e.sin(e.scale(x, 0.5))
    return e.scale(e.mul(sine, sine), -2)


def _huber(delta: Any, r: Any) -> Any:
    size = e.absolute(r)
    near = e.scale(e.mul(r, r), 0.5)
    far = e.mul(delta, e.sub(size, e.scale(delta, 0.5)))
    return e.select(negative(delta), e.number(np.inf, r), e.select(e.le(size, delta), near, far))


def _pseudo_huber(delta: Any, r: Any) -> Any:
    nothing = e.eq(delta, e.number(0, delta))
    scale = e.select(nothing, e.number(1, delta), delta)
    ratio = e.div(r, scale)
    square = e.mul(ratio, ratio)
    # sqrt(1 + s) - 1 would lose the digits of small s.
    rise = e.div(square, e.shift(e.sqrt(e.shift(square, 1)), 1))
    found = e.mul(e.mul(scale, scale), rise)
    return e.select(negative(delta), e.number(np.inf, r), e.select(nothing, e.number(0, r), found))


# From the smallest positive float64 the two means converge in eleven steps.
_STEPS = 12


def _ellipkm1(x: Any) -> Any:
    """Half a turn over twice the arithmetic-geometric mean of 1 and ``sqrt(x)``."""
    nothing = e.eq(x, e.number(0, x))
    arithmetic, geometric = e.number(1, x), e.sqrt(e.select(nothing, e.number(1, x), x))
    for _ in range(_STEPS):
        arithmetic, geometric = e.scale(e.add(arithmetic, geometric), 0.5), e.sqrt(e.mul(arithmetic, geometric))
    return e.select(nothing, e.number(np.inf, x), e.div(e.number(math.pi / 2, x), arithmetic))


exp10 = function("exp10", "x", lambda x: e.power(e.number(10, x), x), "``10**x``.", "exp10(2.0).round(4)", "100.0")
radian = function(
    "radian",
    "d m s",
    lambda d, m, s: e.scale(e.add(d, e.scale(e.add(m, e.scale(s, 1 / 60)), 1 / 60)), math.pi / 180),
    "An angle of ``d`` degrees, ``m`` minutes and ``s`` seconds.",
    "radian(180.0, 0.0, 0.0).round(4)",
    "3.1416",
)
sindg = function("sindg", "x", lambda x: _turned(x)[0], "The sine of ``x`` degrees.", "sindg(90.0)", "1.0")
cosdg = function("cosdg", "x", lambda x: _turned(x)[1], "The cosine of ``x`` degrees.", "cosdg(180.0)", "-1.0")
tandg = function("tandg", "x", _tandg, "The tangent of ``x`` degrees.", "tandg(180.0)", "0.0")
cotdg = function("cotdg", "x", _cotdg, "The cotangent of ``x`` degrees.", "cotdg(90.0)", "0.0")
cosm1 = function("cosm1", "x", _cosm1, "``cos(x) - 1``, exact near 0.", "cosm1(0.0)", "-0.0")
huber = function(
    "huber",
    "delta r",
    _huber,
    "``r**2 / 2`` up to ``delta`` on either side, and its tangents beyond; infinite for a negative ``delta``.",
    "huber(1.0, 3.0)",
    "2.5",
)
pseudo_huber = function(
    "pseudo_huber",
    "delta r",
    _pseudo_huber,
    "``delta**2 (sqrt(1 + (r / delta)**2) - 1)``: a ``huber`` that is smooth.",
    "pseudo_huber(1.0, 0.0)",
    "0.0",
)
ellipkm1 = function(
    "ellipkm1", "p", _ellipkm1, "``ellipk(1 - p)``, exact for a small ``p``.", "ellipkm1(1.0).round(4)", "1.5708"
)
ellipk = function(
    "ellipk",
    "m",
    lambda m: _ellipkm1(e.sub(e.number(1, m), m)),
    "The complete elliptic integral of the first kind, of the parameter ``m``.",
    "ellipk(0.0).round(4)",
    "1.5708",
)
