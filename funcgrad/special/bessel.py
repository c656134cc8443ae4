"""Bessel and Airy functions."""

from __future__ import annotations

from typing import Any

from funcgrad.arguments import validate
from funcgrad.primitives import elementwise as e
from funcgrad.primitives.special import functions as p
from funcgrad.special.declare import function, operands

__all__ = [
    "j0", "j1", "jn", "y0", "y1", "yn", "i0", "i0e", "i1", "i1e", "iv", "ive", "k0", "k0e", "k1", "k1e",
    "airy_ai", "airy_ai_prime",
]  # fmt: skip

_FIRST, _SECOND = "The Bessel function of the first kind", "The Bessel function of the second kind"
_GROWING, _DYING = "The modified Bessel function of the first kind", "The modified Bessel function of the second kind"

j0 = function("j0", "x", p.j0, f"{_FIRST} of order 0.", "j0(1.0).round(4)", "0.7652")
j1 = function("j1", "x", p.j1, f"{_FIRST} of order 1.", "j1(1.0).round(4)", "0.4401")
y0 = function("y0", "x", p.y0, f"{_SECOND} of order 0.", "y0(1.0).round(4)", "0.0883")
y1 = function("y1", "x", p.y1, f"{_SECOND} of order 1.", "y1(1.0).round(4)", "-0.7812")
i0 = function("i0", "x", p.i0, f"{_GROWING} of order 0.", "i0(0.0)", "1.0")
i0e = function("i0e", "x", p.i0e, "``exp(-|x|) i0(x)``.", "i0e(0.0)", "1.0")
i1 = function("i1", "x", p.i1, f"{_GROWING} of order 1.", "i1(0.0)", "0.0")
i1e = function("i1e", "x", p.i1e, "``exp(-|x|) i1(x)``.", "i1e(0.0)", "0.0")
k0 = function("k0", "x", p.k0, f"{_DYING} of order 0.", "k0(1.0).round(4)", "0.421")
k0e = function("k0e", "x", p.k0e, "``exp(x) k0(x)``.", "k0e(1.0).round(4)", "1.1445")
k1 = function("k1", "x", p.k1, f"{_DYING} of order 1.", "k1(1.0).round(4)", "0.6019")
k1e = function("k1e", "x", p.k1e, "``exp(x) k1(x)``.", "k1e(1.0).round(4)", "1.6362")
ive = function(
    "ive",
    "v x",
    p.ive,
    f"{_GROWING} of real order ``v``, times ``exp(-x)``, for ``x`` from 0 on.\n\nIts derivative by ``v`` is not known.",
    "ive(0.0, 0.0)",
    "1.0",
)
iv = function(
    "iv",
    "v x",
    lambda v, x: e.mul(p.ive(v, x), e.exp(x)),
    f"{_GROWING} of real order ``v``, for ``x`` from 0 on.\n\nIts derivative by ``v`` is not known.",
    "iv(0.0, 0.0)",
    "1.0",
)
airy_ai = function("airy_ai", "x", p.airy_ai, "Airy's function Ai.", "airy_ai(0.0).round(4)", "0.355")
airy_ai_prime = function(
    "airy_ai_prime",
    "x",
    p.airy_ai_prime,
    "The derivative of Airy's function Ai.",
    "airy_ai_prime(0.0).round(4)",
    "-0.2588",
)


def jn(n: int, x: Any) -> Any:
    """The Bessel function of the first kind of an integer order.

    Args:
        n: an integer, which may be negative; static under ``jit``.
        x: a real array or number; integers are converted to float32.

    Returns:
        A floating array of the shape of ``x``, and of its dtype if that is floating.

    Raises:
        TypeError: for an order that is not an integer, for operands that are not arrays, and for complex ``x``.

    Example:
        >>> print(jn(2, 1.0).round(4))
        0.1149
    """
    return p.jn(*operands("jn", x), order=validate.integer("jn", "n", n))


def yn(n: int, x: Any) -> Any:
    """The Bessel function of the second kind of an integer order.

    Args:
        n: an integer, which may be negative; static under ``jit``.
        x: a real array or number; integers are converted to float32.

    Returns:
        A floating array of the shape of ``x``, and of its dtype if that is floating.

    Raises:
        TypeError: for an order that is not an integer, for operands that are not arrays, and for complex ``x``.

    Example:
        >>> print(yn(2, 1.0).round(4))
        -1.6507
    """
    return p.yn(*operands("yn", x), order=validate.integer("yn", "n", n))
