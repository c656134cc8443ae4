"""The layer of the dispatcher that implements ``torch.autocast``.

Products, convolutions and attention are computed in bfloat16 or float16, and operators that need precision, such as
losses, in float32 (``compat._core.schema.autocast_rules``); all others take their arguments unchanged.

``mode.autocast`` is the state of a thread. It is part of the key of operators with a rule, so that these find no plan
while it is set and go through the layers; composites with a rule check it. Inside a call that is cast autocast is off,
as in PyTorch.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

from compat._core.dispatch.dispatcher import Call, Function, add_layer, dispatch
from compat._core.pytree.trees import tree_map
from compat._core.schema.autocast_rules import RULES, rule_of
from compat._core.tensor.tensor import Tensor
from compat._core.tensor.tracing import tensors_in
from compat._core.transforms.grad_mode import mode
from compat._core.types.dtype import bfloat16, float16, float32, float64
from compat._core.types.dtype import dtype as Dtype
from compat._core.types.type_promotion import promote_types
from compat._dispatch_keys import layers


class _State(threading.local):
    """The autocast settings of a thread, besides ``mode.autocast``.

    Attributes:
        dtypes: the lower-precision dtype by device type.
        caching: whether casts of parameters are cached until the outermost block ends.
        depth: the number of nested blocks.
        cache: cached casts, with the parameters.
    """

    def __init__(self) -> None:
        self.dtypes: dict[str, Dtype] = {"cpu": bfloat16}
        self.caching = True
        self.depth = 0
        self.cache: dict[tuple[int, Dtype], tuple[Tensor, Any]] = {}


state = _State()


def dtype_on(device_type: str) -> Dtype:
    """The lower-precision dtype of a device type."""
    return state.dtypes.get(device_type, float16)


def is_enabled(device_type: str) -> bool:
    """Whether autocast is enabled for a device type."""
    return mode.autocast is not None and any(kind == device_type for kind, _ in mode.autocast)


def enable(device_type: str, enabled: bool) -> None:
    """Enables or disables autocast for a device type, with its present dtype."""
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
    """Whether a call has a rule and tensors on a device with autocast; in-place variants have no rule."""
    if mode.autocast is None or call.inplace or _rule(call) is None:
        return False
    kinds = [kind for kind, _ in mode.autocast]
    return any(t.device.type in kinds for t in tensors_in([call.args, *(call.named or {}).values()]))


def _cast(call: Call, below: Callable[[], Any]) -> Any:
    """Dispatches a call again with its tensors cast; a call with ``out`` takes them unchanged."""
    before = mode.autocast
    assert before is not None
    args, named = call.args, call.named or {}
    mode.autocast = None
    try:
        if call.out is None and named.get("out") is None:
            cast = _casting(_rule(call), dict(before), args)
            args, named = each_tensor(list(args), cast), each_tensor(named, cast)
        return dispatch(call._replace(args=args, named=named))
    finally:
        mode.autocast = before


def _casting(rule: str | None, on: dict[str, Dtype], args: Any) -> Callable[[Tensor], Any]:
    """The cast of a rule."""
    if rule == "widest":
        return _widest(args)
    return functools.partial(_lower if rule == "lower" else _float32, on)


def _lower(on: dict[str, Dtype], t: Tensor) -> Any:
    """A tensor in lower precision; for a parameter a cached one."""
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
    """The cast of floating-point tensors to their common dtype."""
    floating = [t.dtype for t in tensors_in(args) if t.is_floating_point()]
    if len(set(floating)) < 2:
        return lambda t: t
    common = functools.reduce(promote_types, floating)
    return lambda t: t.to(common) if t.is_floating_point() else t


def each_tensor(value: Any, cast: Callable[[Tensor], Any]) -> Any:
    """A value with its tensors cast, including those in containers."""
    return tree_map(lambda x: cast(x) if isinstance(x, Tensor) else x, value)


__all__ = ["dtype_on", "each_tensor", "enable", "is_enabled", "state"]
