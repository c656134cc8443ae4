"""Schedulers composed of schedulers: sequential and chained."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from compat.optim.lr_scheduler._base import LRScheduler, set_lr
from compat.optim.lr_scheduler._plateau import ReduceLROnPlateau
from compat.optim.optimizer import Optimizer


def _check(name: str, optimizer: Any, schedulers: Sequence[Any]) -> None:
    """Raises an error for schedulers that cannot be combined."""
    for i, scheduler in enumerate(schedulers):
        if not hasattr(scheduler, "optimizer"):
            raise TypeError(f"{name} at index {i} should have `optimizer` as its attribute.")
        if isinstance(scheduler, ReduceLROnPlateau):
            raise ValueError(
                f"{name} does not support `ReduceLROnPlateau` scheduler as it requires additional kwargs to be "
                f"specified when calling `step`, but got one at index {i} in the given schedulers sequence."
            )
        if scheduler.optimizer is not optimizer:
            raise ValueError(
                f"{name} expects all schedulers to belong to the same optimizer, but got scheduler "
                f"{type(scheduler).__name__} at index {i} has {scheduler.optimizer}, which is different from "
                f"{type(optimizer).__name__}."
            )


class _CompositeScheduler(LRScheduler):
    """A scheduler composed of schedulers."""

    _schedulers: list[Any]

    def state_dict(self) -> dict[str, Any]:
        """The state without the optimizer, with the states of the schedulers."""
        state = {key: value for key, value in self.__dict__.items() if key not in ("optimizer", "_schedulers")}
        return state | {"_schedulers": [scheduler.state_dict() for scheduler in self._schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Loads the result of ``state_dict``."""
        state = dict(state_dict)
        for scheduler, saved in zip(self._schedulers, state.pop("_schedulers")):
            scheduler.load_state_dict(saved)
        self.__dict__.update(state)


class SequentialLR(_CompositeScheduler):
    """Schedulers in sequence; all but the first start at the epochs in ``milestones``.

    Raises:
        ValueError: for a wrong number of milestones, or schedulers of different optimizers.

    Example:
        >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
        >>> first = torch.optim.lr_scheduler.ConstantLR(optimizer, factor=0.5, total_iters=9)
        >>> second = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.9)
        >>> scheduler = torch.optim.lr_scheduler.SequentialLR(optimizer, [first, second], milestones=[1])
        >>> scheduler.get_last_lr()
        [0.5]
    """

    __module__ = "compat.optim.lr_scheduler"

    def __init__(
        self, optimizer: Optimizer, schedulers: Sequence[Any], milestones: Sequence[int], last_epoch: int = -1
    ):
        if not schedulers:
            raise ValueError("SequentialLR expects at least one scheduler, but got no scheduler.")
        _check("SequentialLR", optimizer, schedulers)
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
        # The constructors of the schedulers have changed the learning rates.
        for group in optimizer.param_groups:
            set_lr(group, group["initial_lr"])
        for scheduler in schedulers:
            _undo_initial_step(scheduler)
        _restart(schedulers[0])
        self._last_lr = schedulers[0].get_last_lr()

    def step(self, epoch: int | None = None) -> None:
        """Sets the learning rates of the next epoch."""
        self.last_epoch += 1
        index = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[index]
        if index > 0 and self._milestones[index - 1] == self.last_epoch:
            scheduler.last_epoch = -1
            for group, base in zip(self._groups_, scheduler.base_lrs):
                set_lr(group, base)
            _restart(scheduler)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


def _undo_initial_step(scheduler: Any) -> None:
    """Reverts the initial step of a scheduler, or of the schedulers that compose it."""
    if isinstance(scheduler, _CompositeScheduler):
        for part in scheduler._schedulers:
            _undo_initial_step(part)
    else:
        scheduler.last_epoch -= 1


def _restart(scheduler: Any) -> None:
    """Repeats the first step of a scheduler."""
    scheduler._step_count = 0
    scheduler._is_initial = True
    scheduler.step()
    scheduler._is_initial = False


class ChainedScheduler(_CompositeScheduler):
    """Chained schedulers: each changes the learning rates that the previous one has set.

    Args:
        schedulers: schedulers of one optimizer.
        optimizer: their optimizer.

    Raises:
        ValueError: if there are no schedulers, or schedulers of different optimizers.

    Example:
        >>> from compat.optim.lr_scheduler import ExponentialLR, StepLR
        >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
        >>> chained = ChainedScheduler([ExponentialLR(optimizer, 0.5), StepLR(optimizer, 2, gamma=0.5)])
        >>> for _ in range(2):
        ...     optimizer.step()
        ...     chained.step()
        >>> chained.get_last_lr()
        [0.125]
    """

    __module__ = "compat.optim.lr_scheduler"

    def __init__(self, schedulers: Sequence[Any], optimizer: Optimizer | None = None):
        if not schedulers:
            raise ValueError("ChainedScheduler expects at least one scheduler to be chained, but got no scheduler.")
        optimizer = optimizer or schedulers[0].optimizer
        _check("ChainedScheduler", optimizer, schedulers)
        self._schedulers = list(schedulers)
        self.optimizer = optimizer
        self._last_lr = [group["lr"] for group in self._groups_]

    def step(self, epoch: int | None = None) -> None:
        """Steps all schedulers."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = [group["lr"] for group in self._groups_]
