"""``torch.optim.swa_utils``: averages of a model's weights during training, and learning rates for them.

Source: P. Izmailov et al., "Averaging Weights Leads to Wider Optima and Better Generalization", UAI 2018.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable
from typing import Any

from compat._core.transforms.grad_mode import no_grad
from compat._core.types.dtype import int64
from compat._operators.create.factories import zeros
from compat.nn.modules.batchnorm import _BatchNorm
from compat.nn.modules.module import Module
from compat.optim.lr_scheduler._base import LRScheduler, for_each_group
from compat.optim.optimizer import Optimizer

__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]


def get_ema_avg_fn(decay: float = 0.999) -> Callable[..., Any]:
    """The function of a moving average: ``decay`` times the average plus ``1 - decay`` times the parameter.

    Raises:
        ValueError: for a decay outside ``[0, 1]``.
    """
    if decay < 0.0 or decay > 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")

    @no_grad()
    def averaged(ema_param: Any, current_param: Any, num_averaged: Any) -> Any:
        return decay * ema_param + (1 - decay) * current_param

    return averaged


def get_swa_avg_fn() -> Callable[..., Any]:
    """The function of the mean of a parameter over all updates."""

    @no_grad()
    def averaged(averaged_param: Any, current_param: Any, num_averaged: Any) -> Any:
        return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return averaged


def _for_all(one: Callable[..., Any]) -> Callable[..., None]:
    @no_grad()
    def update(averaged: Iterable[Any], current: Iterable[Any], num_averaged: Any) -> None:
        for mean, new in zip(averaged, current):
            mean.copy_(one(mean, new, num_averaged))

    return update


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[..., None]:
    """``get_ema_avg_fn`` for lists of parameters, which it updates in place.

    Raises:
        ValueError: for a decay outside ``[0, 1]``.
    """
    return _for_all(get_ema_avg_fn(decay))


def get_swa_multi_avg_fn() -> Callable[..., None]:
    """``get_swa_avg_fn`` for lists of parameters, which it updates in place."""
    return _for_all(get_swa_avg_fn())


class AveragedModel(Module):
    """A copy of a model whose parameters are averages of the model's at each ``update_parameters``.

    Args:
        model: the model.
        device: the device of the copy; by default that of the model.
        avg_fn: a function of the average, the parameter and the number of averaged models that returns the new average;
            by default the mean.
        multi_avg_fn: a function of lists of averages and parameters that updates the averages in place.
        use_buffers: whether buffers are averaged instead of copied.

    Attributes:
        module: the copy.
        n_averaged: the number of updates.

    Raises:
        AssertionError: if both ``avg_fn`` and ``multi_avg_fn`` are given.

    Example:
        >>> net = torch.nn.Linear(1, 1, bias=False)
        >>> mean = torch.optim.swa_utils.AveragedModel(net)
        >>> for value in (1.0, 2.0, 6.0):
        ...     _ = torch.nn.init.constant_(net.weight, value)
        ...     mean.update_parameters(net)
        >>> mean(torch.ones(1)).item()
        3.0
    """

    n_averaged: Any

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Callable[..., Any] | None = None,
        multi_avg_fn: Callable[..., None] | None = None,
        use_buffers: bool = False,
    ):
        super().__init__()
        assert avg_fn is None or multi_avg_fn is None, "Only one of avg_fn and multi_avg_fn should be provided"
        self.module: Any = copy.deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", zeros((), dtype=int64))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The result of the averaged model."""
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Updates the averages with the model's current parameters."""
        tensors = lambda m: [*m.parameters(), *(m.buffers() if self.use_buffers else ())]
        averaged = [t.detach() for t in tensors(self.module)]
        current = [t.detach() for t in tensors(model)]
        if not int(self.n_averaged):
            for mean, new in zip(averaged, current):
                mean.copy_(new)
        else:
            update = self.multi_avg_fn or _for_all(self.avg_fn or get_swa_avg_fn())
            update(averaged, current, self.n_averaged)
        if not self.use_buffers:
            for mean, new in zip(self.module.buffers(), model.buffers()):
                mean.detach().copy_(new.detach())
        self.n_averaged += 1


@no_grad()
def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Recomputes the running statistics of a model's batch normalizations, in one pass over data.

    Args:
        loader: an iterable of batches, or of lists and tuples that begin with a batch.
        model: the model.
        device: the device that batches are moved to.
    """
    momenta = {m: m.momentum for m in model.modules() if isinstance(m, _BatchNorm)}
    if not momenta:
        return
    was_training = model.training
    model.train()
    for norm in momenta:
        norm.reset_running_stats()
        norm.momentum = None
    for batch in loader:
        x = batch[0] if isinstance(batch, (list, tuple)) else batch
        model(x if device is None else x.to(device))
    for norm, momentum in momenta.items():
        norm.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """Anneals the learning rates to ``swa_lr`` in ``anneal_epochs`` epochs.

    Args:
        optimizer: the optimizer.
        swa_lr: the final rate, one for all groups or a list with one for each.
        anneal_epochs: the number of epochs.
        anneal_strategy: ``"cos"`` or ``"linear"``.
        last_epoch: the epoch to resume after.

    Raises:
        ValueError: for an unknown strategy, a negative number of epochs, or not one rate per group.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: Any,
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ):
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        for group, rate in zip(optimizer.param_groups, for_each_group("swa_lr", optimizer, swa_lr)):
            group["swa_lr"] = rate
        self._anneal_strategy = anneal_strategy
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _fraction_(self, step: float) -> float:
        """The fraction of the annealing after some epochs."""
        t = max(0.0, min(1.0, step / max(1, self.anneal_epochs)))
        return t if self._anneal_strategy == "linear" else (1 - math.cos(math.pi * t)) / 2

    def get_lr(self) -> list[Any]:
        """The learning rates of the current epoch."""
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        previous, current = self._fraction_(step - 1), self._fraction_(step)
        rates = []
        for group in self._groups_:
            final, rate = group["swa_lr"], group["lr"]
            start = final if previous == 1 else (rate - previous * final) / (1 - previous)
            rates.append(final * current + start * (1 - current))
        return rates
