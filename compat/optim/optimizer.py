"""The base of optimizers: parameter groups, state, state dicts, hooks."""

from __future__ import annotations

import functools
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from copy import deepcopy
from itertools import chain
from typing import Any, TypeAlias

from compat._core.tensor.tensor import Tensor
from compat._core.transforms.grad_mode import enable_grad, mode, no_grad
from compat._core.types import dtype as dtypes
from compat._core.types.errors import warn
from compat._core.types.removable_handle import RemovableHandle
from compat._operators.create.factories import full
from compat._operators.tensor.multi_tensor import Job, write_recorded, write_together
from compat._operators.view.complex_views import view_as_real
from compat.nn.modules.module import clear_grad
from compat.nn.modules.utils import typename
from compat.optim._hyperparameters import Hyperparameter
from funcgrad import runtime
from funcgrad.core.errors import explained

Hook = Callable[..., Any]
Group = dict[str, Any]
#: The types of the ``params`` argument.
ParamsT: TypeAlias = Iterable[Tensor] | Iterable[Group] | Iterable[tuple[str, Tensor]]


class _Required:
    def __repr__(self) -> str:
        return "<required parameter>"


#: The default of a required setting.
required = _Required()

_global_pre_hooks: OrderedDict[int, Hook] = OrderedDict()
_global_post_hooks: OrderedDict[int, Hook] = OrderedDict()


def register_optimizer_step_pre_hook(hook: Hook) -> RemovableHandle:
    """Calls ``hook(optimizer, args, kwargs)`` before every step of every optimizer."""
    return _register(_global_pre_hooks, hook)


def register_optimizer_step_post_hook(hook: Hook) -> RemovableHandle:
    """Calls ``hook(optimizer, args, kwargs)`` after every step of every optimizer."""
    return _register(_global_post_hooks, hook)


def _register(hooks: OrderedDict[int, Hook], hook: Hook, prepend: bool = False) -> RemovableHandle:
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


_HOOKS = (
    "_optimizer_step_pre_hooks", "_optimizer_step_post_hooks", "_optimizer_state_dict_pre_hooks",
    "_optimizer_state_dict_post_hooks", "_optimizer_load_state_dict_pre_hooks", "_optimizer_load_state_dict_post_hooks",
)  # fmt: skip


