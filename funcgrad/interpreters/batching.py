"""Batching: each value may have an extra axis, and each primitive has a rule for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcgrad.core.errors import ConcretizationError, FuncgradError, explained, here
from funcgrad.core.primitive import Primitive
from funcgrad.core.tracing import Interpreter, Tracer, bind, differentiated_by, restoring, running, state, type_of
from funcgrad.primitives.shape import broadcast, moved, reshape


class BatchTracer(Tracer):
    """A value with a batch axis that the function does not see.

    Attributes:
        dim: the position of the batch axis in ``value``.
    """

    __slots__ = ("value", "dim")
    interpreter: Batching

    def __init__(self, interpreter: Batching, value: Any, dim: int):
        self.interpreter = interpreter
        whole = type_of(value)
        self.type = whole.with_shape((*whole.shape[:dim], *whole.shape[dim + 1 :]))
        self.value = value
        self.dim = dim

    def underlying(self) -> Any:
        raise ConcretizationError(
            f"Under vmap it stands for {self.interpreter.size} values at once. Choose between arrays with "
            "funcgrad.numpy.where instead.",
            entry="branch-in-vmap",
        )

    def differentiated_by(self) -> list[Interpreter]:
        return differentiated_by(self.value)


class Batching(Interpreter):
    """Vectorizes: applies each operation to all batch elements together.

    Attributes:
        size: the number of batch elements.
    """

    __slots__ = ("size",)
    description = "vmap"

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size

    def process(self, primitive: Primitive, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        if primitive.close is not None:
            operands, params = primitive.close(self, operands, params)
        values: list[Any] = []
        dims: list[int | None] = []
        for x in operands:
            mine = isinstance(x, BatchTracer) and x.interpreter is self
            values.append(x.value if mine else x)
            dims.append(x.dim if mine else None)
        if all(d is None for d in dims):
            return bind(primitive, values, params)
        out: Any
        dim: Any
        if primitive.elementwise:
            out, dim = _elementwise(primitive, values, dims, params)
        elif primitive.batch is None:
            raise FuncgradError(f"the primitive {primitive.name!r} has no batching rule; it was reached at {here()}")
        else:
            out, dim = primitive.batch(self.size, values, dims, **params)
        if primitive.multiple:
            return [o if d is None else BatchTracer(self, o, d) for o, d in zip(out, dim, strict=True)]
        return out if dim is None else BatchTracer(self, out, dim)


def _elementwise(
    primitive: Primitive, values: list[Any], dims: list[int | None], params: dict[str, Any]
) -> tuple[Any, int]:
    shapes = [type_of(v).shape for v in values]
    batched = {(len(s), d) for s, d in zip(shapes, dims, strict=True) if d is not None}
    if len(batched) == 1 and all(d is not None or not s for s, d in zip(shapes, dims, strict=True)):
        return bind(primitive, values, params), batched.pop()[1]
    # Ranks without the batch axis, which goes in front of operands padded to the largest rank.
    rank = max(len(s) - (d is not None) for s, d in zip(shapes, dims, strict=True))
    aligned = []
    for v, d in zip(values, dims, strict=True):
        if d is not None:
            v = moved(v, d, 0)
            inner = type_of(v).shape[1:]
            if len(inner) < rank:
                v = reshape(v, shape=(type_of(v).shape[0], *(1,) * (rank - len(inner)), *inner))
        aligned.append(v)
    return bind(primitive, aligned, params), 0


def axis_called(name: Any) -> tuple[Any, int]:
    """A named axis: the traced index for a ``vmap`` axis, a ``MeshAxis`` for a mesh axis; and its size."""
    try:
        return state.axes[name]
    except KeyError:
        known = f"there are {', '.join(map(repr, state.axes))}" if state.axes else "there is none at all"
        message = (
            f"no axis is called {name!r} at {here()}, {known}; give it to a surrounding vmap as axis_name, or use "
            "one of the mesh inside shard_map"
        )
        raise explained(NameError(message), "axis-name") from None


@restoring
def batch_flat(
    f: Callable[..., Sequence[Any]], size: int, values: Sequence[Any], dims: Sequence[int | None], name: Any = None
) -> tuple[list[Any], list[int | None]]:
    """Runs ``f`` vectorized; returns results and their batch axes (``None``: not batched).

    Args:
        name: the axis name visible to ``f``.
    """
    interpreter = Batching(size)
    outside = state.axes
    with running(interpreter):
        arguments = [v if d is None else BatchTracer(interpreter, v, d) for v, d in zip(values, dims, strict=True)]
        try:
            if name is not None:
                state.axes = {**outside, name: (BatchTracer(interpreter, np.arange(size, dtype="int32"), 0), size)}
            results = list(f(*arguments))
        finally:
            state.axes = outside
    mine = [isinstance(r, BatchTracer) and r.interpreter is interpreter for r in results]
    outs = [r.value if m else r for r, m in zip(results, mine, strict=True)]
    return outs, [r.dim if m else None for r, m in zip(results, mine, strict=True)]


def at_axis(value: Any, dim: int | None, axis: int, size: int) -> Any:
    """``value`` with its batch axis at ``axis``; broadcast to ``size`` elements if it has none."""
    if dim is not None:
        return moved(value, dim, axis)
    shape = type_of(value).shape
    target = (*shape[:axis], size, *shape[axis:])
    return broadcast(value, shape=target, dims=tuple(i for i in range(len(target)) if i != axis))
