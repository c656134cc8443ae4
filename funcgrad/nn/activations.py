"""Activations derived from those in ``funcgrad.nn.layers``."""

from __future__ import annotations

from typing import Any

from funcgrad.arguments import validate
from funcgrad.core.tracing import type_of
from funcgrad.numpy import elementwise as e
from funcgrad.numpy.elementwise.logarithms import logaddexp
from funcgrad.numpy.indexing.getitem import getitem
from funcgrad.numpy.promotion import asoperand, promoted
from funcgrad.primitives import elementwise as p
from funcgrad.runtime.call_cache import composite

__all__ = [
    "celu", "glu", "hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh", "log_sigmoid", "mish", "relu6", "selu",
    "soft_sign", "squareplus",
]  # fmt: skip


def _between(x: Any, low: float, high: float, name: str) -> Any:
    """``x`` clamped, with derivative 0 at and outside the bounds."""
    (x,) = promoted(asoperand(x, name))
    least, most = p.number(low, x), p.number(high, x)
    return p.select(p.le(x, least), least, p.select(p.ge(x, most), most, x))


@composite
def relu6(x: Any) -> Any:
    """``min(max(x, 0), 6)``, with derivative 0 at both ends.

    Args:
        x: a real array or number.

    Returns:
        An array of the shape and the dtype of ``x``; integers stay integers.

    Raises:
        TypeError: for operands that are not arrays, or a complex one.

    Example:
        >>> print(relu6([-1.0, 2.0, 7.0]))
        [0. 2. 6.]
    """
    return _between(x, 0, 6, "relu6")


@composite
def hard_tanh(x: Any) -> Any:
    """``min(max(x, -1), 1)``, with derivative 0 at both ends.

    Args:
        x: a real array or number.

    Returns:
        An array of the shape and the dtype of ``x``; integers stay integers.

    Raises:
        TypeError: for operands that are not arrays, or a complex one.

    Example:
        >>> print(hard_tanh([-3.0, 0.5, 3.0]))
        [-1.   0.5  1. ]
    """
    return _between(x, -1, 1, "hard_tanh")


@composite
def hard_sigmoid(x: Any) -> Any:
    """``relu6(x + 3) / 6``.

    Args:
        x: a real array or number.

    Returns:
        An array of the shape of ``x``, in its floating dtype; float32 for integers.

    Raises:
        TypeError: for operands that are not arrays, or a complex one.

    Example:
        >>> print(hard_sigmoid([-3.0, 0.0, 3.0]))
        [0.  0.5 1. ]
    """
    return e.divide(relu6(e.add(x, 3.0)), 6.0)


@composite
def hard_silu(x: Any) -> Any:
    """``x * hard_sigmoid(x)``; also ``hard_swish``.

    Args:
        x: a real array or number.

    Returns:
        An array of the shape of ``x``, in its floating dtype; float32 for integers.

    Raises:
        TypeError: for operands that are not arrays, or a complex one.

    Example:
        >>> print(hard_silu([-3.0, 1.5, 3.0]))
        [0.    1.125 3.   ]
    """
    return e.multiply(x, hard_sigmoid(x))


hard_swish = hard_silu


def _below(x: Any, scale: Any) -> tuple[Any, Any]:
    """``x`` where positive, and ``exp(x / scale) - 1`` elsewhere, without overflow for large ``x``."""
    positive = e.greater(x, 0)
    return positive, e.expm1(e.divide(e.where(positive, 0.0, x), scale))


@composite
def celu(x: Any, alpha: Any = 1.0) -> Any:
    """``x`` where positive, ``alpha * (exp(x / alpha) - 1)`` elsewhere.

    Args:
        x: a real array or number.
        alpha: minus the lower limit; a real number, or an array that broadcasts with ``x``.

    Returns:
        An array of the shapes of ``x`` and ``alpha`` broadcast together, in their promoted floating dtype.

    Raises:
        TypeError: for operands that are not arrays, or a complex one.
        ValueError: for shapes that do not broadcast.

    Example:
        >>> print(celu([0.0, 2.0]))
        [0. 2.]
    """
    positive, below = _below(x, alpha)
    return e.where(positive, x, e.multiply(alpha, below))


