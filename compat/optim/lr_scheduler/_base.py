"""The base of learning rate schedulers."""

from __future__ import annotations

import weakref
from functools import wraps
from typing import Any

from compat._core.tensor.tensor import Tensor
from compat._core.types.errors import warn
from compat.optim.optimizer import Group, Optimizer

EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible. Please use "
    "`scheduler.step()` to step the scheduler. During the deprecation, if epoch is different from None, the closed "
    "form is used instead of the new chainable form, where available."
)
_ORDER_WARNING = (
    "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 and later, you should call "
    "them in the opposite order: `optimizer.step()` before `lr_scheduler.step()`.  Failure to do this will result in "
    "PyTorch skipping the first value of the learning rate schedule. See more details at "
    "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"
)
_REPLACED_WARNING = (
    "Seems like `optimizer.step()` has been overridden after learning rate scheduler initialization. Please, make "
    "sure to call `optimizer.step()` before `lr_scheduler.step()`. See more details at "
    "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"
)
_NOT_RESUMABLE = (
    "param 'initial_lr' is not specified in param_groups[{}] when resuming scheduler with last_epoch >= 0.\nThis "
    "typically happens when:\n1. You're trying to resume training from a checkpoint but haven't properly loaded the "
    "optimizer state\n2. You're using last_epoch >= 0 for a fresh training run (not recommended)"
)


class _enable_get_lr_call:
    """Context in which ``get_lr`` is part of a step, and does not warn.

    Args:
        o: the scheduler.
    """

    __module__ = "compat.optim.lr_scheduler"

    def __init__(self, o: LRScheduler):
        self.o = o

    def __enter__(self) -> _enable_get_lr_call:
        self.o._get_lr_called_within_step = True
        return self

    def __exit__(self, *exc: object) -> None:
        self.o._get_lr_called_within_step = False


class LRScheduler:
    """The base of schedulers: ``step()`` after each epoch sets the learning rates that ``get_lr()`` returns.

    Args:
        optimizer: the optimizer.
        last_epoch: the epoch to resume after; -1 to start from the beginning.

    Attributes:
        base_lrs: the initial learning rates, one for each group.
        last_epoch: the number of completed epochs.

    Raises:
        TypeError: if ``optimizer`` is not an optimizer.
        KeyError: when resuming, if the groups have no initial learning rate.
    """

    __module__ = "compat.optim.lr_scheduler"

    _get_lr_called_within_step = False
    _is_initial = False
    optimizer: Any

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1):
        check_optimizer(optimizer)
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", copied(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(_NOT_RESUMABLE.format(i))
        self.base_lrs = [copied(group["initial_lr"]) for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        _count_steps(optimizer)
        self._step_count = 0
        self._is_initial = True
        self.step()
        self._is_initial = False

    @property
    def _groups_(self) -> list[Group]:
        return self.optimizer.param_groups

    def get_lr(self) -> list[Any]:
        """The next learning rate of each group, from the current one."""
        raise NotImplementedError

    def get_last_lr(self) -> list[Any]:
        """The last learning rates that were set."""
        return self._last_lr

    def _current_lrs_(self) -> list[Any]:
        """The current learning rates; warns if called outside of ``step``."""
        if not self._get_lr_called_within_step:
            warn("To get the last learning rate computed by the scheduler, please use `get_last_lr()`.")
        return [copied(group["lr"]) for group in self._groups_]

    def step(self, epoch: int | None = None) -> None:
        """Sets the learning rates of the next epoch; call it after the optimizer's ``step``."""
        if self._step_count == 1:
            if not hasattr(self.optimizer.step, "_counted"):
                warn(_REPLACED_WARNING)
            elif not getattr(self.optimizer, "_opt_called", False):
                warn(_ORDER_WARNING)
        self._step_count += 1
        if epoch is not None:
            warn(EPOCH_DEPRECATION_WARNING)
        with _enable_get_lr_call(self):
            self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
            closed = getattr(self, "_get_closed_form_lr", None)
            values = self.get_lr() if epoch is None or closed is None else closed()
        for group, value in zip(self._groups_, values):
            set_lr(group, value)
        self._last_lr = [copied(group["lr"]) for group in self._groups_]

    def state_dict(self) -> dict[str, Any]:
        """The attributes of the scheduler without the optimizer."""
        return {key: value for key, value in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Loads the result of ``state_dict``."""
        self.__dict__.update(state_dict)


class _LRScheduler(LRScheduler):
    """The deprecated name of ``LRScheduler``, as a base class."""


def check_optimizer(optimizer: Any) -> None:
    """Raises ``TypeError`` unless the argument is an optimizer."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")


def copied(value: Any) -> Any:
    """A copy of a learning rate."""
    return value.clone() if isinstance(value, Tensor) else value


def for_each_group(name: str, optimizer: Optimizer, value: Any) -> list[Any]:
    """A list of the values of a setting for each group, from one value for all or a list; tensors are copied.

    Raises:
        ValueError: if the list does not have one element per group.
    """
    groups = len(optimizer.param_groups)
    values = list(value) if isinstance(value, (list, tuple)) else [value] * groups
    if len(values) != groups:
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. {name} has {len(values)} values, "
            f"param_groups has {groups}."
        )
    return [copied(v) for v in values]


def set_lr(group: Group, value: Any) -> None:
    """Sets a group's learning rate; a tensor is updated in place."""
    if isinstance(group["lr"], Tensor):
        group["lr"].fill_(float(value))
    else:
        group["lr"] = value


def _count_steps(optimizer: Any) -> None:
    """Makes the optimizer record that it has stepped."""
    if hasattr(optimizer.step, "_counted"):
        return
    owner, step = weakref.ref(optimizer), optimizer.step.__func__

    @wraps(step)
    def counted(*args: Any, **kwargs: Any) -> Any:
        instance: Any = owner()
        instance._opt_called = True
        return step.__get__(instance, type(instance))(*args, **kwargs)

    counted._counted = True  # type: ignore[attr-defined]
    optimizer.step = counted
