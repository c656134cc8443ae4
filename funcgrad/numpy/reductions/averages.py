"""Means, variances and standard deviations."""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.core import dtypes
from funcgrad.core.tracing import type_of
from funcgrad.numpy import elementwise as e
from funcgrad.numpy.promotion import asoperand, astype, promoted
from funcgrad.numpy.reductions.reducing import Axis, count, masked, reduced
from funcgrad.numpy.shape import broadcast_to
from funcgrad.primitives import elementwise as p
from funcgrad.primitives.shape import reduce_sum
from funcgrad.runtime.call_cache import composite


def _weight(x: Any, axis: Axis, keepdims: bool, where: Any, name: str) -> Any:
    """The number of elements of a mean: a number, or an array if there is a mask."""
    real = dtypes.real_of(type_of(x).dtype)
    if where is None:
        return real.type(count(x, axis, name))
    mask = p.cast(broadcast_to(e.not_equal(where, 0), type_of(x).shape), dtype=real)
    return reduced(reduce_sum, mask, axis, keepdims, name)


def _averaged(x: Any, dtype: Any, name: str) -> tuple[Any, np.dtype]:
    """``x`` in the dtype to average in, and the result's dtype: float16 and bfloat16 are summed in float32."""
    (x,) = promoted(asoperand(x, name), floating=True)
    own = type_of(x).dtype if dtype is None else dtypes.canonical(dtype)
    return astype(x, dtypes.float32 if own in (dtypes.float16, dtypes.bfloat16) else own), own


@composite
def mean(x: Any, axis: Axis = None, dtype: Any = None, *, keepdims: bool = False, where: Any = None) -> Any:
    """The arithmetic mean over axes; NaN for no elements.

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
        >>> print(mean(np.array([1.0, 3.0])))
        2.0
    """
    x, own = _averaged(x, dtype, "mean")
    total = reduced(reduce_sum, masked(x, where, 0), axis, keepdims, "mean")
    return astype(e.divide(total, _weight(x, axis, keepdims, where, "mean")), own)


@composite
def var(
    x: Any, axis: Axis = None, dtype: Any = None, *, ddof: float = 0, keepdims: bool = False, where: Any = None,
    correction: float | None = None,
) -> Any:  # fmt: skip
    """The variance over axes: the sum of squared distances from the mean, divided by ``n - ddof``.

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
        >>> print(var(np.array([1.0, 3.0])), var(np.array([1.0, 3.0]), ddof=1))
        1.0 2.0
    """
    x, own = _averaged(x, dtype, "var")
    centred = masked(e.subtract(x, mean(x, axis, keepdims=True, where=where)), where, 0)
    squares = p.square(centred) if not dtypes.is_complex(type_of(x).dtype) else p.real(p.mul(centred, p.conj(centred)))
    total = reduced(reduce_sum, squares, axis, keepdims, "var")
    freedom = e.subtract(_weight(x, axis, keepdims, where, "var"), ddof if correction is None else correction)
    return astype(e.divide(total, e.maximum(freedom, 0)), dtypes.real_of(own))


@composite
def std(
    x: Any, axis: Axis = None, dtype: Any = None, *, ddof: float = 0, keepdims: bool = False, where: Any = None,
    correction: float | None = None,
) -> Any:  # fmt: skip
    """The standard deviation: the root of the variance, with the same arguments.

    Args:
        x, axis, dtype, ddof, keepdims, where, correction: as for ``var``.

    Returns:
        An array of the remaining axes; real: of the dtype of ``x``, of the parts of complex numbers, float32 of bools
        and integers, or of ``dtype``.

    Raises:
        TypeError: for operands that are not arrays, an axis that is not an int, or an unknown dtype.
        ValueError: for an axis out of range or repeated, or a mask that does not broadcast.

    Example:
        >>> print(std(np.array([1.0, 3.0])))
        1.0
    """
    variance = var(x, axis, dtype, ddof=ddof, keepdims=keepdims, where=where, correction=correction)
    # For constant elements the root has no derivative; it is defined as 0, as that of a norm.
    zero = p.eq(variance, p.number(0, variance))
    return p.select(zero, p.number(0, variance), p.sqrt(p.select(zero, p.number(1, variance), variance)))


__all__ = ["mean", "std", "var"]
