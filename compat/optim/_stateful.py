"""Optimizers that keep a step count and tensors like the parameter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from compat._core.operators.multi_tensor import Job, write_recorded, write_together
from compat._core.tensor.tensor import Tensor
from compat._core.transforms.grad_mode import enable_grad, no_grad
from compat._operators.create.factories import zeros_like
from compat.optim._arithmetic import like, regularized
from compat.optim.optimizer import Group, Together, is_zero, number_of, number_tensor, real_rows

Arrays = Sequence[Any]


#: Settings that optimizers saved by older versions may lack, and their values then.
_LATER = dict(
    maximize=False, foreach=None, capturable=False, differentiable=False, fused=None, decoupled_weight_decay=False,
    amsgrad=False, momentum=0, centered=False,
)  # fmt: skip
#: Settings that older versions saved as numbers.
_COUNTS = ("step", "mu_product", "eta", "mu")


def count_in_tensors(state: Mapping[Any, Any]) -> None:
    """Makes tensors of step counts and the like that were saved as numbers."""
    for kept in state.values():
        for name in _COUNTS:
            if isinstance(kept.get(name), int | float):
                kept[name] = number_tensor(kept[name])


class Stateful(Together):
    """An optimizer whose state is a step count and tensors like the parameter, zero at first.

    Attributes:
        _rule: what becomes of a row: parameter, step count, the tensors, gradient.
        _settings: the names of the numbers that it takes.
    """

    _rule: Any
    _settings: tuple[str, ...]

    @classmethod
    def _kept(cls, group: Group) -> tuple[str, ...]:
        """The names of the tensors."""
        raise NotImplementedError

    @classmethod
    def _flags(cls, group: Group) -> Any:
        """The flags that change the update rule."""
        return Flags(group["maximize"], not is_zero(group["weight_decay"]))

    def _start(self, p: Any, group: Group, state: dict[str, Any]) -> None:
        """Makes the state of a parameter."""
        state["step"] = number_tensor()
        for name in self._kept(group):
            state[name] = zeros_like(p.detach())

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        count_in_tensors(self.state)

    def _setting_defaults(self) -> dict[str, Any]:
        return {name: value for name, value in _LATER.items() if name in self.defaults}

    @classmethod
    def _numbers(cls, group: Group) -> list[Any]:
        values: list[Any] = []
        for name in cls._settings:
            value = group[name]
            values += value if isinstance(value, tuple | list) else [value]
        return [number_of(value) for value in values]

    @classmethod
    def _job(cls, group: Group, rows: list[list[Tensor]]) -> Job:
        """The job of the rule for rows of tensors."""
        return Job(cls._rule, cls._flags(group), cls._numbers(group), real_rows(rows), 2 + len(cls._kept(group)))

    def _group_jobs(self, group: Group, parameters: list[Any]) -> list[Job]:
        kept = self._kept(group)
        rows = []
        for p in parameters:
            state = self.state[p]
            if not state:
                self._start(p, group, state)
            rows.append([p, state["step"], *[state[name] for name in kept], p.grad])
        return [self._job(group, rows)]


def functional(
    kind: type[Stateful],
    group: Group,
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    state_steps: Sequence[Tensor],
    kept: Mapping[str, Sequence[Tensor]],
    differentiable: bool,
) -> None:
    """Writes a step into parameters and state that the caller keeps.

    Args:
        kind: the optimizer.
        group: its settings.
        kept: the state by name, in lists like those of parameters.
    """
    if not all(isinstance(t, Tensor) for t in state_steps):
        raise RuntimeError("API has changed, `state_steps` argument must contain a list of singleton tensors")
    lists = [params, state_steps, *[kept[name] for name in kind._kept(group)], grads]
    if params:
        write_jobs([kind._job(group, [list(row) for row in zip(*lists)])], differentiable)


def write_jobs(jobs: list[Job], differentiable: bool) -> None:
    """Writes the results of jobs, recorded for gradients or not."""
    if differentiable:
        with enable_grad():
            write_recorded(jobs)
    else:
        with no_grad():
            write_together(jobs)


class Flags(NamedTuple):
    maximize: bool
    decay: bool


class DecoupledFlags(NamedTuple):
    maximize: bool
    decay: bool
    decoupled: bool


def decayed(flags: Any, p: Any, grad: Any, lr: Any, weight_decay: Any) -> tuple[Any, Any]:
    """Parameter and gradient, one of them decayed."""
    if not flags.decoupled:
        return p, regularized(grad, p, weight_decay, flags)
    grad = -grad if flags.maximize else grad
    return (p * like(1 - lr * weight_decay, p) if flags.decay else p), grad
