"""Flags of the process: determinism, denormal numbers, the default device, repeated warnings."""

from __future__ import annotations

import math
from typing import Any

from compat._core.tensor.registry import function
from compat._core.types.device import CPU, available, set_default
from compat._core.types.dtype import FLOATING, INTEGER, iinfo
from compat._core.types.dtype import dtype as Dtype
from compat._core.types.errors import Once, wrong_argument
from funcgrad import runtime


class _Switches:
    deterministic = False
    warn_only = False
    #: Whether uninitialized memory is filled with NaN or the largest number in deterministic mode.
    fill = True
    #: Whether windows were compiled in the background before determinism was requested; None while it is not.
    background: bool | None = None


_switches = _Switches()

# ---------------------------------------------------------------- determinism


@function("torch.use_deterministic_algorithms")
def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Makes results independent of the time at which compiled programs are ready.

    All operations are deterministic, but a compiled window may round differently from its operations run one by one.
    With ``mode`` true windows are compiled at once instead of in the background.

    Args:
        mode: whether to enable deterministic mode.
        warn_only: stored only; all operations are deterministic.

    Raises:
        TypeError: if an argument is not a bool.

    Example:
        >>> import compat as torch
        >>> torch.use_deterministic_algorithms(True)
        >>> torch.are_deterministic_algorithms_enabled()
        True
        >>> torch.use_deterministic_algorithms(False)
    """
    if not isinstance(mode, bool):
        raise wrong_argument("_set_deterministic_algorithms", "mode", 1, "bool", mode)
    if not isinstance(warn_only, bool):
        raise wrong_argument("_set_deterministic_algorithms", "warn_only", None, "bool", warn_only)
    settings = runtime.settings
    if mode and _switches.background is None:
        _switches.background, settings.background = settings.background, False
    if not mode and _switches.background is not None:
        settings.background, _switches.background = _switches.background, None
    _switches.deterministic, _switches.warn_only = mode, warn_only


@function("torch.are_deterministic_algorithms_enabled")
def are_deterministic_algorithms_enabled() -> bool:
    """Whether ``use_deterministic_algorithms`` is on."""
    return _switches.deterministic


@function("torch.is_deterministic_algorithms_warn_only_enabled")
def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether ``use_deterministic_algorithms`` is on with ``warn_only``."""
    return _switches.warn_only


_MODES = {"default": 0, "warn": 1, "error": 2}


@function("torch.set_deterministic_debug_mode")
def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """``use_deterministic_algorithms`` by a number or a name: 0 ``"default"``, 1 ``"warn"``, 2 ``"error"``.

    Raises:
        TypeError: for an argument that is neither an integer nor a string.
        RuntimeError: for another number or name.
    """
    if not isinstance(debug_mode, (str, int)):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    if isinstance(debug_mode, str):
        if debug_mode not in _MODES:
            raise RuntimeError(
                f"invalid value of debug_mode, expected one of `default`, `warn`, `error`, but got {debug_mode}"
            )
        debug_mode = _MODES[debug_mode]
    if debug_mode not in _MODES.values():
        raise RuntimeError(f"invalid value of debug_mode, expected 0, 1, or 2, but got {debug_mode}")
    use_deterministic_algorithms(debug_mode > 0, warn_only=debug_mode == 1)


@function("torch.get_deterministic_debug_mode")
def get_deterministic_debug_mode() -> int:
    """The mode as 0, 1 or 2: see ``set_deterministic_debug_mode``."""
    if not _switches.deterministic:
        return 0
    return 1 if _switches.warn_only else 2


def fills_memory(fill: bool | None = None) -> bool:
    """Gets or sets whether uninitialized memory is filled in deterministic mode.

    Raises:
        RuntimeError: for an argument that is not a bool.
    """
    if fill is not None:
        if not isinstance(fill, bool):
            raise RuntimeError(f"expected a bool, but got {type(fill).__name__}")
        _switches.fill = fill
    return _switches.fill


def unset_value(dtype: Dtype) -> Any:
    """The value of uninitialized elements: zero; NaN or the largest number in deterministic mode."""
    if not (_switches.deterministic and _switches.fill):
        return 0
    if dtype.category >= FLOATING:
        return math.nan
    return iinfo(dtype).max if dtype.category == INTEGER else True


# ---------------------------------------------------------------- denormal numbers


@function("torch.set_flush_denormal")
def set_flush_denormal(mode: bool, /) -> bool:
    """Requests that denormal numbers are flushed to zero; returns False, as XLA does not support it.

    Raises:
        RuntimeError: if ``mode`` is not a bool.
    """
    if not isinstance(mode, bool):
        raise RuntimeError(f"flush_denormal expects a bool, but got {type(mode).__name__}")
    return False


# ---------------------------------------------------------------- the default device, warnings


@function("torch.set_default_device")
def set_default_device(device: Any) -> None:
    """Sets the default device, initially the CPU.

    Args:
        device: ``"cpu"``, a device, or None for the CPU.

    Raises:
        RuntimeError: for a device that does not exist.
        AssertionError: for a GPU, if there is none.
    """
    set_default(CPU if device is None else available(device))


@function("torch.set_warn_always")
def set_warn_always(b: bool, /) -> None:
    """Sets whether warnings given once per process are given each time, subject to Python's filters.

    Raises:
        RuntimeError: if ``b`` is not a bool.
    """
    if not isinstance(b, bool):
        raise RuntimeError(f"setWarnOnlyOnce expects a bool, but got {type(b).__name__}")
    Once.always = b


@function("torch.is_warn_always_enabled")
def is_warn_always_enabled() -> bool:
    """The flag set by ``set_warn_always``."""
    return Once.always
