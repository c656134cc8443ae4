"""Creating arrays, and their properties: constants, ranges, dtypes, shapes, bit casts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from funcgrad.arguments import validate
from funcgrad.core import dtypes
from funcgrad.core.tracing import type_of, typed
from funcgrad.lax.operands import checked, sizes_of
from funcgrad.numpy.promotion import astype, placed
from funcgrad.primitives import elementwise as p
from funcgrad.primitives import shape as s
from funcgrad.primitives.elementwise import broadcast_shapes as _broadcast_shapes

__all__ = [
    "bitcast_convert_type", "broadcast_shapes", "broadcasted_iota", "dtype", "empty", "full", "full_like", "iota",
    "shape_as_value",
]  # fmt: skip

# ---------------------------------------------------------------- constants


def full(shape: Sequence[int], fill_value: Any, dtype: Any = None, *, sharding: Any = None) -> Any:
    """An array filled with a number.

    Args:
        shape: of the result.
        fill_value: a scalar array or number.
        dtype: of the result; by default that of the number.
        sharding: a device or sharding for the result.

    Returns:
        An array of that shape and dtype.

    Raises:
        TypeError: for sizes that are not integers, or a ``fill_value`` that is not a number.
        ValueError: for negative sizes, or a ``fill_value`` that is not a scalar.

    Example:
        >>> print(full((2, 2), 3, "float32"))
        [[3. 3.]
         [3. 3.]]
    """
    sizes, value = sizes_of("full", shape), typed(checked("full", fill_value))
    if type_of(value).shape:
        raise ValueError(f"full: the number must have no axes, got {type_of(value)}")
    return placed(s.full(value if dtype is None else astype(value, dtypes.canonical(dtype)), sizes), sharding)


def full_like(
    x: Any, fill_value: Any, dtype: Any = None, shape: Sequence[int] | None = None, sharding: Any = None
) -> Any:
    """An array filled with a number, with the shape and dtype of another.

    Args:
        x: an array, or an object with a ``shape`` and a ``dtype``.
        fill_value: a scalar array or number.
        dtype, shape: override those of ``x``.
        sharding: a device or sharding for the result.

    Returns:
        An array of that shape and dtype.

    Raises:
        TypeError: for sizes that are not integers, or a ``fill_value`` that is not a number.
        ValueError: for negative sizes, or a ``fill_value`` that is not a scalar.

    Example:
        >>> print(full_like(np.zeros(2, "int32"), 7))
        [7 7]
    """
    like = x if hasattr(x, "shape") and hasattr(x, "dtype") else type_of(checked("full_like", x))
    return full(
        like.shape if shape is None else shape, fill_value, like.dtype if dtype is None else dtype, sharding=sharding
    )


def empty(shape: Sequence[int], dtype: Any) -> Any:
    """An array to be filled later: zeros.

    Args:
        shape, dtype: of the result.

    Returns:
        An array of that shape and dtype.

    Raises:
        TypeError: for sizes that are not integers, or an unknown dtype.
        ValueError: for negative sizes.

    Example:
        >>> print(empty((2,), "int32"))
        [0 0]
    """
    return full(shape, 0, dtype)


def iota(dtype: Any, size: int) -> Any:
    """The integers from 0.

    Args:
        dtype: of the result.
        size: the number of elements.

    Returns:
        A vector of that size and dtype.

    Raises:
        TypeError: for a size that is not an integer, or an unknown dtype.
        ValueError: for a negative size.

    Example:
        >>> print(iota("float32", 3))
        [0. 1. 2.]
    """
    return broadcasted_iota(dtype, (size,), 0)


def broadcasted_iota(dtype: Any, shape: Sequence[int], dimension: int) -> Any:
    """The integers from 0 along one axis, repeated along the others.

    Args:
        dtype, shape: of the result.
        dimension: the axis.

    Returns:
        An array of that shape and dtype.

    Raises:
        TypeError: for sizes that are not integers, or an unknown dtype, or bool.
        ValueError: for negative sizes, or an axis out of range.

    Example:
        >>> print(broadcasted_iota("int32", (2, 3), 1))
        [[0 1 2]
         [0 1 2]]
    """
    sizes, kind = sizes_of("broadcasted_iota", shape), dtypes.canonical(dtype)
    if kind == dtypes.bool_:
        raise TypeError("broadcasted_iota: bools cannot count")
    return s.iota(shape=sizes, axis=validate.axis("broadcasted_iota", dimension, len(sizes)), dtype=kind)


def dtype(x: Any) -> np.dtype:
    """The dtype of an array or number.

    Args:
        x: an array or number.

    Returns:
        A ``numpy.dtype``.

    Raises:
        TypeError: for anything else.

    Example:
        >>> dtype(1.0), dtype(np.zeros(2, "int8"))
        (dtype('float32'), dtype('int8'))
    """
    return type_of(checked("dtype", x)).dtype


def shape_as_value(shape: Sequence[int]) -> Any:
    """A shape as an array.

    Args:
        shape: integers.

    Returns:
        A vector of int32s.

    Raises:
        TypeError: for sizes that are not integers.
        ValueError: for negative ones.

    Example:
        >>> print(shape_as_value((2, 3)))
        [2 3]
    """
    return np.asarray(sizes_of("shape_as_value", shape), np.int32)


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """The shape that several shapes broadcast to, by NumPy's rule.

    Args:
        shapes: sequences of integers.

    Returns:
        A tuple; ``()`` for no shapes.

    Raises:
        TypeError: for sizes that are not integers.
        ValueError: where they do not broadcast.

    Example:
        >>> broadcast_shapes((2, 1), (3,))
        (2, 3)
    """
    sizes = [sizes_of("broadcast_shapes", shape) for shape in shapes]
    return _broadcast_shapes("broadcast_shapes", *sizes) if sizes else ()


# ---------------------------------------------------------------- bit casts


def bitcast_convert_type(operand: Any, new_dtype: Any) -> Any:
    """The same bits as another dtype.

    Args:
        operand: a real array or number.
        new_dtype: a dtype of the same width; for a narrower one the parts of an element, lowest first, form a new last
            axis; for a wider one the last axis, which holds the parts, is removed.

    Returns:
        An array of that dtype.

    Raises:
        TypeError: for operands that are not arrays, and for bools and complex numbers.
        ValueError: if the last axis does not have the right size for a wider dtype.

    Example:
        >>> print(bitcast_convert_type(np.float32(1), "int32"), bitcast_convert_type(np.uint16(258), "uint8"))
        1065353216 [2 1]
    """
    x, new = typed(checked("bitcast_convert_type", operand)), dtypes.canonical(new_dtype)
    old = type_of(x).dtype
    if {old.kind, new.kind} & {"b", "c"}:
        raise TypeError(f"bitcast_convert_type: takes and makes real numbers, got {type_of(x)} and {new}")
    if old.itemsize == new.itemsize:
        return p.bitcast(x, dtype=new)
    wide, narrow = (_bits(max(old.itemsize, new.itemsize)), _bits(min(old.itemsize, new.itemsize)))
    count = wide.itemsize // narrow.itemsize
    places = np.arange(count, dtype=wide) * wide.type(8 * narrow.itemsize)
    bits = p.bitcast(x, dtype=_bits(old.itemsize))
    if old.itemsize > new.itemsize:
        shifted = p.shift_right_logical(s.expanded(bits, type_of(x).ndim), places)
        return p.bitcast(p.cast(shifted, dtype=narrow), dtype=new)
    if not type_of(x).ndim or type_of(x).shape[-1] != count:
        raise ValueError(f"bitcast_convert_type: {count} elements of {old} make one of {new}, got {type_of(x)}")
    shifted = p.shift_left(p.cast(bits, dtype=wide), places)
    return p.bitcast(s.reduce_sum(shifted, axes=(type_of(x).ndim - 1,)), dtype=new)


def _bits(size: int) -> np.dtype:
    return next(t for t in dtypes.UNSIGNED if t.itemsize == size)
