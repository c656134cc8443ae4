"""Basic indexing without plans: parts of tensors that are all of their storage, where nothing is recorded.

A loop over ``x[i, :, j]`` would make a plan for each index; here the layout of the part is cached, for all offsets.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compat._core.memory.strides import Layout, cells, contiguous_strides, layout_of
from compat._core.operators.view import unrecorded
from compat._core.tensor.tensor import Tensor, sync
from compat._core.transforms.grad_mode import mode
from funcgrad.core.caching import Cache, Group

#: The cut of a dimension: the dimension, the number of elements (0 to remove the dimension), the step between them.
Cut = tuple[int, int, int]

#: The layouts of parts, for all offsets; None if the access method depends on the offset.
_parts: Cache[tuple, tuple[Layout | None]] = Cache(Group("layouts of parts", 8192))


def cuttable(x: Tensor) -> bool:
    """Whether parts of a tensor need no plan: nothing is recorded, it is all of its storage, and not a view that is
    replayed from its base."""
    if mode.watched or (mode.grad and x.requires_grad):
        return False
    if x._view_ is not None:
        sync(x)
        if x._view_.steps:
            return False
    return x._layout_.whole and x._layout_.numel > 0


def part(x: Tensor, cuts: tuple[Cut, ...], offset: int) -> Tensor:
    """The part of a ``cuttable`` tensor that begins at element ``offset``."""
    layout = x._layout_
    key = (layout, cuts)
    found = _parts.get(key)
    if found is None:
        found = _parts.again(key)
    if found is None:
        found = _parts[key] = (_cut(layout, cuts, offset) if _along_axes(layout) else None,)
    return unrecorded(x, found[0] or _cut(layout, cuts, offset), offset)


def _cut(layout: Layout, cuts: Sequence[Cut], offset: int) -> Layout:
    size, stride = list(layout.size), list(layout.stride)
    for dim, length, step in reversed(cuts):
        size[dim : dim + 1], stride[dim : dim + 1] = ([length], [stride[dim] * step]) if length else ([], [])
    return layout_of(layout.base, tuple(size), tuple(stride), offset, layout.dtype, layout.conj, layout.neg)


def _along_axes(layout: Layout) -> bool:
    """Whether each dimension is an axis of the buffer. Then the access method of a part is the same for all offsets;
    else a part may be within one row of the buffer, or go on into the next, depending on the offset."""
    shape = cells(layout.base, layout.dtype)
    axes = sorted((s, n) for s, n in zip(contiguous_strides(shape), shape) if n > 1)
    return axes == sorted((s, n) for s, n in zip(layout.stride, layout.size) if n > 1)


def indexed(x: Tensor, index: Sequence[Any]) -> Tensor | None:
    """``x[index]`` for integers, slices and an ellipsis; None for other subscripts, errors, and a result that has no
    elements or all."""
    if not cuttable(x):
        return None
    size, stride = x._layout_.size, x._layout_.stride
    offset = dim = 0
    expanded = False
    cuts: list[Cut] = []
    for p in index:
        if p is Ellipsis:
            left = len(size) - len(index) + 1
            if expanded or left < 0:
                return None
            expanded, dim = True, dim + left
            continue
        if dim >= len(size):
            return None
        n = tuple.__getitem__(size, dim)
        if p.__class__ is int:
            if not -n <= p < n:
                return None
            offset += (p + n if p < 0 else p) * stride[dim]
            cuts.append((dim, 0, 1))
        elif p.__class__ is slice and _plain(p):
            start, stop, step = p.indices(n)
            length = -((start - stop) // step)
            if length <= 0:
                return None
            if length < n:
                offset += start * stride[dim]
                cuts.append((dim, length, step))
        else:
            return None
        dim += 1
    return part(x, tuple(cuts), offset) if cuts else None


def _plain(s: slice) -> bool:
    """Whether the bounds of a slice are integers or None, and its step is positive."""
    step = s.step
    return (
        (s.start is None or s.start.__class__ is int)
        and (s.stop is None or s.stop.__class__ is int)
        and (step is None or (step.__class__ is int and step > 0))
    )
