"""Optimizers whose state is a step count and tensors like the parameter."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter, Signature
from typing import Any, NamedTuple

from compat._core.operators.multi_tensor import Job, write_recorded, write_together
from compat._core.tensor.tensor import Tensor
from compat._core.transforms.grad_mode import enable_grad, no_grad
from compat._operators.create.factories import zeros_like
from compat.optim._arithmetic import like, regularized
from compat.optim.optimizer import Group, Together, is_zero, number_of, number_tensor, real_rows

Arrays = Sequence[Any]


#: Settings that state dicts of older versions may lack, with their defaults.
_LATER = dict(
    maximize=False, foreach=None, capturable=False, differentiable=False, fused=None, decoupled_weight_decay=False,
    amsgrad=False, momentum=0, centered=False,
)  # fmt: skip
#: Settings that older versions saved as numbers.
_COUNTS = ("step", "mu_product", "eta", "mu")


def count_in_tensors(state: Mapping[Any, Any]) -> None:
    """Converts step counts and the like that were saved as numbers to tensors."""
    for kept in state.values():
        for name in _COUNTS:
            if isinstance(kept.get(name), int | float):
                kept[name] = number_tensor(kept[name])


class Stateful(Together):
    """An optimizer whose state is a step count and tensors like the parameter, zero at first.

    Attributes:
        _rule: the update of one parameter: from parameter, step count, state tensors and gradient to their new values.
        _settings: the names of its hyperparameters.
        _state: the names of the state tensors, if these do not depend on the settings.
    """

    _rule_: Any
    _settings_: tuple[str, ...]
    _state_: tuple[str, ...]

    @classmethod
    def _kept_(cls, group: Group) -> tuple[str, ...]:
        """The names of the state tensors."""
        return cls._state_

    @classmethod
    def _flags_(cls, group: Group) -> Any:
        """The flags that change the update rule."""
        return Flags(group["maximize"], not is_zero(group["weight_decay"]))

    def _start_(self, p: Any, group: Group, state: dict[str, Any]) -> None:
        """Initializes the state of a parameter."""
        state["step"] = number_tensor()
        for name in self._kept_(group):
            state[name] = zeros_like(p.detach())

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        count_in_tensors(self.state)

    def _setting_defaults_(self) -> dict[str, Any]:
        return {name: value for name, value in _LATER.items() if name in self.defaults}

    @classmethod
    def _numbers_(cls, group: Group) -> list[Any]:
        values: list[Any] = []
        for name in cls._settings_:
            value = group[name]
            values += value if isinstance(value, tuple | list) else [value]
        return [number_of(value) for value in values]

    @classmethod
    def _job_(cls, group: Group, rows: list[list[Tensor]]) -> Job:
        """The job of the rule for rows of tensors."""
        return Job(cls._rule_, cls._flags_(group), cls._numbers_(group), real_rows(rows), 2 + len(cls._kept_(group)))

    def _group_jobs_(self, group: Group, parameters: list[Any]) -> list[Job]:
        kept = self._kept_(group)
        rows = []
        for p in parameters:
            state = self.state[p]
            if not state:
                self._start_(p, group, state)
            rows.append([p, state["step"], *[state[name] for name in kept], p.grad])
        return [self._job_(group, rows)]


#: Settings of optimizers that their functions take one by one.
_SEVERAL = dict(betas=("beta1", "beta2"), etas=("etaminus", "etaplus"), step_sizes=("step_size_min", "step_size_max"))
#: The meanings of parameters of these functions whose default is None.
_TYPES = dict(foreach="bool | None", fused="bool | None", grad_scale="Tensor | None", found_inf="Tensor | None")
_BOOLS = frozenset(["amsgrad", "centered", "maximize"])
_STEP = """Writes a step of ``{0}`` into parameters and state of the caller; ``torch.optim.{1}.{1}``.

    Args:
        params, grads: the parameters and their gradients.
        state_steps: the step count of each, a tensor of one element.
        differentiable: whether gradients flow through the step.

    The lists between are the state, the settings the optimizer's.

    Raises:
        RuntimeError: for step counts that are not tensors.
    """


def step_function(kind: type[Stateful], *, state: str, flags: str, settings: str, **fixed: Any) -> Callable[..., None]:
    """The step of an optimizer as a function of lists that the caller owns.

    Args:
        kind: the optimizer.
        state: the names of the lists of its state, in the plural: ``"exp_avgs exp_infs"``.
        flags: parameters with a default, False or None.
        settings: the keyword-only settings.
        fixed: settings that are not parameters.
    """
    name = kind.__name__.lower()
    lists = ["params", "grads", *state.split(), "state_steps"]
    parameters = [Parameter(n, Parameter.POSITIONAL_OR_KEYWORD, annotation="list[Tensor]") for n in lists]
    parameters += [
        Parameter(n, Parameter.POSITIONAL_OR_KEYWORD, default=None if n in _TYPES else False,
                  annotation=_TYPES.get(n, "bool"))
        for n in flags.split()
    ]  # fmt: skip
    parameters += [
        Parameter(n, Parameter.KEYWORD_ONLY, annotation="bool" if n in _BOOLS else "float") for n in settings.split()
    ]
    signature = Signature(parameters, return_annotation="None")
    kept = {n.removeprefix("state_").removesuffix("_list").removesuffix("s"): n for n in lists[2:]}

    def step(*args: Any, **kwargs: Any) -> None:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{name}(): {error}") from None
        bound.apply_defaults()
        given = bound.arguments | fixed
        if not all(isinstance(t, Tensor) for t in given["state_steps"]):
            raise RuntimeError("API has changed, `state_steps` argument must contain a list of singleton tensors")
        group = given | {n: tuple(given[p] for p in parts) for n, parts in _SEVERAL.items() if parts[0] in given}
        columns = [given["params"], *[given[kept[n]] for n in ("step", *kind._kept_(group))], given["grads"]]
        if given["params"]:
            write_jobs([kind._job_(group, [list(row) for row in zip(*columns)])], given["differentiable"])

    step.__signature__ = signature  # type: ignore[attr-defined]
    step.__name__ = step.__qualname__ = name
    step.__module__ = kind.__module__
    step.__doc__ = _STEP.format(kind.__name__, name)
    return step


def write_jobs(jobs: list[Job], differentiable: bool) -> None:
    """Writes the results of jobs, with or without recording gradients."""
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

    @classmethod
    def of(cls, group: Group) -> DecoupledFlags:
        """The flags of a group of parameters."""
        return cls(group["maximize"], not is_zero(group["weight_decay"]), group["decoupled_weight_decay"])


def decayed(flags: Any, p: Any, grad: Any, lr: Any, weight_decay: Any) -> tuple[Any, Any]:
    """Parameter and gradient, one of them after weight decay."""
    if not flags.decoupled:
        return p, regularized(grad, p, weight_decay, flags)
    grad = -grad if flags.maximize else grad
    return (p * like(1 - lr * weight_decay, p) if flags.decay else p), grad
