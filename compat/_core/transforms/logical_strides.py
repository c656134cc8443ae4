"""Logical strides: those of a tensor inside a transform, as the transformed function sees them.

A transform calls its function with new row-major arrays. PyTorch calls it with views: under ``vmap`` the strides of a
batch element are those that it has among the others, and a tensor that is not contiguous outside is not contiguous
inside. So a storage that was made from another tensor's elements has a ``Placing``, which translates between offsets in
the storage, by which everything is computed, and logical offsets, those in the memory that the elements came from.
``stride``, ``storage_offset``, ``is_contiguous``, ``view`` and ``as_strided`` use the latter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from compat._core.memory.strides import Base, Ints, Layout, contiguous_strides, view_strides
from compat._core.types.errors import size_text


class _Axis(NamedTuple):
    """A dimension: its size, its stride in the storage, and its logical stride."""

    size: int
    step: int
    stride: int


class Placing:
    """Translates strides and offsets between a storage and the memory that its elements came from.

    Attributes:
        base: the type of the storage's buffer.
        axes: the dimensions of the original tensor, outermost first; neighbours that are contiguous are merged.
        start: the original tensor's offset.
    """

    __slots__ = ("base", "axes", "start")

    def __init__(self, base: Base, stride: Sequence[int], start: int):
        self.base = base
        self.axes = _axes(base.shape, stride)
        self.start = start

    def _in_units_of(self, itemsize: int) -> tuple[tuple[_Axis, ...], int, int]:
        """The dimensions and the start in units that divide elements of ``itemsize`` bytes, and the units per
        element."""
        unit = self.base.dtype.itemsize
        if itemsize >= unit:
            return self.axes, self.start, itemsize // unit
        k = unit // itemsize
        parts = [_Axis(size, step * k, stride * k) for size, step, stride in self.axes]
        return (*parts, _Axis(k, 1, 1)), self.start * k, 1

    def seen(self, layout: Layout, offset: int) -> tuple[Ints, int]:
        """The logical strides and offset of a layout and offset in the storage."""
        axes, start, k = self._in_units_of(layout.dtype.itemsize)
        strides = tuple(_distance(axes, s * k) // k for s in layout.stride)
        return strides, (start + _distance(axes, offset * k)) // k

    def within(self, itemsize: int, size: Ints, stride: Ints, offset: int) -> tuple[Ints, int] | None:
        """The strides and offset in the storage of logical ones; None if the storage lacks one of the elements."""
        if 0 in size:
            return tuple(stride), 0
        axes, start, k = self._in_units_of(itemsize)
        along = sorted((axis for axis in axes if axis.stride), key=lambda axis: -axis.stride)
        found = [_places(along, distance) for distance in (offset * k - start, *(s * k for s in stride))]
        reached, *steps = found
        for n, places in zip(size, steps):
            reached = _plus(reached, places, n - 1) if n > 1 else reached
        if reached is None or any(r >= axis.size for r, axis in zip(reached, along)):
            return None
        first, *strides = (sum(p * axis.step for p, axis in zip(places or (), along)) // k for places in found)
        return tuple(strides), first

    def regular(self, size: Ints, stride: Ints, offset: int) -> tuple[Ints, int] | None:
        """The logical strides and offset of those in the storage; None if the elements have no logical strides."""
        if 0 in size:
            return tuple(stride), self.start
        reached = _digits(self.axes, offset)
        for n, s in zip(size, stride):
            if n > 1:
                reached = [r + (n - 1) * c for r, c in zip(reached, _digits(self.axes, s))]
        if any(r >= axis.size for r, axis in zip(reached, self.axes)):
            return None
        return tuple(_distance(self.axes, s) for s in stride), self.start + _distance(self.axes, offset)


def _axes(size: Sequence[int], stride: Sequence[int]) -> tuple[_Axis, ...]:
    axes: list[_Axis] = []
    step = 1
    for n, s in zip(reversed(size), reversed(stride)):
        if axes and s == axes[-1].stride * axes[-1].size:
            axes[-1] = axes[-1]._replace(size=axes[-1].size * n)
        elif n > 1:
            axes.append(_Axis(n, step, s))
        step *= max(n, 1)
    return tuple(reversed(axes))


def _distance(axes: Sequence[_Axis], steps: int) -> int:
    """The logical distance of a distance in the storage."""
    return sum(c * axis.stride for c, axis in zip(_digits(axes, steps), axes))


def _digits(axes: Sequence[_Axis], distance: int) -> list[int]:
    """A distance in the storage, in steps along each dimension."""
    digits = []
    for axis in axes:
        steps, distance = divmod(distance, axis.step)
        digits.append(steps)
    return digits


def _places(along: Sequence[_Axis], distance: int) -> list[int] | None:
    """A logical distance, in steps along each dimension, by decreasing strides; None if no steps add up to it."""
    if distance < 0:
        return None
    steps = []
    for axis in along:
        n, distance = divmod(distance, axis.stride)
        steps.append(n)
    return None if distance else steps


def _plus(reached: list[int] | None, places: list[int] | None, times: int) -> list[int] | None:
    if reached is None or places is None:
        return None
    return [r + times * p for r, p in zip(reached, places)]


def place_as(made: Any, original: Any, dim: int | None = None) -> Any:
    """Gives a new tensor with another's elements the logical strides of that tensor; returns it.

    Args:
        dim: the dimension of ``original`` that ``made`` lacks, if any.
    """
    stride, start = seen(original)
    if dim is not None:
        stride = (*stride[:dim], *stride[dim + 1 :])
    storage = made._storage_
    if storage is not original._storage_ and (start or stride != made._layout_.stride):
        storage.placing = Placing(storage.base, stride, start)
    return made


def placing_of(t: Any) -> Placing | None:
    """The ``Placing`` of a tensor's storage, if it has one."""
    storage = t._storage_
    found: Placing | None = storage.placing
    return found if found is not None and found.base is storage.base else None


