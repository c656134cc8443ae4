"""Interception by modes of functions that are not declared operators: factories, random fills, value-dependent ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from compat._core.dispatch.dispatcher import LIFTED, OF_VALUES, Call
from compat._core.dispatch.overloads import aten
from compat._core.dispatch.overrides import Declined, answer_of_mode, state
from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor
from compat._core.transforms.grad_mode import mode

#: Factories that take a size, and their overloads.
_SIZED = {"zeros": "default", "ones": "default", "empty": "memory_format", "rand": "default", "randn": "default"}
_OTHERS = {
    "full": "default", "empty_strided": "default", "scalar_tensor": "default", "linspace": "default",
    "logspace": "default", "randperm": "default", "zeros_like": "default", "ones_like": "default",
    "empty_like": "default", "full_like": "default", "rand_like": "default", "randn_like": "default",
    "tril_indices": "default", "triu_indices": "default",
}  # fmt: skip
#: Overloads by the number of positional arguments.
_COUNTED = {
    "arange": ("default", "start", "start_step"), "eye": ("default", "m"), "randint": ("default", "default", "low"),
}  # fmt: skip
_KNOWN = frozenset((*_SIZED, *_OTHERS, *_COUNTED))
#: Methods and their overloads: random fills, factories, and value-dependent ones.
_METHODS = {
    "uniform_": "default", "normal_": "default", "random_": "default", "exponential_": "default",
    "bernoulli_": "float", "cauchy_": "default", "geometric_": "default", "log_normal_": "default",
    "new_zeros": "default", "new_ones": "default", "new_empty": "default", "new_full": "default", "nonzero": "default",
}  # fmt: skip


def _normal(args: Sequence[Any], kwargs: dict[str, Any]) -> str:
    """The overload of ``normal``, whose operands are tensors or numbers."""
    operands = (*args, *(kwargs[k] for k in ("mean", "std") if k in kwargs), 1.0)[:2]
    return "_".join("Tensor" if isinstance(a, Tensor) else "float" for a in operands)


def _bernoulli(args: Sequence[Any], kwargs: dict[str, Any]) -> str:
    return "p" if len(args) > 1 or "p" in kwargs else "default"


def _repeat_interleave(args: Sequence[Any], kwargs: dict[str, Any]) -> str:
    """With a Python number of repetitions it is a composite, whose operators are intercepted."""
    repeats = args[1] if len(args) > 1 else kwargs.get("repeats", args[0])
    return ("self_Tensor" if len(args) + len(kwargs) > 1 else "Tensor") if isinstance(repeats, Tensor) else ""


def _batch_norm(args: Sequence[Any], kwargs: dict[str, Any]) -> str:
    """With a gradient, the differentiable operator below is intercepted instead."""
    wanted = mode.grad and any(isinstance(a, Tensor) and a.requires_grad for a in (*args, *kwargs.values()))
    return "" if wanted else "default"


#: Composites that draw random numbers or depend on values: functions to their overload, ``""`` to intercept the
#: operators #: of which they are composed.
_OF_VALUES: dict[str, Callable[[Sequence[Any], dict[str, Any]], str]] = {
    "normal": _normal, "bernoulli": _bernoulli, "repeat_interleave": _repeat_interleave,
    "native_batch_norm": _batch_norm,
    **{name: lambda args, kwargs: "default" for name in OF_VALUES},
}  # fmt: skip


def shown(call: Call, below: Callable[[], Any]) -> Any:
    """Runs a call of a function that is not a declared operator by the innermost mode."""
    name = call.operator.name
    if name in _OF_VALUES:
        return _of_values(call, below)
    if name in LIFTED:
        return _lifted(below)
    if call.operator.address.startswith("Tensor.") or name == "nonzero":
        return _method(call, below) if name in _METHODS else below()
    return _function(call, below) if name in _KNOWN else below()


def _lifted(below: Callable[[], Any]) -> Any:
    """A tensor made of data: made first, then shown to the mode."""
    modes, state.modes = state.modes, []
    try:
        made = below()
    finally:
        state.modes = modes
    needs = made.requires_grad and made.is_leaf
    plain = made.detach() if needs else made
    try:
        found = answer_of_mode(aten.packet("lift_fresh").overload("default"), lambda t: t, (plain,), {})
    except Declined:
        return made
    return made if found is plain else found.requires_grad_(needs)


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
    """The keyword arguments of an intercepted factory: with the device, in PyTorch's order."""
    if named.get("out") is not None:
        return named
    default = {"pin_memory": False}
    if not name.endswith("_like"):
        default = {"device": names_of("torch")["get_default_device"](), **default}
    order = ("dtype", "layout", "device", "pin_memory")
    given = default | {k: v for k, v in named.items() if k not in order or v is not None}
    return {k: given[k] for k in order if k in given} | {k: v for k, v in given.items() if k not in order}


def _of_values(call: Call, below: Callable[[], Any]) -> Any:
    kwargs = call.named or {}
    overload = _OF_VALUES[call.operator.name](call.args, kwargs)
    if not overload:
        return below()
    try:
        return answer_of_mode(aten.packet(call.operator.name).overload(overload), call.function, call.args, kwargs)
    except Declined:
        return below()


def _method(call: Call, below: Callable[[], Any]) -> Any:
    name, (self, *args) = call.operator.name, call.args
    if name == "nonzero" and (call.named or {}).get("as_tuple"):
        return below()  # by the function without it
    if name.startswith("new_") and args:
        args = [list(args)] if isinstance(args[0], int) else [list(args[0]), *args[1:]]
    overload = aten.packet(name).overload(_METHODS[name])
    try:
        made = answer_of_mode(overload, call.function, (self, *args), call.named or {})
    except Declined:
        made = below()
    return self if call.inplace else made
