"""Rules of gather, the scatters, and dynamic slices."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from funcgrad.core.ir import ArrayType
from funcgrad.runtime.numpy_backend.scipy_functions import extension_function
from funcgrad.runtime.numpy_backend.table import RULES, NotEquivalent, Rule, rule, short

Dims = tuple[int, ...]

#: With so many elements the search for a faster function pays, and flat indices are not kept.
_LARGE = 1 << 10


def _places(shape: Dims, indices: Any, dims: Any, sizes: Dims, mode: str) -> tuple[list[Any], Any]:
    """For each axis of an operand the coordinates of the windows' elements, in shapes that broadcast to the result's;
    and a mask of windows in bounds, or None if all are."""
    window, collapsed, operand_batch, _, index_map = dims
    rows = indices.shape[:-1]
    ndim = len(rows) + len(window)
    row_axes = [d for d in range(ndim) if d not in window]
    starts = _starts(indices, rows, dims)
    limits = {d: shape[d] - sizes[d] for d in starts}
    inside: Any = None
    if mode == "clip":
        starts = {d: np.clip(s, 0, limits[d]) if d in index_map else s for d, s in starts.items()}
    elif mode == "fill":
        fits = [(s >= 0) & (s <= limits[d]) for d, s in starts.items() if d in index_map]
        every = np.logical_and.reduce(fits) if fits else np.True_
        if not np.all(every):
            inside = np.broadcast_to(every, rows).reshape([rows[row_axes.index(d)] if d in row_axes else 1
                                                           for d in range(ndim)])  # fmt: skip
            starts = {d: np.where(every, s, 0) for d, s in starts.items()}
    kept = iter(window)
    found = []
    for d, n in enumerate(sizes):
        at: Any = 0
        if d in starts:
            placed = [1] * ndim
            for axis, length in zip(row_axes, np.shape(starts[d])):
                placed[axis] = length
            at = np.reshape(starts[d], placed)
        if d not in collapsed and d not in operand_batch:
            along = [1] * ndim
            along[next(kept)] = n
            at = at + np.arange(n).reshape(along)
        found.append(at)
    return found, inside


def _is_take(shape: Dims, rows: int, dims: Any, sizes: Dims) -> bool:
    """Whether a gather is ``take`` along one axis, if every index is in range."""
    if len(dims.index_map) != 1 or dims.operand_batch or dims.collapsed != dims.index_map:
        return False
    (axis,) = dims.index_map
    along = tuple(range(axis)) + tuple(range(axis + rows, rows + len(shape) - 1))
    return dims.window == along and all(size == n for d, (size, n) in enumerate(zip(sizes, shape)) if d != axis)


def _starts(indices: Any, rows: Dims, dims: Any) -> dict[int, Any]:
    """The start of each window along the axes where it is not 0: an array over the rows of coordinates."""
    starts = {d: indices[..., i].astype(np.int64) for i, d in enumerate(dims.index_map)}
    for d, axis in zip(dims.operand_batch, dims.indices_batch):
        along = [1] * len(rows)
        along[axis] = rows[axis]
        starts[d] = np.broadcast_to(np.arange(rows[axis]).reshape(along), rows)
    return starts


@rule("gather")
def _gather(x: Any, indices: Any, *, dims: Any, sizes: Dims, mode: str, unique: bool) -> Any:
    if not x.size:
        raise NotEquivalent
    places, inside = _places(x.shape, indices, dims, sizes, mode)
    found = x[tuple(places)] if places else x
    return found if inside is None else np.where(inside, found, np.zeros((), x.dtype))


@short("gather")
def _short_gather(types: Sequence[ArrayType], *, dims: Any, sizes: Dims, mode: str, unique: bool) -> Rule | None:
    """``take``, if the gather takes whole slices along one axis, or the flat indices of a few elements; else None."""
    shape, rows = types[0].shape, types[1].ndim - 1
    if not types[0].size or not types[1].size:
        return None
    if not _is_take(shape, rows, dims, sizes):
        return _short_elements(types, dims, sizes, mode, unique)
    (axis,) = dims.index_map
    length = shape[axis]

    def run(x: Any, indices: Any) -> Any:
        if indices.size == 1:
            inside = 0 <= indices.item() < length
        else:
            inside = np.minimum.reduce(indices, None) >= 0 and np.maximum.reduce(indices, None) < length
        if inside:
            return x.take(indices[..., 0], axis, None, "clip")
        return _gather(x, indices, dims=dims, sizes=sizes, mode=mode, unique=unique)

    return run


def _short_elements(types: Sequence[ArrayType], dims: Any, sizes: Dims, mode: str, unique: bool) -> Rule | None:
    """A gather of few elements, by their flat indices."""
    at = _flat_places(types[0].shape, types[1].shape, dims, sizes)
    if at is None:
        return None

    def run(x: Any, indices: Any) -> Any:
        where = at(indices)
        if where is None:
            return _gather(x, indices, dims=dims, sizes=sizes, mode=mode, unique=unique)
        return x.reshape(-1).take(where, None, None, "clip")

    return run


def _flat_places(shape: Dims, rows: Dims, dims: Any, sizes: Dims) -> Callable[[Any], Any] | None:
    """A function from the indices of few windows, given their array's shape, to the row-major flat indices of the
    elements, in the result's shape; it returns None if a window is out of bounds. None if there are many elements."""
    places, _ = _places(shape, np.zeros(rows, np.int64), dims, sizes, "clip")
    of_result = np.broadcast_shapes(*map(np.shape, places)) if places else ()
    if not dims.index_map or not 0 < math.prod(of_result) < _LARGE:
        return None
    first = np.broadcast_to(_flat(places, shape), of_result)
    along = [1 if d in dims.window else n for d, n in enumerate(of_result)]
    columns = [(math.prod(shape[d + 1 :]), shape[d] - sizes[d]) for d in dims.index_map]

    def at(indices: Any) -> Any:
        found = first
        for i, (stride, limit) in enumerate(columns):
            starts = indices[..., i].astype(np.int64, copy=False)
            if np.minimum.reduce(starts, None) < 0 or np.maximum.reduce(starts, None) > limit:
                return None
            starts = starts.reshape(along)
            found = found + (starts if stride == 1 else starts * stride)
        return found

    return at


