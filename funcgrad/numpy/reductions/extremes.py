"""Maxima and minima, and their positions."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from funcgrad.arguments import validate
from funcgrad.core import dtypes
from funcgrad.core.primitive import Primitive
from funcgrad.core.tracing import type_of
from funcgrad.numpy import elementwise as e
from funcgrad.numpy.elementwise.declared import named
from funcgrad.numpy.promotion import asoperand, promoted
from funcgrad.numpy.reductions.reducing import Axis, count, masked, reduced, with_axes
from funcgrad.numpy.shape import ravel, reshape
from funcgrad.primitives import reductions as r
from funcgrad.primitives.shape import reduce_sum
from funcgrad.runtime.call_cache import composite


def max(x: Any, axis: Axis = None, *, keepdims: bool = False, initial: Any = None, where: Any = None) -> Any:
    """The maximum over axes; ties share the derivative.

    Args:
        x: an array or number of any dtype.
        axis: one or several; by default all.
        keepdims: whether to keep the axes, with size 1.
        initial: a lower bound of the result; required with ``where``, and for no elements.
        where: a mask, True for the elements to include; it broadcasts with ``x``.

    Returns:
        An array of the remaining axes, of the dtype of ``x``, promoted with that of ``initial``.

    Raises:
        TypeError: for operands that are not arrays, or an axis that is not an int.
        ValueError: over no elements or with ``where``, without ``initial``; for an axis out of range or repeated, or
            a mask that does not broadcast.

    Example:
        >>> print(max(np.array([[1, 5], [7, 3]]), axis=1))
        [5 7]
    """
    return _extreme(r.reduce_max, e.maximum, lambda info: info.min, x, axis, keepdims, initial, where, "max")


def min(x: Any, axis: Axis = None, *, keepdims: bool = False, initial: Any = None, where: Any = None) -> Any:
    """The minimum over axes; ties share the derivative.

    Args:
        x: an array or number of any dtype.
        axis: one or several; by default all.
        keepdims: whether to keep the axes, with size 1.
        initial: an upper bound of the result; required with ``where``, and for no elements.
        where: a mask, True for the elements to include; it broadcasts with ``x``.

    Returns:
        An array of the remaining axes, of the dtype of ``x``, promoted with that of ``initial``.

    Raises:
        TypeError: for operands that are not arrays, or an axis that is not an int.
        ValueError: over no elements or with ``where``, without ``initial``; for an axis out of range or repeated, or
            a mask that does not broadcast.

    Example:
        >>> print(min(np.array([[1, 5], [7, 3]]), axis=1))
        [1 3]
    """
    return _extreme(r.reduce_min, e.minimum, lambda info: info.max, x, axis, keepdims, initial, where, "min")


amax, amin = max, min


def _extreme(
    primitive: Primitive, pairwise: Callable[[Any, Any], Any], last: Callable[[Any], Any],
    x: Any, axis: Axis, keepdims: bool, initial: Any, where: Any, name: str,
) -> Any:  # fmt: skip
    (x,) = promoted(asoperand(x, name))
    if initial is None:
        if where is not None:
            raise ValueError(f"{name}: with where= it wants initial= too, the result where nothing counts")
        return reduced(primitive, x, axis, keepdims, name)
    if where is not None:
        x = masked(x, where, last(_limits(type_of(x).dtype)))
    if count(x, axis, name):
        return pairwise(reduced(primitive, x, axis, keepdims, name), initial)
    return e.add(reduced(reduce_sum, e.multiply(x, 0), axis, keepdims, name), initial)


def _limits(dtype: np.dtype) -> Any:
    if dtypes.is_integer(dtype):
        return np.iinfo(dtype)
    return SimpleNamespace(min=False, max=True) if dtype == dtypes.bool_ else SimpleNamespace(min=-np.inf, max=np.inf)


@composite
def ptp(x: Any, axis: Axis = None, *, keepdims: bool = False) -> Any:
    """The maximum minus the minimum, over axes.

    Args:
        x: an array or number of any dtype but bool.
        axis: one or several; by default all.
        keepdims: whether to keep the axes, with size 1.

    Returns:
        An array of the remaining axes, of the dtype of ``x``.

    Raises:
        TypeError: for operands that are not arrays, bools, or an axis that is not an int.
        ValueError: over no elements; for an axis out of range or repeated.

    Example:
        >>> print(ptp(np.array([3, 1, 7])))
        6
    """
    return e.subtract(max(x, axis, keepdims=keepdims), min(x, axis, keepdims=keepdims))


def _position(primitive: Primitive, name: str, what: str, shown: str) -> Callable[..., Any]:
    def function(x: Any, axis: int | None = None, *, keepdims: bool = False) -> Any:
        (x,) = promoted(asoperand(x, name))
        if dtypes.is_complex(type_of(x).dtype):
            raise TypeError(f"{name}: takes real or bool arrays, got {type_of(x)}")
        shape = type_of(x).shape
        if axis is None:
            found = primitive(ravel(x), axis=0, dtype=dtypes.int64)
            return reshape(found, (1,) * len(shape)) if keepdims else found
        axis = validate.axis(name, axis, len(shape))
        return with_axes(x, (axis,), keepdims, primitive(x, axis=axis, dtype=dtypes.int64))

    document = (
        f"The position of the first {what} element along an axis, or in all; a NaN is taken for the {what}.\n\n"
        "Args:\n    x: a real array or number.\n    axis: an int; by default the array is flattened.\n"
        "    keepdims: whether the axes stay, of size 1.\n\n"
        "Returns:\n    An array of the axes that remain, int64.\n\n"
        "Raises:\n    TypeError: for operands that are not arrays, complex numbers, or an axis that is not an int.\n"
        "    ValueError: over no elements, and for an axis out of range.\n\n"
        f"Example:\n    >>> print({name}(np.array([3, 1, 2])))\n    {shown}\n"
    )
    return named(function, name, document)


argmax = _position(r.argmax, "argmax", "largest", "0")
argmin = _position(r.argmin, "argmin", "smallest", "1")


__all__ = ["amax", "amin", "argmax", "argmin", "max", "min", "ptp"]
