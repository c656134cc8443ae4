"""Random numbers inside ``vmap``: the same for all batch elements, or different ones."""

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

#: A sampler: from a number of elements and a dtype to a flat array of random numbers.
Draw = Callable[[int, np.dtype], np.ndarray]

_SAME = (
    "Vmap does not currently support same randomness with a batched tensor input. Please file an issue with functorch"
)
_IN_PLACE = (
    "vmap: Cannot ask for different inplace randomness on an unbatched tensor. This will appear like same randomness. "
    "If this is necessary for your usage, please file an issue with functorch."
)


def draws(draw: Draw, layout: Layout, like: Tensor | None = None) -> Tensor:
    """A tensor of random numbers in memory order, one batch element after the other.

    Args:
        like: the tensor whose strides the result has, in which batch elements may be interleaved.
    """
    base, over = layout.base, vmap_checks.drawing()
    dtype = base.dtype.numpy
    assert dtype is not None
    if base.device is META:
        return from_buffer(unknown(base), layout)
    if not over:
        drawn = runtime.drawn(lambda: draw(base.numel, dtype).reshape(base.shape))
        return from_buffer(on(base.device, drawn), layout)
    sizes = (*[interpreter.size for interpreter in over], *base.shape)
    order = memory_order(like, over, len(base.shape))
    laid = [sizes[axis] for axis in order]
    back = np.argsort(order)
    drawing = lambda: np.asarray(draw(prod(laid), dtype).reshape(laid).transpose(back), order="C")
    buffer = runtime.drawn(drawing)
    traced = layout_of(Base(base.shape, base.dtype, True), layout.size, layout.stride, 0)
    return from_buffer(vmap_checks.spread(over, buffer), traced)


def memory_order(like: Tensor | None, over: Sequence[Batching], ndim: int) -> list[int]:
    """The axes in memory order, where the axes of ``vmap``s, outermost first, have the first numbers."""
    count = len(over)
    usual = list(range(count + ndim))
    if like is None or not like._storage_.base.traced:
        return usual
    layout = like._layout_
    if not (layout.whole and layout.dense and len(layout.base.shape) == ndim):
        return usual
    order, x = usual[count:], runtime.ready(like._storage_.buffer)
    for axis in reversed(range(count)):
        while isinstance(x, ForwardTracer | ReverseTracer):
            x = x.underlying()
        mine = isinstance(x, BatchTracer) and x.interpreter is over[axis]
        order.insert(x.dim if mine else 0, axis)
        x = x.value if mine else x
    return order


def in_usual_order(t: Tensor) -> bool:
    """Whether batch elements are contiguous in memory."""
    over = vmap_checks.drawing() if level_stack.state.levels else []
    ndim = len(t._layout_.base.shape)
    return not over or memory_order(t, over, ndim) == list(range(len(over) + ndim))


def given(*tensors: Any) -> tuple[list[Any], list[Batching]]:
    """The values of parameters of a distribution, with leading axes for the ``vmap``s that draw different numbers, and
    these ``vmap``s, outermost first.

    Raises:
        RuntimeError: for a parameter that is batched by a ``vmap`` with ``randomness="same"``.
    """
    over = vmap_checks.drawing()
    check_same(over, *tensors)
    return [_values(t, over) if isinstance(t, Tensor) else t for t in tensors], over


def check_same(over: Sequence[Batching], *tensors: Any) -> None:
    """Checks that no tensor is batched by a ``vmap`` with ``randomness="same"``.

    Args:
        over: the ``vmap``s that draw different numbers.
    """
    if not level_stack.state.levels:
        return
    differing = {m for t in tensors if isinstance(t, Tensor) for m in vmap_checks.maps(t._storage_.buffer)}
    if differing - set(over):
        raise RuntimeError(_SAME)


def _values(t: Tensor, over: Sequence[Batching]) -> np.ndarray:
    if not over:
        return array_of(t)
    x: Any = runtime.ready(t.contiguous()._storage_.buffer)
    for interpreter in reversed(over):
        mine = isinstance(x, BatchTracer) and x.interpreter is interpreter
        value, dim = (x.value, x.dim) if mine else (x, None)
        x = at_axis(value, dim, 0, interpreter.size)
    array = np.asarray(vmap_checks.concrete(x, "its values"))
    return array.reshape((*[m.size for m in over], *t.shape))


def drawn(values: np.ndarray, over: Sequence[Batching], dtype: Any = None) -> Tensor:
    """A tensor of random numbers, given as an array with leading axes for ``vmap``s."""
    made = from_array(values, dtype)
    if not over:
        return made
    size = values.shape[len(over) :]
    base = Base(size, made.dtype, True)
    buffer = vmap_checks.spread(over, runtime.ready(made._storage_.buffer))
    strides = tuple(prod(size[i + 1 :]) for i in range(len(size)))
    return from_buffer(buffer, layout_of(base, size, strides, 0))


def check_fill(t: Tensor) -> None:
    """Checks that random numbers can be written into a tensor.

    Raises:
        RuntimeError: for a ``vmap`` with ``randomness="different"`` that does not batch the tensor.
    """
    if set(vmap_checks.drawing()) - set(vmap_checks.maps(t._storage_.buffer)):
        raise RuntimeError(_IN_PLACE)
