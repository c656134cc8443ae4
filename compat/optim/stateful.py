"""Optimizers that keep a step count and tensors like the parameter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from compat.ops.creation import zeros_like
from compat.ops.together import Job
from compat.optim.arithmetic import like, regularized
from compat.optim.optimizer import Group, Together, number_of, number_tensor, real_rows

Arrays = Sequence[Any]


class Stateful(Together):
    """An optimizer whose state is a step count and tensors like the parameter, zero at first.

    Attributes:
        _rule: what becomes of a row: parameter, step count, the tensors, gradient.
        _settings: the names of the numbers that it takes.
    """

    _rule: Any
    _settings: tuple[str, ...]

    def _kept(self, group: Group) -> tuple[str, ...]:
        """The names of the tensors."""
        raise NotImplementedError

    def _flags(self, group: Group) -> Any:
        """What the rule does otherwise for."""
        raise NotImplementedError

    def _start(self, p: Any, group: Group, state: dict[str, Any]) -> None:
        """Makes the state of a parameter."""
        state["step"] = number_tensor()
        for name in self._kept(group):
            state[name] = zeros_like(p.detach())

    def _numbers(self, group: Group) -> list[Any]:
        values: list[Any] = []
        for name in self._settings:
            value = group[name]
            values += value if isinstance(value, tuple) else [value]
        return [number_of(value) for value in values]

    def _group_jobs(self, group: Group, parameters: list[Any]) -> list[Job]:
        kept = self._kept(group)
        rows = []
        for p in parameters:
            state = self.state[p]
            if not state:
                self._start(p, group, state)
            rows.append([p, state["step"], *[state[name] for name in kept], p.grad])
        return [Job(type(self)._rule, self._flags(group), self._numbers(group), real_rows(rows), 2 + len(kept))]


class Flags(NamedTuple):
    maximize: bool
    decay: bool


class DecoupledFlags(NamedTuple):
    maximize: bool
    decay: bool
    decoupled: bool


def decayed(flags: DecoupledFlags, p: Any, grad: Any, lr: Any, weight_decay: Any) -> tuple[Any, Any]:
    """Parameter and gradient, one of them decayed."""
    if not flags.decoupled:
        return p, regularized(grad, p, weight_decay, flags)
    grad = -grad if flags.maximize else grad
    return (p * like(1 - lr * weight_decay, p) if flags.decay else p), grad
