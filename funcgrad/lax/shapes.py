"""Shape operations: reshaping, axes, joining and padding."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from funcgrad.arguments import validate
from funcgrad.core.tracing import type_of
from funcgrad.lax.operands import axes_of, checked, same_dtype, sizes_of
from funcgrad.primitives import shape as s

__all__ = [
    "broadcast", "broadcast_in_dim", "broadcast_like", "broadcast_to_rank", "collapse", "concatenate", "expand_dims",
    "pad", "reshape", "rev", "split", "squeeze", "stack", "tile", "transpose", "unstack",
]  # fmt: skip

# ---------------------------------------------------------------- axes


def reshape(operand: Any, new_sizes: Sequence[int], dimensions: Sequence[int] | None = None) -> Any:
    """The elements in the same order, in another shape.

    Args:
        operand: an array.
        new_sizes: the shape.
        dimensions: the order in which the operand's axes are read, the last one fastest.

    Returns:
        An array of that shape and the operand's dtype.

    Raises:
        TypeError: for operands that are not arrays, or sizes that are not integers.
        ValueError: for a different number of elements, a size of -1, or an order that is not a permutation.

    Example:
        >>> import numpy as np
        >>> print(reshape(np.array([[1, 2], [3, 4]]), (4,), (1, 0)))
        [1 3 2 4]
    """
    x, sizes = checked("reshape", operand), sizes_of("reshape", new_sizes)
    if dimensions is not None:
        x = transpose(x, dimensions)
    return s.reshape(x, shape=sizes)


def transpose(operand: Any, permutation: Sequence[int]) -> Any:
    """An array with its axes in another order.

    Args:
        operand: an array.
        permutation: for each axis of the result, the operand's.

    Returns:
        An array of the operand's dtype.

    Raises:
        TypeError: for operands that are not arrays, or axes that are not integers.
        ValueError: if they are not a permutation of the operand's axes.

    Example:
        >>> import numpy as np
        >>> transpose(np.zeros((2, 3, 4)), (2, 0, 1)).shape
        (4, 2, 3)
    """
    x = checked("transpose", operand)
    return s.transpose(x, permutation=axes_of("transpose", permutation, type_of(x).ndim))


def expand_dims(array: Any, dimensions: Sequence[int]) -> Any:
    """An array with additional axes of size 1.

    Args:
        array: an array.
        dimensions: their positions in the result.

    Returns:
        An array of the same dtype.

    Raises:
        TypeError: for operands that are not arrays, or axes that are not integers.
        ValueError: for axes out of range or repeated.

    Example:
        >>> import numpy as np
        >>> expand_dims(np.zeros((2, 3)), (0, -1)).shape
        (1, 2, 3, 1)
    """
    x = checked("expand_dims", array)
    shape = type_of(x).shape
    new = axes_of("expand_dims", dimensions, len(shape) + len(dimensions))
    old = iter(shape)
    return s.reshape(x, shape=tuple(1 if d in new else next(old) for d in range(len(shape) + len(new))))


def squeeze(array: Any, dimensions: Sequence[int]) -> Any:
    """An array without some of its axes of size 1.

    Args:
        array: an array.
        dimensions: the axes.

    Returns:
        An array of the same dtype.

    Raises:
        TypeError: for operands that are not arrays, or axes that are not integers.
        ValueError: for axes out of range, given twice, or of another size.

    Example:
        >>> import numpy as np
        >>> squeeze(np.zeros((1, 2, 1)), (0,)).shape
        (2, 1)
    """
    x = checked("squeeze", array)
    shape = type_of(x).shape
    gone = axes_of("squeeze", dimensions, len(shape))
    if any(shape[d] != 1 for d in gone):
        raise ValueError(f"squeeze: axes {gone} of {type_of(x)} are not all of size 1")
    return s.reshape(x, shape=tuple(n for d, n in enumerate(shape) if d not in gone))


def collapse(operand: Any, start_dimension: int, stop_dimension: int | None = None) -> Any:
    """Merges adjacent axes.

    Args:
        operand: an array.
        start_dimension: the first axis.
        stop_dimension: the axis after the last one; by default the end.

    Returns:
        An array of the same dtype.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: for axes out of range, or an empty range.

    Example:
        >>> import numpy as np
        >>> collapse(np.zeros((2, 3, 4)), 1).shape
        (2, 12)
    """
    x = checked("collapse", operand)
    shape = type_of(x).shape
    start, stop, _ = slice(start_dimension, stop_dimension).indices(len(shape))
    if stop <= start:
        raise ValueError(f"collapse: there is no axis from {start_dimension} to {stop_dimension} of {type_of(x)}")
    return s.reshape(x, shape=(*shape[:start], math.prod(shape[start:stop]), *shape[stop:]))


def rev(operand: Any, dimensions: Sequence[int]) -> Any:
    """An array reversed along some axes.

    Args:
        operand: an array.
        dimensions: the axes.

    Returns:
        An array of the same shape and dtype.

    Raises:
        TypeError: for operands that are not arrays, or axes that are not integers.
        ValueError: for axes out of range or repeated.

    Example:
        >>> import numpy as np
        >>> print(rev(np.array([1, 2, 3]), (0,)))
        [3 2 1]
    """
    x = checked("rev", operand)
    return s.reverse(x, axes=axes_of("rev", dimensions, type_of(x).ndim))


# ---------------------------------------------------------------- broadcasting


def broadcast_in_dim(operand: Any, shape: Sequence[int], broadcast_dimensions: Sequence[int]) -> Any:
    """An array broadcast along new axes, and along those where its size is 1.

    Args:
        operand: an array.
        shape: of the result.
        broadcast_dimensions: the result's axis for each axis of the operand; increasing.

    Returns:
        An array of that shape and the operand's dtype.

    Raises:
        TypeError: for operands that are not arrays, or sizes or axes that are not integers.
        ValueError: if the operand's shape is incompatible.

    Example:
        >>> import numpy as np
        >>> print(broadcast_in_dim(np.array([1, 2]), (2, 2), (0,)))
        [[1 1]
         [2 2]]
    """
    x, sizes = checked("broadcast_in_dim", operand), sizes_of("broadcast_in_dim", shape)
    dims = axes_of("broadcast_in_dim", broadcast_dimensions, len(sizes))
    if list(dims) != sorted(dims):
        raise ValueError(f"broadcast_in_dim: axes must be increasing, got {dims}; see transpose")
    return s.broadcast(x, shape=sizes, dims=dims)


def broadcast(operand: Any, sizes: Sequence[int]) -> Any:
    """An array broadcast along new leading axes.

    Args:
        operand: an array.
        sizes: the sizes of the new axes.

    Returns:
        An array of the same dtype.

    Raises:
        TypeError: for operands that are not arrays, or sizes that are not integers.
        ValueError: for negative sizes.

    Example:
        >>> import numpy as np
        >>> print(broadcast(np.array([1, 2]), (2,)))
        [[1 2]
         [1 2]]
    """
    x, new = checked("broadcast", operand), sizes_of("broadcast", sizes)
    shape = (*new, *type_of(x).shape)
    return s.broadcast(x, shape=shape, dims=tuple(range(len(new), len(shape))))


def broadcast_to_rank(x: Any, rank: int) -> Any:
    """An array with new leading axes of size 1.

    Args:
        x: an array.
        rank: the number of axes of the result.

    Returns:
        An array of the same dtype.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: for fewer axes than the operand has.

    Example:
        >>> import numpy as np
        >>> broadcast_to_rank(np.zeros(2), 3).shape
        (1, 1, 2)
    """
    x = checked("broadcast_to_rank", x)
    missing = rank - type_of(x).ndim
    if missing < 0:
        raise ValueError(f"broadcast_to_rank: {type_of(x)} has more than {rank} axes")
    return s.reshape(x, shape=(*(1,) * missing, *type_of(x).shape))


def broadcast_like(arr: Any, like_arr: Any) -> Any:
    """An array broadcast to the shape of another, by NumPy's rule.

    Args:
        arr: an array.
        like_arr: another.

    Returns:
        An array of the shape of ``like_arr`` and the dtype of ``arr``.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: where it does not broadcast to that shape.

    Example:
        >>> import numpy as np
        >>> print(broadcast_like(np.array([1, 2]), np.zeros((2, 2))))
        [[1 2]
         [1 2]]
    """
    x, shape = checked("broadcast_like", arr), type_of(checked("broadcast_like", like_arr)).shape
    missing = len(shape) - type_of(x).ndim
    if missing < 0:
        raise ValueError(f"broadcast_like: {type_of(x)} has more axes than the shape {shape}")
    return s.broadcast(x, shape=shape, dims=tuple(range(missing, len(shape))))


def tile(operand: Any, reps: Sequence[int]) -> Any:
    """An array repeated along each axis.

    Args:
        operand: an array.
        reps: the number of repetitions for each axis.

    Returns:
        An array of the same dtype.

    Raises:
        TypeError: for operands that are not arrays, or numbers that are not integers.
        ValueError: for negative repetitions, or not one for each axis.

    Example:
        >>> import numpy as np
        >>> print(tile(np.array([1, 2]), (2,)))
        [1 2 1 2]
    """
    x, times = checked("tile", operand), sizes_of("tile", reps)
    shape = type_of(x).shape
    if len(times) != len(shape):
        raise ValueError(f"tile: reps {times} must have an entry for each axis of {type_of(x)}")
    both = tuple(n for pair in zip(times, shape, strict=True) for n in pair)
    spread = s.broadcast(x, shape=both, dims=tuple(range(1, len(both), 2)))
    return s.reshape(spread, shape=tuple(r * n for r, n in zip(times, shape, strict=True)))


# ---------------------------------------------------------------- joining and splitting


def concatenate(operands: Sequence[Any], dimension: int) -> Any:
    """Arrays joined along an existing axis.

    Args:
        operands: at least one array; all of one dtype, and of one shape except for that axis.
        dimension: the axis.

    Returns:
        An array of that dtype.

    Raises:
        TypeError: for operands that are not arrays, or different dtypes.
        ValueError: for no arrays, incompatible shapes, or an axis out of range.

    Example:
        >>> import numpy as np
        >>> print(concatenate([np.array([1, 2]), np.array([3])], 0))
        [1 2 3]
    """
    if not len(operands):
        raise ValueError("concatenate: there are no arrays")
    xs = same_dtype("concatenate", *operands)
    return s.concatenate(*xs, axis=validate.axis("concatenate", dimension, type_of(xs[0]).ndim))


def stack(operands: Sequence[Any], axis: int = 0) -> Any:
    """Arrays joined along a new axis.

    Args:
        operands: at least one array; all of one dtype and one shape.
        axis: the position of the new axis in the result.

    Returns:
        An array of that dtype.

    Raises:
        TypeError: for operands that are not arrays, or different dtypes.
        ValueError: for no arrays, different shapes, or an axis out of range.

    Example:
        >>> import numpy as np
        >>> print(stack([np.array([1, 2]), np.array([3, 4])], 1))
        [[1 3]
         [2 4]]
    """
    return concatenate([expand_dims(x, (axis,)) for x in operands], axis)


def split(operand: Any, sizes: Sequence[int], axis: int = 0) -> list[Any]:
    """The parts of an array along an axis.

    Args:
        operand: an array.
        sizes: the size of each part.
        axis: the axis to split.

    Returns:
        A list of arrays of the same dtype.

    Raises:
        TypeError: for operands that are not arrays, or sizes that are not integers.
        ValueError: for an axis out of range, or sizes whose sum is not the axis's size.

    Example:
        >>> import numpy as np
        >>> print(*split(np.array([1, 2, 3]), (1, 2)))
        [1] [2 3]
    """
    x, lengths = checked("split", operand), sizes_of("split", sizes)
    shape = type_of(x).shape
    along = validate.axis("split", axis, len(shape))
    if sum(lengths) != shape[along]:
        raise ValueError(
            f"split: parts of {lengths} are not the {shape[along]} elements of {type_of(x)} along axis {along}"
        )
    parts, start = [], 0
    for n in lengths:
        parts.append(s.cut(x, along, start, start + n))
        start += n
    return parts


def unstack(x: Any, axis: int = 0) -> tuple[Any, ...]:
    """The slices of an array along an axis, which is removed.

    Args:
        x: an array.
        axis: the axis.

    Returns:
        A tuple of arrays of the same dtype.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: for an axis out of range.

    Example:
        >>> import numpy as np
        >>> print(*unstack(np.array([[1, 2], [3, 4]])))
        [1 2] [3 4]
    """
    x = checked("unstack", x)
    along = validate.axis("unstack", axis, type_of(x).ndim)
    return tuple(squeeze(part, (along,)) for part in split(x, (1,) * type_of(x).shape[along], along))


def pad(operand: Any, padding_value: Any, padding_config: Sequence[tuple[int, int, int]]) -> Any:
    """An array padded at both ends and between elements.

    Args:
        operand: an array.
        padding_value: a scalar of the operand's dtype.
        padding_config: for each axis the padding before, after, and between elements; negative padding at the ends
            crops.

    Returns:
        An array of the same dtype.

    Raises:
        TypeError: for operands that are not arrays, or a padding value of another dtype.
        ValueError: for a non-scalar value, not three numbers for each axis, or too much cropping.

    Example:
        >>> import numpy as np
        >>> print(pad(np.array([1, 2]), 0, [(1, 0, 1)]))
        [0 1 0 2]
    """
    x, value = same_dtype("pad", operand, padding_value)
    config = [tuple(map(int, entry)) for entry in padding_config]
    if len(config) != type_of(x).ndim or any(len(entry) != 3 or entry[2] < 0 for entry in config):
        raise ValueError(
            f"pad: wants (before, after, between) for each axis of {type_of(x)}, none between negative, got {config}"
        )
    if type_of(value).shape:
        raise ValueError(f"pad: the number must have no axes, got {type_of(value)}")
    low, high, interior = (tuple(entry[i] for entry in config) for i in range(3))
    return s.pad(x, value, low=low, high=high, interior=interior)
