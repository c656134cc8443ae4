"""Tensors whose type is asked what sizes, strides, device or layout they have.

A type whose ``__torch_dispatch__`` says so of a tensor when it makes it (``dispatch_sizes_strides_policy``,
``dispatch_device``, ``dispatch_layout``) is shown ``aten.sym_size.default`` and its kin, and answers with a value, or
with None for what is known anyway. The tensors of other types pay nothing for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compat.formats import contiguous_format
from compat.ops.asking import nobody_knows, state
from compat.ops.libraries import namespace
from compat.ops.overloads import OpOverload, OpOverloadPacket, aten, showing
from compat.size import Size
from compat.tensor import Tensor

#: What is asked for each policy: the methods and properties, with how they are shown.
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
    """Has a tensor's type be asked.

    Raises:
        ValueError: for a policy that is none.
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
    kind: Any = type(t)
    for name, packet in asked.items():
        if name not in vars(kind):
            setattr(kind, name, _asking(name, packet, getattr(kind, name)))


def _asking(name: str, packet: OpOverloadPacket, plain: Any) -> Any:
    """A method or a property that asks the tensor's type."""
    overload = packet.overload("default")
    if name in _PROPERTIES:
        read: Callable[[Any], Any] = plain.__get__ if hasattr(plain, "__get__") else lambda t: plain
        return property(lambda t: _known(name, _answer(t, name, overload, read), read, t))

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if name == "is_contiguous" and (args or kwargs):
            order = args[0] if args else kwargs.get("memory_format", contiguous_format)
            found = _answer(self, name, packet.overload("memory_format"), plain, order)
        else:
            found = _answer(self, name, overload, plain)
        found = _known(name, found, plain, self) if found is not None else plain(self)
        dim = args[0] if args else kwargs.get("dim")
        return found if dim is None or name not in ("size", "stride") else found[dim]

    call.__name__, call.__doc__ = name, plain.__doc__
    return call


def _answer(t: Any, name: str, overload: OpOverload, plain: Callable[..., Any], *more: Any) -> Any:
    """What the type says; None if it leaves it to what is known, or is not asked.

    Raises:
        TypeError: if it does not know.
    """
    if name not in getattr(t, "_asked", ()) or state.below:
        return None
    kind = type(t)
    with showing(overload, plain):
        found = kind.__torch_dispatch__(overload, (kind,), (t, *more), {})
    if found is NotImplemented:
        raise nobody_knows(f"torch.ops.{overload.overloadpacket}", [f"tensor subclass {kind}"])
    return found


def _known(name: str, found: Any, plain: Callable[..., Any], t: Tensor) -> Any:
    """An answer as the method or property gives it."""
    if found is None:
        return plain(t)
    return Size(found) if name in ("size", "shape") else tuple(found) if name == "stride" else found


__all__ = ["ask_for"]
