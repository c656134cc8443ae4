"""``GradScaler``: scales losses, so that small float16 gradients do not underflow."""

from __future__ import annotations

from collections import defaultdict
from enum import Enum
from inspect import signature
from typing import Any

from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor
from compat._core.types import dtype as dtypes
from compat._core.types.device import accelerators
from compat._core.types.errors import warn

__all__ = ["GradScaler", "OptState"]


class OptState(Enum):
    """The stage of an optimizer between two updates of the scale."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


def _refresh_per_optimizer_state() -> dict[str, Any]:
    """The initial state of an optimizer: the stage, and ``found_inf`` by device."""
    return {"stage": OptState.READY, "found_inf_per_device": {}}


class GradScaler:
    """Scales losses, unscales gradients, skips steps with nonfinite ones, and adapts the scale.

    Args:
        device: the device of gradients; a missing one disables the scaler, with a warning for ``"cuda"``.
        init_scale: the initial scale.
        growth_factor: its factor after ``growth_interval`` steps with finite gradients.
        backoff_factor: its factor after a skipped step.
        growth_interval: see ``growth_factor``.
        enabled: False makes all methods no-ops.

    Raises:
        AssertionError: for invalid factors.

    Example:
        >>> x = torch.ones(1, requires_grad=True)
        >>> optimizer, scaler = torch.optim.SGD([x], lr=0.5), torch.amp.GradScaler("cpu")
        >>> scaler.scale(x * 2).backward()
        >>> x.grad
        tensor([131072.])
        >>> scaler.step(optimizer)
        >>> scaler.update()
        >>> x
        tensor([0.], requires_grad=True)
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ):
        self._device = device
        self._enabled = enabled and (device != "cuda" or bool(accelerators("cuda")))
        if enabled and not self._enabled:
            warn("torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.")
        if not self._enabled:
            return
        assert growth_factor > 1.0, "The growth factor must be > 1.0."
        assert backoff_factor < 1.0, "The backoff factor must be < 1.0."
        self._init_scale = init_scale
        #: A tensor after the first loss: steps do not wait for the scale.
        self._scale: Tensor | None = None
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._init_growth_tracker = 0
        self._growth_tracker: Tensor | None = None
        self._per_optimizer_states: defaultdict[int, dict[str, Any]] = defaultdict(_refresh_per_optimizer_state)

    def _check_scale_growth_tracker(self, funcname: str) -> tuple[Tensor, Tensor]:
        advice = "This may indicate your script did not use scaler.scale(loss or outputs) earlier in the iteration."
        assert self._scale is not None, f"Attempted {funcname} but _scale is None.  {advice}"
        assert self._growth_tracker is not None, f"Attempted {funcname} but _growth_tracker is None.  {advice}"
        return self._scale, self._growth_tracker

    def _lazy_init_scale_growth_tracker(self, dev: Any) -> None:
        assert self._growth_tracker is None, "_growth_tracker initialized before _scale"
        full = names_of("torch")["full"]
        self._scale = full((), self._init_scale, dtype=dtypes.float32, device=dev)
        self._growth_tracker = full((), self._init_growth_tracker, dtype=dtypes.int32, device=dev)

    def scale(self, outputs: Any) -> Any:
        """Tensors, or nested containers of them, times the scale.

        Raises:
            ValueError: for anything else.
        """
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            if self._scale is None:
                self._lazy_init_scale_growth_tracker(outputs.device)
            scaled: Any = outputs * self._scale
            return scaled
        if not hasattr(outputs, "__iter__"):
            raise ValueError("outputs must be a Tensor or an iterable of Tensors")
        parts = map(self.scale, outputs)
        return type(outputs)(parts) if isinstance(outputs, (list, tuple)) else parts

    def _unscale_grads_(
        self, optimizer: Any, inv_scale: Tensor, found_inf: Tensor, allow_fp16: bool
    ) -> dict[Any, Tensor]:
        """Multiplies an optimizer's gradients by ``inv_scale``; returns ``found_inf`` by device."""
        grads = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        if not allow_fp16 and any(g.dtype is dtypes.float16 for g in grads):
            raise ValueError("Attempting to unscale FP16 gradients.")
        names_of("torch")["_amp_foreach_non_finite_check_and_unscale_"](grads, found_inf, inv_scale)
        return {grads[0].device: found_inf} if grads else {}

    def unscale_(self, optimizer: Any) -> None:
        """Divides an optimizer's gradients by the scale, for example before clipping.

        Raises:
            RuntimeError: if that, or the step, was done already.
            ValueError: for float16 gradients.
        """
        if not self._enabled:
            return
        scale, _ = self._check_scale_growth_tracker("unscale_")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        # In float64, as the inverse of a float32 number need not be exact.
        inverse = scale.double().reciprocal().float()
        state["found_inf_per_device"] = self._unscale_grads_(optimizer, inverse, self._nothing_found(), False)
        state["stage"] = OptState.UNSCALED

    def _nothing_found(self) -> Tensor:
        found: Tensor = names_of("torch")["zeros"]((), dtype=dtypes.float32)
        return found

    def _maybe_opt_step(self, optimizer: Any, optimizer_state: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        if any(found.item() for found in optimizer_state["found_inf_per_device"].values()):
            return None
        return optimizer.step(*args, **kwargs)

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Runs the optimizer's step with unscaled gradients, unless one is nonfinite.

        An optimizer with a true attribute ``_step_supports_amp_scaling`` does both itself: during its step it has the
        attributes ``grad_scale``, None for unscaled gradients, and ``found_inf``.

        Args:
            optimizer: the optimizer.
            args, kwargs: arguments of its ``step``.

        Returns:
            The result of its ``step``; None if it was skipped.

        Raises:
            RuntimeError: after a step since the last ``update``, or with a closure.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._check_scale_growth_tracker("step")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            result = self._step_that_scales(optimizer, state, *args, **kwargs)
        else:
            if state["stage"] is OptState.READY:
                self.unscale_(optimizer)
            assert state["found_inf_per_device"], "No inf checks were recorded for this optimizer."
            result = self._maybe_opt_step(optimizer, state, *args, **kwargs)
        state["stage"] = OptState.STEPPED
        return result

    def _step_that_scales(self, optimizer: Any, state: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        """The step of an optimizer that unscales itself."""
        if "grad_scaler" in signature(optimizer.step).parameters:
            warn(
                "GradScaler is going to stop passing itself as a keyword argument to the passed optimizer. In the near "
                "future GradScaler registers `grad_scale: Tensor` and `found_inf: Tensor` to the passed optimizer and "
                "let the optimizer use them directly.",
                FutureWarning,
            )
            return optimizer.step(*args, **kwargs, grad_scaler=self)
        if state["stage"] is OptState.READY:
            self._check_inf_per_device(optimizer)
        scale = self._get_scale_async()
        optimizer.grad_scale = None if state["stage"] is OptState.UNSCALED else scale
        optimizer.found_inf = sum(state["found_inf_per_device"].values())
        try:
            return optimizer.step(*args, **kwargs)
        finally:
            del optimizer.grad_scale, optimizer.found_inf

    def update(self, new_scale: Any = None) -> None:
        """Updates the scale according to the last gradients, or sets it.

        Args:
            new_scale: a float or a one-element tensor; None to adapt.

        Raises:
            AssertionError: if nothing was scaled, or no gradients were checked.
        """
        if not self._enabled:
            return
        scale, growth_tracker = self._check_scale_growth_tracker("update")
        if isinstance(new_scale, float):
            scale.fill_(new_scale)
        elif new_scale is not None:
            fits = new_scale.device.type == self._device and new_scale.numel() == 1 and not new_scale.requires_grad
            assert fits, (
                "new_scale should be a float or a 1-element torch.cuda.FloatTensor or torch.FloatTensor with "
                "requires_grad=False."
            )
            scale.copy_(new_scale)
        else:
            states = self._per_optimizer_states.values()
            found = [f for state in states for f in state["found_inf_per_device"].values()]
            assert found, "No inf checks were recorded prior to update."
            names_of("torch")["_amp_update_scale_"](
                scale, growth_tracker, sum(found[1:], found[0]), self._growth_factor, self._backoff_factor,
                self._growth_interval,
            )  # fmt: skip
        self._per_optimizer_states = defaultdict(_refresh_per_optimizer_state)

    def _get_scale_async(self) -> Tensor | None:
        return self._scale

    def get_scale(self) -> float:
        """The scale; 1 if disabled. Waits for its value."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else float(self._scale.item())

    def _get_growth_tracker(self) -> int:
        return self._init_growth_tracker if self._growth_tracker is None else int(self._growth_tracker.item())

    def _check_inf_per_device(self, optimizer: Any) -> dict[Any, Tensor]:
        """Records which gradients are nonfinite, without unscaling them."""
        self._check_scale_growth_tracker("_check_inf_per_device")
        one = names_of("torch")["full"]((), 1.0, dtype=dtypes.float32)
        state = self._per_optimizer_states[id(optimizer)]
        state["found_inf_per_device"] = self._unscale_grads_(optimizer, one, self._nothing_found(), True)
        return self._found_inf_per_device(optimizer)

    def _found_inf_per_device(self, optimizer: Any) -> dict[Any, Tensor]:
        found: dict[Any, Tensor] = self._per_optimizer_states[id(optimizer)]["found_inf_per_device"]
        return found

    def is_enabled(self) -> bool:
        """Whether it does anything."""
        return self._enabled

    def get_growth_factor(self) -> float:
        """The growth factor of the scale."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Sets the growth factor of the scale."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """The backoff factor of the scale."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Sets the backoff factor of the scale."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """The growth interval in steps."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Sets the growth interval in steps."""
        self._growth_interval = new_interval

    def state_dict(self) -> dict[str, Any]:
        """The scale and its settings; empty if disabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._get_growth_tracker(),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Loads the result of ``state_dict``.

        Raises:
            RuntimeError: if it is empty.
        """
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler."
            )
        self._init_scale = state_dict["scale"]
        if self._scale is not None:
            self._scale.fill_(state_dict["scale"])
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = state_dict["_growth_tracker"]
        if self._growth_tracker is not None:
            self._growth_tracker.fill_(state_dict["_growth_tracker"])

    def __getstate__(self) -> dict[str, Any]:
        """The state without tensors, whose values are stored as initial values."""
        state = self.__dict__.copy()
        if self._enabled:
            assert not self._per_optimizer_states, (
                "A GradScaler instance may only be pickled at the beginning of an iteration, or at the end after "
                "scaler.update()."
            )
            state["_init_scale"], state["_init_growth_tracker"] = self.get_scale(), self._get_growth_tracker()
            state["_scale"] = state["_growth_tracker"] = None
        return state
