"""Random numbers inside ``vmap``: the same for all examples, or for each its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from compat import levels
from compat.device import META
from compat.layout import Base, Layout, layout_of
from compat.meta import unknown
from compat.tensor import Tensor, array_of, from_array, from_buffer
from funcgrad import runtime
from funcgrad.interpreters.batching import Batching, BatchTracer, at_axis

#: From a number of elements and a dtype to a flat array of draws.
Draw = Callable[[int, np.dtype], np.ndarray]

_SAME = (
    "Vmap does not currently support same randomness with a batched tensor input. Please file an issue with functorch"
)
_IN_PLACE = (
    "vmap: Cannot ask for different inplace randomness on an unbatched tensor. This will appear like same randomness. "
    "If this is necessary for your usage, please file an issue with functorch."
)


def draws(draw: Draw, layout: Layout) -> Tensor:
    """A tensor of draws in the order of its memory: those of each example one after the other."""
    base, over = layout.base, levels.drawing()
    dtype = base.dtype.numpy
    assert dtype is not None
    if base.device is META:
        return from_buffer(unknown(base), layout)
    sizes = tuple(interpreter.size for interpreter in over)
    shape = (*sizes, *base.shape)
    buffer = runtime.drawn(lambda: draw(prod(shape), dtype).reshape(shape))
    if not over:
        return from_buffer(buffer, layout)
    traced = layout_of(Base(base.shape, base.dtype, True), layout.size, layout.stride, 0)
    return from_buffer(levels.spread(over, buffer), traced)


def given(*tensors: Any) -> tuple[list[Any], list[Batching]]:
    """The values of tensors that say how to draw, with leading axes for the ``vmap``s over which one of them differs,
    and these ``vmap``s, outermost first.

    Raises:
        RuntimeError: where they differ between examples that are to see the same numbers.
    """
    over = levels.drawing()
    differing = {m for t in tensors if isinstance(t, Tensor) for m in levels.maps(t._storage.buffer)}
    if differing - set(over):
        raise RuntimeError(_SAME)
    return [_values(t, over) if isinstance(t, Tensor) else t for t in tensors], over


def _values(t: Tensor, over: Sequence[Batching]) -> np.ndarray:
    if not over:
        return array_of(t)
    x: Any = runtime.ready(t.contiguous()._storage.buffer)
    for interpreter in reversed(over):
        mine = isinstance(x, BatchTracer) and x.interpreter is interpreter
        value, dim = (x.value, x.dim) if mine else (x, None)
        x = at_axis(value, dim, 0, interpreter.size)
    array = np.asarray(levels.concrete(x, "its values"))
    return array.reshape((*[m.size for m in over], *t.shape))


def drawn(values: np.ndarray, over: Sequence[Batching], dtype: Any = None) -> Tensor:
    """Draws with leading axes for some ``vmap``s as a tensor."""
    made = from_array(values, dtype)
    if not over:
        return made
    size = values.shape[len(over) :]
    base = Base(size, made.dtype, True)
    buffer = levels.spread(over, runtime.ready(made._storage.buffer))
    strides = tuple(prod(size[i + 1 :]) for i in range(len(size)))
    return from_buffer(buffer, layout_of(base, size, strides, 0))


def check_fill(t: Tensor) -> None:
    """Whether draws can be put into a tensor.

    Raises:
        RuntimeError: where each example is to see its own, but all share the tensor.
    """
    if set(levels.drawing()) - set(levels.maps(t._storage.buffer)):
        raise RuntimeError(_IN_PLACE)
