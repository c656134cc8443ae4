"""A ``vmap`` rule that loops over batch elements, for operations whose results have sizes that depend on values."""

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
    """Makes ``vmap`` call a function, which is not differentiable, for one batch element after the other.

    All results must have the same size.

    Args:
        name: the operator's name in the warning.
    """

    def declare(function: Function) -> Function:
        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Tensor:
            batching = _innermost((*args, *kwargs.values()))
            if batching is None:
                return function(*args, **kwargs)
            warn(
                f"There is a performance drop because aten::{name} is called with one batch element after the other: "
                "sizes of its results depend on values."
            )
            results = [
                call(
                    *[_batch_element(x, batching, i) for x in args],
                    **{key: _batch_element(x, batching, i) for key, x in kwargs.items()},
                )
                for i in range(batching.size)
            ]
            return tensor_of(BatchTracer(batching, elements(stack(results)), 0))

        return call

    return declare


def _innermost(arguments: tuple) -> Batching | None:
    """The innermost ``vmap`` that batches an argument."""
    traced = [x for x in arguments if isinstance(x, Tensor) and x._storage_.base.traced]
    return max((m for x in traced for m in vmap_checks.maps(x._storage_.buffer)), key=lambda m: m.level, default=None)


def _batch_element(x: Any, batching: Batching, i: int) -> Any:
    """An argument for one batch element."""
    if not isinstance(x, Tensor) or batching not in vmap_checks.maps(x._storage_.buffer):
        return x
    value = elements(x)
    while isinstance(value, (ForwardTracer, ReverseTracer)):
        value = value.underlying()
    return tensor_of(value.value).select(value.dim, i)
