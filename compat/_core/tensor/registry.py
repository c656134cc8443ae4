"""Public names: where each function of compat is to appear.

A module that defines an operation says under which names PyTorch has it, and ``compat.__init__`` and the modules of
that address collect them. Names of ``Tensor`` are attached to the class at once.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

from compat._core.tensor.tensor import Tensor

_public: dict[str, dict[str, Any]] = {}
#: Where each function of a module is public: the address and the name there.
_addresses: dict[Callable[..., Any], tuple[str, str]] = {}

#: Short addresses for declarations.
SHORT = {"F": "nn.functional", "C": "_C"}


def publish(value: Any, *names: str) -> Any:
    """Makes ``value`` public under dotted names, ``"torch.add"``, ``"Tensor.add"``, ``"F.relu"``, ``"linalg.inv"``;
    returns it.

    Raises:
        ValueError: if one of the names is already taken by something else.
    """
    for name in names:
        place, _, last = name.rpartition(".")
        place = SHORT.get(place, place)
        if place == "Tensor":
            setattr(Tensor, last, value)
        table = _public.setdefault(place, {})
        if table.get(last, value) is not value:
            raise ValueError(f"publish: {place}.{last} is already {table[last]!r}")
        table[last] = value
        if place != "Tensor" and isinstance(value, FunctionType):
            _addresses.setdefault(value, (place, last))
    return value


def republish(value: Any, name: str) -> None:
    """Makes a function public in a module in place of what is there."""
    place, _, last = name.rpartition(".")
    _public[place][last] = value
    _addresses.setdefault(value, (place, last))


def function(*names: str) -> Any:
    """Makes a function public: ``@function("torch.matmul", "Tensor.matmul")``."""
    return lambda f: publish(f, *names)


def address_of(value: Callable[..., Any]) -> tuple[str, str] | None:
    """Where a function is public first, ``("nn.functional", "relu")``; None if it is in no module."""
    return _addresses.get(value)


def places() -> list[str]:
    """The addresses at which something is public."""
    return list(_public)


def names_of(place: str) -> dict[str, Any]:
    """Everything published at an address such as ``"torch"`` or ``"nn.functional"``."""
    return _public.get(SHORT.get(place, place), {})


def lookups(place: str, scope: dict[str, Any]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of the module of an address: what is public there is found when it is asked for.

    Args:
        place: the address, as ``"linalg"``.
        scope: the module's names, in which what was found stays.
    """

    def find(name: str) -> Any:
        found = names_of(place).get(name)
        if found is None:
            raise AttributeError(f"module 'torch.{place}' has no attribute '{name}'")
        scope[name] = found
        return found

    return find, lambda: sorted({*scope, *names_of(place)})
