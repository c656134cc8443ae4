"""The layer of the dispatcher that casts: what ``torch.autocast`` is.

On a CPU or an accelerator, products, convolutions and attention are computed in bfloat16 or float16, and what needs
precision, such as losses, in float32 (``compat._core.schema.autocast_rules``); everything else takes its arguments as
they come, and does not even ask.

What is on in a thread is ``mode.autocast``. It is part of the key of the operators that have a rule, so that these find
no plan while it is set and go through the layers; functions with a rule that are made of operators ask for it. Within
a call that is cast autocast is off, as in PyTorch.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

from compat._core.dispatch.dispatch_keys import layers
from compat._core.dispatch.dispatcher import Call, Function, add_layer, dispatch
from compat._core.schema.autocast_rules import RULES, rule_of
from compat._core.tensor.tensor import Tensor
from compat._core.transforms.grad_mode import mode
from compat._core.types.dtype import bfloat16, float16, float32, float64, promote_types
from compat._core.types.dtype import dtype as Dtype


class _State(threading.local):
    """What a thread is within, apart from what is on.

    Attributes:
        dtypes: what is cast to, by type of device.
        caching: whether casts of parameters are kept until the outermost block ends.
        depth: how many blocks it is within.
        cache: those casts, with what they were made of.
    """

    def __init__(self) -> None:
        self.dtypes: dict[str, Dtype] = {"cpu": bfloat16}
        self.caching = True
        self.depth = 0
        self.cache: dict[tuple[int, Dtype], tuple[Tensor, Any]] = {}


state = _State()


def dtype_on(device_type: str) -> Dtype:
    """The dtype that is cast to on a type of device."""
    return state.dtypes.get(device_type, float16)


def is_enabled(device_type: str) -> bool:
    """Whether operators are cast on a type of device."""
    return mode.autocast is not None and any(kind == device_type for kind, _ in mode.autocast)


def enable(device_type: str, enabled: bool) -> None:
    """Has operators cast on a type of device, to its present dtype, or not."""
    on = dict(mode.autocast or ())
    on.pop(device_type, None)
    if enabled:
        on[device_type] = dtype_on(device_type)
        add_layer("autocast", _takes, _cast)
    mode.autocast = tuple(sorted(on.items(), key=lambda item: item[0])) or None


layers["AutocastCPU"] = lambda: is_enabled("cpu")

# ---------------------------------------------------------------- the layer


def _rule(call: Call) -> str | None:
    operator = call.operator
    return rule_of(operator.address) if isinstance(operator, Function) else RULES.get(operator.name)


def _takes(call: Call) -> bool:
    """Whether a call has a rule and tensors where autocast is on. In-place variants have none."""
    if mode.autocast is None or call.inplace or _rule(call) is None:
        return False
    kinds = [kind for kind, _ in mode.autocast]
    return any(t.device.type in kinds for t in _tensors([call.args, *(call.named or {}).values()]))


def _cast(call: Call, below: Callable[[], Any]) -> Any:
    """A call with its tensors cast, as a call of its own; one with ``out`` takes them as they come."""
    before = mode.autocast
    assert before is not None
    args, named = call.args, call.named or {}
    mode.autocast = None
    try:
        if call.out is None and named.get("out") is None:
            cast = _casting(_rule(call), dict(before), args)
            args = [each_tensor(a, cast) for a in args]
            named = {name: each_tensor(a, cast) for name, a in named.items()}
        return dispatch(call._replace(args=args, named=named))
    finally:
        mode.autocast = before


def _casting(rule: str | None, on: dict[str, Dtype], args: Any) -> Callable[[Tensor], Any]:
    """What a rule makes of a tensor."""
    if rule == "widest":
        return _widest(args)
    return functools.partial(_lower if rule == "lower" else _float32, on)


def _lower(on: dict[str, Dtype], t: Tensor) -> Any:
    """A tensor in the lower precision; of a parameter, the same one until the outermost block ends."""
    wanted = on.get(t.device.type)
    if wanted is None or not t.is_floating_point() or t.dtype in (wanted, float64):
        return t
    kept = state.caching and t.requires_grad and t.is_leaf and t._base is None
    if not kept:
        return t.to(wanted)
    key = (id(t), wanted)
    if key not in state.cache:
        state.cache[key] = (t, t.to(wanted))
    return state.cache[key][1]


def _float32(on: dict[str, Dtype], t: Tensor) -> Any:
    return t.to(float32) if t.dtype in (bfloat16, float16) and t.device.type in on else t


def _widest(args: Any) -> Callable[[Tensor], Any]:
    """What brings floating-point tensors to their common dtype."""
    floating = [t.dtype for t in _tensors(args) if t.is_floating_point()]
    if len(set(floating)) < 2:
        return lambda t: t
    common = functools.reduce(promote_types, floating)
    return lambda t: t.to(common) if t.is_floating_point() else t


def each_tensor(value: Any, cast: Callable[[Tensor], Any]) -> Any:
    """A value with its tensors cast, those in lists and tuples, too."""
    if isinstance(value, Tensor):
        return cast(value)
    if type(value) in (list, tuple):
        return type(value)([each_tensor(v, cast) for v in value])
    return value


def _tensors(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    return [t for v in value for t in _tensors(v)] if type(value) in (list, tuple) else []


__all__ = ["dtype_on", "each_tensor", "enable", "is_enabled", "state"]
