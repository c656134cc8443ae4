"""TorchScript's types: from annotations, checks of values, conversion of values read from a file."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from compat._core.tensor.tensor import Tensor
from compat._core.types.device import device

__all__ = ["Kind", "kind_of"]

#: Python's types for TorchScript's names; a bool is not an int, and an int is not a float.
_PLAIN: dict[str, tuple[type, ...]] = {
    "int": (int,), "float": (float,), "bool": (bool,), "complex": (complex,), "str": (str,), "NoneType": (type(None),),
    "None": (type(None),), "number": (int, float, complex), "Scalar": (int, float, complex), "list": (list,),
    "tuple": (tuple,), "Device": (device,),
}  # fmt: skip


class Kind:
    """A TorchScript type.

    Args:
        name: the name, ``List`` for ``List[int]``.
        parts: the types in the brackets.
        own: the class, for a class of the file.
    """

    def __init__(self, name: str, parts: tuple[Kind, ...] = (), own: Any = None):
        self.name, self.parts, self.own = name, parts, own

    def holds(self, value: Any) -> bool:
        """Whether a value is of the type."""
        name, parts = self.name, self.parts
        if self.own is not None:
            return isinstance(value, self.own)
        if name in ("Any", "t"):
            return True
        if name == "Tensor":
            return isinstance(value, Tensor)
        if name in _PLAIN:
            return type(value) in _PLAIN[name] or (name == "tuple" and isinstance(value, tuple))
        if name == "Optional":
            return value is None or parts[0].holds(value)
        if name == "Union":
            return any(p.holds(value) for p in parts)
        if name in ("List", "Dict"):
            if not isinstance(value, dict if name == "Dict" else list):
                return False
            held = list(value.items()) if isinstance(value, dict) else [(v,) for v in value]
            return all(p.holds(v) for values in held for p, v in zip(parts, values))
        if name == "Tuple":
            return isinstance(value, tuple) and len(value) == len(parts) and all(map(Kind.holds, parts, value))
        return False

    def restored(self, value: Any) -> Any:
        """A value read from a file, with plain tuples converted to named tuples."""
        if isinstance(value, tuple) and self.name != "Optional":
            if self.own is not None and issubclass(self.own, tuple):
                return self.own(*value)
            return tuple(p.restored(v) for p, v in zip(self.parts, value)) if self.name == "Tuple" else value
        if self.name == "Optional":
            return self.parts[0].restored(value)
        if self.name == "List" and isinstance(value, list):
            value[:] = [self.parts[0].restored(v) for v in value]
        if self.name == "Dict" and isinstance(value, dict):
            for key, held in value.items():
                value[key] = self.parts[1].restored(held)
        return value


def kind_of(tree: ast.AST, own: Callable[[str], Any]) -> Kind:
    """The type of an annotation.

    Args:
        own: returns the file's class of a name, or None.
    """
    if isinstance(tree, ast.Subscript):
        inside = tree.slice
        parts = inside.elts if isinstance(inside, ast.Tuple) else [inside]
        return Kind(ast.unparse(tree.value), tuple(kind_of(p, own) for p in parts))
    name = ast.unparse(tree)
    return Kind(name, own=own(name) if name.startswith("__torch__.") else None)
