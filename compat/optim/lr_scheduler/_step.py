"""Decay of the learning rate by a factor, every epoch or at given ones: StepLR, MultiStepLR, ExponentialLR."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from typing import Any

from compat.optim.lr_scheduler._base import LRScheduler
from compat.optim.optimizer import Optimizer


class StepLR(LRScheduler):
    """Multiplies the learning rate by ``gamma`` every ``step_size`` epochs.

    Example:
        >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
        >>> optimizer.step()
        >>> scheduler.step()
        >>> scheduler.get_last_lr()
        [0.5]
    """

    __module__ = "compat.optim.lr_scheduler"

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1):
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        current = self._current_lrs_()
        if self.last_epoch == 0 or self.last_epoch % self.step_size:
            return current
        return [lr * self.gamma for lr in current]

    def _get_closed_form_lr(self) -> list[Any]:
        return [base * self.gamma ** (self.last_epoch // self.step_size) for base in self.base_lrs]


class MultiStepLR(LRScheduler):
    """Multiplies the learning rate by ``gamma`` at each of the epochs ``milestones``.

    Example:
        >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[1], gamma=0.5)
        >>> optimizer.step()
        >>> scheduler.step()
        >>> scheduler.get_last_lr()
        [0.5]
    """

    __module__ = "compat.optim.lr_scheduler"

    def __init__(self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1):
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        current = self._current_lrs_()
        if self.last_epoch not in self.milestones:
            return current
        return [lr * self.gamma ** self.milestones[self.last_epoch] for lr in current]

    def _get_closed_form_lr(self) -> list[Any]:
        passed = bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return [base * self.gamma**passed for base in self.base_lrs]


class ExponentialLR(LRScheduler):
    """Multiplies the learning rate by ``gamma`` every epoch.

    Example:
        >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
        >>> optimizer.step()
        >>> scheduler.step()
        >>> scheduler.get_last_lr()
        [0.5]
    """

    __module__ = "compat.optim.lr_scheduler"

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1):
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        current = self._current_lrs_()
        return current if self._is_initial else [lr * self.gamma for lr in current]

    def _get_closed_form_lr(self) -> list[Any]:
        return [base * self.gamma**self.last_epoch for base in self.base_lrs]
