"""Schedules of a limited number of epochs, for warmup or decay: ConstantLR, LinearLR, PolynomialLR."""

from __future__ import annotations

from typing import Any

from compat.optim.lr_scheduler._base import LRScheduler
from compat.optim.optimizer import Optimizer


class ConstantLR(LRScheduler):
    """The initial learning rate times ``factor`` for ``total_iters`` epochs, then without the factor.

    Raises:
        ValueError: for a factor outside ``[0, 1]``.

    Example:
        >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.ConstantLR(optimizer, factor=0.5)
        >>> scheduler.get_last_lr()
        [0.5]
    """

    __module__ = "compat.optim.lr_scheduler"

    def __init__(self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1):
        if not 0 <= factor <= 1.0:
            raise ValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        current = self._current_lrs_()
        if self.last_epoch == 0:
            return [lr * self.factor for lr in current]
        if self.last_epoch != self.total_iters:
            return current
        return [lr * (1.0 / self.factor) for lr in current]

    def _get_closed_form_lr(self) -> list[Any]:
        factor = self.factor if self.last_epoch < self.total_iters else 1
        return [base * factor for base in self.base_lrs]


class LinearLR(LRScheduler):
    """The initial learning rate times a factor that changes linearly from ``start_factor`` to ``end_factor``.

    Args:
        total_iters: the number of epochs.

    Raises:
        ValueError: for factors outside ``[0, 1]``.

    Example:
        >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.5, total_iters=2)
        >>> optimizer.step()
        >>> scheduler.step()
        >>> scheduler.get_last_lr()
        [0.75]
    """

    __module__ = "compat.optim.lr_scheduler"

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
        current = self._current_lrs_()
        if self.last_epoch == 0:
            return [lr * self.start_factor for lr in current]
        if self._is_initial or self.last_epoch > self.total_iters:
            return current
        change = self.end_factor - self.start_factor
        previous = self.total_iters * self.start_factor + (self.last_epoch - 1) * change
        return [lr * (1.0 + change / previous) for lr in current]

    def _get_closed_form_lr(self) -> list[Any]:
        done = min(self.total_iters, self.last_epoch) / self.total_iters
        factor = self.start_factor + (self.end_factor - self.start_factor) * done
        return [base * factor for base in self.base_lrs]


class PolynomialLR(LRScheduler):
    """The initial learning rate times ``(1 - epoch / total_iters) ** power``, down to 0.

    Example:
        >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=4)
        >>> optimizer.step()
        >>> scheduler.step()
        >>> scheduler.get_last_lr()
        [0.75]
    """

    __module__ = "compat.optim.lr_scheduler"

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1):
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        current = self._current_lrs_()
        if self._is_initial or self.last_epoch > self.total_iters:
            return current
        left, previous = 1.0 - self.last_epoch / self.total_iters, 1.0 - (self.last_epoch - 1) / self.total_iters
        return [lr * (left / previous) ** self.power for lr in current]

    def _get_closed_form_lr(self) -> list[Any]:
        left = (1.0 - min(self.total_iters, self.last_epoch) / self.total_iters) ** self.power
        return [base * left for base in self.base_lrs]