@composite
def selu(x: Any) -> Any:
    """``elu`` scaled so that it preserves mean 0 and variance 1 of independent inputs.

    Source: Klambauer, Unterthiner, Mayr, Hochreiter, "Self-normalizing neural networks" (2017).

    Args:
        x: a real array or number.

    Returns:
        An array of the shape of ``x``, in its floating dtype; float32 for integers.

    Raises:
        TypeError: for operands that are not arrays, or a complex one.

    Example:
        >>> print(selu([0.0, 1.0]))
        [0.       1.050701]
    """
    positive, below = _below(x, 1.0)
    return e.multiply(1.0507009873554805, e.where(positive, x, e.multiply(1.6732632423543772, below)))


@composite
def mish(x: Any) -> Any:
    """``x * tanh(log(1 + exp(x)))``.

    Args:
        x: a real array or number.

    Returns:
        An array of the shape of ``x``, in its floating dtype; float32 for integers.

    Raises:
        TypeError: for operands that are not arrays, or a complex one.

    Example:
        >>> print(mish(0.0))
        0.0
    """
    return e.multiply(x, e.tanh(logaddexp(x, 0.0)))


@composite
def log_sigmoid(x: Any) -> Any:
    """The logarithm of ``sigmoid``, without overflow.

    Args:
        x: a real array or number.

    Returns:
        An array of the shape of ``x``, in its floating dtype; float32 for integers.

    Raises:
        TypeError: for operands that are not arrays, or one of complex numbers or bools.

    Example:
        >>> print(log_sigmoid(-1000.0))
        -1000.0
    """
    return e.negative(logaddexp(e.negative(x), 0.0))


@composite
def soft_sign(x: Any) -> Any:
    """``x / (1 + |x|)``.

    Args:
        x: an array or number, complex ones too.

    Returns:
        An array of the shape of ``x``, in its floating dtype; float32 for integers.

    Raises:
        TypeError: for operands that are not arrays.

    Example:
        >>> print(soft_sign([-1.0, 3.0]))
        [-0.5   0.75]
    """
    return e.divide(x, e.add(e.abs(x), 1.0))


@composite
def squareplus(x: Any, b: Any = 4.0) -> Any:
    """``(x + sqrt(x**2 + b)) / 2``.

    Args:
        x: an array or number, complex ones too.
        b: the smoothness; 0 gives ``relu``; a number, or an array that broadcasts with ``x``.

    Returns:
        An array of the shapes of ``x`` and ``b`` broadcast together, in their promoted floating dtype.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: for shapes that do not broadcast.

    Example:
        >>> print(squareplus(0.0))
        1.0
    """
    return e.multiply(0.5, e.add(x, e.sqrt(e.add(e.square(x), b))))


@composite
def glu(x: Any, axis: int = -1) -> Any:
    """The first half of ``x`` along an axis, times the sigmoid of the other half.

    Args:
        x: an array with at least one axis, of even size along it; complex ones too.
        axis: an int.

    Returns:
        An array of half the size along the axis, in the floating dtype of ``x``; float32 for integers.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: if the size is odd, or the axis out of range.

    Example:
        >>> print(glu([2.0, 0.0]))
        [1.]
    """
    (x,) = promoted(asoperand(x, "glu"), floating=True)
    place = validate.axis("glu", axis, type_of(x).ndim)
    half, odd = divmod(type_of(x).shape[place], 2)
    if odd:
        raise ValueError(f"glu: axis {axis} of {type_of(x)} must be of even size")
    lead = (slice(None),) * place
    first, second = getitem(x, (*lead, slice(half))), getitem(x, (*lead, slice(half, None)))
    return p.mul(first, p.logistic(second))
