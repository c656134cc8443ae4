"""Coordinate arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from funcgrad.arguments import validate
from funcgrad.core import dtypes
from funcgrad.core.tracing import traced, type_of
from funcgrad.numpy.creation.arrays import asarray
from funcgrad.numpy.creation.ranges import arange, linspace
from funcgrad.numpy.nonzero_indices import flatnonzero
from funcgrad.numpy.promotion import asoperand, astype, promoted
from funcgrad.numpy.shape import broadcast_to, ravel, reshape, stack
from funcgrad.runtime.call_cache import composite


@composite
def indices(dimensions: Sequence[int], dtype: Any = int, sparse: bool = False) -> Any:
    """The coordinates of every element of an array of a shape, along a new first axis.

    Args:
        dimensions: the shape, a sequence of ints.
        dtype: of the coordinates.
        sparse: whether to return one array per axis instead, of size one along the others.

    Returns:
        An array of the shape ``(len(dimensions), *dimensions)``, int64 by default; sparse, a tuple of
        arrays.

    Raises:
        TypeError: for dimensions that are not ints, or an unknown dtype.
        ValueError: for negative ones.

    Example:
        >>> print(indices((2, 2)))
        [[[0 0]
          [1 1]]
        <BLANKLINE>
         [[0 1]
          [0 1]]]
    """
    wanted, dimensions = dtypes.canonical(dtype), validate.shape("indices", "dimensions", dimensions)
    open_ = [
        np.arange(n).astype(wanted).reshape([-1 if i == a else 1 for i in range(len(dimensions))])
        for a, n in enumerate(dimensions)
    ]
    if sparse:
        return tuple(asarray(v) for v in open_)
    whole = tuple(dimensions)
    return stack([broadcast_to(v, whole) for v in open_]) if whole else asarray(np.zeros((0,), wanted))


def ix_(*sequences: Any) -> tuple[Any, ...]:
    """Index vectors for each axis, shaped so that together they select the grid of all combinations.

    Args:
        sequences: vectors of integers, or of bools, which select where they are true.

    Returns:
        A tuple of arrays, one per vector, of its dtype (int64 for bools), of size one along the other axes.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: for anything but vectors.
        ConcretizationError: for bools that are traced under ``jit``.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> print(fnp.array([[1, 2], [3, 4]])[ix_([0, 1], [1])])
        [[2]
         [4]]
    """
    n, found = len(sequences), []
    for axis, sequence in enumerate(sequences):
        places = asoperand(sequence, "ix_")
        if type_of(places).ndim != 1:
            raise ValueError(f"ix_: wants vectors, got {type_of(places)}")
        places = flatnonzero(places) if type_of(places).dtype == dtypes.bool_ else places
        places = astype(places, dtypes.int64) if not type_of(places).size else places
        found.append(
            asarray(
                reshape(
                    places,
                    [-1 if i == axis else 1 for i in range(n)]
                    if type_of(places).size
                    else [int(i != axis) for i in range(n)],
                )
            )
        )
    return tuple(found)


@composite
def meshgrid(*xs: Any, indexing: str = "xy", sparse: bool = False, copy: bool = True) -> list[Any]:
    """Coordinate arrays from coordinate vectors.

    Args:
        xs: vectors; arrays are flattened, numbers are one element.
        indexing: ``"xy"``, with the first two axes swapped, or ``"ij"``.
        sparse: whether results have size one along the other axes, to be broadcast.
        copy: ignored, as arrays are immutable.

    Returns:
        A list of arrays, one per vector and of its dtype, with an axis for each.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: for an unknown ``indexing``.

    Example:
        >>> print(*meshgrid([1, 2], [5, 6]))
        [[1 2]
         [1 2]] [[5 5]
         [6 6]]
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f'meshgrid: indexing must be "xy" or "ij", got {indexing!r}')
    vectors = [ravel(asarray(x)) for x in xs]
    order = list(range(len(vectors)))
    if indexing == "xy" and len(order) > 1:
        order[0], order[1] = 1, 0
    shape = tuple(type_of(vectors[i]).size for i in order)
    opened = [reshape(v, [n if j == order.index(i) else 1 for j, n in enumerate(shape)]) for i, v in enumerate(vectors)]
    return opened if sparse else [broadcast_to(v, shape) for v in opened]


class _Grid:
    """``numpy.mgrid`` and ``numpy.ogrid``: indexing with slices, one per axis, returns coordinates.

    ``mgrid`` returns dense coordinates along a new first axis, ``ogrid`` one array per axis, of size one along the
    others. An imaginary step is the number of elements, both ends included.

    Example:
        >>> print(mgrid[0:2, 0:2])
        [[[0 0]
          [1 1]]
        <BLANKLINE>
         [[0 1]
          [0 1]]]
        >>> print(*ogrid[0:1:3j, 5:7])
        [[0. ]
         [0.5]
         [1. ]] [[5. 6.]]
    """

    def __init__(self, sparse: bool):
        self.sparse = sparse

    def __getitem__(self, key: Any) -> Any:
        def axis(s: slice) -> Any:
            start, step = 0 if s.start is None else s.start, 1 if s.step is None else s.step
            if isinstance(step, complex):
                first, last = [x if traced(x) else float(x) for x in (start, s.stop)]
                return linspace(first, last, int(abs(step)))
            return arange(start, s.stop, step)

        if isinstance(key, slice):
            return axis(key)
        vectors = promoted(*[axis(s) for s in key])
        parts = meshgrid(*vectors, indexing="ij", sparse=self.sparse)
        return tuple(parts) if self.sparse else stack(parts)


mgrid, ogrid = _Grid(False), _Grid(True)


__all__ = ["indices", "ix_", "meshgrid", "mgrid", "ogrid"]
