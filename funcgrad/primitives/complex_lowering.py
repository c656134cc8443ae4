"""Lowering of elementwise functions of complex numbers.

XLA's own lowerings lose the sign of a zero part, which selects the side of a branch cut, and return NaN at many
infinities. These follow C99, as NumPy and the array API standard do: mostly XLA's result with corrected signs and
values at infinity.

Sources: ISO/IEC 9899:2011, Annex G.6; W. Kahan, "Branch cuts for complex elementary functions" (1987).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from jax import lax

from funcgrad.core import dtypes

Function = Callable[[Any], Any]

#: Above it ``exp(-2 x)`` is negligible against 1, in float64 too.
_LARGE = 20.0


def _parts(z: Any) -> tuple[Any, Any]:
    return lax.real(z), lax.imag(z)


# XLA operations only: functions of ``jax.numpy`` would be emitted as called functions.


def where(condition: Any, x: Any, y: Any) -> Any:
    """``lax.select`` with scalars."""
    like = x if hasattr(x, "dtype") else y
    return lax.select(condition, *[v if hasattr(v, "dtype") else lax.full_like(like, v) for v in (x, y)])


def _is(x: Any, value: float) -> Any:
    return lax.eq(x, lax.full_like(x, value))


def _is_nan(x: Any) -> Any:
    return lax.ne(x, x)


def _is_infinite(x: Any) -> Any:
    return _is(lax.abs(x), np.inf)


def _is_above(x: Any, value: float) -> Any:
    return lax.gt(x, lax.full_like(x, value))


def _not_finite(x: Any) -> Any:
    return lax.bitwise_not(lax.is_finite(x))


def _signed(x: Any, like: Any) -> Any:
    """``x`` with the sign of ``like``, including zeros and NaNs."""
    length = lax.abs(x if hasattr(x, "dtype") else lax.full_like(like, x))
    bits = lax.bitcast_convert_type(like, np.dtype(f"int{8 * like.dtype.itemsize}"))
    return lax.select(lax.lt(bits, lax.full_like(bits, 0)), lax.neg(length), length)


def _turned(f: Function) -> Function:
    """``-i f(i z)``: sine from hyperbolic sine, for example."""

    def turned(z: Any) -> Any:
        x, y = _parts(z)
        a, b = _parts(f(lax.complex(-y, x)))
        return lax.complex(b, -a)

    return turned


# ---------------------------------------------------------------- roots, exponentials, logarithms


def sqrt(z: Any) -> Any:
    x, y = _parts(z)
    re, im = _parts(lax.sqrt(z))
    re, im = lax.abs(re), _signed(im, y)
    nothing = where(_is_nan(y), y, 0.0)
    re = where(_is(x, np.inf), np.inf, where(_is(x, -np.inf), nothing, re))
    im = where(_is(x, np.inf), _signed(nothing, y), where(_is(x, -np.inf), _signed(np.inf, y), im))
    upright = _is_infinite(y)
    return lax.complex(where(upright, np.inf, re), where(upright, y, im))


def rsqrt(z: Any) -> Any:
    x, y = _parts(sqrt(z))
    length = x * x + y * y  # the root has the square root's magnitude, so its square cannot overflow
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
    """``found``, with the real function's value on the real axis, where the angle is zero."""
    re, im = _parts(found)
    aimless = _is_infinite(x) & _not_finite(y)
    re = where(_is(y, 0), on_axis, where(aimless, where(_is_above(x, 0), lax.full_like(x, np.inf), lowest), re))
    im = where(_is(y, 0), y, where(aimless & _is_above(-x, 0), _signed(0.0, y), im))
    return lax.complex(re, im)


def log(z: Any) -> Any:
    x, y = _parts(z)
    re, im = _parts(lax.log(z))
    return lax.complex(where(_is_infinite(x) | _is_infinite(y), np.inf, re), im)


def log1p(z: Any) -> Any:
    x, y = _parts(z)
    re, im = _parts(lax.log1p(z))
    re = where(_is(x, -1), lax.log(lax.abs(y)), re)
    return lax.complex(where(_is_infinite(x) | _is_infinite(y), np.inf, re), im)


# ---------------------------------------------------------------- hyperbolic and circular functions


