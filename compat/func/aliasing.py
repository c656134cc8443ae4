"""What ``vmap`` gives back: views of its arguments' memory, and of what it made for all examples, as PyTorch does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from compat.layout import Layout, contiguous_strides
from compat.ops.complex_views import view_as_complex, view_as_real
from compat.ops.views import as_strided, movedim, permute
from compat.tensor import Tensor


class _Axis(NamedTuple):
    """A dimension of an example: its size, its step among the example's elements, and that in memory."""

    size: int
    step: int
    stride: int


def view_of(original: Tensor, dim: int, seen: Tensor, result: Tensor, place: int) -> Tensor | None:
    """The view of an argument whose examples are what a function made of its single examples.

    Args:
        original, dim: the argument, and where its examples are.
        seen: one of them, as the function got it: its elements lie row-major.
        result: what the function returned.
        place: where the result is to have its examples.

    Returns:
        None where ``result`` is in other memory, or strides cannot describe the view.
    """
    if result._storage is not seen._storage:
        return None
    if result._layout is seen._layout and result._offset == seen._offset:
        return original if result is seen and place == dim else movedim(original, dim, place)
    size, stride, offset = tuple(result.shape), result.stride(), result.storage_offset()
    if result.dtype is not seen.dtype:
        if seen.dtype.is_complex:
            original = view_as_real(original)
        elif result.dtype.is_complex:
            size, stride, offset = (*size, 2), (*[2 * s for s in stride], 1), 2 * offset
    if (result._layout.conj, result._layout.neg) != (seen._layout.conj, seen._layout.neg):
        return None
    found = _in_memory(_axes(original, dim), size, stride, offset)
    if found is None:
        return None
    strides, start = found
    size, strides = (*size[:place], original.shape[dim], *size[place:]), [*strides]
    paired = result.dtype.is_complex and not original.dtype.is_complex
    if paired and (strides[-1] != 1 or any(s % 2 for s in (start, original.stride(dim), *strides[:-1]))):
        return None
    strides.insert(place, original.stride(dim))
    whole = as_strided(original, size, tuple(strides), original.storage_offset() + start)
    return view_as_complex(whole) if paired else whole


def placed_view(whole: Tensor, result: Tensor, place: int) -> Tensor | None:
    """The view of new memory whose examples are what a function returned.

    Args:
        whole: the memory that ``result`` is in, of all examples: the first dimension is theirs.
        result: what the function returned.
        place: where the result is to have its examples.

    Returns:
        None where it takes more than another order of dimensions, and derivatives would have to go through a view that
        is given by strides.
    """
    layout, base = result._layout, result._layout.base
    if layout.conj or layout.neg or layout.dtype is not base.dtype:
        return None
    if layout.size == base.shape and layout.stride == contiguous_strides(base.shape):
        return whole if place == 0 else movedim(whole, 0, place)
    order = _order(base.shape, layout)
    if order is not None:
        order.insert(place, -1)
        return permute(whole, [d + 1 for d in order])
    if whole.requires_grad or whole._layout.base.traced:
        return None
    size, stride = list(layout.size), list(layout.stride)
    size.insert(place, whole.shape[0])
    stride.insert(place, whole.stride(0))
    return as_strided(whole, size, stride, result._offset)


def _order(shape: Sequence[int], layout: Layout) -> list[int] | None:
    """Which dimension of a row-major array each of a layout's is, if it has all of them in some order."""
    steps = contiguous_strides(tuple(shape))
    found = {(n, step): d for d, (n, step) in enumerate(zip(shape, steps)) if n > 1}
    if layout.access[0] != "whole" or len(found) != layout.ndim or layout.ndim != len(shape):
        return None
    return [found[axis] for axis in zip(layout.size, layout.stride)]


def _axes(original: Tensor, dim: int) -> list[_Axis]:
    """The dimensions of an example, outermost first; neighbours that lie in memory as one are one."""
    axes: list[_Axis] = []
    step = 1
    for d in reversed([d for d in range(original.dim()) if d != dim]):
        size, stride = original.shape[d], original.stride(d)
        if axes and stride == axes[-1].stride * axes[-1].size:
            axes[-1] = axes[-1]._replace(size=axes[-1].size * size)
        elif size > 1:
            axes.append(_Axis(size, step, stride))
        step *= size
    return axes[::-1]


def _in_memory(
    axes: Sequence[_Axis], size: Sequence[int], stride: Sequence[int], offset: int
) -> tuple[list[int], int] | None:
    """Strides and an offset among an example's elements as those in memory; None if they are not regular there."""
    if 0 in size:
        return list(stride), 0
    reached = start = _digits(axes, offset)
    strides = []
    for n, s in zip(size, stride):
        digits = _digits(axes, s) if n > 1 else [0] * len(axes)
        reached = [r + (n - 1) * c for r, c in zip(reached, digits)]
        strides.append(sum(c * axis.stride for c, axis in zip(digits, axes)))
    if any(r >= axis.size for r, axis in zip(reached, axes)):
        return None
    return strides, sum(c * axis.stride for c, axis in zip(start, axes))


def _digits(axes: Sequence[_Axis], distance: int) -> list[int]:
    """A distance among an example's elements, in steps along each of its dimensions."""
    digits = []
    for axis in axes:
        steps, distance = divmod(distance, axis.step)
        digits.append(steps)
    return digits
