"""Interception by modes of functions that are not declared operators: factories, random fills, value-dependent ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from compat._core.dispatch.dispatcher import FACTORIES, FILLING, LIFTED, OF_VALUES, Call
from compat._core.dispatch.overloads import aten
from compat._core.dispatch.overrides import Declined, answer_of_mode, unwatched
from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor
from compat._core.transforms.grad_mode import mode


def _normal(args: Sequence[Any], kwargs: dict[str, Any]) -> str:
    """The overload of ``normal``, whose operands are tensors or numbers."""
    operands = (*args, *(kwargs[k] for k in ("mean", "std") if k in kwargs), 1.0)[:2]
    return "_".join("Tensor" if isinstance(a, Tensor) else "float" for a in operands)


def _repeat_interleave(args: Sequence[Any], kwargs: dict[str, Any]) -> str:
    """With a Python number of repetitions it is a composite, whose operators are intercepted."""
    repeats = args[1] if len(args) > 1 else kwargs.get("repeats", args[0])
    return ("self_Tensor" if len(args) + len(kwargs) > 1 else "Tensor") if isinstance(repeats, Tensor) else ""


def _batch_norm(args: Sequence[Any], kwargs: dict[str, Any]) -> str:
    """With a gradient, the differentiable operator below is intercepted instead."""
    wanted = mode.grad and any(isinstance(a, Tensor) and a.requires_grad for a in (*args, *kwargs.values()))
    return "" if wanted else "default"


def _counted(*names: str) -> Callable[[Sequence[Any], dict[str, Any]], str]:
    """A function to the overload by the number of positional arguments."""
    return lambda args, kwargs: names[min(len(args), len(names)) - 1] if args else names[0]


#: Functions to the overload, ``""`` to intercept the operators of which they are composed.
_OVERLOADS: dict[str, Callable[[Sequence[Any], dict[str, Any]], str]] = {
    **{name: lambda args, kwargs: "default" for name in (*FACTORIES, *FILLING, *OF_VALUES)},
    "empty": lambda args, kwargs: "memory_format",
    "arange": _counted("default", "start", "start_step"),
    "eye": _counted("default", "m"),
    "randint": _counted("default", "default", "low"),
    "randint_like": _counted("default", "default", "low_dtype"),
    "bernoulli_": lambda args, kwargs: "float",
    "nonzero": lambda args, kwargs: "" if kwargs.get("as_tuple") else "default",  # by the function without it
    "normal": _normal,
    "bernoulli": lambda args, kwargs: "p" if len(args) > 1 or "p" in kwargs else "default",
    "repeat_interleave": _repeat_interleave,
    "native_batch_norm": _batch_norm,
}


def shown(call: Call, below: Callable[[], Any]) -> Any:
    """Runs a call of a function that is not a declared operator by the innermost mode."""
    name, args, kwargs = call.operator.name, call.args, call.named or {}
    if name in LIFTED:
        return _lifted(below)
    overload = _OVERLOADS[name](args, kwargs) if name in _OVERLOADS else ""
    if not overload:
        return below()
    requires = kwargs.get("requires_grad", False)
    if name in FACTORIES:
        overload = overload if kwargs.get("out") is None else "out"
        args = _sized(name, args)
        kwargs = _placed(name, {k: v for k, v in kwargs.items() if k != "requires_grad"})
    try:
        made = answer_of_mode(aten.packet(name).overload(overload), call.function, args, kwargs)
    except Declined:
        return below()
    if call.inplace:
        return args[0]
    return made.requires_grad_() if requires and name in FACTORIES else made


def _lifted(below: Callable[[], Any]) -> Any:
    """A tensor made of data: made first, then shown to the mode."""
    with unwatched():
        made = below()
    needs = made.requires_grad and made.is_leaf
    plain = made.detach() if needs else made
    try:
        found = answer_of_mode(aten.packet("lift_fresh").overload("default"), lambda t: t, (plain,), {})
    except Declined:
        return made
    return made if found is plain else found.requires_grad_(needs)


#: Factories that take a size as separate integers, too.
_VARIADIC = frozenset(["zeros", "ones", "empty", "rand", "randn", "new_zeros", "new_ones", "new_empty"])


def _sized(name: str, args: Sequence[Any]) -> tuple[Any, ...]:
    """The arguments of a factory, with sizes as lists."""
    first = int(name.startswith("new_"))
    own, given = args[:first], args[first:]
    if name in _VARIADIC and given and isinstance(given[0], int):
        given = [given]
    return (*own, *[list(a) if isinstance(a, tuple) else a for a in given])


def _placed(name: str, named: dict[str, Any]) -> dict[str, Any]:
    """The keyword arguments of an intercepted factory: with the device, in PyTorch's order."""
    if named.get("out") is not None:
        return named
    default = {"pin_memory": False}
    if not name.endswith("_like") and not name.startswith("new_"):
        default = {"device": names_of("torch")["get_default_device"](), **default}
    order = ("dtype", "layout", "device", "pin_memory")
    given = default | {k: v for k, v in named.items() if k not in order or v is not None}
    return {k: given[k] for k in order if k in given} | {k: v for k, v in given.items() if k not in order}
