"""Collectives derived from others."""

from __future__ import annotations

from typing import Any

from funcgrad import numpy as fnp
from funcgrad.core import trees
from funcgrad.lax import collectives

__all__ = ["pbroadcast", "pswapaxes"]


def pswapaxes(x: Any, axis_name: Any, axis: int) -> Any:
    """Swaps an axis of arrays with a named axis.

    Args:
        x: a pytree of arrays, whose axis has the size of the named axis.
        axis_name: as given to a surrounding ``vmap``.
        axis: the axis of the arrays.

    Returns:
        A pytree like it: index ``i`` of the named axis has the elements ``i`` of all.

    Raises:
        NameError: if no surrounding ``vmap`` has an axis of that name.
        ValueError: for an axis out of range, or of another length.

    Example:
        >>> import funcgrad as fg
        >>> x = fnp.array([[1, 2], [3, 4]])
        >>> print(fg.vmap(lambda row: pswapaxes(row, "i", 0), axis_name="i")(x))
        [[1 3]
         [2 4]]
    """
    return collectives.all_to_all(x, axis_name, axis, axis)


def pbroadcast(x: Any, axis_name: Any, source: int) -> Any:
    """The value at one index of a named axis, broadcast to all indices.

    Args:
        x: a pytree of arrays.
        axis_name: as given to a surrounding ``vmap``.
        source: the index.

    Returns:
        A pytree like it, equal at all indices.

    Raises:
        NameError: if no surrounding ``vmap`` has an axis of that name.

    Example:
        >>> import funcgrad as fg
        >>> print(fg.vmap(lambda x: pbroadcast(x, "i", 1), axis_name="i")(fnp.array([1.0, 3.0])))
        [3. 3.]
    """
    mine = fnp.equal(collectives.axis_index(axis_name), source)
    return collectives.psum(trees.map(lambda leaf: fnp.where(mine, leaf, fnp.zeros_like(leaf)), x), axis_name)
