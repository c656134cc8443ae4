"""Indexing: ``x[...]``, functional updates ``x.at[...].set(y)``, and functions that read and write by index.

An index is a chain of steps, each of which reads a smaller array and can write an updated one back: a window, a strided
slice, a reversal, a gather. Slices and ints are windows, cheap, and mostly free when compiled; only index arrays become
a gather or a scatter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import jax
import numpy as np

from funcgrad.arguments import validate
from funcgrad.core import dtypes
from funcgrad.core.tracing import Tracer, state, type_of, valueless
from funcgrad.numpy import elementwise as e
from funcgrad.numpy.elementwise.rounding import remainder
from funcgrad.numpy.indexing.indices import Index, New, Point, Range, Rows, index_dtype, is_mask, parse, wrap
from funcgrad.numpy.promotion import asoperand, astype, promoted
from funcgrad.numpy.shape import broadcast_to, moveaxis, ravel
from funcgrad.numpy.shape.reshaping import along_axis
from funcgrad.primitives import elementwise as p
from funcgrad.primitives import indexing as ix
from funcgrad.primitives import shape as s
from funcgrad.primitives.shape import Dims
from funcgrad.runtime.call_cache import composite
from funcgrad.runtime.deferred import ready

# ---------------------------------------------------------------- windows


class _Window:
    """The window of an array that the ranges and points of an index select; points are axes of size one.

    Attributes:
        starts: per axis, an int or a 0-d array.
        extents: the size of the window before striding.
        reversed: the reversed axes.
    """

    def __init__(self, entries: Sequence[Range | Point | Rows], shape: Dims):
        starts: list[Any] = []
        extents, strides, backwards = [], [], []
        for axis, (entry, size) in enumerate(zip(entries, shape, strict=True)):
            start, step, count = 0, 1, size
            if isinstance(entry, Point):
                start, count = entry.place, 1
            elif isinstance(entry, Range) and entry.length:
                start, step, count = entry
            elif isinstance(entry, Range):
                count = 0
            if step < 0:
                backwards.append(axis)
                start, step = start + (count - 1) * step, -step
            starts.append(start)
            extents.append((count - 1) * step + 1 if count else 0)
            strides.append(step if count > 1 else 1)
        self.shape, self.starts, self.extents = shape, starts, tuple(extents)
        self.strides, self.reversed = tuple(strides), tuple(backwards)
        self.whole = self.extents == shape
        self.dense = all(n == 1 for n in strides)

    @cached_property
    def place(self) -> Any:
        return _vector(self.starts)

    def read(self, x: Any) -> Any:
        # Outside a trace static positions are dynamic operands too: a loop over x[i] must not compile for each i.
        known = all(isinstance(a, int) for a in self.starts)
        start, limit = (0,) * len(self.shape), self.extents
        if known and state.floor is not None:
            start, limit = tuple(self.starts), tuple(a + n for a, n in zip(self.starts, self.extents, strict=True))
        elif not self.whole:
            x = ix.dynamic_slice(x, self.place, sizes=self.extents)
        if not self.dense or limit != type_of(x).shape or any(start):
            x = s.slice_(x, start=start, limit=limit, strides=self.strides)
        return s.reverse(x, axes=self.reversed) if self.reversed else x

    def write(self, x: Any, new: Any) -> Any:
        new = s.reverse(new, axes=self.reversed) if self.reversed else new
        if 0 in self.extents:
            return x
        if not self.dense:
            # Pad the new elements to the window's size, and select by a mask.
            room = ix.dynamic_slice(x, self.place, sizes=self.extents) if not self.whole else x
            holes = dict(
                low=(0,) * len(self.shape), high=(0,) * len(self.shape), interior=tuple(n - 1 for n in self.strides)
            )
            mask = s.pad(s.full(np.bool_(True), type_of(new).shape), np.bool_(False), **holes)
            new = p.select(mask, s.pad(new, p.number(0, new), **holes), room)
        return new if self.whole else ix.dynamic_update_slice(x, self.place, new)


def _vector(starts: Sequence[Any]) -> Any:
    """The start of a window as one integer array."""
    if all(isinstance(a, int) for a in starts):
        return np.asarray(starts, index_dtype(max(starts, default=0)))
    traced = [a for a in starts if not isinstance(a, int)]
    dtype = np.result_type(*[type_of(a).dtype for a in traced])
    parts = [np.asarray([a], dtype) if isinstance(a, int) else s.reshape(astype(a, dtype), shape=(1,)) for a in starts]
    return s.concatenate(*parts, axis=0)


# ---------------------------------------------------------------- index arrays


class _Gather:
    """The selection by the index arrays of an index, from an array without the axes of integers."""

    def __init__(self, index: Index, shape: Dims):
        axes = [e for e in index.axes if not isinstance(e, Point)]
        rows = index.rows
        common = p.broadcast_shapes("index", *[type_of(r.indices).shape for r in rows])
        self.coordinates = _coordinates([r.indices for r in rows], common)
        self.checked, self.unique = all(r.checked for r in rows), index.unique
        chosen = tuple(i for i, e in enumerate(axes) if isinstance(e, Rows))
        before = 0 if index.separated else _ranges_before(index)
        kept = len(axes) - len(chosen)
        window = (*range(before), *range(before + len(common), kept + len(common)))
        self.dims = ix.IndexDims(window, chosen, (), (), chosen)
        self.sizes = tuple(1 if i in chosen else n for i, n in enumerate(shape))
        inside = iter(n for i, n in enumerate(shape) if i not in chosen)
        outside = iter(common)
        self.shape = tuple(next(inside) if i in window else next(outside) for i in range(kept + len(common)))
        self.block = (before, len(common))

    def read(self, x: Any) -> Any:
        mode = "promise" if self.checked else "clip"
        return ix.gather(x, self.coordinates, dims=self.dims, sizes=self.sizes, mode=mode, unique=self.unique)

    def write(self, x: Any, new: Any, scatter: Any) -> Any:
        if 0 in self.shape:
            return x
        mode = "promise" if self.checked else "fill"
        return scatter(x, self.coordinates, new, dims=self.dims, mode=mode, unique=self.unique)


def _ranges_before(index: Index) -> int:
    before = 0
    for entry in index.entries:
        if isinstance(entry, (Point, Rows)):
            break
        before += isinstance(entry, Range)
    return before


def _coordinates(rows: Sequence[Any], common: Dims) -> Any:
    """Index arrays stacked along a new last axis."""
    if all(isinstance(r, np.ndarray) for r in rows):
        return np.stack(np.broadcast_arrays(*rows), -1) if len(rows) > 1 else rows[0][..., None]
    dtype = np.result_type(*[type_of(r).dtype for r in rows])
    spread = [s.expanded(broadcast_to(astype(r, dtype), common), len(common)) for r in rows]
    return s.concatenate(*spread, axis=len(common)) if len(spread) > 1 else spread[0]


# ---------------------------------------------------------------- complete indices


class _Chain:
    """An index of an array of known type, for reading and writing."""

    def __init__(self, index: Index, shape: Dims):
        self.outer = shape
        for axis in index.inserted:
            shape = (*shape[:axis], 1, *shape[axis:])
        self.inner = shape
        self.window = _Window(index.axes, shape)
        cut = tuple(_count(e, n) for e, n in zip(index.axes, shape, strict=True))
        self.cut = cut
        self.squeezed = tuple(n for e, n in zip(index.axes, cut, strict=True) if not isinstance(e, Point))
        self.gather = _Gather(index, self.squeezed) if index.rows else None
        self.result, self.shape = self._shapes(index)

    def _shapes(self, index: Index) -> tuple[Dims, Dims]:
        """The shape of the result, without and with new axes."""
        if self.gather is None:
            sizes = iter(self.squeezed)
            full = [1 if isinstance(e, New) else next(sizes) for e in index.entries if not isinstance(e, Point)]
            return self.squeezed, tuple(full)
        start, length = self.gather.block
        block = self.gather.shape[start : start + length]
        others = iter((*self.gather.shape[:start], *self.gather.shape[start + length :]))
        full = list(block) if index.separated else []
        placed = index.separated
        for entry in index.entries:
            if isinstance(entry, New):
                full.append(1)
            elif isinstance(entry, Range):
                full.append(next(others))
            elif not placed:
                full += block
                placed = True
        return self.gather.shape, tuple(full)

    def read(self, x: Any) -> Any:
        x = self._squeezed(self.window.read(_reshaped(x, self.inner)))
        return _reshaped(self.gather.read(x) if self.gather else x, self.shape)

    def _squeezed(self, x: Any) -> Any:
        return _reshaped(x, self.squeezed)

    def update(self, x: Any, value: Any, operation: Callable[[Any, Any], Any] | None, scatter: Any) -> Any:
        """``x`` with the elements at this index updated.

        Args:
            operation: combines the present elements and ``value``; None replaces them.
            scatter: the scatter primitive of the same operation.
        """
        whole = _reshaped(x, self.inner)
        if not p.broadcasts(type_of(value).shape, self.shape):
            raise ValueError(
                f"at: a value of type {type_of(value)} does not broadcast to the indexed shape {self.shape}"
            )
        value = _reshaped(broadcast_to(value, self.shape), self.result)
        if self.gather is not None:
            new = self.gather.write(self._squeezed(self.window.read(whole)), value, scatter)
        elif operation is not None:
            new = operation(self._squeezed(self.window.read(whole)), value)
        else:
            new = value
        return _reshaped(self.window.write(whole, _reshaped(new, self.cut)), self.outer)


def _count(entry: Range | Point | Rows, size: int) -> int:
    return entry.length if isinstance(entry, Range) else 1 if isinstance(entry, Point) else size


def _reshaped(x: Any, shape: Dims) -> Any:
    return x if type_of(x).shape == shape else s.reshape(x, shape=shape)


def getitem(x: Any, index: Any) -> Any:
    """``x[index]`` with all of NumPy's index forms.

    Indices may be traced; traced ones out of bounds are clamped. Masks must be concrete, as they determine the shape.

    Raises:
        IndexError: for too many indices, a concrete index out of bounds, a mask of the wrong shape, an invalid index.
        ConcretizationError: for a traced mask or slice.
    """
    x = asoperand(x, "index")
    type = type_of(x)
    return _Chain(parse(index, type), type.shape).read(x)


# ---------------------------------------------------------------- functional updates


class At:
    """``x.at``: indexing it gives a place in ``x`` to read or to update.

    Arrays are immutable; each method returns a new one. Under ``jit`` nothing is copied if the original is not used
    again.

    Example:
        >>> print(at(np.zeros(3))[1].set(5.0))
        [0. 5. 0.]
    """

    __slots__ = ("array",)

    def __init__(self, array: Any):
        self.array = array

    def __getitem__(self, index: Any) -> Place:
        return Place(self.array, index)


class Place:
    """An indexed place in an array; see ``At``.

    A value is broadcast to the place's shape and cast to the array's dtype. For repeated indices ``add``, ``multiply``,
    ``min`` and ``max`` apply all values; ``set`` keeps one of them. Traced indices out of bounds are ignored.
    """

    __slots__ = ("array", "index")

    def __init__(self, array: Any, index: Any):
        self.array = array
        self.index = index

    def get(self) -> Any:
        """The elements at the index."""
        return getitem(self.array, self.index)

    def set(self, value: Any, *, every: bool = False) -> Any:
        """The array with ``value`` there.

        Args:
            every: whether each of several values for one element gets that element's gradient, as in PyTorch; by
                default only the one that is kept.
        """
        return self._updated(value, None, ix.put if every else ix.scatter)

    def add(self, value: Any) -> Any:
        """The array with ``value`` added there."""
        return self._updated(value, p.add, ix.scatter_add)

    def subtract(self, value: Any) -> Any:
        """The array with ``value`` subtracted there."""
        return self._updated(p.neg(promoted(asoperand(value, "at"))[0]), p.add, ix.scatter_add)

    def multiply(self, value: Any) -> Any:
        """The array multiplied by ``value`` there."""
        return self._updated(value, p.mul, ix.scatter_mul)

    mul = multiply

    def divide(self, value: Any) -> Any:
        """The array divided by ``value`` there."""
        return self._updated(p.div(p.number(1, self.array), self.cast(value)), p.mul, ix.scatter_mul)

    def min(self, value: Any) -> Any:
        """The array with the minimum of itself and ``value`` there."""
        return self._updated(value, p.minimum, ix.scatter_min)

    def max(self, value: Any) -> Any:
        """The array with the maximum of itself and ``value`` there."""
        return self._updated(value, p.maximum, ix.scatter_max)

    def cast(self, value: Any) -> Any:
        """``value`` in the array's dtype.

        Raises:
            TypeError: if the cast would lose information.
        """
        value, wanted = asoperand(value, "at"), type_of(self.array).dtype
        given = type_of(value).dtype
        kinds = [dtypes.is_complex(d) + dtypes.is_inexact(d) for d in (given, wanted)]
        if kinds[0] > kinds[1]:
            raise TypeError(
                f"at: a value of dtype {given} does not fit into an array of dtype {wanted} without loss; convert one "
                "of them with astype"
            )
        return astype(value, wanted)

    def _updated(self, value: Any, operation: Callable[[Any, Any], Any] | None, scatter: Any) -> Any:
        x, value = asoperand(self.array, "at"), self.cast(value)
        type = type_of(x)
        if (
            is_mask(self.index)
            and isinstance(self.index, Tracer)
            and type_of(value).ndim <= type.ndim - self.index.ndim
        ):
            new = broadcast_to(value, type.shape)
            mask = _reshaped(self.index, (*self.index.shape, *(1,) * (type.ndim - self.index.ndim)))
            return p.select(mask, new if operation is None else operation(x, new), x)
        return _Chain(parse(self.index, type), type.shape).update(x, value, operation, scatter)


def at(x: Any) -> At:
    """``x.at`` for any array and index: ``at(x)[i].get()`` is ``x[i]``, for a traced ``i`` too.

    Args:
        x: an array or a number.

    Returns:
        An ``At``; indexing it gives a ``Place`` with ``get``, ``set``, ``add`` and so on.

    Raises:
        TypeError: for operands that are not arrays.

    Example:
        >>> print(at(np.arange(4))[::2].add(10))
        [10  1 12  3]
        >>> print(at(np.arange(4))[np.array([0, 3, 3])].get())
        [0 3 3]
    """
    return At(asoperand(x, "at"))


# ---------------------------------------------------------------- along an axis


def integers(indices: Any, name: str) -> Any:
    indices = asoperand(indices, name)
    indices = np.asarray(indices) if isinstance(indices, (int, np.generic)) else indices
    if not dtypes.is_integer(type_of(indices).dtype):
        raise TypeError(f"{name}: indices must be integers, got {type_of(indices)}")
    return indices


def check_inside(
    indices: Any, size: int, name: str, where: str, error: type[Exception] = IndexError, *, least: int | None = None
) -> None:
    """Raises for an index out of bounds, if the indices are concrete and in host memory.

    Args:
        size: the exclusive upper bound.
        where: what is indexed, for the message.
        least: the lower bound; by default the negative size.
    """
    values, least = _at_hand(indices), -size if least is None else least
    if values is None or not values.size or (values.min() >= least and values.max() < size):
        return
    wrong = values[(values < least) | (values >= size)]
    raise error(f"{name}: {wrong.flat[0]} is out of bounds for {where}, of size {size}")


def _at_hand(x: Any) -> np.ndarray | None:
    x = ready(x)
    if valueless(x) or isinstance(x, jax.core.Tracer):
        return None
    local = not isinstance(x, jax.Array) or (x.is_fully_addressable and all(d.platform == "cpu" for d in x.devices()))
    return np.asarray(x) if local else None


def take(x: Any, indices: Any, axis: int | None = None, mode: str | None = None) -> Any:
    """The elements of ``x`` at ``indices`` along an axis; by default of the flattened array.

    Args:
        x: an array.
        indices: ints or an array of them of any shape, which replaces the axis in the result.
        mode: for indices out of bounds: ``"clip"``, or ``"wrap"``; by default concrete ones raise, and traced ones are
            clipped. Negative ones count from the end, except in mode ``"clip"``.

    Returns:
        An array of the shape of ``x`` with the axis replaced by the shape of ``indices``; of the dtype of ``x``.

    Raises:
        TypeError: for operands that are not arrays, and indices that are not integers.
        ValueError: for an unknown mode, and an axis out of range.
        IndexError: for a concrete index out of bounds.

    Example:
        >>> print(take(np.array([[1, 2], [3, 4]]), np.array([1, 1, 0]), axis=1))
        [[2 2 1]
         [4 4 3]]
    """
    x, axis = along_axis(x, axis, "take")
    indices, size = integers(indices, "take"), type_of(x).shape[axis]
    validate.one_of("take", "mode", mode, (None, "clip", "wrap", "raise"))
    if mode in ("clip", "wrap") and size:
        indices = _brought_inside(indices, size, mode)
    else:
        check_inside(indices, size, "take", f"axis {axis} of {type_of(x)}")
    return getitem(x, (slice(None),) * axis + (indices,))


def _brought_inside(indices: Any, size: int, mode: str) -> Any:
    if isinstance(indices, np.ndarray):
        return np.clip(indices, 0, size - 1) if mode == "clip" else indices % size
    return e.clip(indices, 0, size - 1) if mode == "clip" else remainder(indices, size)


def along_dims(x: Any, indices: Any, axis: int, name: str) -> tuple[Any, ix.IndexDims]:
    """Coordinates and dimension numbers for indices along ``axis``, with the other axes broadcast."""
    t, i = type_of(x), type_of(indices)
    if t.ndim != i.ndim:
        raise ValueError(f"{name}: indices {i} must have as many axes as {t}")
    if any(n not in (1, m) for d, (n, m) in enumerate(zip(i.shape, t.shape, strict=True)) if d != axis):
        raise ValueError(f"{name}: indices {i} must be of size 1 or of the same size as {t} along all axes but {axis}")
    size = t.shape[axis]
    check_inside(indices, size, name, f"axis {axis} of {t}")
    wide = broadcast_to(wrap(indices, size), tuple(i.shape[d] if d == axis else n for d, n in enumerate(t.shape)))
    return s.expanded(wide, t.ndim), ix.take_along_dims(t.ndim, axis)


@composite
def take_along_axis(x: Any, indices: Any, axis: int | None = -1) -> Any:
    """The elements at ``indices`` along an axis, matched with the other axes, as for the result of ``argsort``.

    Args:
        x: an array.
        indices: integers, with as many axes as ``x``; axes except ``axis`` have the same size, or 1.
        axis: with None, ``x`` and ``indices`` are flattened first.

    Returns:
        An array of the shape of ``x`` with the size of ``indices`` along the axis; of the dtype of ``x``.

    Raises:
        TypeError: for operands that are not arrays, and indices that are not integers.
        ValueError: for other numbers of axes, incompatible sizes, and an axis out of range.
        IndexError: for a concrete index out of bounds.

    Example:
        >>> print(take_along_axis(np.array([[3, 1, 2]]), np.array([[1, 2, 0]]), axis=1))
        [[1 2 3]]
    """
    x, place = along_axis(x, axis, "take_along_axis")
    indices = integers(indices, "take_along_axis")
    indices = ravel(indices) if axis is None else indices
    coordinates, dims = along_dims(x, indices, place, "take_along_axis")
    sizes = tuple(1 if d == place else min(1, n) for d, n in enumerate(type_of(x).shape))
    return ix.gather(x, coordinates, dims=dims, sizes=sizes, mode="clip", unique=False)


# ---------------------------------------------------------------- diagonals


def diagonal(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """A diagonal of two axes, as the last axis of the result.

    Args:
        x: an array of at least two axes.
        offset: the diagonal; positive above the main one.
        axis1, axis2: the axis of the rows and that of the columns.

    Returns:
        An array of the other axes followed by the diagonal, empty if it is outside; of the dtype of ``x``.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: for fewer than two axes, an axis out of range, or equal axes.

    Example:
        >>> print(diagonal(np.array([[1, 2], [3, 4]])))
        [1 4]
    """
    x = asoperand(x, "diagonal")
    if type_of(x).ndim < 2:
        raise ValueError(f"diagonal: wants at least two axes, got {type_of(x)}")
    x = moveaxis(x, (axis1, axis2), (-2, -1))
    *lead, rows, columns = type_of(x).shape
    start, count = _diagonal(rows, columns, validate.integer("diagonal", "offset", offset))
    # In the flattened matrix its elements are evenly spaced.
    line = _reshaped(x, (*lead, rows * columns))
    return getitem(line, (..., slice(start, start + (count - 1) * (columns + 1) + 1 if count else start, columns + 1)))


def _diagonal(rows: int, columns: int, offset: int) -> tuple[int, int]:
    """The start of a diagonal in the flattened matrix, and its length."""
    count = min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns)
    return (offset if offset >= 0 else -offset * columns) if count > 0 else 0, max(count, 0)


def diag(x: Any, k: int = 0) -> Any:
    """The ``k``-th diagonal of a matrix; for a vector, the matrix with it on that diagonal and zeros elsewhere.

    Args:
        x: a matrix or a vector.
        k: the diagonal; positive above the main one.

    Returns:
        A vector of the diagonal, empty if it is outside; for a vector of ``n``, a square matrix of ``n + |k|`` rows.
        The dtype is that of ``x``.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: for an array that is not 1-d or 2-d.

    Example:
        >>> print(diag(np.array([1, 2])))
        [[1 0]
         [0 2]]
    """
    x, k = asoperand(x, "diag"), validate.integer("diag", "k", k)
    ndim = type_of(x).ndim
    if ndim == 2:
        return diagonal(x, k)
    if ndim != 1:
        raise ValueError(f"diag: wants one or two axes, got {type_of(x)}")
    n = type_of(x).shape[0]
    side = n + abs(k)
    start, count = _diagonal(side, side, k)
    used = start + (count - 1) * (side + 1) + 1 if count else 0
    line = s.pad(x, p.number(0, x), low=(start if count else 0,), high=(side * side - used,), interior=(side,))
    return s.reshape(line, shape=(side, side))


__all__ = ["at", "diag", "diagonal", "take", "take_along_axis"]
