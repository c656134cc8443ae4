"""``autocast``: a context in which products are computed in a lower precision; and queries about it.

A layer of the dispatcher does the casts, ``compat.amp._layer``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from compat._core.types.device import accelerators
from compat._core.types.device import device as Device
from compat._core.types.dtype import bfloat16, float16, float64
from compat._core.types.dtype import dtype as Dtype
from compat._core.types.errors import warn
from compat.amp._layer import dtype_on, each_tensor, enable, is_enabled, state

# ---------------------------------------------------------------- the state


def get_autocast_dtype(device_type: str) -> Dtype:
    """The dtype that ``autocast`` computes in on a device.

    Raises:
        RuntimeError: for an unknown device type.
    """
    return dtype_on(Device(device_type).type)


def set_autocast_dtype(device_type: str, dtype: Dtype) -> None:
    """Sets the dtype that ``autocast`` computes in on a device."""
    kind = Device(device_type).type
    state.dtypes[kind] = dtype
    enable(kind, is_enabled(kind))


def is_autocast_enabled(device_type: str | None = None) -> bool:
    """Whether operations are cast on a type of device; by default on GPUs."""
    return is_enabled("cuda" if device_type is None else Device(device_type).type)


def set_autocast_enabled(device_type: str, enabled: bool) -> None:
    """Sets whether operations are cast on a type of device; prefer ``autocast``."""
    enable(Device(device_type).type, bool(enabled))


def _deprecated(name: str, other: str, device: str = "cpu") -> None:
    warn(f"torch.{name}() is deprecated. Please use torch.{other}('{device}') instead.", DeprecationWarning)


def is_autocast_cpu_enabled() -> bool:
    """Whether operations are cast on the CPU."""
    _deprecated("is_autocast_cpu_enabled", "is_autocast_enabled")
    return is_autocast_enabled("cpu")


def get_autocast_cpu_dtype() -> Dtype:
    """The dtype that ``autocast`` computes in on the CPU."""
    _deprecated("get_autocast_cpu_dtype", "get_autocast_dtype")
    return get_autocast_dtype("cpu")


def get_autocast_gpu_dtype() -> Dtype:
    """The dtype that ``autocast`` computes in on GPUs."""
    _deprecated("get_autocast_gpu_dtype", "get_autocast_dtype", "cuda")
    return get_autocast_dtype("cuda")


def is_autocast_cache_enabled() -> bool:
    """Whether casts of parameters are cached until the outermost block ends."""
    return state.caching


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Sets whether casts of parameters are cached until the outermost block ends."""
    state.caching = bool(enabled)


def clear_autocast_cache() -> None:
    """Clears the cache of parameter casts."""
    state.cache.clear()


def autocast_increment_nesting() -> int:
    """Increments the nesting depth; returns it."""
    state.depth += 1
    return state.depth


def autocast_decrement_nesting() -> int:
    """Decrements the nesting depth; returns it."""
    state.depth -= 1
    return state.depth


def is_autocast_available(device_type: str) -> bool:
    """Whether ``autocast`` supports a type of device.

    Raises:
        RuntimeError: for an unknown device type.
    """
    return Device(device_type).type in ("cpu", "cuda", "mps", "xpu", "hpu", "xla", "ipu", "mtia", "maia")


