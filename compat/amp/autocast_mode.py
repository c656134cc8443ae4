"""``autocast``: disabled, as it is where there is no GPU; and what scripts ask about it."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from compat.device import device as Device
from compat.dtypes import bfloat16, float16
from compat.dtypes import dtype as Dtype

_PRESET = {"cpu": bfloat16}


def get_autocast_dtype(device_type: str) -> Dtype:
    """The dtype that ``autocast`` would compute in on a device.

    Raises:
        RuntimeError: for a device that there is not.
    """
    return _PRESET.get(Device(device_type).type, float16)


def is_autocast_enabled(device_type: str | None = None) -> bool:
    """Whether operations are cast: they never are."""
    return False


def is_autocast_cache_enabled() -> bool:
    """Whether casts would be remembered."""
    return True


def is_autocast_available(device_type: str) -> bool:
    """Whether ``autocast`` takes a type of device.

    Raises:
        RuntimeError: for a type that there is not.
    """
    return Device(device_type).type in ("cpu", "cuda", "mps", "xpu", "hpu", "xla", "ipu", "mtia", "maia")


class autocast:
    """A ``with`` block, or decorator, in which operations choose their dtypes; only its disabled form is there.

    With ``enabled=False``, for a device that is not there, or for a dtype that a CPU cannot be asked for, nothing is
    cast, as in PyTorch. Casting on the CPU is not there: entering such a block is an error. Cast the model instead
    (``model.bfloat16()``).

    Args:
        device_type: ``"cpu"``, ``"cuda"``, ...
        dtype: what to compute in; that of ``get_autocast_dtype`` by default.
        enabled: whether to cast.
        cache_enabled: accepted.

    Raises:
        ValueError: if ``device_type`` is no string.
        RuntimeError: for a device that there is not; at the begin of the block, where casting is asked for.

    Example:
        >>> import compat as torch
        >>> with torch.autocast("cpu", enabled=False):
        ...     (torch.ones(2, 2) @ torch.ones(2, 2)).dtype
        torch.float32
    """

    def __init__(
        self, device_type: str, dtype: Dtype | None = None, enabled: bool = True, cache_enabled: bool | None = None
    ):
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        self.device = Device(device_type).type
        self.fast_dtype = get_autocast_dtype(device_type) if dtype is None else dtype
        self._cache_enabled = True if cache_enabled is None else cache_enabled
        self._enabled = enabled and self._can()

    def _can(self) -> bool:
        """Whether casting can be asked for; says why not."""
        if self.device == "cuda":
            warnings.warn("CUDA is not available or torch_xla is imported. Disabling autocast.", stacklevel=4)
        elif self.device == "cpu" and self.fast_dtype not in (bfloat16, float16):
            warnings.warn(
                "In CPU autocast, but the target dtype is not supported. Disabling autocast.\nCPU Autocast only "
                "supports dtypes of torch.bfloat16, torch.float16 currently.",
                stacklevel=4,
            )
        else:
            return self.device == "cpu"
        return False

    def __enter__(self) -> autocast:
        if self._enabled:
            raise RuntimeError(
                f"autocast('{self.device}', dtype={self.fast_dtype}): operations are not cast here; cast the model "
                f"and its inputs to {self.fast_dtype}, or use enabled=False"
            )
        return self

    def __exit__(self, *exc: object) -> None:
        return None

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def within(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return within


def custom_fwd(fwd: Any = None, *, device_type: str, cast_inputs: Dtype | None = None) -> Any:
    """Marks the ``forward`` of a ``Function`` for ``autocast``: nothing is cast here, so it stays as it is.

    Raises:
        ValueError: if ``device_type`` is no string.
    """
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    return fwd if fwd is not None else lambda f: f


def custom_bwd(bwd: Any = None, *, device_type: str) -> Any:
    """Marks the ``backward`` of a ``Function`` for ``autocast``: nothing is cast here, so it stays as it is.

    Raises:
        ValueError: if ``device_type`` is no string.
    """
    return custom_fwd(bwd, device_type=device_type)
