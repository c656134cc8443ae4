"""Selecting and replacing elements by indices and conditions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from funcgrad.arguments import validate
from funcgrad.core.tracing import type_of
from funcgrad.numpy import elementwise as e
from funcgrad.numpy.indexing.getitem import At, along_dims, check_inside, getitem, integers, take, take_along_axis
from funcgrad.numpy.indexing.writable import changed
from funcgrad.numpy.nonzero_indices import known
from funcgrad.numpy.promotion import asoperand, operands, promoted
from funcgrad.numpy.shape import broadcast_to, expand_dims, ravel, reshape, stack
from funcgrad.numpy.shape.reshaping import along_axis
from funcgrad.primitives import elementwise as p
from funcgrad.primitives.indexing import scatter
from funcgrad.runtime.call_cache import composite

# ---------------------------------------------------------------- selecting


@composite
def extract(condition: Any, x: Any) -> Any:
    """The elements where ``condition`` is not zero, as a vector.

    Args:
        condition, x: arrays of one size; both are flattened.

    Returns:
        A vector of the dtype of ``x``.

    Raises:
        TypeError: for operands that are not arrays.
        IndexError: if the condition is nonzero beyond the end of ``x``.
        ConcretizationError: for a traced condition.

    Example:
        >>> print(extract([True, False, True], [5, 6, 7]))
        [5 7]
    """
    return compress(ravel(condition), ravel(x), 0)


def compress(condition: Any, x: Any, axis: int | None = None) -> Any:
    """The slices along an axis where ``condition``, a vector, is not zero; with None, of the flattened array.

    Args:
        condition: a vector; missing elements at the end count as zero.
        x: an array.

    Returns:
        An array of the shape of ``x`` with fewer slices along the axis, or a vector; of the dtype of ``x``.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: for a condition that is not a vector, and an axis out of range.
        IndexError: if it is nonzero beyond the end of ``x``.
        ConcretizationError: for a traced condition.

    Example:
        >>> print(compress([0, 1], [[1, 2], [3, 4]], axis=0))
        [[3 4]]
    """
    mask = known(e.not_equal(asoperand(condition, "compress"), 0), "compress")
    if mask.ndim != 1:
        raise ValueError(f"compress: condition must be a vector, got {mask.ndim} axes")
    return take(x, np.flatnonzero(mask), axis)


@composite
def choose(choice: Any, choices: Sequence[Any], mode: str = "raise") -> Any:
    """Elementwise, the element of the choice that ``choice`` selects.

    Args:
        choice: integers that broadcast with the choices.
        choices: a sequence of arrays, or an array of them.
        mode: for numbers out of range: ``"clip"``, ``"wrap"``, or ``"raise"``, which clips traced ones.

    Returns:
        The broadcast shape, of the dtype that the choices promote to.

    Raises:
        TypeError: for operands that are not arrays, and a ``choice`` that is not an integer array.
        ValueError: for a number out of range, an unknown mode, no choices, and shapes that do not broadcast.

    Example:
        >>> print(choose([0, 1], [[1, 2], [3, 4]]))
        [1 4]
    """
    numbers, given = integers(choice, "choose"), operands(choices, "choose")
    shape = p.broadcast_shapes("choose", type_of(numbers).shape, *[type_of(c).shape for c in given])
    spread = stack([broadcast_to(c, shape) for c in promoted(*given)])
    count = len(given)
    if validate.one_of("choose", "mode", mode, ("raise", "clip", "wrap")) == "raise":
        check_inside(numbers, count, "choose", "the choices", ValueError, least=0)
    elif mode == "wrap":
        numbers = p.remainder(*promoted(numbers, count))
    numbers = broadcast_to(e.clip(numbers, 0, count - 1), shape)
    return take_along_axis(spread, expand_dims(numbers, 0), 0)[0]


def trim_zeros(x: Any, trim: str = "fb", axis: int | tuple[int, ...] | None = None) -> Any:
    """An array without leading (``"f"`` in ``trim``) and trailing (``"b"``) zeros along its axes.

    Args:
        x: an array or number.
        trim: ``"f"``, ``"b"``, or both letters.
        axis: one or several; by default all.

    Returns:
        An array with the same number of axes and dtype; empty if all elements are zero.

    Raises:
        TypeError: for operands that are not arrays, or an axis that is not an int.
        ValueError: for other letters, and an axis out of range or repeated.
        ConcretizationError: for a traced array.

    Example:
        >>> print(trim_zeros([0, 1, 2, 0]))
        [1 2]
        >>> print(trim_zeros([[0, 0], [0, 3]]))
        [[3]]
    """
    x, letters = asoperand(x, "trim_zeros"), trim.lower() if isinstance(trim, str) else trim
    validate.one_of("trim_zeros", "trim", letters, ("f", "b", "fb", "bf"))
    mask = known(e.not_equal(x, 0), "trim_zeros")
    kept = [slice(None)] * mask.ndim
    for a in validate.axes("trim_zeros", axis, mask.ndim):
        places = np.flatnonzero(mask.any(axis=tuple(i for i in range(mask.ndim) if i != a)))
        first, last = (int(places[0]), int(places[-1]) + 1) if places.size else (0, 0)
        trimmed = "f" in letters or not places.size, "b" in letters or not places.size
        kept[a] = slice(first if trimmed[0] else None, last if trimmed[1] else None)
    return getitem(x, tuple(kept))


# ---------------------------------------------------------------- replacing


def put(x: Any, ind: Any, v: Any, mode: str | None = None, *, inplace: bool = True) -> Any:
    """``x`` with the elements of ``v``, repeated, at flat indices.

    Args:
        x: an array.
        ind: integers, of any shape.
        v: an array or number; if it is empty ``x`` is unchanged.
        mode: for indices out of bounds: ``"clip"``, ``"wrap"``, or None: concrete ones raise, traced ones are ignored.
        inplace: as for ``fill_diagonal``.

    Returns:
        With ``inplace=False`` a new array of the shape and dtype of ``x``, otherwise None.

    Raises:
        TypeError: for ``inplace=True`` with an immutable array, for no array, indices that are not integers, and values
            that the dtype cannot hold.
        ValueError: for an unknown mode.
        IndexError: for a concrete index out of bounds.

    Example:
        >>> print(put([1, 2, 3], [0, 2], [7, 8], inplace=False))
        [7 2 8]
    """
    return changed("put", x, inplace, lambda x: _with_elements(x, ind, v, mode))


@composite
def _with_elements(x: Any, ind: Any, v: Any, mode: str | None) -> Any:
    places, values = ravel(integers(ind, "put")), ravel(asoperand(v, "put"))
    size = type_of(x).size
    if validate.one_of("put", "mode", mode, (None, "clip", "wrap", "raise")) in (None, "raise"):
        check_inside(places, size, "put", f"the elements of {type_of(x)}")
    elif mode == "clip":
        places = e.clip(places, 0, size - 1)
    elif size:
        places = p.remainder(*promoted(places, size))
    if not type_of(values).size:
        return x
    values = take(values, np.arange(type_of(places).size) % type_of(values).size)
    return reshape(At(ravel(x))[places].set(values), type_of(x).shape)


def put_along_axis(x: Any, indices: Any, values: Any, axis: int | None = -1, *, inplace: bool = True) -> Any:
    """``x`` with ``values`` at the elements that ``take_along_axis`` reads.

    Args:
        x: an array.
        indices: as for ``take_along_axis``.
        values: an array that broadcasts with them.
        axis: with None, ``x`` and ``indices`` are flattened first.
        inplace: as for ``fill_diagonal``.

    Returns:
        With ``inplace=False`` a new array of the shape and dtype of ``x``, otherwise None.

    Raises:
        TypeError: for ``inplace=True`` with an immutable array, for no array, and incompatible dtypes.
        ValueError: for indices or values of incompatible shape, and an axis out of range.
        IndexError: for a concrete index out of bounds.

    Example:
        >>> print(put_along_axis(np.array([[3, 1, 2]]), np.array([[1]]), 9, axis=1, inplace=False))
        [[3 9 2]]
    """
    return changed("put_along_axis", x, inplace, lambda x: _with_values(x, indices, values, axis))


@composite
def _with_values(x: Any, indices: Any, values: Any, axis: int | None) -> Any:
    shape = type_of(x).shape
    x, place = along_axis(x, axis, "put_along_axis")
    indices = integers(indices, "put_along_axis")
    indices = ravel(indices) if axis is None else indices
    coordinates, dims = along_dims(x, indices, place, "put_along_axis")
    cast = broadcast_to(At(x)[...].cast(values), type_of(coordinates).shape[:-1])
    return reshape(scatter(x, coordinates, cast, dims=dims, mode="fill", unique=False), shape)


__all__ = ["choose", "compress", "extract", "put", "put_along_axis", "trim_zeros"]
