"""Container types of pytrees: how to flatten and unflatten each, and the keys of its parts."""

from __future__ import annotations

import importlib
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple


class NodeDef(NamedTuple):
    """How to flatten and unflatten a container type."""

    type: Any
    flatten_fn: Callable[[Any], tuple[list, Any]]
    unflatten_fn: Callable[[Iterable, Any], Any]
    #: Like ``flatten_fn``, with the key of each child; None for a container without keys.
    flatten_with_keys_fn: Callable[[Any], tuple[list, Any]] | None = None


NodeDef.__module__ = "compat.utils._pytree"


SUPPORTED_NODES: dict[Any, NodeDef] = {}


class SerializedDef(NamedTuple):
    """The representation of a container type in a serialized structure."""

    name: str | None
    #: From the context to a JSON value, and back; None if the context is one.
    to_dumpable_context: Callable[[Any], Any] | None
    from_dumpable_context: Callable[[Any], Any] | None


SERIALIZED: dict[Any, SerializedDef] = {}


def register_pytree_node(
    cls: Any,
    flatten_fn: Callable[[Any], tuple[list, Any]],
    unflatten_fn: Callable[[Iterable, Any], Any],
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: Callable[[Any], Any] | None = None,
    from_dumpable_context: Callable[[Any], Any] | None = None,
    flatten_with_keys_fn: Callable[[Any], tuple[list, Any]] | None = None,
) -> None:
    """Makes instances of ``cls`` containers.

    Args:
        flatten_fn: from one to its parts and a context, which compares equal for containers of the same structure.
        unflatten_fn: from parts and a context to one.
        serialized_type_name: the name of ``cls`` in a structure that ``treespec_dumps`` writes.
        to_dumpable_context: from a context to an object that JSON can represent, if it cannot represent the context.
        from_dumpable_context: the inverse.
        flatten_with_keys_fn: like ``flatten_fn``, each part with its key, for functions that need paths.

    Raises:
        ValueError: if ``cls`` is one already, or if one of the functions for contexts is given without the other.
    """
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    if (to_dumpable_context is None) != (from_dumpable_context is None):
        raise ValueError(f"Both to_dumpable_context and from_dumpable_context for {cls} must be None or registered.")
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)
    SERIALIZED[cls] = SerializedDef(serialized_type_name, to_dumpable_context, from_dumpable_context)


# ---------------------------------------------------------------- key paths


@dataclass(frozen=True)
class SequenceKey:
    """The part of a sequence at an index."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Any) -> Any:
        """The part itself."""
        return sequence[self.idx]


SequenceKey.__module__ = "compat.utils._pytree"


@dataclass(frozen=True)
class MappingKey:
    """The part of a dictionary under a key."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Any) -> Any:
        """The part itself."""
        return mapping[self.key]


MappingKey.__module__ = "compat.utils._pytree"


