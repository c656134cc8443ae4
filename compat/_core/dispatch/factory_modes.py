"""Functions that make tensors of nothing or fill them, and are no declared operations, as modes are shown them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compat._core.dispatch.overloads import aten
from compat._core.dispatch.overrides import Declined, answer_of_mode
from compat._core.tensor.dispatcher import Call
from compat._core.tensor.registry import names_of

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
_KNOWN = frozenset((*_SIZED, *_OTHERS, *_COUNTED))
#: Methods, by how they are shown: those that fill a tensor, make another one, and look at values.
_METHODS = {
    "uniform_": "default", "normal_": "default", "random_": "default", "exponential_": "default",
    "bernoulli_": "float", "cauchy_": "default", "geometric_": "default", "log_normal_": "default",
    "new_zeros": "default", "new_ones": "default", "new_empty": "default", "new_full": "default", "nonzero": "default",
}  # fmt: skip


def shown(call: Call, below: Callable[[], Any]) -> Any:
    """What the innermost mode makes of a call of a function that is no declared operator."""
    name = call.operator.name
    if call.operator.address.startswith("Tensor."):
        return _method(call, below) if name in _METHODS else below()
    return _function(call, below) if name in _KNOWN else below()


def _function(call: Call, below: Callable[[], Any]) -> Any:
    name, args, kwargs = call.operator.name, call.args, call.named or {}
    if name in _SIZED and args:
        args = (list(args if isinstance(args[0], int) else args[0]),)
    counted = _COUNTED.get(name, ())
    overload = (
        counted[min(len(args), len(counted)) - 1] if counted and args else (_SIZED | _OTHERS).get(name, "default")
    )
    shown = aten.packet(name).overload("out" if kwargs.get("out") is not None else overload)
    named = _placed(name, {k: v for k, v in kwargs.items() if k != "requires_grad"})
    try:
        made = answer_of_mode(shown, call.function, args, named)
    except Declined:
        return below()
    return made.requires_grad_() if kwargs.get("requires_grad", False) else made


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


def _method(call: Call, below: Callable[[], Any]) -> Any:
    name, (self, *args) = call.operator.name, call.args
    if name.startswith("new_") and args:
        args = [list(args)] if isinstance(args[0], int) else [list(args[0]), *args[1:]]
    overload = aten.packet(name).overload(_METHODS[name])
    try:
        made = answer_of_mode(overload, call.function, (self, *args), call.named or {})
    except Declined:
        made = below()
    return self if call.inplace else made
