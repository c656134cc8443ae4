"""Pytrees as vectors, for functions of vectors such as other libraries' optimizers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from funcgrad.core import trees
from funcgrad.core.tracing import type_of
from funcgrad.numpy.creation.arrays import asarray
from funcgrad.numpy.indexing.getitem import getitem
from funcgrad.numpy.promotion import asoperand, astype, promoted
from funcgrad.numpy.shape import concatenate, ravel, reshape

__all__ = ["ravel_pytree"]


def ravel_pytree(pytree: Any) -> tuple[Any, Callable[[Any], Any]]:
    """A pytree's arrays concatenated to a vector, and the inverse function. Both are differentiable.

    Args:
        pytree: a pytree of arrays.

    Returns:
        The vector, of the promoted dtype; and a function from such vectors to pytrees of the same structure, shapes and
        dtypes.

    Raises:
        ValueError: from that function, for anything but a vector of the same size.

    Example:
        >>> import funcgrad as fg
        >>> vector, back = ravel_pytree({"w": [[1.0, 2.0]], "b": 3.0})
        >>> print(vector, back(vector * 2)["b"])
        [3. 1. 2.] 6.0
        >>> print(fg.grad(lambda v: back(v)["b"] ** 2)(vector))
        [6. 0. 0.]
    """
    leaves, tree = trees.flatten(pytree)
    arrays = [asoperand(x, "ravel_pytree") for x in leaves]
    types = [type_of(x).strong() for x in arrays]
    total = sum(t.size for t in types)
    vector = concatenate([ravel(x) for x in promoted(*arrays)]) if arrays else asarray([])

    def back(vector: Any) -> Any:
        x = asoperand(vector, "ravel_pytree")
        if type_of(x).shape != (total,):
            raise ValueError(f"ravel_pytree: wants a vector of {total} elements, got {type_of(x)}")
        found, start = [], 0
        for t in types:
            count = math.prod(t.shape)
            found.append(astype(reshape(getitem(x, slice(start, start + count)), t.shape), t.dtype))
            start += count
        return trees.unflatten(tree, found)

    return vector, back
