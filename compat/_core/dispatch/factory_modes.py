"""Functions that make tensors of nothing or fill them, shown to those who watch
(``compat._core.dispatch.dispatch_mode``).

They are no declared operations. From the first mode on they look whether one is entered.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from compat._core.dispatch.overloads import aten
from compat._core.dispatch.overrides import Declined, answer_of_mode, state
from compat._core.dispatch.torch_dispatch import replace, show_backward
from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor

#: What takes a size, and which overload it then is.
_SIZED = {"zeros": "default", "ones": "default", "empty": "memory_format", "rand": "default", "randn": "default"}
_OTHERS = {
    "full": "default", "empty_strided": "default", "scalar_tensor": "default", "linspace": "default",
    "logspace": "default", "randperm": "default", "zeros_like": "default", "ones_like": "default",
    "empty_like": "default", "full_like": "default", "rand_like": "default", "randn_like": "default",
}  # fmt: skip
#: Overloads by how many positional arguments there are.
_COUNTED = {
    "arange": ("default", "start", "start_step"), "eye": ("default", "m"), "randint": ("default", "default", "low"),
}  # fmt: skip
#: Methods, by how they are shown: those that fill a tensor, make another one, and look at values.
_METHODS = {
    "uniform_": "default", "normal_": "default", "random_": "default", "exponential_": "default",
    "bernoulli_": "float", "cauchy_": "default", "geometric_": "default", "log_normal_": "default",
    "new_zeros": "default", "new_ones": "default", "new_empty": "default", "new_full": "default", "nonzero": "default",
}  # fmt: skip


def _watched(name: str, plain: Callable[..., Any]) -> Callable[..., Any]:
    """A function that asks the innermost mode, if there is one."""

    @functools.wraps(plain)
    def call(*args: Any, **kwargs: Any) -> Any:
        return _shown(name, call, plain, args, kwargs) if state.modes else plain(*args, **kwargs)

    return call


def _shown(name: str, again: Callable[..., Any], plain: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> Any:
    """One call: the innermost mode says what it gives.

    Args:
        again: the function, for the modes around it.
        plain: the function, for the types of tensors.
    """
    if name in _SIZED and args:
        args = (list(args if isinstance(args[0], int) else args[0]),)
    counted = _COUNTED.get(name, ())
    overload = (
        counted[min(len(args), len(counted)) - 1] if counted and args else (_SIZED | _OTHERS).get(name, "default")
    )
    shown = aten.packet(name).overload("out" if kwargs.get("out") is not None else overload)
    wanted = kwargs.get("requires_grad", False)
    named = _placed(name, {k: v for k, v in kwargs.items() if k != "requires_grad"})
    try:
        made = answer_of_mode(shown, again, args, named)
    except Declined:
        made = plain(*args, **named)
    return made.requires_grad_() if wanted else made


def _placed(name: str, named: dict[str, Any]) -> dict[str, Any]:
    """The arguments by name as they are shown: with the device."""
    if named.get("out") is not None:
        return named
    default = {"pin_memory": False}
    if not name.endswith("_like"):
        default = {"device": names_of("torch")["get_default_device"](), **default}
    order = ("dtype", "layout", "device", "pin_memory")
    given = {k: v for k, v in (default | named).items() if k not in order or v is not None}
    return {k: given[k] for k in order if k in given} | {k: v for k, v in given.items() if k not in order}


def _watched_method(name: str, plain: Callable[..., Any]) -> Callable[..., Any]:
    """A method that asks the innermost mode, if there is one."""
    shown = aten.packet(name).overload(_METHODS[name])

    @functools.wraps(plain)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not state.modes:
            return plain(self, *args, **kwargs)
        if name.startswith("new_") and args:
            args = (list(args),) if isinstance(args[0], int) else (list(args[0]), *args[1:])
        try:
            made = answer_of_mode(shown, call, (self, *args), kwargs)
        except Declined:
            made = plain(self, *args, **kwargs)
        return self if name.endswith("_") else made

    return call


_enabling = threading.Lock()
_enabled = False


def enable() -> None:
    """Has the functions look for modes."""
    global _enabled
    with _enabling:
        if _enabled:
            return
        _enabled = True
        show_backward()
        for name in _METHODS:
            replace(Tensor, name, partial(_watched_method, name))
        module = sys.modules["compat"]
        for name in (*_SIZED, *_OTHERS, *_COUNTED):
            names_of("torch")[name] = replace(module, name, partial(_watched, name))
