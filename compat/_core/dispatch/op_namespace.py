"""Libraries of operations of the user's own, as ``torch.ops`` has them; ``compat.library`` fills them."""

from __future__ import annotations

from typing import Any

from compat._core.dispatch.overloads import OpOverload, OpOverloadPacket, _OpNamespace
from compat._core.tensor.torch_function import handle_torch_function, has_torch_function, relevant_in


class Packet(OpOverloadPacket):
    """A library's operation: the overloads that were declared of it."""

    def overloads(self) -> list[str]:
        return list(self._overloads)

    def __getattr__(self, name: str) -> OpOverload:
        found = self.__dict__["_overloads"].get(name)
        if found is None:
            raise AttributeError(f"The underlying op of '{self}' has no overload name '{name}'")
        return found

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        relevant = list(relevant_in(args, kwargs))
        if has_torch_function(relevant):
            return handle_torch_function(self, relevant, *args, **kwargs)
        *others, last = self._overloads.values()
        for overload in others:
            try:
                overload._schema.bind(args, kwargs)
            except RuntimeError:
                continue
            return overload(*args, **kwargs)
        return last(*args, **kwargs)


class Namespace(_OpNamespace):
    """A library."""

    def __getattr__(self, name: str) -> OpOverloadPacket:
        found = self.__dict__["_packets"].get(name)
        if found is None:
            raise AttributeError(f"'_OpNamespace' '{self.name}' object has no attribute '{name}'")
        return found

    def __dir__(self) -> list[str]:
        return list(self._packets)


for _class, _shown in ((Packet, "OpOverloadPacket"), (Namespace, "_OpNamespace")):
    _class.__module__, _class.__qualname__ = "torch._ops", _shown
_namespaces: dict[str, Namespace] = {}


def namespace(name: str) -> Namespace:
    """The library of a name; the same one each time."""
    found = _namespaces.get(name)
    if found is None:
        found = _namespaces[name] = Namespace(name)
    return found
