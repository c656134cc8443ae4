"""``beta * x + alpha * product``, shared by ``addmm`` and similar products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compat._core.operators.opmath import in_single
from funcgrad import numpy as np
from funcgrad.core.tracing import type_of
from funcgrad.primitives.elementwise import cast, eq, mul, select
from funcgrad.primitives.shape import full


def _left_out(factor: Any) -> bool:
    return isinstance(factor, int) and factor == 1


def times(factor: Any, x: Any) -> Any:
    """``factor * x`` in the dtype of ``x``; the default factor is no work at all."""
    return x if _left_out(factor) else mul(cast(factor, dtype=type_of(x).dtype), x)


def scaled(beta: Any, x: Any) -> Any:
    """``beta * x``; where ``beta`` is 0, values of ``x`` are ignored, even NaN."""
    if _left_out(beta):
        return x
    zero = type_of(x).dtype.type(0)
    return select(eq(cast(beta, dtype=type_of(x).dtype), zero), full(zero, type_of(x).shape), times(beta, x))


def plus(beta: Any, x: Any, alpha: Any, product: Any) -> Any:
    """``beta * x + alpha * product``, each step in the dtype of these."""
    return np.add(np.broadcast_to(scaled(beta, x), type_of(product).shape), times(alpha, product))


def combined(multiply: Callable[[Any, Any], Any], beta: Any, x: Any, alpha: Any, a: Any, b: Any) -> Any:
    """``beta * x + alpha * multiply(a, b)``, in single precision for float16 and bfloat16: PyTorch rounds only the
    result.

    Without factors the product is in half precision, which some devices have units for.
    """

    def body(x: Any, a: Any, b: Any) -> Any:
        return plus(beta, x, alpha, multiply(a, b))

    return (body if _left_out(beta) and _left_out(alpha) else in_single(body))(x, a, b)
