"""Random numbers under ``vmap``: the same for all batch elements, or different ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from compat._core.memory.meta import unknown
from compat._core.memory.strides import Base, Layout, layout_of
from compat._core.tensor.tensor import Tensor, array_of, from_array, from_buffer
from compat._core.transforms import level_stack, vmap_checks
from compat._core.types.device import META, on
from funcgrad import runtime
from funcgrad.interpreters.batching import Batching, BatchTracer, at_axis
from funcgrad.interpreters.forward import ForwardTracer
from funcgrad.interpreters.reverse import ReverseTracer

#: A sampler: a function of a number of elements and a dtype that returns a flat array of random numbers.
Draw = Callable[[int, np.dtype], np.ndarray]

_SAME = (
    "Vmap does not currently support same randomness with a batched tensor input. Please file an issue with functorch"
)
_IN_PLACE = (
    "vmap: Cannot ask for different inplace randomness on an unbatched tensor. This will appear like same randomness. "
    "If this is necessary for your usage, please file an issue with functorch."
)


def random_tensor(draw: Draw, layout: Layout, like: Tensor | None = None) -> Tensor:
    """A tensor of random numbers, which are drawn in memory order and one batch element after the other.

    Args:
        like: the tensor whose strides the result has; batch elements may be interleaved in it.
    """
    base, vmaps = layout.base, vmap_checks.drawing()
    dtype = base.dtype.numpy
    assert dtype is not None
    if base.device is META:
        return from_buffer(unknown(base), layout)
    if not vmaps:
        buffer = runtime.drawn(lambda: draw(base.numel, dtype).reshape(base.shape))
        return from_buffer(on(base.device, buffer), layout)
    sizes = (*[interpreter.size for interpreter in vmaps], *base.shape)
    order = memory_order(like, vmaps, len(base.shape))
    in_memory, inverse = [sizes[axis] for axis in order], np.argsort(order)
    draw_all = lambda: np.asarray(draw(prod(in_memory), dtype).reshape(in_memory).transpose(inverse), order="C")
    buffer = runtime.drawn(draw_all)
    traced = layout_of(Base(base.shape, base.dtype, True), layout.size, layout.stride, 0)
    return from_buffer(vmap_checks.spread(vmaps, buffer), traced)


def memory_order(like: Tensor | None, vmaps: Sequence[Batching], ndim: int) -> list[int]:
    """The axes in memory order; the axes of ``vmap``s, outermost first, are numbered before those of the tensor."""
    count = len(vmaps)
    default = list(range(count + ndim))
    if like is None or not like._storage_.base.traced:
        return default
    layout = like._layout_
    if not (layout.whole and layout.dense and len(layout.base.shape) == ndim):
        return default
    order, x = default[count:], runtime.ready(like._storage_.buffer)
    for axis in reversed(range(count)):
        while isinstance(x, (ForwardTracer, ReverseTracer)):
            x = x.underlying()
        batched = isinstance(x, BatchTracer) and x.interpreter is vmaps[axis]
        order.insert(x.dim if batched else 0, axis)
        x = x.value if batched else x
    return order


def has_contiguous_elements(t: Tensor) -> bool:
    """Whether each batch element of ``vmap``s is contiguous in memory."""
    vmaps = vmap_checks.drawing() if level_stack.state.levels else []
    ndim = len(t._layout_.base.shape)
    return not vmaps or memory_order(t, vmaps, ndim) == list(range(len(vmaps) + ndim))


def parameter_values(*tensors: Any) -> tuple[list[Any], list[Batching]]:
    """The row-major values of parameters of a distribution, with leading axes for the ``vmap``s that draw different
    numbers, and these ``vmap``s, outermost first.

    Raises:
        RuntimeError: for a parameter that is batched by a ``vmap`` with ``randomness="same"``.
    """
    vmaps = vmap_checks.drawing()
    check_same(vmaps, *tensors)
    return [_values(t, vmaps) if isinstance(t, Tensor) else t for t in tensors], vmaps


def check_same(vmaps: Sequence[Batching], *tensors: Any) -> None:
    """Checks that no tensor is batched by a ``vmap`` with ``randomness="same"``.

    Args:
        vmaps: the ``vmap``s that draw different numbers.
    """
    if not level_stack.state.levels:
        return
    batching = {m for t in tensors if isinstance(t, Tensor) for m in vmap_checks.maps(t._storage_.buffer)}
    if batching - set(vmaps):
        raise RuntimeError(_SAME)


def _values(t: Tensor, vmaps: Sequence[Batching]) -> np.ndarray:
    if not vmaps:
        return np.asarray(array_of(t), order="C")
    x: Any = runtime.ready(t.contiguous()._storage_.buffer)
    for interpreter in reversed(vmaps):
        batched = isinstance(x, BatchTracer) and x.interpreter is interpreter
        value, dim = (x.value, x.dim) if batched else (x, None)
        x = at_axis(value, dim, 0, interpreter.size)
    array = np.asarray(vmap_checks.concrete(x, "its values"), order="C")
    return array.reshape((*[m.size for m in vmaps], *t.shape))


def batched_tensor(values: np.ndarray, vmaps: Sequence[Batching], dtype: Any = None) -> Tensor:
    """A tensor of the random numbers in an array, whose leading axes are those of ``vmap``s."""
    t = from_array(values, dtype)
    if not vmaps:
        return t
    size = values.shape[len(vmaps) :]
    base = Base(size, t.dtype, True)
    buffer = vmap_checks.spread(vmaps, runtime.ready(t._storage_.buffer))
    strides = tuple(prod(size[i + 1 :]) for i in range(len(size)))
    return from_buffer(buffer, layout_of(base, size, strides, 0))


def check_fill(t: Tensor) -> None:
    """Checks that random numbers can be written into a tensor.

    Raises:
        RuntimeError: for a ``vmap`` with ``randomness="different"`` that does not batch the tensor.
    """
    if set(vmap_checks.drawing()) - set(vmap_checks.maps(t._storage_.buffer)):
        raise RuntimeError(_IN_PLACE)
