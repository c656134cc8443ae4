"""``beta * x + alpha * product``, shared by ``addmm`` and similar products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compat._core.operators.opmath import is_half, rounded, scaled_apart, single
from funcgrad import numpy as np
from funcgrad.core.tracing import type_of
from funcgrad.primitives.contraction import dot_in_single
from funcgrad.primitives.elementwise import cast, eq, mul, select
from funcgrad.primitives.shape import full


def _is_default(factor: Any) -> bool:
    return isinstance(factor, int) and factor == 1


def times(factor: Any, x: Any) -> Any:
    """``factor * x`` in the dtype of ``x``; ``x`` itself for the default factor."""
    return x if _is_default(factor) else mul(cast(factor, dtype=type_of(x).dtype), x)


def scaled(beta: Any, x: Any) -> Any:
    """``beta * x``; if ``beta`` is 0, ``x`` is ignored, even NaN."""
    if _is_default(beta):
        return x
    zero = type_of(x).dtype.type(0)
    return select(eq(cast(beta, dtype=type_of(x).dtype), zero), full(zero, type_of(x).shape), times(beta, x))


def plus(beta: Any, x: Any, alpha: Any, product: Any) -> Any:
    """``beta * x + alpha * product``, each step rounded to their dtype."""
    return np.add(np.broadcast_to(scaled(beta, x), type_of(product).shape), times(alpha, product))


def combined(
    multiply: Callable[..., Any], beta: Any, x: Any, alpha: Any, a: Any, b: Any, round_alpha: bool = False
) -> Any:
    """``beta * x + alpha * multiply(a, b)``, in single precision for float16 and bfloat16, since PyTorch rounds only
    the result.

    Args:
        multiply: the product of two arrays; its third argument is the contraction, ``dot`` by default.
        round_alpha: whether the kernel rounds ``alpha`` to float16 or bfloat16; derivatives do not.
    """
    if not is_half(a):
        return plus(beta, x, alpha, multiply(a, b))
    is_float8 = type_of(a).dtype.itemsize == 1
    if is_float8 or _is_default(alpha):
        product = multiply(single(a), single(b)) if is_float8 else multiply(a, b, dot_in_single)
        found = plus(beta, single(x), alpha, product)
    else:  # gradients are products rounded to the dtype of the factors, and then multiplied
        product = multiply(scaled_apart(a, 1, alpha), scaled_apart(b, 1, alpha), dot_in_single)
        factor = rounded(alpha, a) if round_alpha else alpha
        found = plus(beta, single(x), 1, scaled_apart(product, factor, 1))
    return np.astype(found, type_of(a).dtype)
