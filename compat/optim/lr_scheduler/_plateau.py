"""A scheduler that depends on a metric."""

from __future__ import annotations

import math
from typing import Any

from compat._core.types.errors import warn
from compat.optim.lr_scheduler._base import EPOCH_DEPRECATION_WARNING, LRScheduler, check_optimizer, set_lr
from compat.optim.optimizer import Optimizer


class ReduceLROnPlateau(LRScheduler):
    """Multiplies the learning rate by ``factor`` when a metric has not improved for more than ``patience`` epochs.

    Args:
        mode: whether smaller (``"min"``) or larger (``"max"``) is better.
        factor: less than 1.
        patience: the number of tolerated epochs without improvement.
        threshold: the minimum improvement, relative to the best (``threshold_mode="rel"``) or absolute (``"abs"``).
        cooldown: the number of ignored epochs after a reduction.
        min_lr: the lower bound of the learning rate, one for all groups or a list with one for each.
        eps: the minimum change of a learning rate.

    Raises:
        ValueError: for settings out of range.

    Example:
        >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=0)
        >>> for loss in (1.0, 1.0):
        ...     scheduler.step(loss)
        >>> scheduler.get_last_lr()
        [0.5]
    """

    __module__ = "compat.optim.lr_scheduler"

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
        check_optimizer(optimizer)
        self.optimizer = optimizer
        groups = len(optimizer.param_groups)
        several = isinstance(min_lr, (list, tuple))
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
        """Whether the scheduler is in the cooldown period."""
        return self.cooldown_counter > 0

    def is_better(self, a: float, best: float) -> bool:
        """Whether a metric is better than the best, by more than the threshold."""
        sign = -1 if self.mode == "min" else 1
        limit = best * (1 + sign * self.threshold) if self.threshold_mode == "rel" else best + sign * self.threshold
        return a < limit if self.mode == "min" else a > limit

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Records the metric of an epoch, and reduces the learning rates after ``patience`` epochs."""
        current = float(metrics)
        if epoch is not None:
            warn(EPOCH_DEPRECATION_WARNING)
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
            self._reduce_()
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = [group["lr"] for group in self._groups_]

    def _check_groups_(self) -> None:
        """Extends ``min_lrs`` to groups added since; raises an error if ``min_lr`` was a list."""
        groups = len(self._groups_)
        if groups == len(self.min_lrs):
            return
        if self.default_min_lr is None:
            raise RuntimeError(
                f"The number of param groups in the `optimizer` ({groups}) differs from when `ReduceLROnPlateau` was "
                f"initialized ({len(self.min_lrs)}), usually due to a new param group being added to the optimizer. "
                "Please modify the `min_lrs` field to match the length of the `optimizer` param groups."
            )
        self.min_lrs = [self.default_min_lr] * groups

    def _reduce_(self) -> None:
        self._check_groups_()
        for group, min_lr in zip(self._groups_, self.min_lrs):
            current = float(group["lr"])
            reduced = max(current * self.factor, min_lr)
            if current - reduced > self.eps:
                set_lr(group, reduced)
