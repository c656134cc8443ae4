"""``GradScaler``: losses made larger, so that small gradients are not lost in half precision."""

from __future__ import annotations

from typing import Any

from compat.dtypes import float16
from compat.errors import warn
from compat.registry import names_of
from compat.tensor import Tensor

_READY, _UNSCALED, _STEPPED = range(3)


class _Seen:
    """Where an optimizer is between two updates."""

    stage = _READY
    #: Whether a gradient was infinite or no number; None where nobody looked, or there was none.
    found: Any = None


class GradScaler:
    """Multiplies losses by a scale, divides gradients by it, leaves out steps with infinite ones, adapts the scale.

    Args:
        device: where gradients are; for one that is not there the scaler is disabled, with a warning for ``"cuda"``.
        init_scale: the first scale.
        growth_factor: by what it grows after ``growth_interval`` steps without infinite gradients.
        backoff_factor: by what it shrinks after a step that was left out.
        growth_interval: see ``growth_factor``.
        enabled: False makes every method pass through what it is given.

    Raises:
        AssertionError: for factors on the wrong side of 1.

    Example:
        >>> import compat as torch
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
        self._enabled = enabled and device == "cpu"
        if enabled and device == "cuda":
            warn("torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.")
        if not self._enabled:
            return
        assert growth_factor > 1.0, "The growth factor must be > 1.0."
        assert backoff_factor < 1.0, "The backoff factor must be < 1.0."
        self._init_scale = init_scale
        self._scale: float | None = None
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._growth_tracker = 0
        self._seen: dict[int, _Seen] = {}

    def _need_scale(self, name: str) -> float:
        assert self._scale is not None, (
            f"Attempted {name} but _scale is None.  This may indicate your script did not use "
            "scaler.scale(loss or outputs) earlier in the iteration."
        )
        return self._scale

    def scale(self, outputs: Any) -> Any:
        """Tensors, or nested containers of them, times the scale.

        Raises:
            ValueError: for anything else.
        """
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            if self._scale is None:
                self._scale = float(self._init_scale)
            # A number is an input of the programs that it takes part in; none is made anew for another scale.
            scaled: Any = outputs * self._scale
            return scaled
        if not hasattr(outputs, "__iter__"):
            raise ValueError("outputs must be a Tensor or an iterable of Tensors")
        parts = map(self.scale, outputs)
        return type(outputs)(parts) if isinstance(outputs, list | tuple) else parts

    def _of(self, optimizer: Any) -> _Seen:
        return self._seen.setdefault(id(optimizer), _Seen())

    def _look(self, optimizer: Any, factor: float) -> None:
        """Multiplies an optimizer's gradients by a factor, and notes whether all are finite."""
        from compat.grad_mode import no_grad

        grads = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        if any(g.dtype is float16 for g in grads):
            raise ValueError("Attempting to unscale FP16 gradients.")
        found: Any = None
        with no_grad():
            for grad in grads:
                infinite = names_of("torch")["isfinite"](grad).all().logical_not()
                found = infinite if found is None else found.logical_or(infinite)
                grad.mul_(factor)
        self._of(optimizer).found = found

    def unscale_(self, optimizer: Any) -> None:
        """Divides an optimizer's gradients by the scale, before they are clipped, say.

        Raises:
            RuntimeError: if that was done already, or the step was.
            ValueError: for gradients in half precision.
        """
        if not self._enabled:
            return
        scale = self._need_scale("unscale_")
        seen = self._of(optimizer)
        if seen.stage == _UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if seen.stage == _STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        self._look(optimizer, 1.0 / scale)
        seen.stage = _UNSCALED

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Makes the optimizer's step, with unscaled gradients, unless one of them is infinite.

        Args:
            optimizer: the optimizer.
            args, kwargs: of its ``step``.

        Returns:
            What its ``step`` returns; None if it was left out.

        Raises:
            RuntimeError: after a step since the last ``update``, or with a closure.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._need_scale("step")
        seen = self._of(optimizer)
        if seen.stage == _STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if seen.stage == _READY:
            self.unscale_(optimizer)
        assert seen.found is not None, "No inf checks were recorded for this optimizer."
        result = None if bool(seen.found) else optimizer.step(*args, **kwargs)
        seen.stage = _STEPPED
        return result

    def update(self, new_scale: Any = None) -> None:
        """Adapts the scale to what was seen since the last time, or sets it.

        Raises:
            AssertionError: if nothing was scaled, or no gradients were looked at.
        """
        if not self._enabled:
            return
        self._need_scale("update")
        if new_scale is not None:
            self._scale = float(new_scale)
        else:
            found = [seen.found for seen in self._seen.values() if seen.found is not None]
            assert found, "No inf checks were recorded prior to update."
            self._adapt(any(map(bool, found)))
        self._seen = {}

    def _adapt(self, infinite: bool) -> None:
        if infinite:
            self._scale = self.get_scale() * self._backoff_factor
            self._growth_tracker = 0
            return
        self._growth_tracker += 1
        if self._growth_tracker == self._growth_interval:
            self._scale = self.get_scale() * self._growth_factor
            self._growth_tracker = 0

    def get_scale(self) -> float:
        """The scale; 1 if disabled."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else self._scale

    def is_enabled(self) -> bool:
        """Whether it does anything."""
        return self._enabled

    def get_growth_factor(self) -> float:
        """By what the scale grows."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Sets by what the scale grows."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """By what the scale shrinks."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Sets by what the scale shrinks."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """After how many steps it grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Sets after how many steps it grows."""
        self._growth_interval = new_interval

    def state_dict(self) -> dict[str, Any]:
        """The scale and what it depends on; empty if disabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._growth_tracker,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes what ``state_dict`` gave.

        Raises:
            RuntimeError: if that is empty.
        """
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler."
            )
        self._init_scale = state_dict["scale"]
        if self._scale is not None:
            self._scale = float(state_dict["scale"])
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._growth_tracker = state_dict["_growth_tracker"]
