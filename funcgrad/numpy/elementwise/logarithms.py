"""Logarithms to bases 2 and 10, and of sums."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from funcgrad.core import dtypes
from funcgrad.core.tracing import type_of
from funcgrad.numpy.elementwise import divide, log, multiply
from funcgrad.numpy.promotion import asoperand, promoted
from funcgrad.primitives import elementwise as p
from funcgrad.runtime.call_cache import composite


def _to_base(base: int, x: Any) -> Any:
    y = log(x)
    unit = p.number(math.log(base), p.real(y) if dtypes.is_complex(type_of(y).dtype) else y)
    if not dtypes.is_complex(type_of(y).dtype):
        return p.div(y, unit)
    # Separately for both parts: an infinite part times the imaginary part 0 would be NaN.
    return p.make_complex(p.div(p.real(y), unit), p.div(p.imag(y), unit))


def log2(x: Any, /) -> Any:
    """Logarithm to base 2.

    Args:
        x: an array or number, complex ones too; integers and bools are taken as float32.

    Returns:
        An array of the shape of ``x`` and its floating or complex dtype.

    Raises:
        TypeError: for operands that are not arrays.

    Example:
        >>> print(log2(8.0))
        3.0
    """
    return _to_base(2, x)


def log10(x: Any, /) -> Any:
    """Logarithm to base 10.

    Args:
        x: an array or number, complex ones too; integers and bools are taken as float32.

    Returns:
        An array of the shape of ``x`` and its floating or complex dtype.

    Raises:
        TypeError: for operands that are not arrays.

    Example:
        >>> print(log10(1.0))
        0.0
    """
    return _to_base(10, x)


@composite
def logaddexp(x: Any, y: Any, /) -> Any:
    """``log(exp(x) + exp(y))`` without overflow.

    Args:
        x, y: real arrays or numbers.

    Returns:
        An array of the broadcast shape and the promoted dtype; float32 for integers and bools.

    Raises:
        TypeError: for operands that are not arrays, and complex numbers.
        ValueError: for shapes that do not broadcast.

    Example:
        >>> print(logaddexp(1000.0, 1000.0))
        1000.6931
    """
    x, y = promoted(asoperand(x, "logaddexp"), asoperand(y, "logaddexp"), floating=True)
    high = p.stop_gradient(p.maximum(x, y))
    finite = p.select(p.is_finite(high), high, p.number(0, high))
    return p.add(p.log(p.add(p.exp(p.sub(x, finite)), p.exp(p.sub(y, finite)))), finite)


@composite
def logaddexp2(x: Any, y: Any, /) -> Any:
    """``log2(2**x + 2**y)`` without overflow.

    Args:
        x, y: real arrays or numbers.

    Returns:
        An array of the broadcast shape and the promoted dtype; float32 for integers and bools.

    Raises:
        TypeError: for operands that are not arrays, and complex numbers.
        ValueError: for shapes that do not broadcast.

    Example:
        >>> print(logaddexp2(2.0, 2.0))
        3.0
    """
    ln2 = float(np.log(2))
    return divide(logaddexp(multiply(x, ln2), multiply(y, ln2)), ln2)


__all__ = ["log2", "log10", "logaddexp", "logaddexp2"]
