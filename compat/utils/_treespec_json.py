"""Structures of trees as text: JSON in the format of PyTorch's ``treespec_dumps``, which reads it, too."""

from __future__ import annotations

import functools
import importlib
import json
from enum import Enum
from typing import Any

from compat._core.pytree.registry import SERIALIZED, class_named
from compat._core.pytree.trees import LeafSpec, TreeSpec

#: The version of the format.
_PROTOCOL = 1


class _Encoder(json.JSONEncoder):
    """Writes members of enumerations by their class and name."""

    def default(self, o: Any) -> Any:
        if isinstance(o, Enum):
            return {"__enum__": True, "fqn": f"{type(o).__module__}:{type(o).__qualname__}", "name": o.name}
        return super().default(o)


def _decoded(o: dict[str, Any]) -> Any:
    if "__enum__" not in o:
        return o
    module, _, path = o["fqn"].partition(":")
    found = functools.reduce(getattr, path.split("."), importlib.import_module(module))
    return found[o["name"]]  # type: ignore[index]


def treespec_dumps(treespec: TreeSpec, protocol: int | None = None) -> str:
    """A structure as text.

    Args:
        protocol: the version of the format; 1 is the only one.

    Raises:
        TypeError: for an argument that is not a structure, or a context that JSON cannot represent.
        ValueError: for an unknown version.
        NotImplementedError: for a container type that is registered without a ``serialized_type_name``.

    Example:
        >>> from compat.utils._pytree import tree_structure
        >>> treespec_dumps(tree_structure([1, 2]))
        '[1, {"type": "builtins.list", "context": "null", "children_spec": [{"type": null, ...
    """
    if not isinstance(treespec, TreeSpec):
        raise TypeError(f"Expected `treespec` to be an instance of TreeSpec but got item of type {type(treespec)}.")
    _check_protocol(_PROTOCOL if protocol is None else protocol)
    return json.dumps((_PROTOCOL, _to_json(treespec)), cls=_Encoder)


def treespec_loads(serialized: str) -> TreeSpec:
    """The structure that ``treespec_dumps`` wrote.

    Raises:
        ValueError: for an unknown version of the format.
        NotImplementedError: if a container type is not registered here.

    Example:
        >>> from compat.utils._pytree import tree_structure
        >>> treespec_loads(treespec_dumps(tree_structure({"a": (1, 2)})))
        TreeSpec(dict, ['a'], [TreeSpec(tuple, None, [*,
          *])])
    """
    protocol, written = json.loads(serialized)
    _check_protocol(protocol)
    return _from_json(written)


def _check_protocol(protocol: int) -> None:
    if protocol != _PROTOCOL:
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: {[_PROTOCOL]}")


def _to_json(spec: TreeSpec) -> dict[str, Any]:
    if spec.is_leaf():
        return {"type": None, "context": None, "children_spec": []}
    known = SERIALIZED.get(spec.type)
    if known is None or known.name is None:
        raise NotImplementedError(
            f"No registered serialization name for {spec.type} found. Please update your _register_pytree_node call "
            "with a `serialized_type_name` kwarg."
        )
    context = (known.to_dumpable_context or _context_to_json)(spec.context)
    return {"type": known.name, "context": context, "children_spec": [_to_json(c) for c in spec.children()]}


def _context_to_json(context: Any) -> str:
    try:
        return json.dumps(context, cls=_Encoder)
    except TypeError as error:
        raise TypeError(
            "Unable to serialize context. Please make the context json dump-able, or register a custom serializer "
            "using _register_pytree_node."
        ) from error


def _from_json(written: dict[str, Any]) -> TreeSpec:
    if written["type"] is None:
        return LeafSpec()
    kind = class_named(written["type"])
    read = SERIALIZED[kind].from_dumpable_context or (lambda text: json.loads(text, object_hook=_decoded))
    return TreeSpec(kind, read(written["context"]), [_from_json(c) for c in written["children_spec"]])
