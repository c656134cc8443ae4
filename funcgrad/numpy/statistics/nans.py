"""Reductions that ignore NaN."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad.core import dtypes
from funcgrad.core.tracing import type_of
from funcgrad.numpy import elementwise as e
from funcgrad.numpy import reductions as r
from funcgrad.numpy.elementwise.declared import named
from funcgrad.numpy.promotion import asoperand, promoted
from funcgrad.numpy.statistics.quantiles import fractions, quantile
from funcgrad.primitives import elementwise as p
from funcgrad.primitives.shape import full
from funcgrad.runtime.call_cache import composite

Axis = int | tuple[int, ...] | None


def _numbers(x: Any, name: str) -> tuple[Any, Any]:
    """``x`` as an array, and the mask of elements that are not NaN."""
    (x,) = promoted(asoperand(x, name))
    if not dtypes.is_inexact(type_of(x).dtype):
        return x, full(np.bool_(True), type_of(x).shape)
    return x, p.eq(x, x)


def _filled(x: Any, name: str, value: float) -> Any:
    x, there = _numbers(x, name)
    return p.select(there, x, p.number(value, x)) if dtypes.is_inexact(type_of(x).dtype) else x


def _document(what: str, call: str, shown: str) -> str:
    return (
        f"{what}\n\nArgs:\n    x: an array; its axes, ``keepdims`` and so on as for the function without ``nan``.\n\n"
        "Returns:\n    An array of the axes that remain, of the dtype of ``x``; NaN where all are NaN.\n\n"
        "Raises:\n    TypeError: for operands that are not arrays, or an axis that is not an int.\n"
        "    ValueError: over no elements or with ``where``, without ``initial``; for an axis out of range or\n"
        "        repeated, or a mask that does not broadcast.\n\n"
        f"Example:\n    >>> print({call})\n    {shown}\n"
    )


@composite
def nansum(
    x: Any, axis: Axis = None, dtype: Any = None, *, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Any:
    """The sum over axes, ignoring NaN; 0 if all are NaN.

    Args:
        x: an array or number of any dtype.
        axis: one or several; by default all.
        dtype: of the computation.
        keepdims: whether to keep the axes, with size 1.
        initial: a number to add.
        where: a mask, True for the elements to include; it broadcasts with ``x``.

    Returns:
        An array of the remaining axes; int64 of bools and signed integers, uint64 of unsigned ones, else of the dtype
        of ``x``, or of ``dtype``, promoted with that of ``initial``.

    Raises:
        TypeError: for operands that are not arrays, an axis that is not an int, or an unknown dtype.
        ValueError: for an axis out of range or repeated, or a mask that does not broadcast.

    Example:
        >>> print(nansum([1.0, np.nan]))
        1.0
    """
    return r.sum(_filled(x, "nansum", 0), axis, dtype, keepdims=keepdims, initial=initial, where=where)


@composite
def nanprod(
    x: Any, axis: Axis = None, dtype: Any = None, *, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Any:
    """The product over axes, ignoring NaN; 1 if all are NaN.

    Args:
        x: an array or number of any dtype.
        axis: one or several; by default all.
        dtype: of the computation.
        keepdims: whether to keep the axes, with size 1.
        initial: a number to multiply with.
        where: a mask, True for the elements to include; it broadcasts with ``x``.

    Returns:
        An array of the remaining axes; int64 of bools and signed integers, uint64 of unsigned ones, else of the dtype
        of ``x``, or of ``dtype``, promoted with that of ``initial``.

    Raises:
        TypeError: for operands that are not arrays, an axis that is not an int, or an unknown dtype.
        ValueError: for an axis out of range or repeated, or a mask that does not broadcast.

    Example:
        >>> print(nanprod([2.0, np.nan]))
        2.0
    """
    return r.prod(_filled(x, "nanprod", 1), axis, dtype, keepdims=keepdims, initial=initial, where=where)


@composite
def nancumsum(x: Any, axis: int | None = None, dtype: Any = None) -> Any:
    """The cumulative sum along an axis, with NaN as 0.

    Args:
        x: an array or number of any dtype.
        axis: one; by default the array is flattened.
        dtype: of the computation.

    Returns:
        An array of the shape of ``x``, or without ``axis`` a vector; int64 of bools and signed integers, uint64 of
        unsigned ones, else of the dtype of ``x``, or of ``dtype``.

    Raises:
        TypeError: for operands that are not arrays, an axis that is not an int, or an unknown dtype.
        ValueError: for an axis out of range.

    Example:
        >>> print(nancumsum([1.0, np.nan, 2.0]))
        [1. 1. 3.]
    """
    return r.cumsum(_filled(x, "nancumsum", 0), axis, dtype)


@composite
def nancumprod(x: Any, axis: int | None = None, dtype: Any = None) -> Any:
    """The cumulative product along an axis, with NaN as 1.

    Args:
        x: an array or number of any dtype.
        axis: one; by default the array is flattened.
        dtype: of the computation.

    Returns:
        An array of the shape of ``x``, or without ``axis`` a vector; int64 of bools and signed integers, uint64 of
        unsigned ones, else of the dtype of ``x``, or of ``dtype``.

    Raises:
        TypeError: for operands that are not arrays, an axis that is not an int, or an unknown dtype.
        ValueError: for an axis out of range.

    Example:
        >>> print(nancumprod([2.0, np.nan, 3.0]))
        [2. 2. 6.]
    """
    return r.cumprod(_filled(x, "nancumprod", 1), axis, dtype)


def _extreme(reduction: Callable[..., Any], worst: float, name: str, what: str, shown: str) -> Callable[..., Any]:
    @composite
    def function(x: Any, axis: Axis = None, *, keepdims: bool = False, initial: Any = None, where: Any = None) -> Any:
        x, there = _numbers(x, name)
        if not dtypes.is_inexact(type_of(x).dtype):
            return reduction(x, axis, keepdims=keepdims, initial=initial, where=where)
        filled = p.select(there, x, p.number(worst, x))
        found = reduction(filled, axis, keepdims=keepdims, initial=initial, where=where)
        if initial is not None:
            return found
        return e.where(r.any(there, axis, keepdims=keepdims), found, p.number(np.nan, x))

    return named(function, name, _document(f"The {what} number over axes.", f"{name}([1.0, np.nan, 2.0])", shown))


nanmax = _extreme(r.max, -np.inf, "nanmax", "largest", "2.0")
nanmin = _extreme(r.min, np.inf, "nanmin", "smallest", "1.0")


def _position(reduction: Callable[..., Any], worst: float, name: str, what: str, shown: str) -> Callable[..., Any]:
    @composite
    def function(x: Any, axis: int | None = None, *, keepdims: bool = False) -> Any:
        x, there = _numbers(x, name)
        if not dtypes.is_inexact(type_of(x).dtype):
            return reduction(x, axis, keepdims=keepdims)
        found = reduction(p.select(there, x, p.number(worst, x)), axis, keepdims=keepdims)
        return e.where(r.any(there, axis, keepdims=keepdims), found, np.int64(-1))

    document = (
        f"The position of the first {what} number along an axis, or in all; -1 where all are NaN.\n\n"
        "Args:\n    x: a real array or number.\n    axis: an int; by default the array is flattened.\n"
        "    keepdims: whether the axes stay, of size 1.\n\n"
        "Returns:\n    An array of the axes that remain, int64.\n\n"
        "Raises:\n    TypeError: for operands that are not arrays, complex numbers, or an axis that is not an int.\n"
        "    ValueError: over no elements, and for an axis out of range.\n\n"
        f"Example:\n    >>> print({name}([np.nan, 1.0, 2.0]))\n    {shown}\n"
    )
    return named(function, name, document)


nanargmax = _position(r.argmax, -np.inf, "nanargmax", "largest", "2")
nanargmin = _position(r.argmin, np.inf, "nanargmin", "smallest", "1")


@composite
def nanmean(x: Any, axis: Axis = None, dtype: Any = None, *, keepdims: bool = False, where: Any = None) -> Any:
    """The mean over axes, ignoring NaN; NaN if all are NaN.

    Args:
        x: an array or number of any dtype.
        axis: one or several; by default all.
        dtype: of the result and of the computation; float16 and bfloat16 are averaged in float32.
        keepdims: whether to keep the axes, with size 1.
        where: a mask that broadcasts to the shape of ``x``, True for the elements to include.

    Returns:
        An array of the remaining axes; of the dtype of ``x``, float32 of bools and integers, or of ``dtype``.

    Raises:
        TypeError: for operands that are not arrays, an axis that is not an int, or an unknown dtype.
        ValueError: for an axis out of range or repeated, or a mask that does not broadcast.

    Example:
        >>> print(nanmean([1.0, np.nan, 3.0]))
        2.0
    """
    x, there = _numbers(x, "nanmean")
    counted = there if where is None else e.logical_and(there, where)
    return r.mean(_filled(x, "nanmean", 0), axis, dtype, keepdims=keepdims, where=counted)


@composite
def nanvar(
    x: Any, axis: Axis = None, dtype: Any = None, *, ddof: float = 0, keepdims: bool = False, where: Any = None,
    correction: float | None = None,
) -> Any:  # fmt: skip
    """The variance over axes, ignoring NaN; NaN if at most ``ddof`` elements remain.

    Args:
        x: an array or number of any dtype.
        axis: one or several; by default all.
        dtype: of the result and of the computation.
        ddof, correction: synonyms for the number subtracted from the number of elements.
        keepdims: whether to keep the axes, with size 1.
        where: a mask that broadcasts to the shape of ``x``, True for the elements to include.

    Returns:
        An array of the remaining axes; real: of the dtype of ``x``, of the parts of complex numbers, float32 of bools
        and integers, or of ``dtype``.

    Raises:
        TypeError: for operands that are not arrays, an axis that is not an int, or an unknown dtype.
        ValueError: for an axis out of range or repeated, or a mask that does not broadcast.

    Example:
        >>> print(nanvar([1.0, np.nan, 3.0]))
        1.0
    """
    x, there = _numbers(x, "nanvar")
    counted = there if where is None else e.logical_and(there, where)
    filled = _filled(x, "nanvar", 0)
    found = r.var(filled, axis, dtype, ddof=ddof, keepdims=keepdims, where=counted, correction=correction)
    enough = e.greater(r.sum(counted, axis, keepdims=keepdims), ddof if correction is None else correction)
    return p.select(enough, found, p.number(np.nan, found))


@composite
def nanstd(
    x: Any, axis: Axis = None, dtype: Any = None, *, ddof: float = 0, keepdims: bool = False, where: Any = None,
    correction: float | None = None,
) -> Any:  # fmt: skip
    """The standard deviation over axes, ignoring NaN: the root of ``nanvar``, with the same arguments.

    Args:
        x, axis, dtype, ddof, keepdims, where, correction: as for ``nanvar``.

    Returns:
        An array of the remaining axes; real: of the dtype of ``x``, of the parts of complex numbers, float32 of bools
        and integers, or of ``dtype``.

    Raises:
        TypeError: for operands that are not arrays, an axis that is not an int, or an unknown dtype.
        ValueError: for an axis out of range or repeated, or a mask that does not broadcast.

    Example:
        >>> print(nanstd([1.0, np.nan, 3.0]))
        1.0
    """
    found = nanvar(x, axis, dtype, ddof=ddof, keepdims=keepdims, where=where, correction=correction)
    return e.sqrt(found)


@composite
def nanquantile(
    x: Any, q: Any, axis: Axis = None, *, method: str = "linear", keepdims: bool = False, weights: Any = None
) -> Any:
    """As ``quantile``, ignoring NaN; NaN if all are NaN.

    Args:
        x, q, axis, method, keepdims, weights: as for ``quantile``.

    Returns:
        The axes of ``q``, then the remaining ones of ``x``; of the promoted dtype, float32 of bools and integers.

    Raises:
        TypeError: for operands that are not arrays, complex numbers, or an axis that is not an int.
        ValueError: for an unknown method, an axis out of range or repeated; for weights of another
            shape or with another method.

    Example:
        >>> print(nanquantile([1.0, np.nan, 3.0], 0.5))
        2.0
    """
    return quantile(x, q, axis, method=method, keepdims=keepdims, weights=weights, ignore_nan=True)


@composite
def nanpercentile(
    x: Any, q: Any, axis: Axis = None, *, method: str = "linear", keepdims: bool = False, weights: Any = None
) -> Any:
    """As ``percentile``, ignoring NaN; NaN if all are NaN.

    Args:
        x, q, axis, method, keepdims, weights: as for ``percentile``.

    Returns:
        The axes of ``q``, then the remaining ones of ``x``; of the promoted dtype, float32 of bools and integers.

    Raises:
        TypeError: for operands that are not arrays, complex numbers, or an axis that is not an int.
        ValueError: for an unknown method, an axis out of range or repeated; for weights of another
            shape or with another method.

    Example:
        >>> print(nanpercentile([1.0, np.nan, 3.0], 50))
        2.0
    """
    return nanquantile(x, fractions(x, q), axis, method=method, keepdims=keepdims, weights=weights)


@composite
def nanmedian(x: Any, axis: Axis = None, *, keepdims: bool = False) -> Any:
    """The median over axes, ignoring NaN; NaN if all are NaN.

    Args:
        x: a real array or number.
        axis: one or several; by default all.
        keepdims: whether to keep the axes, with size 1.

    Returns:
        An array of the remaining axes; of the dtype of ``x``, float32 of bools and integers.

    Raises:
        TypeError: for operands that are not arrays, complex numbers, or an axis that is not an int.
        ValueError: for an axis out of range or repeated.

    Example:
        >>> print(nanmedian([1.0, np.nan, 3.0]))
        2.0
    """
    return quantile(x, 0.5, axis, method="midpoint", keepdims=keepdims, ignore_nan=True)


__all__ = [
    "nanargmax", "nanargmin", "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmedian", "nanmin", "nanpercentile",
    "nanprod", "nanquantile", "nanstd", "nansum", "nanvar",
]  # fmt: skip
