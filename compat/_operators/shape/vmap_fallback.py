"""Operations that ``vmap`` runs one batch element at a time, because the sizes of their results depend on values."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from compat._core.tensor.tensor import Tensor
from compat._core.tensor.tracing import elements, tensor_of
from compat._core.transforms import vmap_checks
from compat._core.types.errors import warn
from compat._operators.shape.cat_stack import stack
from funcgrad.interpreters.batching import Batching, BatchTracer
from funcgrad.interpreters.forward import ForwardTracer
from funcgrad.interpreters.reverse import ReverseTracer

Function = Callable[..., Tensor]


def sequential_vmap(name: str) -> Callable[[Function], Function]:
    """Declares that ``vmap`` calls a function, which has no derivatives, with one batch element after the other.

    All its results must have the same size.

    Args:
        name: its name in the warning.
    """

    def declare(function: Function) -> Function:
        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Tensor:
            over = _innermost((*args, *kwargs.values()))
            if over is None:
                return function(*args, **kwargs)
            warn(
                f"There is a performance drop because aten::{name} is called with one batch element after the other: "
                "sizes of its results depend on values."
            )
            found = [
                call(*[_of(x, over, i) for x in args], **{key: _of(x, over, i) for key, x in kwargs.items()})
                for i in range(over.size)
            ]
            return tensor_of(BatchTracer(over, elements(stack(found)), 0))

        return call

    return declare


def _innermost(arguments: tuple) -> Batching | None:
    """The innermost ``vmap`` over which an argument differs."""
    traced = [x for x in arguments if isinstance(x, Tensor) and x._storage_.base.traced]
    return max((m for x in traced for m in vmap_checks.maps(x._storage_.buffer)), key=lambda m: m.level, default=None)


def _of(x: Any, over: Batching, i: int) -> Any:
    """An argument for one batch element."""
    if not isinstance(x, Tensor) or over not in vmap_checks.maps(x._storage_.buffer):
        return x
    value = elements(x)
    while isinstance(value, ForwardTracer | ReverseTracer):
        value = value.underlying()
    return tensor_of(value.value).select(value.dim, i)
