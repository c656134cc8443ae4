"""Identity primitives that change derivatives: they drop them, keep those from before a write, or make them zero."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from funcgrad.core.primitive import Primitive
from funcgrad.core.tracing import type_of
from funcgrad.interpreters.batching import at_axis
from funcgrad.primitives.shape import zeros

#: Cotangents or tangents of operands, None for none.
Moved = Sequence[Any]


def _held(name: str, forward: bool) -> Primitive:
    """An identity with a derivative in forward mode only, or in reverse mode only."""
    same: Primitive = Primitive(
        name,
        infer=lambda x: x,
        lower=lambda x: x,
        batch=lambda size, operands, dims: (same(operands[0]), dims[0]),
        jvp=lambda primals, tangents: (same(primals[0]), same(tangents[0]) if forward else None),
        vjp=lambda primals, needs, params: ([same(primals[0])], (lambda cotangents: [None]) if forward else list),
    )
    return same


def _beside(name: str, tangent: Callable[[Sequence[Any], Moved], Any], owner: int) -> Primitive:
    """A primitive that returns the second of two operands, batched if one of them is.

    Args:
        tangent: the tangent of the result, from both operands and their tangents.
        owner: the operand that gets the cotangent.
    """
    second: Primitive = Primitive(
        name,
        infer=lambda by, x: x,
        lower=lambda by, x: x,
        batch=lambda size, operands, dims: (second(*[at_axis(x, d, 0, size) for x, d in zip(operands, dims)]), 0),
        jvp=lambda primals, tangents: (second(*primals), tangent(primals, tangents)),
        vjp=lambda primals, needs, params: (
            [second(*primals)],
            lambda cotangents: [cotangents[0] if i == owner else None for i in range(2)],
        ),
    )
    return second


#: The value without its derivative in reverse mode, or in forward mode.
hold_backward = _held("hold_backward", forward=True)
hold_forward = _held("hold_forward", forward=False)
#: The second value with the first one's derivative in reverse mode, or in forward mode.
keep_backward: Primitive = _beside(
    "keep_backward", lambda _, both: both[1] if None in both else keep_backward(*both), 0
)
keep_forward = _beside("keep_forward", lambda _, both: both[0], 1)
#: The second value, batched like the first one.
per_batch_element: Primitive = _beside(
    "per_batch_element", lambda values, both: None if both[1] is None else per_batch_element(values[0], both[1]), 1
)
#: The second value, with a zero tangent if only the first has one.
still = _beside("still", lambda values, both: zeros(type_of(values[1]).strong()) if both[1] is None else both[1], 1)
