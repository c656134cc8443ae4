"""How elementwise functions of complex numbers are lowered.

XLA's own are right where numbers are ordinary. They lose the sign of a part that is zero, which says on which side of a
branch cut a number is, and are NaN at many infinities. Here both are as in C99, which NumPy and the array API standard
follow: mostly XLA's result with its signs and its values at infinity put right.

Sources: ISO/IEC 9899:2011, Annex G.6; W. Kahan, "Branch cuts for complex elementary functions" (1987).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import lax

from funcgrad import dtypes

Function = Callable[[Any], Any]

#: Beyond it ``exp(-2 x)`` is nothing beside 1, in float64 too.
_LARGE = 20.0


def _parts(z: Any) -> tuple[Any, Any]:
    return lax.real(z), lax.imag(z)


def _turned(f: Function) -> Function:
    """``-i f(i z)``: what makes sine of hyperbolic sine, and so on."""

    def turned(z: Any) -> Any:
        x, y = _parts(z)
        a, b = _parts(f(lax.complex(-y, x)))
        return lax.complex(b, -a)

    return turned


# ---------------------------------------------------------------- roots, exponentials, logarithms


def sqrt(z: Any) -> Any:
    x, y = _parts(z)
    re, im = _parts(lax.sqrt(z))
    re, im = jnp.abs(re), jnp.copysign(im, y)
    nothing = jnp.where(jnp.isnan(y), jnp.nan, 0.0)
    re = jnp.where(x == jnp.inf, jnp.inf, jnp.where(x == -jnp.inf, nothing, re))
    im = jnp.where(x == jnp.inf, jnp.copysign(nothing, y), jnp.where(x == -jnp.inf, jnp.copysign(jnp.inf, y), im))
    upright = jnp.isinf(y)
    return lax.complex(jnp.where(upright, jnp.inf, re), jnp.where(upright, y, im))


def rsqrt(z: Any) -> Any:
    x, y = _parts(sqrt(z))
    length = x * x + y * y  # a root's square is as large as the number
    return lax.complex(x / length, -y / length)


def exp(z: Any) -> Any:
    x, y = _parts(z)
    return _exponential(lax.exp(x), lax.exp(z), x, y, 0.0)


def exp2(z: Any) -> Any:
    x, y = _parts(z)
    return exp(lax.complex(x * math.log(2), y * math.log(2)))


def expm1(z: Any) -> Any:
    x, y = _parts(z)
    return _exponential(lax.expm1(x), lax.expm1(z), x, y, -1.0)


def _exponential(on_axis: Any, found: Any, x: Any, y: Any, lowest: float) -> Any:
    """``found`` with what it is on the real axis, and where the angle is none: nothing is turned there."""
    re, im = _parts(found)
    aimless = jnp.isinf(x) & ~jnp.isfinite(y)
    re = jnp.where(y == 0, on_axis, jnp.where(aimless, jnp.where(x > 0, jnp.inf, lowest), re))
    im = jnp.where(y == 0, y, jnp.where(aimless & (x < 0), jnp.copysign(0.0, y), im))
    return lax.complex(re, im)


def log(z: Any) -> Any:
    x, y = _parts(z)
    re, im = _parts(lax.log(z))
    return lax.complex(jnp.where(jnp.isinf(x) | jnp.isinf(y), jnp.inf, re), im)


def log1p(z: Any) -> Any:
    x, y = _parts(z)
    re, im = _parts(lax.log1p(z))
    re = jnp.where(x == -1, lax.log(jnp.abs(y)), re)
    return lax.complex(jnp.where(jnp.isinf(x) | jnp.isinf(y), jnp.inf, re), im)


# ---------------------------------------------------------------- hyperbolic and circular functions


def _hyperbolic(x: Any) -> tuple[Any, Any, Any]:
    """``sinh`` and ``cosh``, both over a scale: their product with something small may be finite where they are not."""
    half = lax.exp(jnp.abs(x) / 2)
    large = jnp.abs(x) > _LARGE
    sinh = jnp.where(large, jnp.copysign(half / 2, x), lax.sinh(x))
    cosh = jnp.where(large, half / 2, lax.cosh(x))
    return sinh, cosh, jnp.where(large, half, 1.0)


def sinh(z: Any) -> Any:
    x, y = _parts(z)
    s, c, scale = _hyperbolic(x)
    re, im = s * lax.cos(y) * scale, c * lax.sin(y) * scale
    re = jnp.where(~jnp.isfinite(y) & ((x == 0) | jnp.isinf(x)), x, re)
    return lax.complex(re, jnp.where(y == 0, y, im))


def cosh(z: Any) -> Any:
    x, y = _parts(z)
    s, c, scale = _hyperbolic(x)
    re, im = c * lax.cos(y) * scale, s * lax.sin(y) * scale
    re = jnp.where(jnp.isinf(x) & ~jnp.isfinite(y), jnp.inf, re)
    im = jnp.where(y == 0, jnp.copysign(1.0, x) * y, jnp.where((x == 0) & ~jnp.isfinite(y), x, im))
    return lax.complex(re, im)


def tanh(z: Any) -> Any:
    x, y = _parts(z)
    re, im = _parts(lax.tanh(z))
    far = jnp.isinf(x)
    re = jnp.where(x == 0, x, jnp.where(far, jnp.copysign(1.0, x), re))
    angle = jnp.where(jnp.isfinite(y), lax.sin(2 * y), y)
    im = jnp.where(y == 0, y, jnp.where(far, jnp.copysign(0.0, angle), im))
    return lax.complex(re, im)


sin, tan = _turned(sinh), _turned(tanh)


def cos(z: Any) -> Any:
    x, y = _parts(z)
    return cosh(lax.complex(-y, x))


# ---------------------------------------------------------------- their inverses


def _inverse(z: Any, found: Any) -> tuple[Any, Any, Any, Any]:
    """The parts of ``z`` and of ``found``: no numbers where one part of ``z`` is none and the other finite."""
    (x, y), (re, im) = _parts(z), _parts(found)
    lost = (jnp.isnan(x) & jnp.isfinite(y)) | (jnp.isnan(y) & jnp.isfinite(x))
    return x, y, jnp.where(lost, jnp.nan, re), jnp.where(lost, jnp.nan, im)


def asinh(z: Any) -> Any:
    x, y, re, im = _inverse(z, lax.asinh(z))
    return lax.complex(jnp.copysign(re, x), jnp.where(jnp.isnan(x) & (y == 0), y, jnp.copysign(im, y)))


def acos(z: Any) -> Any:
    x, y, re, im = _inverse(z, lax.acos(z))
    right = jnp.isnan(y) & (x == 0)
    return lax.complex(jnp.where(right, math.pi / 2, jnp.abs(re)), jnp.copysign(im, -y))


def acosh(z: Any) -> Any:
    x, y, re, im = _inverse(z, lax.acosh(z))
    right = jnp.isnan(y) & (x == 0)
    return lax.complex(jnp.abs(re), jnp.where(right, math.pi / 2, jnp.copysign(im, y)))


def atanh(z: Any) -> Any:
    x, y, re, im = _inverse(z, lax.atanh(z))
    # Above and below the poles, where the square of the distance may be too small for a number.
    near = lax.log(4 + y * y) / 4 - lax.log(jnp.abs(y)) / 2
    re = jnp.where((jnp.abs(x) == 1) & (jnp.abs(y) < 1), near, re)
    im = jnp.where(jnp.isnan(y), y, im)
    return lax.complex(jnp.where((x == 0) & jnp.isnan(y), x, jnp.copysign(re, x)), jnp.copysign(im, y))


asin, atan = _turned(asinh), _turned(atanh)


# ---------------------------------------------------------------- which function has which

_LOWERINGS: dict[str, Function] = {
    "acos": acos, "acosh": acosh, "asin": asin, "asinh": asinh, "atan": atan, "atanh": atanh, "cos": cos, "cosh": cosh,
    "exp": exp, "exp2": exp2, "expm1": expm1, "log": log, "log1p": log1p, "rsqrt": rsqrt, "sin": sin, "sinh": sinh,
    "sqrt": sqrt, "tan": tan, "tanh": tanh,
}  # fmt: skip


def of_both_kinds(name: str, lower: Callable[..., Any]) -> Callable[..., Any]:
    """``lower``, and for complex numbers what is here under that name, if anything is."""
    own = _LOWERINGS.get(name)
    if own is None:
        return lower
    return lambda x: own(x) if dtypes.is_complex(x.dtype) else lower(x)