class autocast:
    """A context manager, or decorator, in which operations choose their dtypes.

    For an absent device, and for a dtype that autocast does not support on the CPU, nothing is cast.

    Args:
        device_type: ``"cpu"``, ``"cuda"``, ...
        dtype: the dtype of computations; by default ``get_autocast_dtype``.
        enabled: whether to cast; a nested block can disable it.
        cache_enabled: whether casts of parameters are cached until the outermost block ends.

    Raises:
        ValueError: if ``device_type`` is not a string.
        RuntimeError: for an unknown device type.

    Example:
        >>> x = torch.ones(2, 2)
        >>> with torch.autocast("cpu"):
        ...     (x @ x).dtype, (x + x).dtype, torch.nn.functional.mse_loss(x @ x, x).dtype
        (torch.bfloat16, torch.float32, torch.float32)
    """

    def __init__(
        self, device_type: str, dtype: Dtype | None = None, enabled: bool = True, cache_enabled: bool | None = None
    ):
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        self.device = Device(device_type).type
        self.fast_dtype = get_autocast_dtype(device_type) if dtype is None else dtype
        self._cache_enabled = is_autocast_cache_enabled() if cache_enabled is None else cache_enabled
        self._enabled = enabled and self._can()
        self._before: list[tuple[bool, Dtype, bool]] = []

    def _can(self) -> bool:
        """Whether casting is supported; warns if not."""
        if self.device in ("cuda", "xla") and accelerators(self.device):
            return True
        if self.device == "cuda":
            warn("CUDA is not available or torch_xla is imported. Disabling autocast.")
        elif self.device == "cpu" and self.fast_dtype not in (bfloat16, float16):
            warn(
                "In CPU autocast, but the target dtype is not supported. Disabling autocast.\nCPU Autocast only "
                "supports dtypes of torch.bfloat16, torch.float16 currently."
            )
        else:
            return self.device == "cpu"
        return False

    def __enter__(self) -> autocast:
        self._before.append(
            (is_autocast_enabled(self.device), get_autocast_dtype(self.device), is_autocast_cache_enabled())
        )
        set_autocast_dtype(self.device, self.fast_dtype)
        set_autocast_enabled(self.device, self._enabled)
        set_autocast_cache_enabled(self._cache_enabled)
        autocast_increment_nesting()
        return self

    def __exit__(self, *exc: object) -> None:
        if autocast_decrement_nesting() == 0:
            clear_autocast_cache()
        enabled, dtype, caching = self._before.pop()
        set_autocast_enabled(self.device, enabled)
        set_autocast_dtype(self.device, dtype)
        set_autocast_cache_enabled(caching)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def within(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return within


def autocast_decorator(autocast_instance: autocast, func: Callable[..., Any]) -> Callable[..., Any]:
    """``func`` run in the context."""
    return autocast_instance(func)


# ---------------------------------------------------------------- custom functions


def custom_fwd(fwd: Any = None, *, device_type: str, cast_inputs: Dtype | None = None) -> Any:
    """Marks the ``forward`` of a ``Function`` for ``autocast``.

    Args:
        fwd: the ``forward`` method; without it, a decorator.
        device_type: the device type of the autocast block that it applies to.
        cast_inputs: the dtype of floating-point arguments; autocast is then disabled in the forward pass.

    Raises:
        ValueError: if ``device_type`` is not a string.
    """
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def forward(*args: Any, **kwargs: Any) -> Any:
        ctx = args[0]
        ctx._dtype = get_autocast_dtype(device_type)
        ctx._fwd_used_autocast = is_autocast_enabled(device_type)
        if cast_inputs is None or not ctx._fwd_used_autocast:
            return fwd(*args, **kwargs)
        ctx._fwd_used_autocast = False
        cast = lambda t: t.to(cast_inputs) if t.is_floating_point() and t.dtype is not float64 else t
        with autocast(device_type, enabled=False):
            return fwd(*each_tensor(args, cast), **each_tensor(kwargs, cast))

    return forward


def custom_bwd(bwd: Any = None, *, device_type: str) -> Any:
    """Marks the ``backward`` of a ``Function`` for ``autocast``: it runs in the same mode as ``forward``.

    Raises:
        ValueError: if ``device_type`` is not a string.
    """
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def backward(*args: Any, **kwargs: Any) -> Any:
        with autocast(device_type, dtype=args[0]._dtype, enabled=args[0]._fwd_used_autocast):
            return bwd(*args, **kwargs)

    return backward
