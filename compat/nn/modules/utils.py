"""Helpers of modules: arguments for each dimension, empty tensors, devices and dtypes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from functools import update_wrapper
from itertools import repeat
from types import FunctionType
from typing import Any, NamedTuple

from compat._core.tensor.tensor import Tensor
from compat._core.types import device as devices
from compat._core.types import dtype as dtypes
from compat._core.types.memory_format import memory_format as MemoryFormat
from compat._operators.create import factories

__all__ = ["consume_prefix_in_state_dict_if_present"]


def ntuple(n: int, name: str) -> Callable[[Any], tuple]:
    """A function that repeats a number ``n`` times and returns a sequence unchanged."""

    def parse(x: Any) -> tuple:
        return tuple(x) if isinstance(x, Iterable) else tuple(repeat(x, n))

    parse.__name__ = name
    return parse


_single = ntuple(1, "_single")
_pair = ntuple(2, "_pair")
_triple = ntuple(3, "_triple")
_quadruple = ntuple(4, "_quadruple")


def typename(x: Any) -> str:
    """The name of the type of ``x`` in error messages: ``torch.FloatTensor``, ``int``, ``collections.OrderedDict``."""
    if isinstance(x, Tensor):
        return tensor_type(x)
    kind = type(x)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def tensor_type(t: Tensor) -> str:
    """A tensor's type as a string: ``torch.FloatTensor``."""
    return str(t.type())


def empty(size: Sequence[int] | int, device: Any = None, dtype: Any = None) -> Tensor:
    """An uninitialized contiguous tensor."""
    return factories.empty(size, device=device, dtype=dtype)


_TO = (
    "to() received an invalid combination of arguments - got ({}), but expected one of:\n"
    " * (torch.device device = None, torch.dtype dtype = None, bool non_blocking = False, bool copy = False, *, "
    "torch.memory_format memory_format = None)\n"
    " * (torch.dtype dtype, bool non_blocking = False, bool copy = False, *, torch.memory_format memory_format = "
    "None)\n"
    " * (Tensor tensor, bool non_blocking = False, bool copy = False, *, torch.memory_format memory_format = None)\n"
)


class Destination(NamedTuple):
    """The device and dtype of tensors; None leaves them unchanged."""

    device: Any = None
    dtype: Any = None
    non_blocking: bool = False
    copy: bool = False
    memory_format: Any = None


def parse_to(args: tuple, kwargs: dict) -> Destination:
    """The arguments of ``to``: a device and a dtype, a dtype, or a tensor with both, and options.

    Raises:
        TypeError: if they are none of these.
    """
    first = args[0] if args else kwargs.get("tensor")
    if isinstance(first, dtypes.dtype):
        names: tuple[str, ...] = ("dtype", "non_blocking", "copy")
    elif isinstance(first, Tensor):
        names = ("tensor", "non_blocking", "copy")
    else:
        names = ("device", "dtype", "non_blocking", "copy")
    given = dict(zip(names, args))
    kinds = {
        "device": (str, int, devices.device),
        "dtype": (dtypes.dtype,),
        "memory_format": (MemoryFormat,),
        "tensor": (Tensor,),
    }
    known = {*names, "memory_format"}
    valid = len(args) <= len(names) and not (given.keys() & kwargs.keys()) and kwargs.keys() <= known
    given |= kwargs
    if not valid or not all(v is None or isinstance(v, kinds.get(k, (bool,))) for k, v in given.items()):
        shown = [typename(a) for a in args] + [f"{k}={typename(v)}" for k, v in kwargs.items()]
        raise TypeError(_TO.format(", ".join(shown) + (", " if kwargs and not args else "")))
    like = given.pop("tensor", None)
    if like is not None:
        given |= {"device": like.device, "dtype": like.dtype}
    if given.get("device") is not None:
        given["device"] = devices.device(given["device"])
    return Destination(**given)


def described(module: Any, *names: str) -> str:
    """Attributes of a module as in its ``repr``: ``p=0.5, inplace=False``."""
    return ", ".join(f"{name}={getattr(module, name)!r}" for name in names)


def requalified(*names: str) -> Callable[[type], Any]:
    """A decorator of a base class that gives each subclass copies of methods with the subclass in their qualified name.

    Python's errors about arguments contain that name.

    Args:
        names: the names of the methods.

    Example:
        >>> @requalified("forward")
        ... class Base:
        ...     def forward(self, x):
        ...         return x
        >>> class Layer(Base):
        ...     pass
        >>> Layer().forward()
        Traceback (most recent call last):
        ...
        TypeError: Layer.forward() missing 1 required positional argument: 'x'
    """

    def decorated(shared: Any) -> Any:
        def named(cls: type, /, **more: Any) -> None:
            super(shared, cls).__init_subclass__(**more)
            if shared in cls.__bases__:
                for name in set(names) - cls.__dict__.keys():
                    setattr(cls, name, _renamed(shared.__dict__[name], f"{cls.__name__}.{name}"))

        shared.__init_subclass__ = classmethod(named)
        return shared

    return decorated


def _renamed(function: Any, name: str) -> Any:
    namespace = vars(sys.modules[function.__module__])
    copy: Any = FunctionType(
        function.__code__, namespace, function.__name__, function.__defaults__, function.__closure__
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    update_wrapper(copy, function)
    copy.__qualname__ = name
    del copy.__wrapped__
    return copy


def filled(size: Iterable[int], value: float, device: Any = None, dtype: Any = None) -> Tensor:
    """A contiguous tensor filled with one value."""
    return factories.full(tuple(size), float(value), device=device, dtype=dtype)


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Removes a prefix from the keys of a state dict in place, including its metadata.

    Example:
        >>> state = {"module.weight": 1, "bias": 2}
        >>> consume_prefix_in_state_dict_if_present(state, "module.")
        >>> state
        {'bias': 2, 'weight': 1}
    """
    for key in [k for k in state_dict if k.startswith(prefix)]:
        state_dict[key[len(prefix) :]] = state_dict.pop(key)
    metadata = getattr(state_dict, "_metadata", None)
    if metadata is None:
        return
    for key in list(metadata):
        # Its keys are names of modules, "" for the module itself, without the dot at the end of the prefix.
        if key == prefix.removesuffix(".") or key.startswith(prefix):
            value = metadata.pop(key)
            if key or not prefix:
                metadata[key[len(prefix) :]] = value
