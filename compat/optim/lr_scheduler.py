"""``torch.optim.lr_scheduler``: learning rates that change from epoch to epoch."""

from __future__ import annotations

import math
import warnings
import weakref
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any

from compat.optim.optimizer import Group, Optimizer
from compat.tensor import Tensor

__all__ = [
    "ConstantLR", "CosineAnnealingLR", "ExponentialLR", "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR",
    "MultiplicativeLR", "PolynomialLR", "ReduceLROnPlateau", "SequentialLR", "StepLR",
]  # fmt: skip

_EPOCH_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible. Please use "
    "`scheduler.step()` to step the scheduler. During the deprecation, if epoch is different from None, the closed "
    "form is used instead of the new chainable form, where available. Please open an issue if you are unable to "
    "replicate your use case: https://github.com/pytorch/pytorch/issues/new/choose."
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


class LRScheduler:
    """The base of all schedules: after each epoch ``step()`` sets the learning rates that ``get_lr()`` gives.

    Args:
        optimizer: whose learning rates change.
        last_epoch: the epoch to resume after; -1 begins anew.

    Attributes:
        base_lrs: the learning rates at the beginning, one for each group.
        last_epoch: how many epochs there were.

    Raises:
        TypeError: if it is no optimizer.
        KeyError: when resuming, if the groups do not know their first learning rate.
    """

    _get_lr_called_within_step = False
    _is_initial = False
    optimizer: Any

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1):
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", _copied(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(_NOT_RESUMABLE.format(i))
        self.base_lrs = [_copied(group["initial_lr"]) for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        _count_steps(optimizer)
        self._step_count = 0
        self._is_initial = True
        self.step()
        self._is_initial = False

    @property
    def _groups(self) -> list[Group]:
        return self.optimizer.param_groups

    def get_lr(self) -> list[Any]:
        """The next learning rate of each group, from the present one."""
        raise NotImplementedError

    def get_last_lr(self) -> list[Any]:
        """The learning rates that were set last."""
        return self._last_lr

    def _present(self) -> list[Any]:
        """The learning rates as they are; warns if nobody is stepping."""
        if not self._get_lr_called_within_step:
            warnings.warn(
                "To get the last learning rate computed by the scheduler, please use `get_last_lr()`.", stacklevel=3
            )
        return [_copied(group["lr"]) for group in self._groups]

    def step(self, epoch: int | None = None) -> None:
        """Sets the learning rates of the next epoch; to be called after the optimizer's ``step``."""
        if self._step_count == 1:
            if not hasattr(self.optimizer.step, "_counted"):
                warnings.warn(_REPLACED_WARNING, stacklevel=2)
            elif not getattr(self.optimizer, "_opt_called", False):
                warnings.warn(_ORDER_WARNING, stacklevel=2)
        self._step_count += 1
        if epoch is not None:
            warnings.warn(_EPOCH_WARNING, stacklevel=2)
        self._get_lr_called_within_step = True
        try:
            self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
            closed = getattr(self, "_get_closed_form_lr", None)
            values = self.get_lr() if epoch is None or closed is None else closed()
        finally:
            self._get_lr_called_within_step = False
        for group, value in zip(self._groups, values):
            _set_lr(group, value)
        self._last_lr = [_copied(group["lr"]) for group in self._groups]

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer."""
        return {key: value for key, value in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over what ``state_dict`` gave."""
        self.__dict__.update(state_dict)


def _copied(value: Any) -> Any:
    return value.clone() if isinstance(value, Tensor) else value


def _set_lr(group: Group, value: Any) -> None:
    if isinstance(group["lr"], Tensor):
        group["lr"].fill_(float(value))
    else:
        group["lr"] = value


def _count_steps(optimizer: Any) -> None:
    """Makes the optimizer note that it has stepped."""
    if hasattr(optimizer.step, "_counted"):
        return
    owner, step = weakref.ref(optimizer), optimizer.step.__func__

    @wraps(step)
    def counted(*args: Any, **kwargs: Any) -> Any:
        found: Any = owner()
        found._opt_called = True
        return step.__get__(found, type(found))(*args, **kwargs)

    counted._counted = True  # type: ignore[attr-defined]
    optimizer.step = counted


# ---------------------------------------------------------------- by functions


class _ByFunctions(LRScheduler):
    """One function of the epoch for all groups, or one for each."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1):
        groups = len(optimizer.param_groups) if isinstance(optimizer, Optimizer) else 0
        given = list(lr_lambda) if isinstance(lr_lambda, list | tuple) else [lr_lambda] * groups
        if len(given) != groups and groups:
            raise ValueError(f"Expected {groups} lr_lambdas, but got {len(given)}")
        self.lr_lambdas: list[Callable[[int], float]] = given
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer and plain functions; of callable objects, their attributes."""
        state = {key: value for key, value in self.__dict__.items() if key not in ("optimizer", "lr_lambdas")}
        functions = [None if hasattr(f, "__code__") else dict(f.__dict__) for f in self.lr_lambdas]
        return state | {"lr_lambdas": functions}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over what ``state_dict`` gave."""
        state = dict(state_dict)
        for function, attributes in zip(self.lr_lambdas, state.pop("lr_lambdas")):
            if attributes is not None:
                function.__dict__.update(attributes)
        self.__dict__.update(state)


class LambdaLR(_ByFunctions):
    """The first learning rate times a function of the epoch.

    Args:
        lr_lambda: one function for all groups, or a list with one for each.

    Example:
        >>> import compat as torch
        >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.5)
        >>> scheduler = LambdaLR(optimizer, lambda epoch: 1 / (1 + epoch))
        >>> optimizer.step()
        >>> scheduler.step()
        >>> scheduler.get_last_lr()
        [0.25]
    """

    def get_lr(self) -> list[Any]:
        self._present()
        return [base * function(self.last_epoch) for base, function in zip(self.base_lrs, self.lr_lambdas)]


class MultiplicativeLR(_ByFunctions):
    """Each epoch multiplies the learning rate by a function of the epoch."""

    def get_lr(self) -> list[Any]:
        present = self._present()
        if self._is_initial:
            return present
        return [lr * function(self.last_epoch) for lr, function in zip(present, self.lr_lambdas)]


# ---------------------------------------------------------------- by powers


class StepLR(LRScheduler):
    """Multiplies the learning rate by ``gamma`` every ``step_size`` epochs."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1):
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        present = self._present()
        if self.last_epoch == 0 or self.last_epoch % self.step_size:
            return present
        return [lr * self.gamma for lr in present]

    def _get_closed_form_lr(self) -> list[Any]:
        return [base * self.gamma ** (self.last_epoch // self.step_size) for base in self.base_lrs]


class MultiStepLR(LRScheduler):
    """Multiplies the learning rate by ``gamma`` at each of the epochs ``milestones``."""

    def __init__(self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1):
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        present = self._present()
        if self.last_epoch not in self.milestones:
            return present
        return [lr * self.gamma ** self.milestones[self.last_epoch] for lr in present]

    def _get_closed_form_lr(self) -> list[Any]:
        passed = bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return [base * self.gamma**passed for base in self.base_lrs]


class ExponentialLR(LRScheduler):
    """Multiplies the learning rate by ``gamma`` every epoch."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1):
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        present = self._present()
        return present if self._is_initial else [lr * self.gamma for lr in present]

    def _get_closed_form_lr(self) -> list[Any]:
        return [base * self.gamma**self.last_epoch for base in self.base_lrs]


# ---------------------------------------------------------------- by curves


class CosineAnnealingLR(LRScheduler):
    """Half a cosine wave from the first learning rate to ``eta_min`` in ``T_max`` epochs, and back.

    Source: I. Loshchilov and F. Hutter, "SGDR: stochastic gradient descent with warm restarts", ICLR 2017.
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1):
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def _wave(self, epoch: float) -> float:
        return 1 + math.cos(math.pi * epoch / self.T_max)

    def get_lr(self) -> list[Any]:
        present, least, epoch = self._present(), self.eta_min, self.last_epoch
        if self._is_initial:
            return present
        if self._step_count == 1 and epoch > 0:
            return self._get_closed_form_lr()
        if (epoch - 1 - self.T_max) % (2 * self.T_max) == 0:  # there the wave is zero, and cannot be divided by
            rise = (1 - math.cos(math.pi / self.T_max)) / 2
            return [lr + (base - least) * rise for base, lr in zip(self.base_lrs, present)]
        return [self._wave(epoch) / self._wave(epoch - 1) * (lr - least) + least for lr in present]

    def _get_closed_form_lr(self) -> list[Any]:
        wave = self._wave(self.last_epoch)
        return [self.eta_min + (base - self.eta_min) * wave / 2 for base in self.base_lrs]


class ConstantLR(LRScheduler):
    """The first learning rate times ``factor`` for ``total_iters`` epochs, then the whole.

    Raises:
        ValueError: for a factor outside ``[0, 1]``.
    """

    def __init__(self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1):
        if not 0 <= factor <= 1.0:
            raise ValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        present = self._present()
        if self.last_epoch == 0:
            return [lr * self.factor for lr in present]
        if self.last_epoch != self.total_iters:
            return present
        return [lr * (1.0 / self.factor) for lr in present]

    def _get_closed_form_lr(self) -> list[Any]:
        factor = self.factor if self.last_epoch < self.total_iters else 1
        return [base * factor for base in self.base_lrs]


class LinearLR(LRScheduler):
    """The first learning rate times a factor that goes linearly from ``start_factor`` to ``end_factor``.

    Args:
        total_iters: in so many epochs.

    Raises:
        ValueError: for factors outside ``[0, 1]``.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ):
        if not 0 < start_factor <= 1.0:
            raise ValueError("Starting multiplicative factor expected to be greater than 0 and less or equal to 1.")
        if not 0 <= end_factor <= 1.0:
            raise ValueError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        present = self._present()
        if self.last_epoch == 0:
            return [lr * self.start_factor for lr in present]
        if self._is_initial or self.last_epoch > self.total_iters:
            return present
        climb = self.end_factor - self.start_factor
        before = self.total_iters * self.start_factor + (self.last_epoch - 1) * climb
        return [lr * (1.0 + climb / before) for lr in present]

    def _get_closed_form_lr(self) -> list[Any]:
        done = min(self.total_iters, self.last_epoch) / self.total_iters
        factor = self.start_factor + (self.end_factor - self.start_factor) * done
        return [base * factor for base in self.base_lrs]


class PolynomialLR(LRScheduler):
    """The first learning rate times ``(1 - epoch / total_iters) ** power``, down to 0."""

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1):
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        present = self._present()
        if self._is_initial or self.last_epoch > self.total_iters:
            return present
        left, before = 1.0 - self.last_epoch / self.total_iters, 1.0 - (self.last_epoch - 1) / self.total_iters
        return [lr * (left / before) ** self.power for lr in present]

    def _get_closed_form_lr(self) -> list[Any]:
        left = (1.0 - min(self.total_iters, self.last_epoch) / self.total_iters) ** self.power
        return [base * left for base in self.base_lrs]


# ---------------------------------------------------------------- several, and by results


class SequentialLR(LRScheduler):
    """Schedules one after the other, the next one from each of the epochs ``milestones`` on.

    Raises:
        ValueError: if there are not as many milestones as changes, or the schedules are of different optimizers.
    """

    def __init__(
        self, optimizer: Optimizer, schedulers: Sequence[Any], milestones: Sequence[int], last_epoch: int = -1
    ):
        if not schedulers:
            raise ValueError("SequentialLR expects at least one scheduler to be chained, but got no scheduler.")
        for i, scheduler in enumerate(schedulers):
            name = type(scheduler).__name__
            if not hasattr(scheduler, "optimizer"):
                raise TypeError(f"SequentialLR at index {i} should have `optimizer` as its attribute.")
            if isinstance(scheduler, ReduceLROnPlateau):
                raise ValueError(
                    "SequentialLR does not support `ReduceLROnPlateau` scheduler as it requires additional kwargs to "
                    f"be specified when calling `step`, but got one at index {i} in the given schedulers sequence."
                )
            if scheduler.optimizer is not optimizer:
                raise ValueError(
                    f"SequentialLR expects all schedulers to belong to the same optimizer, but got scheduler {name} "
                    f"at index {i} has {scheduler.optimizer}, which is different from {type(optimizer).__name__}."
                )
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than the number of "
                f"milestone points, but got number of schedulers {len(schedulers)} and the number of milestones to be "
                f"equal to {len(milestones)}"
            )
        self.optimizer = optimizer
        self._schedulers = list(schedulers)
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        # Making the schedules has changed the learning rates: begin again with the first one's.
        for group in optimizer.param_groups:
            _set_lr(group, group["initial_lr"])
        for scheduler in schedulers:
            scheduler.last_epoch -= 1
        _restart(schedulers[0])
        self._last_lr = schedulers[0].get_last_lr()

    def step(self, epoch: int | None = None) -> None:
        """Sets the learning rates of the next epoch."""
        self.last_epoch += 1
        which = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[which]
        if which > 0 and self._milestones[which - 1] == self.last_epoch:
            scheduler.last_epoch = -1
            for group, base in zip(self._groups, scheduler.base_lrs):
                _set_lr(group, base)
            _restart(scheduler)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer; of the schedules, their states."""
        state = {key: value for key, value in self.__dict__.items() if key not in ("optimizer", "_schedulers")}
        return state | {"_schedulers": [scheduler.state_dict() for scheduler in self._schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over what ``state_dict`` gave."""
        state = dict(state_dict)
        for scheduler, saved in zip(self._schedulers, state.pop("_schedulers")):
            scheduler.load_state_dict(saved)
        self.__dict__.update(state)


def _restart(scheduler: Any) -> None:
    """The first step of a schedule, once more."""
    scheduler._step_count = 0
    scheduler._is_initial = True
    scheduler.step()
    scheduler._is_initial = False


class ReduceLROnPlateau(LRScheduler):
    """Multiplies the learning rate by ``factor`` when a measure has not got better for more than ``patience`` epochs.

    Args:
        mode: whether smaller (``"min"``) or larger (``"max"``) is better.
        factor: less than 1.
        patience: how many epochs without improvement are borne.
        threshold: by how much it must be better; of the best (``threshold_mode="rel"``) or as it is (``"abs"``).
        cooldown: how many epochs after a reduction do not count.
        min_lr: the least learning rate, for all groups or for each.
        eps: smaller changes are not made.

    Raises:
        ValueError: for settings out of range.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: Any = 0,
        eps: float = 1e-8,
    ):
        if factor >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        self.factor = factor
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        groups = len(optimizer.param_groups)
        several = isinstance(min_lr, list | tuple)
        if several and len(min_lr) != groups:
            raise ValueError(f"expected {groups} min_lrs, got {len(min_lr)}")
        self.default_min_lr = None if several else min_lr
        self.min_lrs = list(min_lr) if several else [min_lr] * groups
        self.patience = patience
        self.cooldown = cooldown
        self.eps = eps
        self.last_epoch = 0
        self._last_lr = [group["lr"] for group in optimizer.param_groups]
        if mode not in ("min", "max"):
            raise ValueError(f"mode {mode} is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(f"threshold mode {threshold_mode} is unknown!")
        self.mode_worse = math.inf if mode == "min" else -math.inf
        self.mode = mode
        self.threshold = threshold
        self.threshold_mode = threshold_mode
        self._reset()

    def _reset(self) -> None:
        self.best = self.mode_worse
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    @property
    def in_cooldown(self) -> bool:
        """Whether there was a reduction just before."""
        return self.cooldown_counter > 0

    def is_better(self, a: float, best: float) -> bool:
        """Whether a measure is better than the best, by more than the threshold."""
        sign = -1 if self.mode == "min" else 1
        limit = best * (1 + sign * self.threshold) if self.threshold_mode == "rel" else best + sign * self.threshold
        return a < limit if self.mode == "min" else a > limit

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Notes the measure after an epoch, and perhaps reduces the learning rates."""
        current = float(metrics)
        if epoch is not None:
            warnings.warn(_EPOCH_WARNING, stacklevel=2)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self.is_better(current, self.best):
            self.best = current
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce()
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = [group["lr"] for group in self._groups]

    def _reduce(self) -> None:
        for group, least in zip(self._groups, self.min_lrs):
            old = float(group["lr"])
            new = max(old * self.factor, least)
            if old - new > self.eps:
                _set_lr(group, new)
