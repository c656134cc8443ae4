"""The shape of an array, and reshaping."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from funcgrad.arguments import validate
from funcgrad.core.tracing import type_of
from funcgrad.numpy.promotion import asoperand
from funcgrad.numpy.shape.axes import transpose
from funcgrad.primitives import shape as s
from funcgrad.primitives.shape import Dims


def shape(x: Any) -> Dims:
    """The shape: the size of each axis.

    Args:
        x: an array or number.

    Returns:
        A tuple of Python ints, for a traced array too.

    Raises:
        TypeError: for operands that are not arrays.

    Example:
        >>> shape([[1, 2]])
        (1, 2)
    """
    return type_of(asoperand(x, "shape")).shape


def ndim(x: Any) -> int:
    """The number of axes.

    Args:
        x: an array or number.

    Returns:
        A Python int, for a traced array too.

    Raises:
        TypeError: for operands that are not arrays.

    Example:
        >>> ndim([[1, 2]])
        2
    """
    return type_of(asoperand(x, "ndim")).ndim


def size(x: Any, axis: int | tuple[int, ...] | None = None) -> int:
    """The number of elements, or the product of the sizes of some axes.

    Args:
        x: an array or number.
        axis: one or several; by default all.

    Returns:
        A Python int, for a traced array too.

    Raises:
        TypeError: for operands that are not arrays, or an axis that is not an int.
        ValueError: for an axis out of range or repeated.

    Example:
        >>> size([[1, 2]])
        2
    """
    mine = type_of(asoperand(x, "size"))
    return mine.size if axis is None else math.prod(mine.shape[a] for a in validate.axes("size", axis, mine.ndim))


def reshape(x: Any, /, shape: Any, *more: int, order: str = "C", copy: bool | None = None) -> Any:
    """The array in another shape, with its elements in the same order; one size may be -1.

    Args:
        x: an array or number.
        shape, more: the sizes, as a sequence or as separate arguments.
        order: ``"C"``, row-major, for ``x`` and the result; ``"F"``, column-major.
        copy: ignored, as arrays are immutable.

    Returns:
        An array of that shape and the dtype of ``x``.

    Raises:
        TypeError: for operands that are not arrays, or sizes that are not ints.
        ValueError: for a different number of elements, an unknown order, and negative sizes other than a single -1.

    Example:
        >>> print(reshape([0, 1, 2, 3], (2, -1)))
        [[0 1]
         [2 3]]
    """
    x = asoperand(x, "reshape")
    wanted = validate.integers("reshape", "shape", (shape, *more) if more else shape)
    validate.one_of("reshape", "order", order, ("C", "F", "A", "K", "c", "f"))
    total = type_of(x).size
    if -1 in wanted:
        known = math.prod(n for n in wanted if n != -1)
        if wanted.count(-1) > 1 or known == 0 or total % known:
            raise ValueError(f"reshape: cannot give {type_of(x)} the shape {wanted}")
        wanted = tuple(total // known if n == -1 else n for n in wanted)
    if order in ("F", "f"):
        return transpose(reshape(transpose(x), wanted[::-1]))
    return x if type_of(x).shape == wanted else s.reshape(x, shape=wanted)


def ravel(x: Any, order: str = "C") -> Any:
    """The flattened array.

    Args:
        x: an array or number.
        order: as for ``reshape``.

    Returns:
        A vector of the dtype of ``x``.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: for an unknown order.

    Example:
        >>> print(ravel([[1, 2], [3, 4]]), ravel([[1, 2], [3, 4]], "F"))
        [1 2 3 4] [1 3 2 4]
    """
    x = asoperand(x, "ravel")
    return reshape(x, (type_of(x).size,), order=order)


def along_axis(x: Any, axis: int | None, name: str) -> tuple[Any, int]:
    """``x`` and a non-negative axis of it; for None, the flattened array and its axis."""
    x = asoperand(x, name)
    return (ravel(x), 0) if axis is None else (x, validate.axis(name, axis, type_of(x).ndim))


def expand_dims(x: Any, /, axis: Any = 0) -> Any:
    """The array with axes of size one inserted.

    Args:
        x: an array or number.
        axis: their positions in the result: one or several.

    Returns:
        An array of the dtype of ``x``, with these axes.

    Raises:
        TypeError: for operands that are not arrays, or an axis that is not an int.
        ValueError: for an axis out of range of the result, or repeated.

    Example:
        >>> expand_dims([1, 2, 3], (0, -1)).shape
        (1, 3, 1)
    """
    x = asoperand(x, "expand_dims")
    mine = type_of(x).shape
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    total = len(mine) + len(axes)
    places = validate.axes("expand_dims", tuple(axes), total)
    rest = iter(mine)
    return reshape(x, tuple(1 if i in places else next(rest) for i in range(total)))


def squeeze(x: Any, axis: Any = None) -> Any:
    """The array with axes of size one removed: all, or the given ones.

    Args:
        x: an array or number.
        axis: one or several, of size one; by default all of size one.

    Returns:
        An array of the dtype of ``x``.

    Raises:
        TypeError: for operands that are not arrays, or an axis that is not an int.
        ValueError: for an axis that is not of size one, out of range or repeated.

    Example:
        >>> squeeze([[[1], [2], [3]]]).shape
        (3,)
    """
    x = asoperand(x, "squeeze")
    mine = type_of(x).shape
    axes = tuple(i for i, n in enumerate(mine) if n == 1) if axis is None else validate.axes("squeeze", axis, len(mine))
    for a in axes:
        if mine[a] != 1:
            raise ValueError(f"squeeze: axis {a} of {type_of(x)} is of size {mine[a]}, wanted 1")
    return reshape(x, tuple(n for i, n in enumerate(mine) if i not in axes))


def _each(function: Callable[[Any], Any], arrays: Sequence[Any], name: str) -> Any:
    found = tuple(function(asoperand(x, name)) for x in arrays)
    return found[0] if len(found) == 1 else found


def atleast_1d(*arrays: Any) -> Any:
    """Arrays with at least one axis; a tuple for several arguments.

    Args:
        arrays: arrays or numbers.

    Returns:
        An array of the dtype of the argument; for several, or none, a tuple.

    Raises:
        TypeError: for operands that are not arrays.

    Example:
        >>> atleast_1d(3).shape
        (1,)
    """
    return _each(lambda x: x if ndim(x) >= 1 else reshape(x, (1,)), arrays, "atleast_1d")


def atleast_2d(*arrays: Any) -> Any:
    """Arrays with at least two axes; a tuple for several arguments.

    Args:
        arrays: arrays or numbers.

    Returns:
        An array of the dtype of the argument; for several, or none, a tuple.

    Raises:
        TypeError: for operands that are not arrays.

    Example:
        >>> atleast_2d([1, 2, 3]).shape
        (1, 3)
    """
    return _each(lambda x: x if ndim(x) >= 2 else expand_dims(atleast_1d(x), 0), arrays, "atleast_2d")


def atleast_3d(*arrays: Any) -> Any:
    """Arrays with at least three axes; a vector becomes ``(1, n, 1)`` and a matrix ``(n, m, 1)``.

    Args:
        arrays: arrays or numbers.

    Returns:
        An array of the dtype of the argument; for several, or none, a tuple.

    Raises:
        TypeError: for operands that are not arrays.

    Example:
        >>> atleast_3d([1, 2, 3]).shape
        (1, 3, 1)
    """
    return _each(lambda x: x if ndim(x) >= 3 else expand_dims(atleast_2d(x), -1), arrays, "atleast_3d")


__all__ = [
    "atleast_1d", "atleast_2d", "atleast_3d", "expand_dims", "ndim", "ravel", "reshape", "shape", "size", "squeeze",
]  # fmt: skip
