"""Primitives of number theory."""

from __future__ import annotations

from typing import Any

from jax import lax

from funcgrad.primitives.elementwise import elementwise


def _euclid(x: Any, y: Any) -> Any:
    """Euclid's algorithm; all elements take as many steps as the slowest."""

    def step(pair: tuple[Any, Any]) -> tuple[Any, Any]:
        a, b = pair
        done = lax.eq(b, lax.full_like(b, 0))
        rest = lax.rem(a, lax.select(done, lax.full_like(b, 1), b))
        return lax.select(done, a, b), lax.select(done, b, rest)

    def unfinished(pair: tuple[Any, Any]) -> Any:
        return lax.ne(pair[1], lax.full_like(pair[1], 0)).any()

    found, _ = lax.while_loop(unfinished, step, (x, y))
    return found if x.dtype.kind == "u" else lax.abs(found)


#: The greatest common divisor, non-negative (unless its negation overflows); 0 for zeros.
gcd = elementwise("gcd", _euclid, accepts="integer")
