"""Wrapper subclasses, tensors without memory that wrap other tensors: ``Tensor._make_wrapper_subclass``."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from compat._core.dispatch.dispatched_duals import NoMemory, is_wrapper
from compat._core.dispatch.overrides import class_overrides_operators, owners
from compat._core.dispatch.size_overrides import ask_for
from compat._core.dispatch.torch_dispatch import HANDLERS, when_enabled
from compat._core.memory.meta import unknown
from compat._core.memory.strides import Base, contiguous_strides, layout_of, room
from compat._core.tensor.registry import names_of, publish
from compat._core.tensor.subclass_state import set_state, state_of
from compat._core.tensor.tensor import Tensor, autograd_of, set_memory
from compat._core.transforms.grad_mode import no_grad
from compat._core.types import dtype as dtypes
from compat._core.types.device import available
from compat._core.types.errors import size_text


def _make_wrapper_subclass(
    cls: type,
    size: Any,
    strides: Any = None,
    storage_offset: Any = None,
    memory_format: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    dispatch_sizes_strides_policy: str | None = None,
    dispatch_device: bool = False,
    dispatch_layout: bool = False,
    **more: Any,
) -> Any:
    """A tensor of a class that has a size, strides and a dtype, but no memory.

    The ``__torch_dispatch__`` of the class implements operations on it, usually by operations on wrapped tensors.

    Args:
        cls: the class, a subclass of ``Tensor``.
        size: the size.
        strides: the strides; row-major by default.
        dtype: the dtype; by default the default dtype.
        requires_grad: whether operations on it are recorded.
        dispatch_sizes_strides_policy: "sizes" or "strides" if the class overrides them.
        dispatch_device, dispatch_layout: whether it overrides the device and the layout.

    Raises:
        TypeError: for a class without ``__torch_dispatch__``.
        ValueError: for an unknown policy.

    Example:
        >>> import compat as torch
        >>> class Logged(torch.Tensor):
        ...     @staticmethod
        ...     def __new__(cls, inner):
        ...         made = torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)
        ...         made.inner = inner
        ...         return made
        ...     @classmethod
        ...     def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        ...         print(func)
        ...         args = [a.inner if isinstance(a, cls) else a for a in args]
        ...         return cls(func(*args, **(kwargs or {})))
        >>> x = Logged(torch.ones(2, 3)).requires_grad_()
        >>> y = (x * 2).sum()
        aten.mul.Tensor
        aten.sum.default
        >>> y.grad_fn
        <SumBackward0 object at ...>
    """
    if not isinstance(cls, type) or not issubclass(cls, Tensor) or not class_overrides_operators(cls):
        raise TypeError(f"{getattr(cls, '__name__', cls)} must define __torch_dispatch__")
    size = tuple(int(n) for n in size)
    if any(n < 0 for n in size):
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(size)}: {size_text(size)}")
    kind = dtypes.get_default_dtype() if dtype is None else dtype
    stride = contiguous_strides(size) if strides is None else tuple(int(n) for n in strides)
    offset = int(storage_offset or 0)
    needed = room(size, stride, offset)
    dense = stride == contiguous_strides(size) and not offset
    base = Base(size if dense else (needed,), kind, True, available("cpu" if device is None else device))
    made: Any = object.__new__(cls)
    set_memory(made, NoMemory(unknown(base), base), layout_of(base, size, stride, offset), offset)
    made._rg_ = bool(requires_grad)
    ask_for(made, dispatch_sizes_strides_policy, dispatch_device, dispatch_layout)
    return made


publish(staticmethod(_make_wrapper_subclass), "Tensor._make_wrapper_subclass")


def rebuild(
    cls: type, dtype: Any, size: Any, stride: Any, offset: int, layout: Any, device: Any, requires_grad: bool
) -> Any:
    """Rebuilds a wrapper without its attributes; used by ``torch.load``."""
    return _make_wrapper_subclass(
        cls, size, stride, offset, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad
    )


def rebuilt(cls: type, place: tuple, state: dict[str, Any]) -> Any:
    """Rebuilds a wrapper with its attributes; used by unpickling."""
    made = rebuild(cls, *place)
    for name, value in state.items():
        setattr(made, name, value)
    return made


def place_of(t: Tensor) -> tuple:
    """The arguments of ``rebuild`` besides the class."""
    return t.dtype, tuple(t.size()), t.stride(), t.storage_offset(), t.layout, t.device, t.requires_grad


# ---------------------------------------------------------------- as Python objects


def _deep_copied(plain: Any, asked: list[Tensor], self: Tensor, memo: dict) -> Any:
    """``deepcopy``: a wrapper is copied by its type's ``clone``."""
    if not is_wrapper(self) or not self.is_leaf or id(self) in memo:
        return plain(self, memo)
    with no_grad():
        made = self.clone()
    if type(made) is not type(self):
        raise RuntimeError(
            "The default implementation of __deepcopy__() for wrapper subclasses only works for subclass types "
            "that implement clone() and for which cloning returns another instance of the same subclass. You "
            "should either properly implement clone() for your subclass or override __deepcopy__() if it is "
            "intended behavior for clone() to return an instance of a different type."
        )
    memo[id(self)] = made
    made._rg_ = self._rg_
    if self._autograd_state_ is not None and self._autograd_state_.grad is not None:
        autograd_of(made).grad = copy.deepcopy(self._autograd_state_.grad, memo)
    for name, value in state_of(self).items():
        set_state(made, {name: copy.deepcopy(value, memo)})
    return made


