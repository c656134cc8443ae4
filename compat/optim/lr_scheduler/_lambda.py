"""Schedulers defined by functions of the epoch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compat.optim.lr_scheduler._base import LRScheduler
from compat.optim.optimizer import Optimizer


class _ByFunctions(LRScheduler):
    """A scheduler with one function of the epoch for all groups, or one for each."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1):
        groups = len(optimizer.param_groups) if isinstance(optimizer, Optimizer) else 0
        functions = list(lr_lambda) if isinstance(lr_lambda, (list, tuple)) else [lr_lambda] * groups
        if len(functions) != groups and groups:
            raise ValueError(f"Expected {groups} lr_lambdas, but got {len(functions)}")
        self.lr_lambdas: list[Callable[[int], float]] = functions
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        """The state without the optimizer; callable objects as their attributes, plain functions as None."""
        state = {key: value for key, value in self.__dict__.items() if key not in ("optimizer", "lr_lambdas")}
        functions = [None if hasattr(f, "__code__") else dict(f.__dict__) for f in self.lr_lambdas]
        return state | {"lr_lambdas": functions}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Loads the result of ``state_dict``."""
        state = dict(state_dict)
        for function, attributes in zip(self.lr_lambdas, state.pop("lr_lambdas")):
            if attributes is not None:
                function.__dict__.update(attributes)
        self.__dict__.update(state)


class LambdaLR(_ByFunctions):
    """The initial learning rate times a function of the epoch.

    Args:
        lr_lambda: one function for all groups, or a list with one for each.

    Example:
        >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.5)
        >>> scheduler = LambdaLR(optimizer, lambda epoch: 1 / (1 + epoch))
        >>> optimizer.step()
        >>> scheduler.step()
        >>> scheduler.get_last_lr()
        [0.25]
    """

    __module__ = "compat.optim.lr_scheduler"

    def get_lr(self) -> list[Any]:
        self._current_lrs_()
        return [base * function(self.last_epoch) for base, function in zip(self.base_lrs, self.lr_lambdas)]


class MultiplicativeLR(_ByFunctions):
    """Each epoch multiplies the learning rate by a function of the epoch.

    Example:
        >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.MultiplicativeLR(optimizer, lambda epoch: 0.5)
        >>> optimizer.step()
        >>> scheduler.step()
        >>> scheduler.get_last_lr()
        [0.5]
    """

    __module__ = "compat.optim.lr_scheduler"

    def get_lr(self) -> list[Any]:
        current = self._current_lrs_()
        if self._is_initial:
            return current
        return [lr * function(self.last_epoch) for lr, function in zip(current, self.lr_lambdas)]
