"""Predicates of arrays as Python booleans, and elementwise ones: complex, real, close."""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.arguments import validate
from funcgrad.core import dtypes
from funcgrad.core.tracing import type_of
from funcgrad.numpy import elementwise as e
from funcgrad.numpy import reductions as r
from funcgrad.numpy.constants import finfo
from funcgrad.numpy.creation.arrays import asarray
from funcgrad.numpy.nonzero_indices import known
from funcgrad.numpy.promotion import asoperand
from funcgrad.primitives.shape import full
from funcgrad.runtime.call_cache import composite


def iscomplex(x: Any) -> Any:
    """Whether each element has an imaginary part that is not zero.

    Args:
        x: an array or number.

    Returns:
        A bool array of the shape of ``x``.

    Raises:
        TypeError: for operands that are not arrays.

    Example:
        >>> print(iscomplex([1 + 1j, 2]))
        [ True False]
    """
    x = asoperand(x, "iscomplex")
    if not dtypes.is_complex(type_of(x).dtype):
        return asarray(full(np.bool_(False), type_of(x).shape))
    return e.not_equal(e.imag(x), 0)


def isreal(x: Any) -> Any:
    """Whether each element has a zero imaginary part.

    Args:
        x: an array or number.

    Returns:
        A bool array of the shape of ``x``.

    Raises:
        TypeError: for operands that are not arrays.

    Example:
        >>> print(isreal([1 + 1j, 2]))
        [False  True]
    """
    return e.logical_not(iscomplex(x))


def iscomplexobj(x: Any) -> bool:
    """Whether the dtype is complex.

    Args:
        x: an array, number or nested sequence of them; its values are not read.

    Returns:
        A Python bool, for a traced array too.

    Raises:
        TypeError: for operands that are not arrays.

    Example:
        >>> iscomplexobj(1j), iscomplexobj([1.0])
        (True, False)
    """
    return dtypes.is_complex(type_of(asoperand(x, "iscomplexobj")).dtype)


def isrealobj(x: Any) -> bool:
    """Whether the dtype is not complex.

    Args:
        x: an array, number or nested sequence of them; its values are not read.

    Returns:
        A Python bool, for a traced array too.

    Raises:
        TypeError: for operands that are not arrays.

    Example:
        >>> isrealobj(1j), isrealobj([1.0])
        (False, True)
    """
    return not iscomplexobj(x)


def isscalar(x: Any) -> bool:
    """Whether the argument is a Python or NumPy scalar.

    Args:
        x: anything; a string counts as a scalar, too.

    Returns:
        A Python bool, False for a traced number.

    Example:
        >>> isscalar(3.0), isscalar(np.ones(()))
        (True, False)
    """
    return np.isscalar(x)


def iterable(x: Any) -> bool:
    """Whether the argument can be iterated over: an array with axes, or another iterable.

    Args:
        x: anything.

    Returns:
        A Python bool, for a traced array too.

    Example:
        >>> iterable([1]), iterable(np.ones(()))
        (True, False)
    """
    try:
        iter(x)
    except TypeError:
        return False
    return True


@composite
def real_if_close(x: Any, tol: float = 100) -> Any:
    """The real part, if all imaginary parts are within ``tol`` times the dtype's ``eps``; else ``x``.

    Args:
        x: an array or number.
        tol: in units of ``eps``; if at most 1, the absolute tolerance.

    Returns:
        An array of the shape of ``x``, real or of its dtype; a real ``x`` is unchanged.

    Raises:
        TypeError: for operands that are not arrays, and a ``tol`` that is not a number.
        ConcretizationError: for a traced complex array under ``jit``.

    Example:
        >>> print(real_if_close([1 + 1e-9j]))
        [1.]
    """
    x = asoperand(x, "real_if_close")
    if not dtypes.is_complex(type_of(x).dtype):
        return x
    tol = validate.number("real_if_close", "tol", tol)
    limit = tol * finfo(type_of(x).dtype).eps if tol > 1 else tol
    return e.real(x) if known(r.all(e.less(e.absolute(e.imag(x)), limit)), "real_if_close") else asarray(x)


__all__ = ["iscomplex", "iscomplexobj", "isreal", "isrealobj", "isscalar", "iterable", "real_if_close"]
