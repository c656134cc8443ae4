"""Cosine annealing, with and without warm restarts."""

from __future__ import annotations

import math
from typing import Any

from compat.optim.lr_scheduler._base import LRScheduler, _enable_get_lr_call, set_lr
from compat.optim.optimizer import Optimizer


class CosineAnnealingLR(LRScheduler):
    """A half cosine wave from the initial learning rate to ``eta_min`` in ``T_max`` epochs, and back.

    Source: I. Loshchilov and F. Hutter, "SGDR: stochastic gradient descent with warm restarts", ICLR 2017.

    Example:
        >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=1)
        >>> optimizer.step()
        >>> scheduler.step()
        >>> scheduler.get_last_lr()
        [0.0]
    """

    __module__ = "compat.optim.lr_scheduler"

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1):
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def _wave_(self, epoch: float) -> float:
        return 1 + math.cos(math.pi * epoch / self.T_max)

    def get_lr(self) -> list[Any]:
        current, low, epoch = self._current_lrs_(), self.eta_min, self.last_epoch
        if self._is_initial:
            return current
        if self._step_count == 1 and epoch > 0:
            return self._get_closed_form_lr()
        if (epoch - 1 - self.T_max) % (2 * self.T_max) == 0:  # the previous value of the wave, a divisor below, is zero
            rise = (1 - math.cos(math.pi / self.T_max)) / 2
            return [lr + (base - low) * rise for base, lr in zip(self.base_lrs, current)]
        return [self._wave_(epoch) / self._wave_(epoch - 1) * (lr - low) + low for lr in current]

    def _get_closed_form_lr(self) -> list[Any]:
        wave = self._wave_(self.last_epoch)
        return [self.eta_min + (base - self.eta_min) * wave / 2 for base in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """A half cosine wave from the initial learning rate to ``eta_min``, repeated.

    Source: I. Loshchilov and F. Hutter, "SGDR: stochastic gradient descent with warm restarts", ICLR 2017.

    Args:
        T_0: the number of epochs of the first wave.
        T_mult: the ratio of the numbers of epochs of consecutive waves.

    Raises:
        ValueError: if ``T_0`` or ``T_mult`` is not a positive integer, or ``eta_min`` not a number.

    Example:
        >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
        >>> scheduler = CosineAnnealingWarmRestarts(optimizer, T_0=2)
        >>> rates = []
        >>> for _ in range(4):
        ...     rates += scheduler.get_last_lr()
        ...     optimizer.step()
        ...     scheduler.step()
        >>> rates
        [1.0, 0.5, 1.0, 0.5]
    """

    __module__ = "compat.optim.lr_scheduler"

    def __init__(self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1):
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}")
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._current_lrs_()
        wave = 1 + math.cos(math.pi * self.T_cur / self.T_i)
        return [self.eta_min + (base - self.eta_min) * wave / 2 for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Sets the learning rates of the next epoch, or of ``epoch``, which may be fractional."""
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur -= self.T_i
                self.T_i *= self.T_mult
        else:
            self._set_epoch_(epoch)
        self.last_epoch = math.floor(epoch)
        with _enable_get_lr_call(self):
            values = self.get_lr()
        for group, value in zip(self._groups_, values, strict=True):
            set_lr(group, value)
        self._last_lr = [group["lr"] for group in self._groups_]

    def _set_epoch_(self, epoch: float) -> None:
        """Sets the length of the wave of an epoch, and the position in it."""
        if epoch < 0:
            raise ValueError(f"Expected non-negative epoch, but got {epoch}")
        if epoch < self.T_0:
            self.T_i, self.T_cur = self.T_0, epoch
        elif self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        else:
            waves = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            self.T_cur = epoch - self.T_0 * (self.T_mult**waves - 1) / (self.T_mult - 1)
            self.T_i = self.T_0 * self.T_mult**waves
