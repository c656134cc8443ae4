"""Broadcasting."""

from __future__ import annotations

from typing import Any

from funcgrad.arguments import validate
from funcgrad.core.tracing import type_of
from funcgrad.numpy.promotion import asoperand
from funcgrad.primitives import elementwise as p
from funcgrad.primitives import shape as s
from funcgrad.primitives.shape import Dims


def broadcast_to(x: Any, shape: Any) -> Any:
    """``x`` broadcast to ``shape``.

    Args:
        x: an array or number.
        shape: an int, or a sequence of ints.

    Returns:
        An array of that shape and the dtype of ``x``.

    Raises:
        TypeError: for operands that are not arrays, or a shape that is not ints.
        ValueError: if it does not broadcast.

    Example:
        >>> print(broadcast_to([1, 2], (2, 2)))
        [[1 2]
         [1 2]]
    """
    x = asoperand(x, "broadcast_to")
    wanted = validate.shape("broadcast_to", "shape", shape)
    mine = type_of(x).shape
    if len(mine) > len(wanted) or p.broadcast_shapes("broadcast_to", mine, wanted) != wanted:
        raise ValueError(f"broadcast_to: {type_of(x)} does not broadcast to the shape {wanted}")
    return (
        x if mine == wanted else s.broadcast(x, shape=wanted, dims=tuple(range(len(wanted) - len(mine), len(wanted))))
    )


def broadcast_arrays(*xs: Any) -> list[Any]:
    """The arrays broadcast to their common shape.

    Args:
        xs: arrays or numbers.

    Returns:
        A list of arrays of that shape and their own dtypes.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: for shapes that do not broadcast.

    Example:
        >>> [x.shape for x in broadcast_arrays([[1], [2]], [1, 2, 3])]
        [(2, 3), (2, 3)]
    """
    xs = tuple(asoperand(x, "broadcast_arrays") for x in xs)
    common = broadcast_shapes(*[type_of(x).shape for x in xs])
    return [broadcast_to(x, common) for x in xs]


def broadcast_shapes(*shapes: Any) -> Dims:
    """The shape that several shapes broadcast to.

    Args:
        shapes: ints, or sequences of ints.

    Returns:
        A tuple of ints; empty for no shapes.

    Raises:
        TypeError: for an argument that is not a shape.
        ValueError: for shapes that do not broadcast.

    Example:
        >>> broadcast_shapes((2, 1), (3,))
        (2, 3)
    """
    return p.broadcast_shapes(
        "broadcast_shapes", *[validate.shape("broadcast_shapes", "shape", shape) for shape in shapes]
    )


__all__ = ["broadcast_arrays", "broadcast_shapes", "broadcast_to"]
