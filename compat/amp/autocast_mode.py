"""``autocast``: a block in which products are computed in a lower precision; and what scripts ask about it.

On a CPU or an accelerator, products, convolutions and attention are computed in bfloat16 or float16, and what needs
precision, such as losses, in float32 (``compat._core.dispatch.autocast_rules``); everything else takes its arguments as
they come.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any

from compat._compile import circumstances
from compat._core.dispatch.autocast_rules import rules
from compat._core.dispatch.dispatch_keys import layers
from compat._core.tensor.tensor import Tensor
from compat._core.tensor.torch_function import TorchFunctionMode
from compat._core.types.device import accelerators
from compat._core.types.device import device as Device
from compat._core.types.dtype import bfloat16, float16, float32, float64, promote_types
from compat._core.types.dtype import dtype as Dtype
from compat._core.types.errors import warn


class _State(threading.local):
    """What a thread is within.

    Attributes:
        enabled: whether operations are cast, by type of device.
        dtypes: to what, by type of device.
        caching: whether casts of parameters are kept until the outermost block ends.
        depth: how many blocks it is within.
        cache: those casts, with what they were made of.
        mode: the mode that casts, while it is entered.
    """

    def __init__(self) -> None:
        self.enabled: dict[str, bool] = {}
        self.dtypes: dict[str, Dtype] = {"cpu": bfloat16}
        self.caching = True
        self.depth = 0
        self.cache: dict[tuple[int, Dtype], tuple[Tensor, Any]] = {}
        self.mode: _Casting | None = None


_state = _State()
#: The types of devices on which operations can be cast.
_CASTING = ("cpu", "cuda", "xla")


# ---------------------------------------------------------------- casting


def _lower(t: Tensor) -> Any:
    """A tensor in the lower precision; of a parameter, the same one until the outermost block ends."""
    wanted = get_autocast_dtype(t.device.type)
    if not t.is_floating_point() or t.dtype in (wanted, float64):
        return t
    kept = _state.caching and t.requires_grad and t.is_leaf and t._base is None
    if not kept:
        return t.to(wanted)
    key = (id(t), wanted)
    if key not in _state.cache:
        _state.cache[key] = (t, t.to(wanted))
    return _state.cache[key][1]


def _float32(t: Tensor) -> Any:
    return t.to(float32) if t.dtype in (bfloat16, float16) else t


def _each(value: Any, cast: Callable[[Tensor], Any]) -> Any:
    """A value with its tensors cast, those in lists and tuples, too."""
    if isinstance(value, Tensor):
        return cast(value)
    if type(value) in (list, tuple):
        return type(value)([_each(v, cast) for v in value])
    return value


def _tensors(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    return [t for v in value for t in _tensors(v)] if type(value) in (list, tuple) else []


def _widest(args: Any) -> Callable[[Tensor], Any]:
    """What brings floating-point tensors to their common dtype."""
    floating = [t.dtype for t in _tensors(args) if t.is_floating_point()]
    if len(set(floating)) < 2:
        return lambda t: t
    common = functools.reduce(promote_types, floating)
    return lambda t: t.to(common) if t.is_floating_point() else t


def _enabled_for(args: Any, kwargs: dict[str, Any]) -> bool:
    """Whether operations are cast on the device of some arguments."""
    on = [kind for kind in _CASTING if _state.enabled.get(kind)]
    return on == ["cpu"] or any(t.device.type in on for t in _tensors([*args, *kwargs.values()]))


class _Casting(TorchFunctionMode):
    """Casts the arguments of public functions."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Sequence[type], args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        rule = rules().get(func) if _enabled_for(args, kwargs) and kwargs.get("out") is None else None
        if rule is not None:
            cast = _lower if rule == "lower" else _float32 if rule == "float32" else _widest(args)
            args = tuple([_each(a, cast) for a in args])
            kwargs = {name: _each(a, cast) for name, a in kwargs.items()}
        if any(callable(a) for a in args):  # its calls are within the block, too
            with self:
                return getattr(func, "_function", func)(*args, **kwargs)
        return func(*args, **kwargs)


# ---------------------------------------------------------------- the state


def _casting() -> tuple[tuple[str, Dtype], ...]:
    """What products are computed in, by type of device, where it is not their operands' dtype."""
    return tuple([(kind, get_autocast_dtype(kind)) for kind in _CASTING if _state.enabled.get(kind)])


circumstances.append(_casting)
layers["AutocastCPU"] = lambda: bool(_casting())


