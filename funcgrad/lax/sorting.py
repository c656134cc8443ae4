"""Sorting, top k, argmin and argmax."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from funcgrad.arguments import validate
from funcgrad.core import dtypes
from funcgrad.core.tracing import type_of
from funcgrad.lax.operands import checked
from funcgrad.primitives import elementwise as p
from funcgrad.primitives import reductions as r
from funcgrad.primitives import sorting
from funcgrad.primitives.shape import moved

__all__ = ["approx_max_k", "approx_min_k", "argmax", "argmin", "sort", "sort_key_val", "top_k"]


def sort(operand: Any, dimension: int = -1, is_stable: bool = True, num_keys: int = 1) -> Any:
    """An array sorted along an axis in ascending order; or several, by the first of them.

    Args:
        operand: an array, or a sequence of arrays of one shape.
        dimension: the axis.
        is_stable: whether equal elements keep their order.
        num_keys: the number of arrays that are sort keys, in order of precedence.

    Returns:
        An array of that shape and dtype, NaN last; for a sequence, a tuple of them.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: for different shapes, an axis out of range, or more keys than arrays.

    Example:
        >>> import numpy as np
        >>> print(*sort((np.array([2, 1, 2]), np.array([3, 4, 1])), num_keys=2))
        [1 2 2] [4 1 3]
    """
    several = isinstance(operand, Sequence)
    xs = [checked("sort", x) for x in (operand if several else [operand])]
    if not xs:
        raise ValueError("sort: there are no arrays")
    axis = validate.axis("sort", dimension, type_of(xs[0]).ndim)
    found = sorting.sort(*xs, axis=axis, keys=int(num_keys), stable=bool(is_stable))
    return tuple(found) if several else found[0]


def sort_key_val(keys: Any, values: Any, dimension: int = -1, is_stable: bool = True) -> tuple[Any, Any]:
    """Two arrays, sorted by the first.

    Args:
        keys, values: arrays of one shape.
        dimension, is_stable: as for ``sort``.

    Returns:
        Both, in ascending order of the keys along the axis.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: for different shapes, or an axis out of range.

    Example:
        >>> import numpy as np
        >>> print(*sort_key_val(np.array([2, 1]), np.array([5.0, 6.0])))
        [1 2] [6. 5.]
    """
    first, second = sort((keys, values), dimension, is_stable)
    return first, second


def top_k(operand: Any, k: int, *, axis: int = -1) -> tuple[Any, Any]:
    """The ``k`` largest elements along an axis in descending order, and their positions.

    Args:
        operand: an array of real numbers or bools; NaN is larger than all numbers.
        k: the number of elements, static.
        axis: along which.

    Returns:
        Two arrays, with ``k`` elements along the axis: of the operand's dtype, and int32.

    Raises:
        TypeError: for operands that are not arrays, and complex numbers.
        ValueError: for a ``k`` larger than the axis, or an axis out of range.

    Example:
        >>> import numpy as np
        >>> print(*top_k(np.array([3.0, 1.0, 5.0]), 2))
        [5. 3.] [2 0]
    """
    x = checked("top_k", operand)
    along = validate.axis("top_k", axis, type_of(x).ndim)
    last = type_of(x).ndim - 1
    values, places = sorting.top_k(moved(x, along, last), k=int(k))
    return moved(values, last, along), moved(places, last, along)


def approx_max_k(
    operand: Any,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> tuple[Any, Any]:
    """As ``top_k``: the result is exact, whatever the recall target.

    Args:
        operand: an array of floating-point numbers.
        k: the number of elements, static.
        reduction_dimension: the axis.
        recall_target, reduction_input_size_override, aggregate_to_topk: ignored, as the result is exact.

    Returns:
        As for ``top_k``.

    Raises:
        TypeError: for operands that are not arrays, or not of floating-point numbers.
        ValueError: for a ``k`` larger than the axis, or an axis out of range.

    Example:
        >>> import numpy as np
        >>> print(*approx_max_k(np.array([3.0, 1.0, 5.0]), 1))
        [5.] [2]
    """
    if not dtypes.is_floating(type_of(checked("approx_max_k", operand)).dtype):
        raise TypeError(f"approx_max_k: takes floating numbers, got {type_of(operand)}")
    return top_k(operand, k, axis=reduction_dimension)


def approx_min_k(
    operand: Any,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> tuple[Any, Any]:
    """The ``k`` smallest elements along an axis, and their positions: exact, whatever the recall target.

    Args:
        operand: an array of floating-point numbers.
        k, reduction_dimension: as for ``approx_max_k``.
        recall_target, reduction_input_size_override, aggregate_to_topk: ignored, as the result is exact.

    Returns:
        As for ``top_k``, in ascending order.

    Raises:
        TypeError: for operands that are not arrays, or not of floating-point numbers.
        ValueError: for a ``k`` larger than the axis, or an axis out of range.

    Example:
        >>> import numpy as np
        >>> print(*approx_min_k(np.array([3.0, 1.0, 5.0]), 2))
        [1. 3.] [1 0]
    """
    if not dtypes.is_floating(type_of(checked("approx_min_k", operand)).dtype):
        raise TypeError(f"approx_min_k: takes floating numbers, got {type_of(operand)}")
    values, places = top_k(p.neg(operand), k, axis=reduction_dimension)
    return p.neg(values), places


def _arg_extreme(name: str, primitive: Any, operand: Any, axis: int, index_dtype: Any) -> Any:
    x, dtype = checked(name, operand), dtypes.canonical(index_dtype)
    if not dtypes.is_integer(dtype):
        raise TypeError(f"{name}: index_dtype must be of integers, got {dtype}")
    return primitive(x, axis=validate.axis(name, axis, type_of(x).ndim), dtype=dtype)


def argmax(operand: Any, axis: int, index_dtype: Any) -> Any:
    """The position of the largest element along an axis; the first one of equal elements.

    Args:
        operand: an array of real numbers or bools; NaN is larger than all numbers.
        axis: along which.
        index_dtype: the integer dtype of the result.

    Returns:
        An array without that axis.

    Raises:
        TypeError: for operands that are not arrays, complex numbers, or another dtype.
        ValueError: for an axis out of range or empty.

    Example:
        >>> import numpy as np
        >>> print(argmax(np.array([[3.0, 1.0], [0.0, 5.0]]), 1, "int32"))
        [0 1]
    """
    return _arg_extreme("argmax", r.argmax, operand, axis, index_dtype)


def argmin(operand: Any, axis: int, index_dtype: Any) -> Any:
    """The position of the smallest element along an axis; the first one of equal elements.

    Args:
        operand, axis, index_dtype: as for ``argmax``.

    Returns:
        An array without that axis.

    Raises:
        TypeError: for operands that are not arrays, complex numbers, or another dtype.
        ValueError: for an axis out of range or empty.

    Example:
        >>> import numpy as np
        >>> print(argmin(np.array([[3.0, 1.0], [0.0, 5.0]]), 1, "int32"))
        [1 0]
    """
    return _arg_extreme("argmin", r.argmin, operand, axis, index_dtype)