def seen_at(t: Any, layout: Layout, offset: int) -> tuple[Ints, int]:
    """The logical strides and offset of a layout and offset in a tensor's storage."""
    placing = placing_of(t)
    return (layout.stride, offset) if placing is None else placing.seen(layout, offset)


def seen(t: Any) -> tuple[Ints, int]:
    """A tensor's logical strides and offset."""
    return seen_at(t, t._layout_, t._offset_)


def can_view(t: Any, size: Ints) -> bool:
    """Whether a tensor can be viewed in another shape without a copy."""
    stride = seen(t)[0] if t._layout_.base.traced else t._layout_.stride
    return view_strides(t._layout_.size, stride, size) is not None


NOT_A_VIEW = (
    "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
    "contiguous subspaces). Use .reshape(...) instead."
)


def viewed(t: Any, made: Any) -> Any:
    """Checks that a tensor can be viewed in another shape; returns the view ``made``.

    Raises:
        RuntimeError: if a copy would be needed.
    """
    if not can_view(t, made._layout_.size):
        raise RuntimeError(NOT_A_VIEW)
    return made


def strided(t: Any, size: Ints, stride: Ints, offset: int | None = None) -> tuple[Ints, int]:
    """The strides and offset in a traced tensor's storage of logical ones.

    Raises:
        RuntimeError: for elements outside the tensor.
    """
    if len(size) != len(stride):
        raise RuntimeError(
            "Tensor.as_strided(size, stride, ...): size and stride must have the same length! Got size "
            f"{size_text(size)} and stride {size_text(stride)}"
        )
    base = t._storage_.base
    placing = placing_of(t) or Placing(base, contiguous_strides(base.shape), 0)
    strides, start = seen(t)
    offset = start if offset is None else offset
    if any(s < 0 for s in stride):
        return stride, offset  # the caller raises an error
    end, last = start + _extent(t.shape, strides), offset + _extent(size, stride)
    text = f"result = tensor.as_strided({size_text(size)}, {size_text(stride)}, {offset})"
    if 0 not in size and (offset < start or last > end):
        raise RuntimeError(
            f"{text} can access memory outside of `tensor`. `result` can access some memory in range [{offset}, "
            f"{last}], but `tensor` can only access some memory in range [{start}, {end}]. This is not supported "
            "inside of vmap, please try to rewrite the `as_strided` call as a sequence of PyTorch view operations"
        )
    found = placing.within(t._layout_.dtype.itemsize, size, stride, offset)
    if found is None:
        raise RuntimeError(f"{text} has elements between those of `tensor`, which are not seen inside of a transform")
    return found


def _extent(size: Sequence[int], stride: Sequence[int]) -> int:
    return 1 + sum((n - 1) * s for n, s in zip(size, stride))
