"""Sums, products, logical reductions and counts."""

from __future__ import annotations

from typing import Any

from funcgrad.numpy import elementwise as e
from funcgrad.numpy.reductions.reducing import Axis, masked, reduced, summable
from funcgrad.primitives import reductions as r
from funcgrad.primitives.shape import reduce_sum
from funcgrad.runtime.call_cache import composite


def sum(
    x: Any, axis: Axis = None, dtype: Any = None, *, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Any:
    """The sum over axes, by default over all.

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
        >>> print(sum([[1.0, 2.0], [3.0, 4.0]], axis=0))
        [4. 6.]
    """
    x = masked(summable(x, dtype, "sum"), where, 0)
    total = reduced(reduce_sum, x, axis, keepdims, "sum")
    return total if initial is None else e.add(total, initial)


def prod(
    x: Any, axis: Axis = None, dtype: Any = None, *, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Any:
    """The product over axes, by default over all; differentiable at zero factors too.

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
        >>> print(prod([2.0, 3.0]))
        6.0
    """
    x = masked(summable(x, dtype, "prod"), where, 1)
    product = reduced(r.reduce_prod, x, axis, keepdims, "prod")
    return product if initial is None else e.multiply(product, initial)


@composite
def all(x: Any, axis: Axis = None, *, keepdims: bool = False, where: Any = None) -> Any:
    """Whether all elements are nonzero; ``where`` selects the elements to include.

    Args:
        x: an array or number of any dtype.
        axis: one or several; by default all.
        keepdims: whether to keep the axes, with size 1.
        where: a mask, True for the elements to include; it broadcasts with ``x``.

    Returns:
        An array of the remaining axes, of bools.

    Raises:
        TypeError: for operands that are not arrays, or an axis that is not an int.
        ValueError: for an axis out of range or repeated, or a mask that does not broadcast.

    Example:
        >>> print(all([True, False]), all([[1, 0], [1, 1]], axis=1))
        False [False  True]
    """
    return reduced(r.reduce_all, masked(e.not_equal(x, 0), where, True), axis, keepdims, "all")


@composite
def any(x: Any, axis: Axis = None, *, keepdims: bool = False, where: Any = None) -> Any:
    """Whether any element is nonzero; ``where`` selects the elements to include.

    Args:
        x: an array or number of any dtype.
        axis: one or several; by default all.
        keepdims: whether to keep the axes, with size 1.
        where: a mask, True for the elements to include; it broadcasts with ``x``.

    Returns:
        An array of the remaining axes, of bools.

    Raises:
        TypeError: for operands that are not arrays, or an axis that is not an int.
        ValueError: for an axis out of range or repeated, or a mask that does not broadcast.

    Example:
        >>> print(any([True, False]), any([[0, 0], [1, 1]], axis=1))
        True [False  True]
    """
    return reduced(r.reduce_any, masked(e.not_equal(x, 0), where, False), axis, keepdims, "any")


@composite
def count_nonzero(x: Any, axis: Axis = None, *, keepdims: bool = False) -> Any:
    """The number of nonzero elements.

    Args:
        x: an array or number of any dtype.
        axis: one or several; by default all.
        keepdims: whether to keep the axes, with size 1.

    Returns:
        An array of the remaining axes, int64.

    Raises:
        TypeError: for operands that are not arrays, or an axis that is not an int.
        ValueError: for an axis out of range or repeated.

    Example:
        >>> print(count_nonzero([0, 3, 5]))
        2
    """
    return sum(e.not_equal(x, 0), axis, keepdims=keepdims)


__all__ = ["all", "any", "count_nonzero", "prod", "sum"]
