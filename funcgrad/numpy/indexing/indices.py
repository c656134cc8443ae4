"""Normalized indices of ``x[...]``."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from funcgrad.core import dtypes, trees
from funcgrad.core.errors import ConcretizationError, explained, here
from funcgrad.core.ir import ArrayType
from funcgrad.core.tracing import Tracer, is_array, type_of
from funcgrad.numpy.promotion import from_sequence
from funcgrad.primitives import elementwise as p
from funcgrad.runtime.deferred import ready


class Range(NamedTuple):
    """A slice of one axis: ``length`` elements from ``start``, ``step`` apart (negative: backwards)."""

    start: int
    step: int
    length: int


class Point(NamedTuple):
    """A single element of an axis, which is removed; static, or a 0-d integer array."""

    place: Any


class Rows(NamedTuple):
    """An array of non-negative integer indices along an axis.

    Attributes:
        checked: whether all indices are known to be in bounds.
    """

    indices: Any
    checked: bool


class New:
    """A new axis of size one."""


class Index(NamedTuple):
    """A normalized index: entries in order, each except ``New`` for one axis.

    Attributes:
        inserted: axes of size one to insert first, for 0-d masks.
        separated: whether the index arrays are not adjacent, which puts their result's axes first.
        unique: whether the index arrays are known to name no element twice.
    """

    entries: list[Range | Point | Rows | New]
    inserted: tuple[int, ...]
    separated: bool
    unique: bool

    @property
    def axes(self) -> list[Range | Point | Rows]:
        """The entries that index an axis."""
        return [e for e in self.entries if not isinstance(e, New)]

    @property
    def rows(self) -> list[Rows]:
        return [e for e in self.entries if isinstance(e, Rows)]


def is_mask(entry: Any) -> bool:
    return isinstance(entry, (bool, np.bool_)) or (is_array(entry) and type_of(entry).dtype == dtypes.bool_)


def parse(index: Any, type: ArrayType) -> Index:
    """The index ``x[index]`` of an array of ``type``.

    Raises:
        IndexError: for too many indices, a concrete index out of bounds, a mask of the wrong shape, an invalid index.
        ConcretizationError: for a traced mask or slice, whose result would have an unknown shape.
    """
    given = list(index) if isinstance(index, tuple) else [index]
    given = [_as_entry(e, type) for e in given]
    used = sum(_consumes(e) for e in given)
    if used > type.ndim:
        raise IndexError(f"index: {used} indices for an array of type {type}, which has {type.ndim} axes")
    dots = [i for i, e in enumerate(given) if e is Ellipsis]
    if len(dots) > 1:
        raise IndexError("index: `...` may be there once only")
    at = dots[0] if dots else len(given)
    separator = bool(dots)
    rest = [slice(None)] * (type.ndim - used)
    given = [*given[:at], *([Ellipsis] if separator else []), *rest, *given[at + separator :]]
    return _resolve(given, type)


def _as_entry(entry: Any, type: ArrayType) -> Any:
    if entry is None or entry is Ellipsis or isinstance(entry, slice):
        return entry
    entry = trees.array_of(entry)
    if isinstance(entry, (list, tuple)):
        entry = from_sequence(entry) if len(entry) else np.zeros(0, np.int32)
    if is_array(entry) and (is_mask(entry) or dtypes.is_integer(type_of(entry).dtype)):
        return entry
    if hasattr(entry, "__index__") and not is_array(entry):
        return operator.index(entry)
    what = f"an array of type {type_of(entry)}" if is_array(entry) else f"{entry!r} of type {entry.__class__.__name__}"
    raise IndexError(
        f"index: got {what} for an array of type {type}; wanted ints, slices, `...`, None, or arrays of ints or bools"
    )


def _consumes(entry: Any) -> int:
    if entry is None or entry is Ellipsis:
        return 0
    return type_of(entry).ndim if not isinstance(entry, slice) and is_mask(entry) else 1


def _resolve(given: Sequence[Any], type: ArrayType) -> Index:
    entries: list[Range | Point | Rows | New] = []
    inserted: list[int] = []
    selects: list[int] = []  # for each entry that may select by an array, its place, an Ellipsis counting as one
    axis, unique = 0, True
    for place, entry in enumerate(given):
        if entry is Ellipsis:
            continue
        if entry is None:
            entries.append(New())
            continue
        if isinstance(entry, slice):
            entries.append(_range(entry, type.shape[axis]))
            axis += 1
            continue
        selects.append(place)
        if not is_mask(entry):
            found = _positions(entry, axis, type)
            unique = unique and isinstance(found, Point)
            entries.append(found)
            axis += 1
        elif type_of(entry).ndim == 0:
            inserted.append(axis + len(inserted))
            entries.append(Rows(np.zeros(int(bool(_known(entry, type))), np.int32), True))
        else:
            entries += [Rows(places.astype(np.int32), True) for places in _nonzero(entry, axis, type)]
            axis += type_of(entry).ndim
    separated = bool(selects) and selects[-1] - selects[0] != len(selects) - 1
    return Index(entries, tuple(inserted), separated, unique)


def _range(entry: slice, size: int) -> Range:
    try:
        start, stop, step = entry.indices(size)
    except ConcretizationError as error:
        raise ConcretizationError(
            f"a slice's bounds must be known when tracing, since they make the shape: {error} To take a fixed number "
            "of elements from a traced place, index with place + funcgrad.numpy.arange(number)."
        ) from None
    except TypeError:
        raise IndexError(f"index: the bounds of {entry} must be ints or None") from None
    return Range(start, step, len(range(start, stop, step)))


def _positions(entry: Any, axis: int, type: ArrayType) -> Point | Rows:
    size = type.shape[axis]
    if isinstance(entry, (int, np.integer, np.ndarray)):
        places = np.asarray(entry)
        wrong = places[(places < -size) | (places >= size)]
        if wrong.size:
            message = f"index: {wrong.flat[0]} is out of bounds for axis {axis} of {type}, of size {size}"
            raise explained(IndexError(message), "operands")
        places = np.where(places < 0, places + size, places)
        return Rows(places.astype(index_dtype(size)), True) if places.ndim else Point(int(places))
    if size == 0 and type_of(entry).size:
        raise IndexError(f"index: axis {axis} of {type} has no elements to take")
    wrapped = wrap(entry, size)
    return Rows(wrapped, False) if type_of(entry).ndim else Point(wrapped)


def index_dtype(size: int) -> np.dtype:
    """The dtype for indices below ``size``."""
    return dtypes.int32 if size < 2**31 else dtypes.int64


def wrap(indices: Any, size: int) -> Any:
    """Traced indices with negative ones counted from the end; out-of-bounds ones stay so."""
    dtype = type_of(indices).dtype
    if dtype in dtypes.UNSIGNED or np.iinfo(dtype).max < size:
        indices = p.cast(indices, dtype=index_dtype(size) if dtype.itemsize < 4 else dtypes.int64)
    return p.select(p.lt(indices, p.number(0, indices)), p.add(indices, p.number(size, indices)), indices)


def _known(mask: Any, type: ArrayType) -> np.ndarray:
    mask = ready(mask)
    if isinstance(mask, Tracer):
        try:
            mask = mask._concrete("a mask")
        except ConcretizationError:
            raise ConcretizationError(
                f"a mask's values make the shape of x[mask], but at {here()} an array of type {type} is indexed by a "
                f"traced mask of type {mask.type}. Use funcgrad.numpy.where(mask, x, 0), or x.at[mask].set(...) to "
                "write."
            ) from None
    return np.asarray(mask)


def _nonzero(mask: Any, axis: int, type: ArrayType) -> tuple[np.ndarray, ...]:
    wanted = type.shape[axis : axis + type_of(mask).ndim]
    if type_of(mask).shape != wanted:
        raise IndexError(
            f"index: a mask of shape {type_of(mask).shape} does not fit the axes from {axis} on of {type}, of shape "
            f"{wanted}"
        )
    return _known(mask, type).nonzero()
