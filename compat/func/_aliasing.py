"""Aliasing of ``vmap``'s results: results that are views of arguments or of other results, as in PyTorch."""

from __future__ import annotations

from collections.abc import Sequence

from compat._core.memory.strides import Base, Layout, contiguous_strides
from compat._core.tensor.tensor import Tensor
from compat._core.transforms.logical_strides import Placing
from compat._operators.view.as_strided import as_strided
from compat._operators.view.complex_views import view_as_complex, view_as_real
from compat._operators.view.shape import movedim, permute
from funcgrad import runtime
from funcgrad.core.tracing import Tracer
from funcgrad.interpreters.batching import BatchTracer


def view_of(original: Tensor, dim: int, element: Tensor, result: Tensor, out_dim: int) -> Tensor | None:
    """The view of a whole argument that corresponds to a view of its batch element.

    Args:
        original, dim: the argument and its batch dimension.
        element: the batch element that the function gets, with a separate row-major storage.
        result: the function's result.
        out_dim: the batch dimension of the result.

    Returns:
        None if ``result`` does not share the memory, or the view is not expressible by strides.
    """
    if result._storage_ is not element._storage_:
        return None
    if result._layout_ is element._layout_ and result._offset_ == element._offset_:
        return original if result is element and out_dim == dim else movedim(original, dim, out_dim)
    layout = result._layout_
    size, stride, offset = tuple(layout.size), layout.stride, result._offset_
    if result.dtype is not element.dtype:
        if element.dtype.is_complex:
            original = view_as_real(original)
        elif result.dtype.is_complex:
            size, stride, offset = (*size, 2), (*[2 * s for s in stride], 1), 2 * offset
        else:
            return None  # a view of the bytes as another dtype
    if (layout.conj, layout.neg) != (element._layout_.conj, element._layout_.neg):
        return None
    shape, strides = ([n for d, n in enumerate(of) if d != dim] for of in (original.shape, original.stride()))
    placing = Placing(Base(tuple(shape), original.dtype), strides, original.storage_offset())
    found = placing.regular(size, stride, offset)
    if found is None:
        return None
    strides_, start = list(found[0]), found[1]
    paired = result.dtype.is_complex and not original.dtype.is_complex
    if paired and (strides_[-1] != 1 or any(s % 2 for s in (start, original.stride(dim), *strides_[:-1]))):
        return None
    size = (*size[:out_dim], original.shape[dim], *size[out_dim:])
    strides_.insert(out_dim, original.stride(dim))
    whole = as_strided(original, size, tuple(strides_), start)
    if not paired:
        return whole
    return view_as_complex(whole) if whole._layout_.stride[-1] == 1 else None


def view_of_batch(whole: Tensor, result: Tensor, out_dim: int) -> Tensor | None:
    """A view of new memory as the batch of a function's results.

    Args:
        whole: the memory of ``result``, with the batch dimension first.
        result: the function's result.
        out_dim: the batch dimension of the result.

    Returns:
        None for a view other than a permutation of dimensions if a derivative of ``as_strided`` would be needed.
    """
    layout, base = result._layout_, result._layout_.base
    if layout.conj or layout.neg or layout.dtype is not base.dtype:
        return None
    if layout.size == base.shape and layout.stride == contiguous_strides(base.shape):
        return whole if out_dim == 0 else movedim(whole, 0, out_dim)
    order = _order(base.shape, layout)
    if order is not None:
        order.insert(out_dim, -1)
        return permute(whole, [d + 1 for d in order])
    if whole.requires_grad or _is_traced(whole):
        return None
    size, stride = list(layout.size), list(layout.stride)
    size.insert(out_dim, whole.shape[0])
    stride.insert(out_dim, whole.stride(0))
    return as_strided(whole, size, stride, result._offset_)


def _is_traced(t: Tensor) -> bool:
    """Whether a transform other than ``vmap`` traces a tensor."""
    x = runtime.ready(t._storage_.buffer)
    while isinstance(x, BatchTracer):
        x = runtime.ready(x.value)
    return isinstance(x, Tracer)


def _order(shape: Sequence[int], layout: Layout) -> list[int] | None:
    """The permutation of a row-major array's dimensions that gives a layout, if there is one."""
    steps = contiguous_strides(tuple(shape))
    found = {(n, step): d for d, (n, step) in enumerate(zip(shape, steps)) if n > 1}
    if layout.access[0] != "whole" or len(found) != layout.ndim or layout.ndim != len(shape):
        return None
    return [found[axis] for axis in zip(layout.size, layout.stride)]