def _hyperbolic(x: Any) -> tuple[Any, Any, Any]:
    """``sinh`` and ``cosh`` divided by a scale: their product with a small factor may be finite where they overflow."""
    half = lax.exp(lax.abs(x) / 2)
    large = _is_above(lax.abs(x), _LARGE)
    sinh = where(large, _signed(half / 2, x), lax.sinh(x))
    cosh = where(large, half / 2, lax.cosh(x))
    return sinh, cosh, where(large, half, 1.0)


def sinh(z: Any) -> Any:
    x, y = _parts(z)
    s, c, scale = _hyperbolic(x)
    re, im = s * lax.cos(y) * scale, c * lax.sin(y) * scale
    re = where(_not_finite(y) & (_is(x, 0) | _is_infinite(x)), x, re)
    return lax.complex(re, where(_is(y, 0), y, im))


def cosh(z: Any) -> Any:
    x, y = _parts(z)
    s, c, scale = _hyperbolic(x)
    re, im = c * lax.cos(y) * scale, s * lax.sin(y) * scale
    re = where(_is_infinite(x) & _not_finite(y), np.inf, re)
    im = where(_is(y, 0), _signed(1.0, x) * y, where(_is(x, 0) & _not_finite(y), x, im))
    return lax.complex(re, im)


def tanh(z: Any) -> Any:
    x, y = _parts(z)
    re, im = _parts(lax.tanh(z))
    far = _is_infinite(x)
    re = where(_is(x, 0), x, where(far, _signed(1.0, x), re))
    angle = where(lax.is_finite(y), lax.sin(2 * y), y)
    im = where(_is(y, 0), y, where(far, _signed(0.0, angle), im))
    return lax.complex(re, im)


sin, tan = _turned(sinh), _turned(tanh)


def cos(z: Any) -> Any:
    x, y = _parts(z)
    return cosh(lax.complex(-y, x))


# ---------------------------------------------------------------- their inverses


def _inverse(z: Any, found: Any) -> tuple[Any, Any, Any, Any]:
    """The parts of ``z`` and of ``found``: NaN if one part of ``z`` is NaN and the other finite."""
    (x, y), (re, im) = _parts(z), _parts(found)
    lost = (_is_nan(x) & lax.is_finite(y)) | (_is_nan(y) & lax.is_finite(x))
    return x, y, where(lost, np.nan, re), where(lost, np.nan, im)


def asinh(z: Any) -> Any:
    x, y, re, im = _inverse(z, lax.asinh(z))
    return lax.complex(_signed(re, x), where(_is_nan(x) & _is(y, 0), y, _signed(im, y)))


def acos(z: Any) -> Any:
    x, y, re, im = _inverse(z, lax.acos(z))
    right = _is_nan(y) & _is(x, 0)
    return lax.complex(where(right, math.pi / 2, lax.abs(re)), _signed(im, -y))


def acosh(z: Any) -> Any:
    x, y, re, im = _inverse(z, lax.acosh(z))
    right = _is_nan(y) & _is(x, 0)
    return lax.complex(lax.abs(re), where(right, math.pi / 2, _signed(im, y)))


def atanh(z: Any) -> Any:
    x, y, re, im = _inverse(z, lax.atanh(z))
    # Above and below the poles, where the squared distance may underflow.
    near = lax.log(4 + y * y) / 4 - lax.log(lax.abs(y)) / 2
    re = where(_is(lax.abs(x), 1) & _is_above(-lax.abs(y), -1), near, re)
    im = where(_is_nan(y), y, im)
    return lax.complex(where(_is(x, 0) & _is_nan(y), x, _signed(re, x)), _signed(im, y))


asin, atan = _turned(asinh), _turned(atanh)


# ---------------------------------------------------------------- lookup by name

_LOWERINGS: dict[str, Function] = {
    "acos": acos, "acosh": acosh, "asin": asin, "asinh": asinh, "atan": atan, "atanh": atanh, "cos": cos, "cosh": cosh,
    "exp": exp, "exp2": exp2, "expm1": expm1, "log": log, "log1p": log1p, "rsqrt": rsqrt, "sin": sin, "sinh": sinh,
    "sqrt": sqrt, "tan": tan, "tanh": tanh,
}  # fmt: skip


def of_both_kinds(name: str, lower: Callable[..., Any]) -> Callable[..., Any]:
    """``lower``, with this module's lowering of that name for complex numbers, if there is one."""
    own = _LOWERINGS.get(name)
    if own is None:
        return lower
    return lambda x: own(x) if dtypes.is_complex(x.dtype) else lower(x)