class Optimizer:
    """The base of all optimizers.

    Args:
        params: parameters, pairs of name and parameter, or groups: dictionaries with ``"params"`` and their settings.
        defaults: the settings of groups that do not give them.

    Attributes:
        param_groups: the groups, with all their settings.
        state: the state of each parameter.

    Raises:
        TypeError, ValueError: if there are no parameters, or if they are duplicated or not leaf tensors.
    """

    param_groups: list[Group]
    state: Any

    def __init__(self, params: Any, defaults: dict[str, Any]):
        self.defaults = defaults
        for name in _HOOKS:
            setattr(self, name, OrderedDict())
        _wrap_step(type(self))
        if isinstance(params, Tensor):
            message = "params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
            raise explained(TypeError(message + typename(params)), "optimizer-parameters")
        self.state = defaultdict(dict)
        self.param_groups = []
        groups = list(params)
        if not groups:
            raise explained(ValueError("optimizer got an empty parameter list"), "optimizer-parameters")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)
        runtime.flush()  # initialization is not a part of the first step
        runtime.settings.backwards = 8

    def add_param_group(self, param_group: Group) -> None:
        """Adds a parameter group; missing settings are the defaults.

        Raises:
            TypeError, ValueError: if ``param_group`` is not a dictionary, or if its parameters are not leaf tensors or
                belong to a group already.
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, Tensor):
            params = [params]
        elif isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in "
                "sets will change between runs. Please use a list instead."
            )
        names, parameters = _split_names(list(params))
        for parameter in parameters:
            if not isinstance(parameter, Tensor):
                raise TypeError(f"optimizer can only optimize Tensors, but one of the params is {typename(parameter)}")
            if not self.defaults.get("differentiable", None) and not (parameter.is_leaf or parameter.retains_grad):
                raise explained(ValueError("can't optimize a non-leaf Tensor"), "optimizer-parameters")
        group = param_group
        group["params"] = parameters
        if names:
            group["param_names"] = names
        for name, default in self.defaults.items():
            if default is required and name not in group:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
            group.setdefault(name, default)
        if len(set(parameters)) != len(parameters):
            warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this will cause an "
                "error; see github.com/pytorch/pytorch/issues/40967 for more information"
            )
        present = set(chain.from_iterable(g["params"] for g in self.param_groups))
        if not present.isdisjoint(parameters):
            raise ValueError("some parameters appear in more than one parameter group")
        if self.param_groups and bool(names) != ("param_names" in self.param_groups[0]):
            raise ValueError(
                "all optimizer param groups should be with/without names. cannot add param group "
                f"{'with' if names else 'without'} names to the optimizer"
            )
        self.param_groups.append(group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Sets the gradients of all parameters to None, or with False to zero."""
        for group in self.param_groups:
            for parameter in group["params"]:
                clear_grad(parameter, set_to_none)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Updates the parameters; defined by subclasses.

        Args:
            closure: a function that recomputes the loss and the gradients, called first.

        Returns:
            The result of ``closure``, or None.
        """
        raise NotImplementedError

    # ---------------------------------------------------------------- saving and loading

    def state_dict(self) -> dict[str, Any]:
        """The state and the groups, with parameters replaced by indices."""
        for hook in self._hooks_("_optimizer_state_dict_pre_hooks"):
            hook(self)
        numbers: dict[int, int] = {}
        groups = []
        for group in self.param_groups:
            for parameter in group["params"]:
                numbers.setdefault(id(parameter), len(numbers))
            packed = {k: v for k, v in group.items() if k != "params"}
            groups.append(packed | {"params": [numbers[id(p)] for p in group["params"]]})
        state = {numbers[id(k)] if isinstance(k, Tensor) else k: v for k, v in self.state.items()}
        result: dict[str, Any] = {"state": state, "param_groups": groups}
        for hook in self._hooks_("_optimizer_state_dict_post_hooks"):
            new = hook(self, result)
            if new is not None:
                result = new
        return result

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Loads the result of ``state_dict`` of an optimizer with the same groups of parameters.

        Raises:
            ValueError: if the number or sizes of the groups differ.
        """
        state_dict = dict(state_dict)
        for hook in self._hooks_("_optimizer_load_state_dict_pre_hooks"):
            new = hook(self, state_dict)
            if new is not None:
                state_dict = new
        groups, saved = self.param_groups, deepcopy(state_dict["param_groups"])
        if len(groups) != len(saved):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(g["params"]) != len(s["params"]) for g, s in zip(groups, saved)):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
            )
        owners = dict(
            zip(chain.from_iterable(s["params"] for s in saved), chain.from_iterable(g["params"] for g in groups))
        )
        state: Any = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in owners:
                group = next(g for g in saved if key in g["params"])
                state[owners[key]] = _cast_state(value, owners[key], group)
            else:
                state[key] = value
        for group, old in zip(saved, groups):
            group["params"] = old["params"]
            if "param_names" in old and "param_names" not in group:
                group["param_names"] = old["param_names"]
        self.__setstate__({"state": state, "param_groups": saved})
        for hook in self._hooks_("_optimizer_load_state_dict_post_hooks"):
            hook(self)

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for name in _HOOKS:
            self.__dict__.setdefault(name, OrderedDict())
        _wrap_step(type(self))
        self.defaults.setdefault("differentiable", False)
        for group in self.param_groups:
            for name, value in self._setting_defaults_().items():
                group.setdefault(name, value)

    def _setting_defaults_(self) -> dict[str, Any]:
        """The defaults of settings that groups saved by an earlier version may lack."""
        return {}

    # ---------------------------------------------------------------- hooks

    def _hooks_(self, name: str) -> list[Hook]:
        return list(getattr(self, name).values())

    def register_step_pre_hook(self, hook: Hook) -> RemovableHandle:
        """Calls ``hook(optimizer, args, kwargs)`` before each step; its result, if not None, replaces the arguments."""
        return _register(self._optimizer_step_pre_hooks, hook)  # type: ignore[attr-defined]

    def register_step_post_hook(self, hook: Hook) -> RemovableHandle:
        """Calls ``hook(optimizer, args, kwargs)`` after each step."""
        return _register(self._optimizer_step_post_hooks, hook)  # type: ignore[attr-defined]

    def register_state_dict_pre_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Calls ``hook(optimizer)`` before ``state_dict``."""
        return _register(self._optimizer_state_dict_pre_hooks, hook, prepend)  # type: ignore[attr-defined]

    def register_state_dict_post_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Calls ``hook(optimizer, state_dict)`` after ``state_dict``; a result that is not None replaces the result."""
        return _register(self._optimizer_state_dict_post_hooks, hook, prepend)  # type: ignore[attr-defined]

    def register_load_state_dict_pre_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Calls ``hook(optimizer, state_dict)`` before loading; a result that is not None is loaded instead."""
        return _register(self._optimizer_load_state_dict_pre_hooks, hook, prepend)  # type: ignore[attr-defined]

    def register_load_state_dict_post_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Calls ``hook(optimizer)`` after loading."""
        return _register(self._optimizer_load_state_dict_post_hooks, hook, prepend)  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        text = f"{type(self).__name__} ("
        for i, group in enumerate(self.param_groups):
            text += f"\nParameter Group {i}\n"
            for key in sorted(group):
                if key != "params":
                    value = group[key]
                    shown = value.item() if isinstance(value, Tensor) and value.dim() == 0 else value
                    text += f"    {key}: {shown}\n"
        return text + ")"


