"""Optimizers whose state is a step count and tensors like the parameter."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter, Signature
from typing import Any, NamedTuple

from compat._core.tensor.tensor import Tensor
from compat._core.transforms.grad_mode import enable_grad, no_grad
from compat._operators.create.factories import zeros_like
from compat._operators.pointwise.declare import as_dtype_of
from compat._operators.tensor.multi_tensor import Job, write_recorded, write_together
from compat.optim._arithmetic import regularized
from compat.optim.optimizer import Group, MultiTensorOptimizer, is_zero, number_of, number_tensor, real_rows

Arrays = Sequence[Any]


#: The defaults of settings that state dicts of earlier versions may lack.
_MISSING_DEFAULTS = dict(
    maximize=False, foreach=None, capturable=False, differentiable=False, fused=None, decoupled_weight_decay=False,
    amsgrad=False, momentum=0, centered=False,
)  # fmt: skip
#: State that earlier versions saved as numbers.
_NUMBERS = ("step", "mu_product", "eta", "mu")


def count_in_tensors(state: Mapping[Any, Any]) -> None:
    """Converts step counts and similar values that were saved as numbers to tensors."""
    for values in state.values():
        for name in _NUMBERS:
            if isinstance(values.get(name), (int, float)):
                values[name] = number_tensor(values[name])


class Stateful(MultiTensorOptimizer):
    """An optimizer whose state is a step count and tensors like the parameter, initialized to zero.

    Attributes:
        _rule_: the update of one parameter: from parameter, step count, state tensors and gradient to their new values.
        _settings_: the names of its hyperparameters.
        _state_: the names of the state tensors, if these do not depend on the settings.
    """

    _rule_: Any
    _settings_: tuple[str, ...]
    _state_: tuple[str, ...]

    @classmethod
    def _state_names_(cls, group: Group) -> tuple[str, ...]:
        """The names of the state tensors."""
        return cls._state_

    @classmethod
    def _flags_(cls, group: Group) -> Any:
        """The flags that change the update rule."""
        return Flags(group["maximize"], not is_zero(group["weight_decay"]))

    def _init_state_(self, p: Any, group: Group, state: dict[str, Any]) -> None:
        """Initializes the state of a parameter."""
        state["step"] = number_tensor()
        for name in self._state_names_(group):
            state[name] = zeros_like(p.detach())

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        count_in_tensors(self.state)

    def _setting_defaults_(self) -> dict[str, Any]:
        return {name: value for name, value in _MISSING_DEFAULTS.items() if name in self.defaults}

    @classmethod
    def _setting_values_(cls, group: Group) -> list[Any]:
        values: list[Any] = []
        for name in cls._settings_:
            value = group[name]
            values += value if isinstance(value, (tuple, list)) else [value]
        return [number_of(value) for value in values]

    @classmethod
    def _job_(cls, group: Group, rows: list[list[Tensor]]) -> Job:
        """The job of the rule for rows of tensors."""
        outputs = 2 + len(cls._state_names_(group))
        return Job(cls._rule_, cls._flags_(group), cls._setting_values_(group), real_rows(rows), outputs)

    def _group_jobs_(self, group: Group, parameters: list[Any]) -> list[Job]:
        names = self._state_names_(group)
        rows = []
        for p in parameters:
            state = self.state[p]
            if not state:
                self._init_state_(p, group, state)
            rows.append([p, state["step"], *[state[name] for name in names], p.grad])
        return [self._job_(group, rows)]


#: Tuples among the settings, whose elements are parameters of the functions.
_TUPLE_SETTINGS = dict(
    betas=("beta1", "beta2"), etas=("etaminus", "etaplus"), step_sizes=("step_size_min", "step_size_max")
)
#: The types of parameters of the functions whose default is None.
_TYPES = dict(foreach="bool | None", fused="bool | None", grad_scale="Tensor | None", found_inf="Tensor | None")
_BOOLS = frozenset(["amsgrad", "centered", "maximize"])
_STEP = """Writes a step of ``{0}`` into parameters and state of the caller; ``torch.optim.{1}.{1}``.

    Args:
        params, grads: the parameters and their gradients.
        state_steps: the step count of each, a tensor of one element.
        differentiable: whether gradients flow through the step.

    The other lists are the state; the settings are the optimizer's.

    Raises:
        RuntimeError: for step counts that are not tensors.
    """


def step_function(kind: type[Stateful], *, state: str, flags: str, settings: str, **fixed: Any) -> Callable[..., None]:
    """The step of an optimizer as a function of lists of parameters, gradients and state.

    Args:
        kind: the class of the optimizer.
        state: the names of the lists of state, in the plural: ``"exp_avgs exp_infs"``.
        flags: the names of parameters with the default False or None.
        settings: the names of keyword-only settings.
        fixed: values of settings that are not parameters.
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
    list_of = {n.removeprefix("state_").removesuffix("_list").removesuffix("s"): n for n in lists[2:]}

    def step(*args: Any, **kwargs: Any) -> None:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{name}(): {error}") from None
        bound.apply_defaults()
        values = bound.arguments | fixed
        if not all(isinstance(t, Tensor) for t in values["state_steps"]):
            raise RuntimeError("API has changed, `state_steps` argument must contain a list of singleton tensors")
        tuples = {n: parts for n, parts in _TUPLE_SETTINGS.items() if parts[0] in values}
        group = values | {n: tuple(values[p] for p in parts) for n, parts in tuples.items()}
        state_lists = [list_of[n] for n in ("step", *kind._state_names_(group))]
        columns = [values[n] for n in ("params", *state_lists, "grads")]
        if values["params"]:
            write_jobs([kind._job_(group, [list(row) for row in zip(*columns)])], values["differentiable"])

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
    """Parameter and gradient, with decoupled weight decay of the parameter or with weight decay in the gradient."""
    if not flags.decoupled:
        return p, regularized(grad, p, weight_decay, flags)
    grad = -grad if flags.maximize else grad
    return (p * as_dtype_of(1 - lr * weight_decay, p) if flags.decay else p), grad
