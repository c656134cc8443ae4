"""Cutting a view out of its base again, after the base was written.

Where both have elements of one kind, one ``as_strided`` does it. A view of a complex tensor's parts, of pairs of real
numbers as complex ones, or one that conjugates, is made again in the steps that it was made in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compat._core.memory.strides import Layout
from compat._core.tensor.autograd_state import View
from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor
from compat._core.transforms.logical_strides import seen_at

#: A step from one tensor to another that shares its memory.
Step = Callable[[Tensor], Tensor]


def part(layout: Layout, shift: int) -> Step:
    """The step to a part of the memory, which begins ``shift`` elements after the tensor does."""

    def step(t: Tensor) -> Tensor:
        stride, offset = seen_at(t, layout, t._offset + shift)
        made: Tensor = names_of("Tensor")["as_strided"](t, tuple(layout.size), stride, offset)
        return made

    return step


def extended(plan: Any, t: Tensor, layout: Layout, offset: int) -> tuple[Step, ...]:
    """The steps to a view of ``t`` that a plan makes."""
    view = t._view
    base = None if view is None else view.base
    steps: tuple[Step, ...] = () if view is None or base is None else view.steps
    if not plan.converts:
        return (*steps, part(layout, offset - t._offset))
    if not steps and base is not None:
        steps = (part(t._layout, t._offset - base._offset),)
    return (*steps, plan.op.function)


def steps_of(t: Tensor) -> tuple[Step, ...]:
    """The steps from a view's base to the view."""
    view: View | None = t._view
    assert view is not None
    assert view.base is not None
    return view.steps or (part(t._layout, t._offset - view.base._offset),)


def cut(base: Tensor, steps: tuple[Step, ...]) -> Tensor:
    """The view that steps lead to."""
    for step in steps:
        base = step(base)
    return base