def _wrap_step(cls: type) -> None:
    """Wraps the class's ``step`` with the hooks, once."""
    step = cls.step  # type: ignore[attr-defined]
    if getattr(step, "hooked", None):
        return

    @functools.wraps(step)
    def hooked(*args: Any, **kwargs: Any) -> Any:
        self = args[0]
        for hook in [*_global_pre_hooks.values(), *self._optimizer_step_pre_hooks.values()]:
            new = hook(self, args, kwargs)
            if new is None:
                continue
            if not (isinstance(new, tuple) and len(new) == 2):
                raise RuntimeError(f"{step} must return None or a tuple of (new_args, new_kwargs), but got {new}.")
            args, kwargs = new
        if mode.observer is None:
            result = step(*args, **kwargs)
        else:
            with mode.observer(f"Optimizer.step#{cls.__name__}.step", ()):
                result = step(*args, **kwargs)
        for hook in [*self._optimizer_step_post_hooks.values(), *_global_post_hooks.values()]:
            hook(self, args, kwargs)
        runtime.flush()  # a training loop repeats whole steps
        return result

    hooked.hooked = True  # type: ignore[attr-defined]
    cls.step = hooked  # type: ignore[attr-defined]


def _split_names(params: list[Any]) -> tuple[list[str], list[Any]]:
    """The names of named parameters, or none, and the parameters."""
    pairs = [entry for entry in params if isinstance(entry, tuple)]
    if not pairs:
        return [], params
    if len(pairs) != len(params):
        raise ValueError("all optimizer params should be with/without names. Some param names are missing")
    return [name for name, _ in pairs], [parameter for _, parameter in pairs]


def _cast_state(value: Any, parameter: Tensor, group: Group, key: Any = None) -> Any:
    """Saved state of a parameter, cast to its dtype except for step counts."""
    if isinstance(value, Tensor):
        if key == "step":
            return value.to(dtypes.float32) if group.get("capturable") or group.get("fused") else value
        return value.to(parameter.dtype) if parameter.is_floating_point() else value
    if isinstance(value, dict):
        return {k: _cast_state(v, parameter, group, k) for k, v in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str):
        return type(value)(_cast_state(v, parameter, group) for v in value)  # type: ignore[call-arg]
    return value


