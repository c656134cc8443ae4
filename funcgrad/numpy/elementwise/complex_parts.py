"""Signs, and real and imaginary parts."""

from __future__ import annotations

from typing import Any

from funcgrad.core import dtypes
from funcgrad.core.tracing import type_of
from funcgrad.numpy.elementwise.declared import binary
from funcgrad.numpy.promotion import asoperand, promoted
from funcgrad.primitives import elementwise as p
from funcgrad.primitives.shape import full
from funcgrad.runtime.call_cache import composite


def signbit(x: Any, /) -> Any:
    """Whether the sign bit is set, as it is for -0.0.

    Args:
        x: a real array or number.

    Returns:
        An array of the shape of ``x``, of bools.

    Raises:
        TypeError: for operands that are not arrays, and complex numbers.

    Example:
        >>> print(signbit([0.0, -0.0]))
        [False  True]
    """
    (x,) = promoted(asoperand(x, "signbit"))
    dtype = type_of(x).dtype
    if not dtypes.is_floating(dtype):
        return p.lt(x, p.number(0, x))
    signed = dtypes.SIGNED[{2: 1, 4: 2, 8: 3}[dtype.itemsize]]
    return p.lt(p.bitcast(x, dtype=signed), signed.type(0))


@composite
def copysign(x: Any, y: Any, /) -> Any:
    """The magnitude of ``x`` with the sign of ``y``.

    Args:
        x, y: real arrays or numbers that broadcast together.

    Returns:
        An array of the broadcast shape, of the promoted dtype; float32 of bools and integers.

    Raises:
        TypeError: for operands that are not arrays, and complex numbers.
        ValueError: for shapes that do not broadcast.

    Example:
        >>> print(copysign(3.0, -0.0))
        -3.0
    """
    x, y = promoted(asoperand(x, "copysign"), asoperand(y, "copysign"), floating=True)
    return p.select(p.ne(signbit(x), signbit(y)), p.neg(x), x)


@composite
def heaviside(x: Any, y: Any, /) -> Any:
    """0 where ``x`` is negative, 1 where positive, ``y`` where zero.

    Args:
        x, y: real arrays or numbers that broadcast together.

    Returns:
        An array of the broadcast shape, of the promoted dtype; float32 of bools and integers.

    Raises:
        TypeError: for operands that are not arrays, and complex numbers.
        ValueError: for shapes that do not broadcast.

    Example:
        >>> print(heaviside([-1.0, 0.0, 2.0], 0.5))
        [0.  0.5 1. ]
    """
    x, y = promoted(asoperand(x, "heaviside"), asoperand(y, "heaviside"), floating=True)
    zero = p.number(0, x)
    step = p.select(p.lt(x, zero), zero, p.select(p.gt(x, zero), p.number(1, x), y))
    return p.select(p.ne(x, x), x, step)


nextafter = binary(
    p.nextafter,
    "nextafter",
    "The next representable number towards ``y``.",
    "nextafter(1.0, 2.0)",
    "1.0000001",
    floating=True,
)


def real(x: Any, /) -> Any:
    """The real part.

    Args:
        x: an array or number.

    Returns:
        An array of the shape of ``x``, of the dtype of its parts.

    Raises:
        TypeError: for operands that are not arrays.

    Example:
        >>> print(real(1 + 2j))
        1.0
    """
    (x,) = promoted(asoperand(x, "real"))
    return p.real(x) if dtypes.is_complex(type_of(x).dtype) else x


def imag(x: Any, /) -> Any:
    """The imaginary part; zeros for real arrays.

    Args:
        x: an array or number.

    Returns:
        An array of the shape of ``x``, of the dtype of its parts.

    Raises:
        TypeError: for operands that are not arrays.

    Example:
        >>> print(imag(1 + 2j))
        2.0
    """
    (x,) = promoted(asoperand(x, "imag"))
    return p.imag(x) if dtypes.is_complex(type_of(x).dtype) else full(p.number(0, x), type_of(x).shape)


def conj(x: Any, /) -> Any:
    """The complex conjugate.

    Args:
        x: an array or number.

    Returns:
        An array of the shape and dtype of ``x``.

    Raises:
        TypeError: for operands that are not arrays.

    Example:
        >>> print(conj(1 + 2j))
        (1-2j)
    """
    (x,) = promoted(asoperand(x, "conj"))
    return p.conjugated(x)


conjugate = conj


__all__ = ["conj", "conjugate", "copysign", "heaviside", "imag", "nextafter", "real", "signbit"]