@dataclass(frozen=True)
class GetAttrKey:
    """The part of an object that is an attribute."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: Any) -> Any:
        """The part itself."""
        return getattr(obj, self.name)


GetAttrKey.__module__ = "compat.utils._pytree"


def _numbered(flatten: Callable[[Any], tuple[list, Any]]) -> Callable[[Any], tuple[list, Any]]:
    def flatten_with_keys(d: Any) -> tuple[list, Any]:
        parts, context = flatten(d)
        return [(SequenceKey(i), part) for i, part in enumerate(parts)], context

    return flatten_with_keys


def _keyed(flatten: Callable[[Any], tuple[list, Any]]) -> Callable[[Any], tuple[list, Any]]:
    def flatten_with_keys(d: Any) -> tuple[list, Any]:
        parts, context = flatten(d)
        return list(zip(map(MappingKey, d), parts)), context

    return flatten_with_keys


# ---------------------------------------------------------------- Python's containers


def _tuple_flatten(d: tuple) -> tuple[list, Any]:
    return list(d), None


def _tuple_unflatten(values: Iterable, context: Any) -> tuple:
    return tuple(values)


def _list_flatten(d: list) -> tuple[list, Any]:
    return d, None


def _list_unflatten(values: Iterable, context: Any) -> list:
    return list(values)


def _dict_flatten(d: dict) -> tuple[list, Any]:
    return list(d.values()), list(d)


def _dict_unflatten(values: Iterable, context: Any) -> dict:
    return dict(zip(context, values))


def _namedtuple_flatten(d: Any) -> tuple[list, Any]:
    return list(d), type(d)


def _namedtuple_flatten_with_keys(d: Any) -> tuple[list, Any]:
    return [(GetAttrKey(name), part) for name, part in zip(d._fields, d)], type(d)


def _namedtuple_unflatten(values: Iterable, context: Any) -> Any:
    return context(*values)


def _ordereddict_unflatten(values: Iterable, context: Any) -> OrderedDict:
    return OrderedDict(zip(context, values))


def _defaultdict_flatten(d: defaultdict) -> tuple[list, Any]:
    return list(d.values()), [d.default_factory, list(d)]


def _defaultdict_unflatten(values: Iterable, context: Any) -> defaultdict:
    return defaultdict(context[0], zip(context[1], values))


def _deque_flatten(d: deque) -> tuple[list, Any]:
    return list(d), d.maxlen


def _deque_unflatten(values: Iterable, context: Any) -> deque:
    return deque(values, maxlen=context)


def class_named(name: str) -> Any:
    """The container type with a name in serialized structures.

    Raises:
        NotImplementedError: if there is none.
    """
    for cls, known in SERIALIZED.items():
        if known.name == name:
            return cls
    raise NotImplementedError(f"Deserializing {name} in pytree is not registered.")


def _namedtuple_to_json(cls: Any) -> str:
    known = SERIALIZED.get(cls)
    if known is None or known.name is None:
        raise NotImplementedError(
            f"Can't serialize TreeSpec of namedtuple class {cls} because it has no serialized_type_name. Please "
            "register it using `_register_namedtuple`."
        )
    return known.name


def _namedtuple_from_json(name: str) -> Any:
    return class_named(name)


def _defaultdict_to_json(context: Any) -> dict[str, Any]:
    factory, keys = context
    return {
        "default_factory_module": factory.__module__,
        "default_factory_name": factory.__qualname__,
        "dict_context": keys,
    }


def _defaultdict_from_json(written: dict[str, Any]) -> list[Any]:
    module = importlib.import_module(written["default_factory_module"])
    return [getattr(module, written["default_factory_name"]), written["dict_context"]]


_ordereddict_flatten = _dict_flatten
_tuple_flatten_with_keys = _numbered(_tuple_flatten)
_list_flatten_with_keys = _numbered(_list_flatten)
_dict_flatten_with_keys = _keyed(_dict_flatten)
_ordereddict_flatten_with_keys = _keyed(_ordereddict_flatten)
_defaultdict_flatten_with_keys = _keyed(_defaultdict_flatten)
_deque_flatten_with_keys = _numbered(_deque_flatten)

for _kind, _flatten, _unflatten, _with_keys in (
    (tuple, _tuple_flatten, _tuple_unflatten, _tuple_flatten_with_keys),
    (list, _list_flatten, _list_unflatten, _list_flatten_with_keys),
    (dict, _dict_flatten, _dict_unflatten, _dict_flatten_with_keys),
    (OrderedDict, _ordereddict_flatten, _ordereddict_unflatten, _ordereddict_flatten_with_keys),
    (deque, _deque_flatten, _deque_unflatten, _deque_flatten_with_keys),
):
    register_pytree_node(
        _kind, _flatten, _unflatten, serialized_type_name=f"{_kind.__module__}.{_kind.__name__}",
        flatten_with_keys_fn=_with_keys,
    )  # fmt: skip
register_pytree_node(
    defaultdict, _defaultdict_flatten, _defaultdict_unflatten, serialized_type_name="collections.defaultdict",
    to_dumpable_context=_defaultdict_to_json, from_dumpable_context=_defaultdict_from_json,
    flatten_with_keys_fn=_defaultdict_flatten_with_keys,
)  # fmt: skip
register_pytree_node(
    namedtuple, _namedtuple_flatten, _namedtuple_unflatten, serialized_type_name="collections.namedtuple",
    to_dumpable_context=_namedtuple_to_json, from_dumpable_context=_namedtuple_from_json,
    flatten_with_keys_fn=_namedtuple_flatten_with_keys,
)  # fmt: skip


def register_namedtuple(cls: Any, *, serialized_type_name: str) -> None:
    """Names a class of named tuples in the structures that ``treespec_dumps`` writes."""
    SERIALIZED[cls] = SerializedDef(serialized_type_name, None, None)