def _scatter(combine: Callable[[Any, Any, Any], None], rows: bool = False) -> Callable[..., Any]:
    """The rule of a scatter.

    Args:
        combine: writes elements into a vector at places in it.
        rows: whether it adds, so that ``_add_rows`` may do it.
    """

    def run(x: Any, indices: Any, updates: Any, *, dims: Any, mode: str, unique: bool) -> Any:
        if not x.size or not updates.size:
            return x
        if rows and updates.size >= _LARGE and _are_rows(x, indices, updates, dims):
            added = _add_rows(x, indices.reshape(-1), updates)
            if added is not None:
                return added
        places, inside = _places(x.shape, indices, dims, _sizes(x.ndim, updates.shape, dims), mode)
        where = np.broadcast_to(_flat(places, x.shape), updates.shape)
        if inside is not None:
            chosen = np.broadcast_to(inside, updates.shape)
            where, updates = where[chosen], updates[chosen]
        return _combined(combine, x, where, updates)

    return run


def _combined(combine: Callable[[Any, Any, Any], None], x: Any, where: Any, updates: Any) -> Any:
    """``x`` with the updates at flat indices: NumPy's ``at`` is ten times faster on one axis than on several."""
    out = np.array(x, order="C")
    combine(out.reshape(-1), where.reshape(-1), updates.reshape(-1))
    return out


def _are_rows(x: Any, indices: Any, updates: Any, dims: Any) -> bool:
    """Whether the updates are added to whole ``x[i]``."""
    lead = indices.ndim - 1
    if dims.index_map != (0,) or dims.collapsed != (0,) or dims.operand_batch or x.dtype.kind != "f":
        return False
    return x.dtype == updates.dtype and x.dtype.itemsize >= 4 and x.ndim > 1 and (
        dims.window == tuple(range(lead, updates.ndim)) and updates.shape[lead:] == x.shape[1:]
    )  # fmt: skip


