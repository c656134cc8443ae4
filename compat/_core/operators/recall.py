"""Calls of factories that were made before: their constants are found by the arguments, which are not read again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from inspect import signature
from typing import Any

from compat._core.config.flags import unset_value
from compat._core.memory.strides import Layout
from compat._core.tensor.tensor import Tensor, from_buffer
from compat._core.types import dtype as dtypes
from compat._core.types.device import device, place
from compat._core.types.memory_format import layout, memory_format
from compat._core.types.size import Size
from funcgrad import runtime
from funcgrad.core.caching import Cache, Group


def _weight(found: tuple[Any, Layout]) -> int:
    return 1 + int(found[0].nbytes) // 4096


_GROUP: Group = Group("calls of factories", 2048, _weight)
#: Arguments that are keys as they are. Equal numbers of different types make different tensors.
_ATOMS = frozenset((int, type(None), dtypes.dtype, device, layout, memory_format))


def recalled(factory: Callable[..., Tensor], like: bool = False) -> Callable[..., Tensor]:
    """A factory of constant tensors, which does not run for arguments that it was called with before.

    Its result must be determined by the arguments, the default dtype and device, and the value of uninitialized
    elements. Only constants that the runtime shares are kept, so a call gives a new storage over the same buffer.

    Args:
        like: whether the first argument is a tensor, of which only the layout matters.
    """
    calls: Cache[tuple, tuple[Any, Layout]] = Cache(_GROUP)

    @wraps(factory)
    def call(*args: Any, **kwargs: Any) -> Tensor:
        key = _key(args, kwargs, like)
        if key is None:
            return factory(*args, **kwargs)
        found = calls.get(key)
        if found is None:
            found = calls.again(key)
        if found is not None and runtime.is_constant(found[0]):  # else the runtime has dropped it
            return from_buffer(*found)
        made = factory(*args, **kwargs)
        buffer = made._storage_.buffer
        if made.__class__ is Tensor and not made._rg_ and runtime.is_constant(buffer):
            calls[key] = buffer, made._layout_
        return made

    call.__signature__ = signature(factory)  # type: ignore[attr-defined]
    return call


def _key(args: Sequence[Any], kwargs: Mapping[str, Any], like: bool) -> tuple[Any, ...] | None:
    """The key of a call; None for arguments that are not numbers, sizes, or names of dtypes and devices."""
    key: list[Any] = [dtypes.get_default_dtype(), place(None), unset_value(dtypes.uint8)]
    if like:
        if not args or args[0].__class__ is not Tensor or args[0]._layout_.base.traced:
            return None
        key.append(args[0]._layout_)
        args = args[1:]
    for value in args:
        if value.__class__ in _ATOMS:
            key.append(value)
        elif not _add(key, value):
            return None
    for name, value in kwargs.items():
        key.append(name)
        if value.__class__ in _ATOMS or value.__class__ is str:
            key.append(value)
        elif not _add(key, value):
            return None
    return tuple(key)


def _add(key: list[Any], value: Any) -> bool:
    """Adds the key of a size, a bool, or a float that is neither zero (0.0 and -0.0 are equal) nor NaN."""
    kind = value.__class__
    if kind is tuple or kind is list or kind is Size:
        if any(n.__class__ is not int for n in value):
            return False
        key.append(tuple(value))
    elif kind is bool or (kind is float and value and value == value):
        key.append((kind, value))
    else:
        return False
    return True