def get_autocast_dtype(device_type: str) -> Dtype:
    """The dtype that ``autocast`` computes in on a device.

    Raises:
        RuntimeError: for a device that there is not.
    """
    return _state.dtypes.get(Device(device_type).type, float16)


def set_autocast_dtype(device_type: str, dtype: Dtype) -> None:
    """Says which dtype ``autocast`` computes in on a device."""
    _state.dtypes[Device(device_type).type] = dtype


def is_autocast_enabled(device_type: str | None = None) -> bool:
    """Whether operations are cast on a type of device; by default on GPUs."""
    return _state.enabled.get("cuda" if device_type is None else Device(device_type).type, False)


def set_autocast_enabled(device_type: str, enabled: bool) -> None:
    """Says whether operations are cast on a type of device; prefer ``autocast``."""
    _state.enabled[Device(device_type).type] = bool(enabled)
    if _casting() and _state.mode is None:
        _state.mode = _Casting()
        _state.mode.__enter__()


def _leave() -> None:
    """Takes the mode away when the outermost block ends."""
    if _state.mode is not None and not _casting():
        _state.mode.__exit__()
        _state.mode = None


def _deprecated(name: str, other: str) -> None:
    warn(f"torch.{name}() is deprecated. Please use torch.{other}('cpu') instead.", DeprecationWarning)


def is_autocast_cpu_enabled() -> bool:
    """Whether operations are cast on the CPU."""
    _deprecated("is_autocast_cpu_enabled", "is_autocast_enabled")
    return is_autocast_enabled("cpu")


def get_autocast_cpu_dtype() -> Dtype:
    """The dtype that ``autocast`` computes in on the CPU."""
    _deprecated("get_autocast_cpu_dtype", "get_autocast_dtype")
    return get_autocast_dtype("cpu")


def is_autocast_cache_enabled() -> bool:
    """Whether casts of parameters are kept until the outermost block ends."""
    return _state.caching


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Says whether casts of parameters are kept until the outermost block ends."""
    _state.caching = bool(enabled)


def clear_autocast_cache() -> None:
    """Forgets the casts of parameters."""
    _state.cache.clear()


def autocast_increment_nesting() -> int:
    """Counts one more block; gives how many there are."""
    _state.depth += 1
    return _state.depth


def autocast_decrement_nesting() -> int:
    """Counts one block less; gives how many there are."""
    _state.depth -= 1
    return _state.depth


def is_autocast_available(device_type: str) -> bool:
    """Whether ``autocast`` takes a type of device.

    Raises:
        RuntimeError: for a type that there is not.
    """
    return Device(device_type).type in ("cpu", "cuda", "mps", "xpu", "hpu", "xla", "ipu", "mtia", "maia")


class autocast:
    """A ``with`` block, or decorator, in which operations choose their dtypes.

    For an absent device, and for a dtype that autocast on a CPU does not support, nothing is cast.

    Args:
        device_type: ``"cpu"``, ``"cuda"``, ...
        dtype: of computations; that of ``get_autocast_dtype`` by default.
        enabled: whether to cast; a block within another one can switch it off.
        cache_enabled: whether casts of parameters are kept until the outermost block ends.

    Raises:
        ValueError: if ``device_type`` is no string.
        RuntimeError: for a device that there is not.

    Example:
        >>> import compat as torch
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
        """Whether casting can be asked for; says why not."""
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
        if _state.depth == 0:
            _leave()

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def within(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return within


def autocast_decorator(autocast_instance: autocast, func: Callable[..., Any]) -> Callable[..., Any]:
    """``func`` within a block."""
    return autocast_instance(func)


# ---------------------------------------------------------------- functions of one's own


def custom_fwd(fwd: Any = None, *, device_type: str, cast_inputs: Dtype | None = None) -> Any:
    """Marks the ``forward`` of a ``Function`` for ``autocast``.

    Args:
        fwd: it; without, a decorator.
        device_type: where the block must be for it to matter.
        cast_inputs: the dtype of floating-point arguments; autocast is then disabled in the forward pass.

    Raises:
        ValueError: if ``device_type`` is no string.
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
            return fwd(*[_each(a, cast) for a in args], **{name: _each(a, cast) for name, a in kwargs.items()})

    return forward


def custom_bwd(bwd: Any = None, *, device_type: str) -> Any:
    """Marks the ``backward`` of a ``Function`` for ``autocast``: it runs as ``forward`` did.

    Raises:
        ValueError: if ``device_type`` is no string.
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