def _add_rows(x: Any, rows: Any, updates: Any) -> Any:
    """``x`` with the updates added in order, by SciPy's product of a sparse and a dense matrix, which is ten times as
    fast as NumPy's ``add.at``; None where it cannot be used."""
    add = extension_function("sparse", "_sparsetools", "coo_matmat_dense")
    if add is None or np.minimum.reduce(rows) < 0 or np.maximum.reduce(rows) >= len(x):
        return None
    out = np.array(x, order="C")
    count = len(rows)
    rows = np.ascontiguousarray(rows, np.int64)
    values = np.ascontiguousarray(updates).reshape(-1)
    add(count, values.size // count, rows, np.arange(count), np.ones(count, x.dtype), values, out.reshape(-1))
    return out


def _flat(places: list[Any], shape: Dims) -> Any:
    """Coordinates in an array as row-major flat indices."""
    found: Any = np.zeros((), np.intp)
    stride = 1
    for at, n in zip(reversed(places), reversed(shape)):
        found = found + at * stride
        stride *= n
    return found


def _sizes(ndim: int, updates: Dims, dims: Any) -> Dims:
    """The sizes of a scatter's windows along the axes of the operand."""
    kept = [d for d in range(ndim) if d not in dims.collapsed and d not in dims.operand_batch]
    inner = dict(zip(kept, (updates[d] for d in dims.window)))
    return tuple([inner.get(d, 1) for d in range(ndim)])


def _short_scatter(combine: Callable[[Any, Any, Any], None], general: Callable[..., Any]) -> Callable[..., Rule | None]:
    """The rule of a scatter of few elements, by their flat indices."""

    def make(types: Sequence[ArrayType], *, dims: Any, mode: str, unique: bool) -> Rule | None:
        shape, of_updates = types[0].shape, types[2].shape
        at = None
        if types[0].size and types[1].size and types[2].size:
            at = _flat_places(shape, types[1].shape, dims, _sizes(len(shape), of_updates, dims))
        if at is None:
            return None

        def run(x: Any, indices: Any, updates: Any) -> Any:
            where = at(indices)
            if where is None:
                return general(x, indices, updates, dims=dims, mode=mode, unique=unique)
            return _combined(combine, x, where, updates)

        return run

    return make


def _set(out: Any, where: Any, updates: Any) -> None:
    out[where] = updates


for _name, _combine in {
    "scatter": _set, "put": _set, "scatter_add": np.add.at, "scatter_mul": np.multiply.at,
    "scatter_max": np.maximum.at, "scatter_min": np.minimum.at,
}.items():  # fmt: skip
    RULES[_name] = _scatter(_combine, _name == "scatter_add")
    short(_name)(_short_scatter(_combine, RULES[_name]))


# ---------------------------------------------------------------- dynamic slices


def _window(starts: Any, limits: Dims, sizes: Dims) -> tuple[slice, ...]:
    """A window, moved within its limits."""
    return tuple([_part(*of_axis) for of_axis in zip(starts.tolist(), limits, sizes)])


def _part(start: int, limit: int, size: int) -> slice:
    """A window along one axis that begins between 0 and ``limit``."""
    begin = 0 if start < 0 else limit if start > limit else start
    return slice(begin, begin + size)


def _limits(shape: Dims, sizes: Dims) -> Dims:
    return tuple([n - size for n, size in zip(shape, sizes)])


@rule("dynamic_slice")
def _dynamic_slice(x: Any, starts: Any, *, sizes: Dims) -> Any:
    return x[_window(starts, _limits(x.shape, sizes), sizes)]


@short("dynamic_slice")
def _short_dynamic_slice(types: Sequence[ArrayType], *, sizes: Dims) -> Rule:
    limits = _limits(types[0].shape, sizes)
    if len(sizes) == 1:
        return partial(_dynamic_part, limit=limits[0], size=sizes[0])
    return lambda x, starts: x[_window(starts, limits, sizes)]


def _dynamic_part(x: Any, start: Any, *, limit: int, size: int) -> Any:
    """A window of a vector; ``start`` is one number."""
    return x[_part(start.item(), limit, size)]


@rule("dynamic_update_slice")
def _dynamic_update_slice(x: Any, starts: Any, update: Any) -> Any:
    out = np.array(x)
    out[_window(starts, _limits(x.shape, update.shape), update.shape)] = update
    return out