class MultiTensorOptimizer(Optimizer):
    """An optimizer that updates all parameters by one program, composed of the jobs of each group."""

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Updates the parameters.

        Args:
            closure: a function that recomputes the loss and the gradients, called first.

        Returns:
            The result of ``closure``, or None.
        """
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        if any(group.get("differentiable") for group in self.param_groups):
            with enable_grad():
                write_recorded(self._jobs_())
        else:
            self._step_()
        return loss

    @no_grad()
    def _step_(self) -> None:
        write_together(self._jobs_())

    def _jobs_(self) -> list[Job]:
        """The jobs of all parameters; initializes missing state."""
        jobs: list[Job] = []
        for group in self.param_groups:
            parameters = [p for p in group["params"] if p.grad is not None]
            sparse = [p for p in parameters if p.grad.__class__ is not Tensor and p.grad.is_sparse]
            if sparse:
                self._sparse_step_(group, sparse)
                parameters = [p for p in parameters if not p.grad.is_sparse]
            if parameters:
                jobs += self._group_jobs_(group, parameters)
        return jobs

    def _sparse_step_(self, group: Group, parameters: list[Any]) -> None:
        """Updates the parameters of a group with sparse gradients.

        Raises:
            RuntimeError: if the optimizer does not support them.
        """
        raise RuntimeError(f"{type(self).__name__} does not support sparse gradients")

    def _group_jobs_(self, group: Group, parameters: list[Any]) -> list[Job]:
        """The jobs of the parameters of a group that have gradients."""
        raise NotImplementedError


# ---------------------------------------------------------------- shared checks


def check_setting(name: str, value: Any, valid: bool) -> None:
    """Raises an error for a setting: ``Invalid learning rate: -1``."""
    if not valid:
        raise ValueError(f"Invalid {name}: {value}")


def check_least(name: str, value: Any, least: float = 0.0) -> None:
    """Raises an error for a setting that is less than the minimum, or NaN."""
    check_setting(name, value, least <= value)  # not `not value < least`, which is True for NaN


def check_lr(lr: Any, foreach: bool | None = None, capturable: bool = True) -> None:
    """Raises an error for a negative learning rate, or one that is a tensor of more than one element."""
    if isinstance(lr, Tensor) and foreach and not capturable:
        raise ValueError("lr as a Tensor is not supported for capturable=False and foreach=True")
    check_single(lr)
    check_least("learning rate", lr)


def check_single(lr: Any) -> None:
    """Raises an error for a learning rate that is a tensor of more than one element."""
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")


def check_fused(fused: bool | None, foreach: bool | None, differentiable: bool) -> None:
    """Raises an error for contradictory implementation flags; otherwise these are ignored."""
    if fused and differentiable:
        raise RuntimeError("`fused` does not support `differentiable`")
    if fused and foreach:
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")


def is_zero(value: Any) -> bool:
    """Whether a setting is the number 0, so that its product can be skipped."""
    return not isinstance(value, Tensor) and value == 0


def number_of(value: Any) -> Any:
    """A setting as an argument of a program: a 0-d tensor, or a float."""
    if isinstance(value, Tensor):
        return value.reshape(()) if value.dim() else value
    return value if type(value) is Hyperparameter else float(value)


def real_rows(rows: list[list[Tensor]]) -> list[list[Tensor]]:
    """Rows with complex tensors as pairs of real ones, with a separate entry for each part."""
    if not any(row[0]._layout_.dtype.is_complex for row in rows):
        return rows
    return [[real(t) for t in row] for row in rows]


def real(t: Tensor) -> Tensor:
    """A complex tensor viewed as pairs of reals; others unchanged."""
    return view_as_real(t) if t.is_complex() else t


def number_tensor(value: float = 0.0) -> Tensor:
    """A step count, or another number that changes with the steps, as a float32 tensor."""
    return full((), float(value), dtype=dtypes.float32)


# ---------------------------------------------------------------- for optimizers written like PyTorch's own


def _use_grad_for_differentiable(func: Callable[..., Any]) -> Callable[..., Any]:
    """Makes ``step`` record operations only if the optimizer has the setting ``differentiable=True``."""

    @functools.wraps(func)
    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        with enable_grad() if self.defaults["differentiable"] else no_grad():
            return func(self, *args, **kwargs)

    return step


def _default_to_fused_or_foreach(
    params: list[Tensor], differentiable: bool, use_fused: bool = False
) -> tuple[bool, bool]:
    """The defaults of ``fused`` and ``foreach``; False, as in PyTorch on a CPU."""
    return False, False
