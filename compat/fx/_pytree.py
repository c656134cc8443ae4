"""Flattening of arguments by the structure that a graph was traced with."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from collections.abc import Callable
from typing import Any

from compat._core.pytree.trees import PyTree, TreeSpec, tree_flatten

__all__ = ["SUPPORTED_NODES", "register_pytree_flatten_spec", "tree_flatten_spec"]

FlattenFnSpec = Callable[[PyTree, TreeSpec], list[Any]]
FlattenFnExactMatchSpec = Callable[[PyTree, TreeSpec], bool]

#: By container type, a function to the children of a container, given a structure.
SUPPORTED_NODES: dict[Any, FlattenFnSpec] = {}
SUPPORTED_NODES_EXACT_MATCH: dict[Any, FlattenFnExactMatchSpec | None] = {}


def register_pytree_flatten_spec(
    cls: Any, flatten_fn_spec: FlattenFnSpec, flatten_fn_exact_match_spec: FlattenFnExactMatchSpec | None = None
) -> None:
    """Registers how the parts of a container are found by a structure.

    Args:
        cls: the container type.
        flatten_fn_spec: from a container and a structure to the parts that the structure has.
        flatten_fn_exact_match_spec: whether a container has these parts and no others.
    """
    SUPPORTED_NODES[cls] = flatten_fn_spec
    SUPPORTED_NODES_EXACT_MATCH[cls] = flatten_fn_exact_match_spec


def tree_flatten_spec(pytree: PyTree, spec: TreeSpec) -> list[Any]:
    """The leaves of a tree in the order of a structure, which may have fewer parts than the tree.

    Raises:
        RuntimeError: for a container of a type that is not registered here and of another structure.

    Example:
        >>> from compat.utils._pytree import tree_structure
        >>> tree_flatten_spec({"b": 1, "a": 2, "c": 3}, tree_structure({"a": 0, "b": 0}))
        [2, 1]
    """
    if spec.is_leaf():
        return [pytree]
    parts_of = SUPPORTED_NODES.get(spec.type)
    if parts_of is not None:
        parts = zip(parts_of(pytree, spec), spec.children())
        return [leaf for part, child in parts for leaf in tree_flatten_spec(part, child)]
    leaves, real = tree_flatten(pytree)
    if spec != real:
        raise RuntimeError(f"Real spec {real} of object {pytree} is different from expected spec {spec}.")
    return leaves


def _mapping_parts(d: Any, spec: TreeSpec) -> list[Any]:
    return [d[key] for key in spec.context]


def _sequence_parts(d: Any, spec: TreeSpec) -> list[Any]:
    return [d[i] for i in range(spec.num_children)]


def _same_length(d: Any, spec: TreeSpec) -> bool:
    return len(d) == spec.num_children


for _mapping in (dict, OrderedDict):
    register_pytree_flatten_spec(_mapping, _mapping_parts, _same_length)
for _sequence in (list, tuple, namedtuple):
    register_pytree_flatten_spec(_sequence, _sequence_parts, _same_length)