def _address(plain: Any, asked: list[Tensor], t: Tensor) -> Any:
    """``data_ptr``: a wrapper has none."""
    return 0 if is_wrapper(t) else plain(t)


def _reduced(plain: Any, asked: list[Tensor], t: Tensor, protocol: Any) -> Any:
    """The reduction of a wrapper for pickling: its metadata and attributes."""
    return (rebuilt, (type(t), place_of(t), state_of(t))) if is_wrapper(t) else plain(t, protocol)


def _check_same(t: Tensor, cls: type) -> None:
    """Checks that a tensor of a subclass that overrides operators can be converted to a class.

    Raises:
        RuntimeError: if it is not an instance of the class.
    """
    if not isinstance(t, cls):
        raise RuntimeError(
            f"Creating a new Tensor subclass {cls.__name__} but the raw Tensor object is already associated to a "
            f"python object of type {type(t).__name__} which is not a subclass of the requested type"
        )


def _as_own(plain: Any, asked: list[Tensor], self: Tensor, cls: Any) -> Any:
    """``as_subclass`` of a tensor of a subclass that overrides operators."""
    if not isinstance(cls, type) or not issubclass(cls, Tensor):
        return plain(self, cls)
    _check_same(self, cls)
    return names_of("torch")["_alias"](self)


HANDLERS |= {
    "Tensor.__deepcopy__": _deep_copied, "Tensor.__reduce_ex__": _reduced, "Tensor.as_subclass": _as_own,
    "Tensor.data_ptr": _address,
}  # fmt: skip


def _made_of(plain: Callable[..., Any]) -> Any:
    """A constructor of tensors of a class from another tensor, with the options of wrappers."""

    def call(cls: type, *args: Any, dispatch_sizes_strides_policy: str | None = None, **named: Any) -> Any:
        for t in owners(args):
            _check_same(t, cls)
        asked = {name: named.pop(name) for name in ("dispatch_device", "dispatch_layout") if name in named}
        made = plain(cls, *args, **named)
        ask_for(made, dispatch_sizes_strides_policy, **asked)
        return made

    return staticmethod(call)


def _enable() -> None:
    """Replaces the constructors of tensors when the first overriding type is defined."""
    kind: Any = Tensor
    for name in ("__new__", "_make_subclass"):
        setattr(kind, name, _made_of(getattr(kind, name)))


when_enabled(_enable)
