"""Orthogonal polynomials whose degree is an operand, by recurrence. Source: Abramowitz and Stegun, 22.7."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from jax import lax

from funcgrad.core.errors import NonDifferentiableError
from funcgrad.primitives.complex_lowering import where
from funcgrad.primitives.elementwise import elementwise
from funcgrad.primitives.special.bessel import widened

Step = Callable[[Any, Any, Any, Any], Any]


def _chebyshev(x: Any, k: Any, now: Any, before: Any) -> Any:
    return 2 * x * now - before


#: By name: the polynomial of degree 1, and the recurrence from degrees ``k`` and ``k - 1`` to ``k + 1``.
FAMILIES: dict[str, tuple[Callable[[Any], Any], Step]] = {
    "chebyshev_t": (lambda x: x, _chebyshev),
    "chebyshev_u": (lambda x: 2 * x, _chebyshev),
    "chebyshev_v": (lambda x: 2 * x - 1, _chebyshev),
    "chebyshev_w": (lambda x: 2 * x + 1, _chebyshev),
    "hermite_h": (lambda x: 2 * x, lambda x, k, now, before: 2 * (x * now - k * before)),
    "hermite_he": (lambda x: x, lambda x, k, now, before: x * now - k * before),
    "laguerre_l": (lambda x: 1 - x, lambda x, k, now, before: ((2 * k + 1 - x) * now - k * before) / (k + 1)),
    "legendre_p": (lambda x: x, lambda x, k, now, before: ((2 * k + 1) * x * now - k * before) / (k + 1)),
}


def _lower(x: Any, n: Any, *, family: str) -> Any:
    first, step = FAMILIES[family]
    degree = lax.convert_element_type(n, np.int32)
    most = lax.reduce_max(degree, tuple(range(degree.ndim)))

    def body(k: Any, state: tuple[Any, Any]) -> tuple[Any, Any]:
        now, before = state
        after = step(x, lax.convert_element_type(k, x.dtype), now, before)
        # Elements that have reached their degree wait for the others.
        going = lax.broadcast(k, degree.shape) < degree
        return where(going, after, now), where(going, now, before)

    one = lax.full_like(x, 1)
    found, _ = lax.fori_loop(1, most, body, (first(x), one))
    found = where(degree == 0, one, found)
    return where(degree < 0, 0.0, found)


def _unknown(*_: Any, **__: Any) -> Any:
    raise NonDifferentiableError("the derivative of orthogonal polynomials is not known")


# The polynomial of ``family`` and degree ``n``, truncated to an integer; 0 for negative degrees.
orthogonal_polynomial = elementwise("orthogonal_polynomial", widened(_lower), (_unknown, _unknown), accepts="float")
