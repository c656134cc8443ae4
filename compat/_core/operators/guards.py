"""Wrappers of plans that check or choose before each run: inference tensors, values, discarded imaginary parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from compat._core.operators.inplace import check_apart
from compat._core.operators.plan import Plan
from compat._core.operators.value_checks import inspect
from compat._core.tensor.tensor import Tensor
from compat._core.types import dtype
from compat._core.types.errors import Once


@dataclass(eq=False, slots=True)
class Within:
    """The plans of a call with inference tensors that require grad.

    Args:
        recorded: the plan if an operand is a normal tensor, or a number, which PyTorch converts to one.
        plain: the plan if all operands are inference tensors.
        operands: the indices of the operands among the inputs.
    """

    recorded: Plan
    plain: Plan
    operands: Sequence[int]

    @property
    def target(self) -> int | None:
        return self.recorded.target

    def run(self, values: Sequence[Any]) -> Any:
        given = [values[i] for i in self.operands if values[i] is not None]
        usual = any(not isinstance(v, Tensor) or v._counter_ is not None for v in given)
        return (self.recorded if usual else self.plain).run(values)


class Inspected:
    """A plan whose operation checks its arguments' values before each run."""

    __slots__ = ("plan", "op", "fixed", "given", "positional", "keywords", "whole")

    def __init__(self, plan: Any, op: Any, args: Sequence[Any]):
        self.plan = plan
        self.op = op
        #: The static arguments, with None for others; and the indices of the others among the values.
        self.fixed = [None if p.dynamic else a for p, a in zip(op.params, args)]
        self.given: list[tuple[int, int | slice]] = []
        at = 0
        for i, (p, a) in enumerate(zip(op.params, args)):
            if p.kind == "arrays":
                self.given.append((i, slice(at, at + len(a))))
                at += len(a)
            elif p.dynamic:
                self.given.append((i, at))
                at += 1
        self.positional = [i for i, p in enumerate(op.params) if not p.keyword]
        self.keywords = [(p.name, i) for i, p in enumerate(op.params) if p.keyword]
        #: Whether the arguments are the values: each is one tensor or number, given by position.
        self.whole = not self.keywords and [(i, i) for i in range(len(args))] == self.given

    def run(self, values: Sequence[Any]) -> Any:
        op = self.op
        if op.row.overlap.inputs and self.plan.target is not None:
            check_apart(values, self.plan.target)
        if self.whole:
            inspect(op.row.values, values, {})
        else:
            args: list[Any] = self.fixed.copy()
            for i, place in self.given:
                args[i] = values[place]
            inspect(op.row.values, [args[i] for i in self.positional], {name: args[i] for name, i in self.keywords})
        return self.plan.run(values)


def discards(d: dtype.dtype) -> bool:
    """Whether a cast of complex numbers to a dtype discards the imaginary part, with PyTorch's warning."""
    return d is not dtype.bool_ and not d.is_complex


class Discarding:
    """A plan that discards imaginary parts, with a warning."""

    __slots__ = ("plan", "target")

    def __init__(self, plan: Any):
        self.plan, self.target = plan, plan.target

    def run(self, values: Sequence[Any]) -> Any:
        Once.warn("Casting complex values to real discards the imaginary part", key="discarded imaginary parts")
        return self.plan.run(values)
