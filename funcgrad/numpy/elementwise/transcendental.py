"""Exponentials, logarithms, roots and trigonometry."""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.numpy.elementwise.declared import binary, unary
from funcgrad.numpy.elementwise.logic import isinf
from funcgrad.numpy.promotion import asoperand, promoted
from funcgrad.primitives import elementwise as p
from funcgrad.runtime.call_cache import composite

exp = unary(p.exp, "exp", "Exponential.", "exp(0.0)", "1.0", floating=True)
exp2 = unary(p.exp2, "exp2", "Power of two.", "exp2(0.0)", "1.0", floating=True)
expm1 = unary(p.expm1, "expm1", "Exponential less one, exact near 0.", "expm1(0.0)", "0.0", floating=True)
log = unary(p.log, "log", "Natural logarithm.", "log(1.0)", "0.0", floating=True)
log1p = unary(p.log1p, "log1p", "Logarithm of one more, exact near 0.", "log1p(0.0)", "0.0", floating=True)
sqrt = unary(p.sqrt, "sqrt", "Square root.", "sqrt(4.0)", "2.0", floating=True)
cbrt = unary(p.cbrt, "cbrt", "Cube root.", "cbrt(8.0)", "2.0", floating=True)
rsqrt = unary(p.rsqrt, "rsqrt", "Reciprocal square root.", "rsqrt(4.0)", "0.5", floating=True)
sin = unary(p.sin, "sin", "Sine of radians.", "sin(0.0)", "0.0", floating=True)
cos = unary(p.cos, "cos", "Cosine of radians.", "cos(0.0)", "1.0", floating=True)
tan = unary(p.tan, "tan", "Tangent of radians.", "tan(0.0)", "0.0", floating=True)
asin = arcsin = unary(p.asin, "arcsin", "Inverse sine, in radians.", "arcsin(0.0)", "0.0", floating=True)
acos = arccos = unary(p.acos, "arccos", "Inverse cosine, in radians.", "arccos(1.0)", "0.0", floating=True)
atan = arctan = unary(p.atan, "arctan", "Inverse tangent, in radians.", "arctan(0.0)", "0.0", floating=True)
arctan2 = atan2 = binary(
    p.atan2, "arctan2", "The angle of the point (y, x), in radians.", "arctan2(0.0, 1.0)", "0.0", floating=True
)
sinh = unary(p.sinh, "sinh", "Hyperbolic sine.", "sinh(0.0)", "0.0", floating=True)
cosh = unary(p.cosh, "cosh", "Hyperbolic cosine.", "cosh(0.0)", "1.0", floating=True)
tanh = unary(p.tanh, "tanh", "Hyperbolic tangent.", "tanh(0.0)", "0.0", floating=True)
asinh = arcsinh = unary(p.asinh, "arcsinh", "Inverse hyperbolic sine.", "arcsinh(0.0)", "0.0", floating=True)
acosh = arccosh = unary(p.acosh, "arccosh", "Inverse hyperbolic cosine.", "arccosh(1.0)", "0.0", floating=True)
atanh = arctanh = unary(p.atanh, "arctanh", "Inverse hyperbolic tangent.", "arctanh(0.0)", "0.0", floating=True)


@composite
def hypot(x: Any, y: Any, /) -> Any:
    """``sqrt(x**2 + y**2)`` without overflow.

    Args:
        x, y: real arrays or numbers that broadcast together.

    Returns:
        An array of the broadcast shape, of the promoted dtype; float32 of bools and integers.

    Raises:
        TypeError: for operands that are not arrays, and complex numbers.
        ValueError: for shapes that do not broadcast.

    Example:
        >>> print(hypot(3.0, 4.0))
        5.0
    """
    x, y = promoted(asoperand(x, "hypot"), asoperand(y, "hypot"), floating=True)
    size = p.stop_gradient(p.maximum(p.absolute(x), p.absolute(y)))
    unit = p.select(p.bitwise_and(p.gt(size, p.number(0, size)), p.is_finite(size)), size, p.number(1, size))
    length = p.mul(p.sqrt(p.add(p.square(p.div(x, unit)), p.square(p.div(y, unit)))), unit)
    # Infinite if one side is, even if the other is NaN.
    infinite = p.bitwise_or(isinf(x), isinf(y))
    return p.select(infinite, p.number(np.inf, length), length)


@composite
def sinc(x: Any, /) -> Any:
    """``sin(pi x) / (pi x)``, 1 at 0.

    Args:
        x: an array or number.

    Returns:
        An array of the shape of ``x``, of the dtype of ``x``; float32 of bools and integers.

    Raises:
        TypeError: for operands that are not arrays.

    Example:
        >>> print(sinc(0.0))
        1.0
    """
    (x,) = promoted(asoperand(x, "sinc"), floating=True)
    zero = p.eq(x, p.number(0, x))
    angle = p.scale(x, np.pi)
    # A second-order Taylor polynomial at 0, for the first two derivatives.
    near = p.sub(p.number(1, x), p.scale(p.square(angle), 1 / 6))
    safe = p.select(zero, p.number(1, x), angle)
    return p.select(zero, near, p.div(p.sin(safe), safe))


__all__ = [
    "acos", "acosh", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh", "asin", "asinh",
    "atan", "atan2", "atanh", "cbrt", "cos", "cosh", "exp", "exp2", "expm1", "hypot", "log", "log1p", "rsqrt", "sin",
    "sinc", "sinh", "sqrt", "tan", "tanh",
]  # fmt: skip
