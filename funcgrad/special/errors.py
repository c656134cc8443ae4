"""The error function, its inverse and related functions, and the normal distribution."""

from __future__ import annotations

import math
from typing import Any

from funcgrad.core import dtypes
from funcgrad.core.tracing import type_of
from funcgrad.primitives import elementwise as e
from funcgrad.primitives.special import functions as p
from funcgrad.special.declare import function, operands

__all__ = [
    "erf", "erfc", "erfinv", "erfcinv", "erfcx", "dawsn", "wofz", "ndtr", "ndtri", "log_ndtr", "owens_t",
]  # fmt: skip


def erf(x: Any) -> Any:
    """The error function: ``2 / sqrt(pi)`` times the integral of ``exp(-t**2)`` from 0 to ``x``.

    Args:
        x: an array or number, which may be complex; integers are converted to float32.

    Returns:
        An array of the shape of ``x``, and of its dtype if that is floating or complex.

    Raises:
        TypeError: for operands that are not arrays.

    Example:
        >>> print(erf(0.0))
        0.0
    """
    (x,) = operands("erf", x, real=False)
    if not dtypes.is_complex(type_of(x).dtype):
        return e.erf(x)
    # By Faddeeva's function, which is small in the right half-plane; erf is odd.
    left = e.lt(e.real(x), e.number(0, e.real(x)))
    right = e.select(left, e.neg(x), x)
    found = e.sub(e.number(1, x), _complex_tail(right))
    return e.select(left, e.neg(found), found)


def _complex_tail(x: Any) -> Any:
    return e.mul(e.exp(e.neg(e.square(x))), p.wofz(e.mul(x, e.number(1j, x))))


def erfc(x: Any) -> Any:
    """``1 - erf(x)``, accurate where it is small.

    Args:
        x: an array or number, which may be complex; integers are converted to float32.

    Returns:
        An array of the shape of ``x``, and of its dtype if that is floating or complex.

    Raises:
        TypeError: for operands that are not arrays.

    Example:
        >>> print(erfc(0.0))
        1.0
    """
    (x,) = operands("erfc", x, real=False)
    if not dtypes.is_complex(type_of(x).dtype):
        return e.erfc(x)
    left = e.lt(e.real(x), e.number(0, e.real(x)))
    tail = _complex_tail(e.select(left, e.neg(x), x))
    return e.select(left, e.sub(e.number(2, x), tail), tail)


def erfcx(x: Any) -> Any:
    """``exp(x**2) erfc(x)``, without overflow for large ``x``.

    Args:
        x: an array or number, which may be complex; integers are converted to float32.

    Returns:
        An array of the shape of ``x``, and of its dtype if that is floating or complex.

    Raises:
        TypeError: for operands that are not arrays.

    Example:
        >>> print(erfcx(0.0))
        1.0
    """
    (x,) = operands("erfcx", x, real=False)
    if dtypes.is_complex(type_of(x).dtype):
        return p.wofz(e.mul(x, e.number(1j, x)))
    return p.erfcx(x)


def wofz(z: Any) -> Any:
    """Faddeeva's function, ``exp(-z**2) erfc(-1j z)``.

    Args:
        z: an array or number, real or complex.

    Returns:
        A complex array of the shape of ``z``, of the same precision, at least complex64.

    Raises:
        TypeError: for operands that are not arrays.

    Example:
        >>> print(wofz(0.0).real)
        1.0
    """
    (z,) = operands("wofz", z, real=False)
    if not dtypes.is_complex(type_of(z).dtype):
        z = e.cast(z, dtype=dtypes.complex_of(type_of(z).dtype))
    return p.wofz(z)


def _erfcinv(y: Any) -> Any:
    # The quantile is accurate for small y, where 1 - y would lose digits.
    return e.scale(p.ndtri(e.scale(y, 0.5)), -math.sqrt(0.5))


def _ndtr(x: Any) -> Any:
    return e.scale(e.erfc(e.scale(x, -math.sqrt(0.5))), 0.5)


erfinv = function("erfinv", "y", e.erf_inv, "The inverse of ``erf``.", "erfinv(0.0)", "0.0")
erfcinv = function("erfcinv", "y", _erfcinv, "The inverse of ``erfc``.", "erfcinv(0.5).round(4)", "0.4769")
dawsn = function(
    "dawsn", "x", p.dawsn, "``exp(-x**2)`` times the integral of ``exp(t**2)`` from 0.", "dawsn(0.0)", "0.0"
)
ndtr = function(
    "ndtr", "x", _ndtr, "The probability that a standard normal variable is below ``x``.", "ndtr(0.0)", "0.5"
)
ndtri = function("ndtri", "p", p.ndtri, "The inverse of ``ndtr``.", "ndtri(0.5)", "0.0")
log_ndtr = function(
    "log_ndtr",
    "x",
    p.log_ndtr,
    "The logarithm of ``ndtr``, exact far out too.",
    "log_ndtr(-20.0).round(4)",
    "-203.9172",
)
owens_t = function(
    "owens_t",
    "h a",
    p.owens_t,
    "Owen's T: the probability that of two standard normal variables one is above ``h`` and the other between 0 and "
    "``a`` times it.",
    "owens_t(0.0, 1.0)",
    "0.125",
)
