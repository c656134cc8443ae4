"""``torch.utils._pytree``: containers of tensors; ``compat._core.pytree.trees`` under PyTorch's name."""

from typing import Any, TypeAlias

from compat._core.pytree import registry as _nodes
from compat._core.pytree.registry import (
    SUPPORTED_NODES,
    GetAttrKey,
    MappingKey,
    NodeDef,
    SequenceKey,
    register_pytree_node,
)
from compat._core.pytree.trees import (
    LeafSpec,
    PyTree,
    TreeSpec,
    key_get,
    keystr,
    tree_all,
    tree_any,
    tree_flatten,
    tree_flatten_with_path,
    tree_is_leaf,
    tree_iter,
    tree_leaves,
    tree_leaves_with_path,
    tree_map,
    tree_map_,
    tree_map_only,
    tree_map_with_path,
    tree_structure,
    tree_unflatten,
    treespec_pprint,
)
from compat._core.pytree.trees import broadcast_to_and_flatten as _broadcast_to_and_flatten
from compat._core.pytree.trees import kind_of as _get_node_type

__all__ = [
    "SUPPORTED_NODES", "Context", "GetAttrKey", "KeyEntry", "KeyPath", "LeafSpec", "MappingKey", "NodeDef", "PyTree",
    "SequenceKey", "TreeSpec", "_broadcast_to_and_flatten", "_get_node_type", "is_namedtuple", "is_namedtuple_class",
    "is_namedtuple_instance", "is_structseq", "is_structseq_class", "is_structseq_instance", "key_get", "keystr",
    "register_pytree_node", "tree_all", "tree_any", "tree_flatten", "tree_flatten_with_path", "tree_is_leaf",
    "tree_iter", "tree_leaves", "tree_leaves_with_path", "tree_map", "tree_map_", "tree_map_only",
    "tree_map_with_path", "tree_structure", "tree_unflatten", "treespec_pprint",
]  # fmt: skip

Context: TypeAlias = Any
KeyEntry: TypeAlias = Any
KeyPath = tuple[KeyEntry, ...]
_is_leaf = tree_is_leaf
_register_pytree_node = register_pytree_node

# Programs register their own subclasses of Python's containers with these functions.
globals().update(
    {name: f for name, f in vars(_nodes).items() if name.endswith(("_flatten", "_flatten_with_keys", "_unflatten"))}
)


def is_structseq_class(cls: type) -> bool:
    """Whether a class is one of operations' named results, ``torch.return_types.max``."""
    return isinstance(cls, type) and issubclass(cls, tuple) and hasattr(cls, "n_fields")


def is_structseq_instance(obj: object) -> bool:
    """Whether something is the named results of an operation."""
    return is_structseq_class(type(obj))


def is_structseq(obj: object) -> bool:
    """Whether something is the named results of an operation, or their class."""
    return is_structseq_class(obj if isinstance(obj, type) else type(obj))


def is_namedtuple_class(cls: type) -> bool:
    """Whether a class is one that ``collections.namedtuple`` has made, or below one."""
    fields = getattr(cls, "_fields", None)
    names = isinstance(fields, tuple) and all(isinstance(name, str) for name in fields)
    return isinstance(cls, type) and issubclass(cls, tuple) and names and hasattr(cls, "_make")


def is_namedtuple_instance(obj: object) -> bool:
    """Whether something is a named tuple."""
    return is_namedtuple_class(type(obj))


def is_namedtuple(obj: object) -> bool:
    """Whether something is a named tuple, or a class of them.

    Example:
        >>> from collections import namedtuple
        >>> Point = namedtuple("Point", "x y")
        >>> is_namedtuple(Point(1, 2)), is_namedtuple(Point), is_namedtuple((1, 2))
        (True, True, False)
    """
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))
