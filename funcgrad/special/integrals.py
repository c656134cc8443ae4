"""Functions defined by integrals and series: exponential, sine and Fresnel integrals, dilogarithm, hypergeometric."""

from __future__ import annotations

from typing import Any

from funcgrad.arguments import validate
from funcgrad.primitives import elementwise as e
from funcgrad.primitives.special import functions as p
from funcgrad.special.declare import function, operands

__all__ = ["expi", "exp1", "expn", "sici", "fresnel", "spence", "hyp1f1", "hyp2f1"]

expi = function(
    "expi", "x", p.expi, "The exponential integral: of ``exp(t) / t`` up to ``x``.", "expi(1.0).round(4)", "1.8951"
)
exp1 = function(
    "exp1",
    "x",
    lambda x: p.expn(x, order=1),
    "The exponential integral: of ``exp(-t) / t`` from ``x`` on.",
    "exp1(1.0).round(4)",
    "0.2194",
)
spence = function(
    "spence",
    "z",
    p.spence,
    "The dilogarithm: the integral of ``log(t) / (1 - t)`` from 1 to ``z``.",
    "spence(1.0)",
    "0.0",
)


def expn(n: int, x: Any) -> Any:
    """The integral of ``exp(-x t) / t**n`` over ``t`` from 1 to infinity.

    Args:
        n: a non-negative integer, static under ``jit``.
        x: a real array or number; integers are converted to float32.

    Returns:
        A floating array of the shape of ``x``, and of its dtype if that is floating.

    Raises:
        TypeError: for an ``n`` that is not an integer, for operands that are not arrays, and for complex ``x``.
        ValueError: for a negative ``n``.

    Example:
        >>> print(expn(2, 0.0))
        1.0
    """
    return p.expn(*operands("expn", x), order=validate.integer("expn", "n", n, least=0))


def sici(x: Any) -> tuple[Any, Any]:
    """The sine and the cosine integral: of ``sin(t) / t`` from 0 to ``x``, and of ``-cos(t) / t`` from ``x`` to
    infinity.

    Args:
        x: a real array or number; integers are converted to float32.

    Returns:
        Two floating arrays of the shape of ``x``, and of its dtype if that is floating.

    Raises:
        TypeError: for operands that are not arrays, and for complex ``x``.

    Example:
        >>> print(*[y.round(4) for y in sici(1.0)])
        0.9461 0.3374
    """
    (x,) = operands("sici", x)
    return p.sine_integral(x), p.cosine_integral(x)


def fresnel(x: Any) -> tuple[Any, Any]:
    """Fresnel integrals: of the sine and the cosine of ``pi t**2 / 2`` from 0 to ``x``.

    Args:
        x: a real array or number; integers are converted to float32.

    Returns:
        Two floating arrays of the shape of ``x``, and of its dtype if that is floating.

    Raises:
        TypeError: for operands that are not arrays, and for complex ``x``.

    Example:
        >>> print(*[y.round(4) for y in fresnel(1.0)])
        0.4383 0.7799
    """
    (x,) = operands("fresnel", x)
    return p.fresnel_s(x), p.fresnel_c(x)


def _hyp1f1(a: Any, b: Any, x: Any) -> Any:
    # By Kummer's transformation the terms have one sign for negative x too.
    negative = e.lt(x, e.number(0, x))
    series = p.hyp1f1(e.select(negative, e.sub(b, a), a), b, e.select(negative, e.neg(x), x), orders=(0, 0, 0))
    return e.mul(series, e.exp(e.select(negative, x, e.number(0, x))))


def _hyp2f1(a: Any, b: Any, c: Any, x: Any) -> Any:
    # Pfaff's transformation maps negative x to the interval from 0 to 1.
    negative = e.lt(x, e.number(0, x))
    inside = e.select(negative, x, e.number(0, x))
    other = e.div(inside, e.shift(inside, -1))
    series = p.hyp2f1(a, e.select(negative, e.sub(c, b), b), c, e.select(negative, other, x), orders=(0, 0, 0, 0))
    return e.mul(series, e.exp(e.neg(e.mul(a, e.log1p(e.neg(inside))))))


hyp1f1 = function(
    "hyp1f1",
    "a b x",
    _hyp1f1,
    "Kummer's confluent hypergeometric function.\n\nOf its derivatives by ``a`` and ``b`` there are two in all.",
    "hyp1f1(1.0, 1.0, 0.0)",
    "1.0",
)
hyp2f1 = function(
    "hyp2f1",
    "a b c x",
    _hyp2f1,
    "Gauss's hypergeometric function, for ``x`` below 1.\n\nOf its derivatives by ``a``, ``b`` and ``c`` there are two "
    "in all.",
    "hyp2f1(1.0, 1.0, 1.0, 0.0)",
    "1.0",
)
