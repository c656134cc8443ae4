"""Cyclic schedulers, including those that also change the momentum."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from compat.optim.lr_scheduler._base import LRScheduler, check_optimizer, for_each_group, set_lr
from compat.optim.optimizer import Group, Optimizer


class _WithMomentum(LRScheduler):
    """A scheduler that changes the momentum inversely to the learning rate: for Adam, the first of its betas."""

    cycle_momentum: bool
    use_beta1: bool

    def _init_momentum_(self, optimizer: Optimizer, bases: Any, tops: Any, last_epoch: int) -> None:
        """Records the range of each group's momentum, and sets the momentum to the maximum.

        Raises:
            ValueError: if the optimizer has no momentum.
        """
        if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
            raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
        self.use_beta1 = "betas" in optimizer.defaults
        if last_epoch != -1:
            return
        for group, base, top in zip(optimizer.param_groups, bases, tops, strict=True):
            self._set_momentum_(group, top)
            group["max_momentum"], group["base_momentum"] = top, base

    def _set_momentum_(self, group: Group, value: float) -> None:
        if self.use_beta1:
            group["betas"] = (value, *group["betas"][1:])
        else:
            group["momentum"] = value


class CyclicLR(_WithMomentum):
    """Cycles between ``base_lr`` and ``max_lr``; call ``step`` after every batch.

    Source: L. N. Smith, "Cyclical learning rates for training neural networks", WACV 2017.

    Args:
        base_lr, max_lr: the bounds, one for all groups or a list with one for each.
        step_size_up, step_size_down: the numbers of increasing steps and of decreasing steps, by default equal.
        mode: the amplitude: ``"triangular"`` keeps it, ``"triangular2"`` halves it every cycle, ``"exp_range"``
            multiplies it by ``gamma`` every step.
        scale_fn: the amplitude instead of ``mode``: a function of the cycle, or of the step with
            ``scale_mode="iterations"``.
        cycle_momentum: whether the momentum cycles inversely between ``max_momentum`` and ``base_momentum``.

    Raises:
        ValueError: for an unknown mode; if the optimizer has no momentum to cycle.

    Example:
        >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.5, momentum=0.9)
        >>> scheduler = CyclicLR(optimizer, base_lr=0.25, max_lr=0.75, step_size_up=2)
        >>> rates = []
        >>> for _ in range(5):
        ...     rates += scheduler.get_last_lr()
        ...     optimizer.step()
        ...     scheduler.step()
        >>> rates
        [0.25, 0.5, 0.75, 0.5, 0.25]
    """

    __module__ = "compat.optim.lr_scheduler"

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: Any,
        max_lr: Any,
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: Any = 0.8,
        max_momentum: Any = 0.9,
        last_epoch: int = -1,
    ):
        check_optimizer(optimizer)
        self.optimizer = optimizer
        bases = for_each_group("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for lr, group in zip(bases, optimizer.param_groups, strict=True):
                set_lr(group, lr)
        self.max_lrs = for_each_group("max_lr", optimizer, max_lr)
        up, down = float(step_size_up), float(step_size_up if step_size_down is None else step_size_down)
        self.total_size = up + down
        self.step_ratio = up / self.total_size
        if mode not in _AMPLITUDES and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        if scale_fn is None:
            self._scale_fn_ref = _AMPLITUDES[mode][1](gamma)
        self.scale_mode = scale_mode if scale_fn is not None else _AMPLITUDES[mode][0]
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.base_momentums = for_each_group("base_momentum", optimizer, base_momentum)
            self.max_momentums = for_each_group("max_momentum", optimizer, max_momentum)
            self._init_momentum_(optimizer, self.base_momentums, self.max_momentums, last_epoch)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = bases

    def scale_fn(self, x: float) -> float:
        """The amplitude at cycle, or step, ``x``."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        return self._scale_fn_ref(x)

    @staticmethod
    def _triangular_scale_fn(x: float) -> float:
        return 1.0

    @staticmethod
    def _triangular2_scale_fn(x: float) -> float:
        return float(1 / 2.0 ** (x - 1))

    @staticmethod
    def _exp_range_scale_fn(gamma: float, x: float) -> float:
        return float(gamma**x)

    def get_lr(self) -> list[Any]:
        self._current_lrs_()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        fraction = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        height = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            for group, base, top in zip(self._groups_, self.base_momentums, self.max_momentums, strict=True):
                self._set_momentum_(group, top - (top - base) * fraction * height)
        return [base + (top - base) * fraction * height for base, top in zip(self.base_lrs, self.max_lrs, strict=True)]

    def state_dict(self) -> dict[str, Any]:
        """The state without the optimizer; a callable ``scale_fn`` as its attributes, a plain function as None."""
        state = super().state_dict()
        state.pop("_scale_fn_ref", None)
        custom = state.pop("_scale_fn_custom")
        plain = custom is None or hasattr(custom, "__code__")
        return state | {"_scale_fn_custom": None if plain else dict(custom.__dict__)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Loads the result of ``state_dict``."""
        state = dict(state_dict)
        attributes = state.pop("_scale_fn_custom")
        if attributes is not None and self._scale_fn_custom is not None:
            self._scale_fn_custom.__dict__.update(attributes)
        super().load_state_dict(state)


for _height in (CyclicLR._triangular_scale_fn, CyclicLR._triangular2_scale_fn, CyclicLR._exp_range_scale_fn):
    _height.__module__ = CyclicLR.__module__  # the address in pickled schedulers

#: For each mode, the argument of the amplitude (cycle or step), and the amplitude as a function of ``gamma``.
_AMPLITUDES: dict[str, tuple[str, Callable[[float], Callable[[float], float]]]] = {
    "triangular": ("cycle", lambda gamma: CyclicLR._triangular_scale_fn),
    "triangular2": ("cycle", lambda gamma: CyclicLR._triangular2_scale_fn),
    "exp_range": ("iterations", lambda gamma: partial(CyclicLR._exp_range_scale_fn, gamma)),
}


class OneCycleLR(_WithMomentum):
    """Increases to ``max_lr``, then decreases below the initial rate, once; call ``step`` after every batch.

    Source: L. N. Smith and N. Topin, "Super-convergence: very fast training of neural networks using large learning
    rates", 2019.

    Args:
        max_lr: the maximum, one for all groups or a list with one for each.
        total_steps: the number of steps; ``epochs * steps_per_epoch`` by default.
        pct_start: the fraction of increasing steps.
        anneal_strategy: ``"cos"`` or ``"linear"``.
        cycle_momentum: whether the momentum cycles inversely between ``max_momentum`` and ``base_momentum``.
        div_factor: the ratio of ``max_lr`` and the initial rate.
        final_div_factor: the ratio of the initial and the final rate.
        three_phase: whether to decrease to the initial rate as fast as it increased, and then to the final one.

    Raises:
        ValueError: for settings out of range, and for a step after the last one.

    Example:
        >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0, momentum=0.9)
        >>> scheduler = OneCycleLR(optimizer, 1.0, total_steps=5, pct_start=0.4, anneal_strategy="linear", div_factor=2)
        >>> rates = []
        >>> for _ in range(4):
        ...     rates += scheduler.get_last_lr()
        ...     optimizer.step()
        ...     scheduler.step()
        >>> [round(rate, 3) for rate in rates]
        [0.5, 1.0, 0.667, 0.333]
    """

    __module__ = "compat.optim.lr_scheduler"

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: Any,
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: Any = 0.85,
        max_momentum: Any = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ):
        check_optimizer(optimizer)
        self.optimizer = optimizer
        self.total_steps = _total_steps(total_steps, epochs, steps_per_epoch)
        if pct_start < 0 or pct_start > 1 or not isinstance(pct_start, float):
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        self._schedule_phases = _phases(self.total_steps, pct_start, three_phase)
        if anneal_strategy not in _INTERPOLATIONS:
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._anneal_func_type = anneal_strategy
        tops = for_each_group("max_lr", optimizer, max_lr)
        if last_epoch == -1:
            for group, top in zip(optimizer.param_groups, tops, strict=True):
                group["initial_lr"] = top / div_factor
                group["max_lr"] = top
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            bases = for_each_group("base_momentum", optimizer, base_momentum)
            self._init_momentum_(optimizer, bases, for_each_group("max_momentum", optimizer, max_momentum), last_epoch)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._current_lrs_()
        step, start = self.last_epoch, 0.0
        if step > self.total_steps:
            raise ValueError(f"Tried to step {step} times. The specified number of total steps is {self.total_steps}")
        for phase in self._schedule_phases:
            if step <= phase["end_step"] or phase is self._schedule_phases[-1]:
                break
            start = phase["end_step"]
        fraction = (step - start) / (phase["end_step"] - start)
        interpolate = _INTERPOLATIONS[self._anneal_func_type]
        if self.cycle_momentum:
            for group in self._groups_:
                momentum = interpolate(group[phase["start_momentum"]], group[phase["end_momentum"]], fraction)
                self._set_momentum_(group, momentum)
        return [interpolate(group[phase["start_lr"]], group[phase["end_lr"]], fraction) for group in self._groups_]


def _total_steps(total_steps: Any, epochs: Any, steps_per_epoch: Any) -> int:
    given = {"total_steps": total_steps} if total_steps is not None else {}
    if not given and epochs is not None and steps_per_epoch is not None:
        given = {"epochs": epochs, "steps_per_epoch": steps_per_epoch}
    if not given:
        raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
    for name, value in given.items():
        if not isinstance(value, int) or value <= 0:
            raise ValueError(f"Expected positive integer {name}, but got {value}")
    return math.prod(given.values())


def _phases(steps: int, pct_start: float, three_phase: bool) -> list[dict[str, Any]]:
    """The phases of the cycle: their last steps, and the settings that each interpolates."""

    def phase(end: float, *names: str) -> dict[str, Any]:
        return {"end_step": end} | dict(zip(("start_lr", "end_lr", "start_momentum", "end_momentum"), names))

    rise = phase(float(pct_start * steps) - 1, "initial_lr", "max_lr", "max_momentum", "base_momentum")
    if not three_phase:
        return [rise, phase(steps - 1, "max_lr", "min_lr", "base_momentum", "max_momentum")]
    return [
        rise,
        phase(float(2 * pct_start * steps) - 2, "max_lr", "initial_lr", "base_momentum", "max_momentum"),
        phase(steps - 1, "initial_lr", "min_lr", "max_momentum", "max_momentum"),
    ]


#: Interpolation between a start and an end, by a fraction.
_INTERPOLATIONS: dict[str, Callable[[Any, Any, float], Any]] = {
    "cos": lambda start, end, fraction: end + (start - end) / 2.0 * (math.cos(math.pi * fraction) + 1),
    "linear": lambda start, end, fraction: (end - start) * fraction + start,
}
