"""Overrides of sizes, strides, device or layout by ``__torch_dispatch__``.

A wrapper made with ``dispatch_sizes_strides_policy``, ``dispatch_device`` or ``dispatch_layout`` intercepts
``aten.sym_size.default`` and similar overloads, and returns a value, or None for the wrapper's own. Tensors of other
types pay nothing for it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from compat._core.dispatch.overloads import OpOverload, OpOverloadPacket, aten, namespace, showing
from compat._core.dispatch.overrides import not_implemented, state
from compat._core.tensor.tensor import Tensor
from compat._core.tensor.torch_function import Overridable, OverridableProperty
from compat._core.types.memory_format import contiguous_format
from compat._core.types.size import Size

#: The methods and properties of each policy, with their intercepted overloads.
_STRIDES = {"stride": "sym_stride", "is_contiguous": "is_contiguous"}
_SIZES = {
    **_STRIDES, "size": "sym_size", "shape": "sym_size", "dim": "dim", "ndim": "dim", "numel": "sym_numel",
    "storage_offset": "sym_storage_offset",
}  # fmt: skip
_POLICIES: dict[str | None, dict[str, str]] = {None: {}, "strides": _STRIDES, "sizes": _SIZES}
_PROPERTIES = frozenset(["shape", "ndim", "device", "layout"])
prim = namespace("prim")
for _name in ("device", "layout"):
    prim._packets[_name] = OpOverloadPacket("prim", _name)


def ask_for(
    t: Any, dispatch_sizes_strides_policy: str | None, dispatch_device: bool = False, dispatch_layout: bool = False
) -> None:
    """Makes a tensor's type override its sizes.

    Raises:
        ValueError: for an unknown policy.
    """
    policy = dispatch_sizes_strides_policy
    if policy not in _POLICIES:
        raise ValueError(f"Unknown sizes_strides_policy: {policy}; expected 'strides' or 'sizes'")
    asked = {name: aten.packet(shown) for name, shown in _POLICIES[policy].items()}
    asked |= {
        name: prim._packets[name] for name, yes in (("device", dispatch_device), ("layout", dispatch_layout)) if yes
    }
    if not asked:
        return
    t._asked = frozenset(asked)
    for name, packet in asked.items():
        _have_ask(name, packet)


@functools.cache
def _have_ask(name: str, packet: OpOverloadPacket) -> None:
    """Makes a method or a property of ``Tensor`` overridable by the types of wrappers that requested it."""
    getattr(Tensor, name)  # imports its module
    found: Any = vars(Tensor)[name]
    if isinstance(found, Overridable):
        found._function = _asking(name, packet, found._function)
    elif name not in _PROPERTIES:
        setattr(Tensor, name, _asking(name, packet, found))
    elif isinstance(found, OverridableProperty):
        found.read = _asking(name, packet, found.read)
    else:
        setattr(Tensor, name, property(_asking(name, packet, found.fget), found.fset, found.fdel, found.__doc__))


def _asking(name: str, packet: OpOverloadPacket, plain: Any) -> Any:
    """A method or a property's getter that calls the override of the tensor's type."""
    overload = packet.overload("default")

    @functools.wraps(plain)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if type(self) is Tensor or name not in getattr(self, "_asked", ()) or state.below:
            return plain(self, *args, **kwargs)
        if name == "is_contiguous" and (args or kwargs):
            order = args[0] if args else kwargs.get("memory_format", contiguous_format)
            found = _answer(self, packet.overload("memory_format"), plain, order)
        else:
            found = _answer(self, overload, plain)
        if found is None:
            return plain(self, *args, **kwargs)
        found = Size(found) if name in ("size", "shape") else tuple(found) if name == "stride" else found
        dim = args[0] if args else kwargs.get("dim")
        return found if dim is None or name not in ("size", "stride") else found[dim]

    return call


def _answer(t: Any, overload: OpOverload, plain: Callable[..., Any], *more: Any) -> Any:
    """The result of the type's override; None for the wrapper's own value.

    Raises:
        TypeError: if the override returns ``NotImplemented``.
    """
    kind = type(t)
    with showing(overload, plain):
        found = kind.__torch_dispatch__(overload, (kind,), (t, *more), {})
    if found is NotImplemented:
        raise not_implemented(f"torch.ops.{overload.overloadpacket}", [kind])
    return found


__all__ = ["ask_for"]
