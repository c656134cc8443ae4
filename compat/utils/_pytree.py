"""``torch.utils._pytree``: functions of pytrees, over ``compat._core.pytree``."""

from collections.abc import Callable, Iterable, Iterator
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
from compat._core.pytree.registry import register_namedtuple as _register_namedtuple
from compat._core.pytree.trees import (
    LeafSpec,
    PyTree,
    TreeSpec,
    tree_all,
    tree_flatten,
    tree_leaves,
    tree_map,
    tree_unflatten,
    treespec_pprint,
)
from compat._core.pytree.trees import broadcast_to_and_flatten as _broadcast_to_and_flatten
from compat._core.pytree.trees import kind_of as _get_node_type
from compat.utils._treespec_json import treespec_dumps, treespec_loads

__all__ = [
    "SUPPORTED_NODES", "Context", "GetAttrKey", "KeyEntry", "KeyPath", "LeafSpec", "MappingKey", "NodeDef",
    "PyTree", "SequenceKey", "TreeSpec", "_broadcast_to_and_flatten", "_get_node_type", "_register_namedtuple",
    "is_namedtuple", "is_namedtuple_class", "is_namedtuple_instance", "is_structseq", "is_structseq_class",
    "is_structseq_instance", "key_get", "keystr", "register_pytree_node", "tree_all", "tree_any",
    "tree_flatten", "tree_flatten_with_path", "tree_is_leaf", "tree_iter", "tree_leaves",
    "tree_leaves_with_path", "tree_map", "tree_map_", "tree_map_only", "tree_map_with_path", "tree_structure",
    "tree_unflatten", "treespec_dumps", "treespec_loads", "treespec_pprint",
]  # fmt: skip

Context: TypeAlias = Any
KeyEntry: TypeAlias = Any
KeyPath = tuple[KeyEntry, ...]
_register_pytree_node = register_pytree_node

# Programs register subclasses of Python's containers with these functions.
globals().update(
    {name: f for name, f in vars(_nodes).items() if name.endswith(("_flatten", "_flatten_with_keys", "_unflatten"))}
)


def tree_iter(tree: PyTree, is_leaf: Callable[[Any], bool] | None = None) -> Iterator:
    """An iterator over the leaves of a tree."""
    return iter(tree_leaves(tree, is_leaf))


def tree_structure(tree: PyTree, is_leaf: Callable[[Any], bool] | None = None) -> TreeSpec:
    """The structure of a tree."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map_(
    func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: Callable[[Any], bool] | None = None
) -> PyTree:
    """Calls ``func`` for each leaf; returns the tree itself."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def tree_flatten_with_path(
    tree: PyTree, is_leaf: Callable[[Any], bool] | None = None
) -> tuple[list[tuple[tuple, Any]], TreeSpec]:
    """The leaves of a tree with their paths of keys, and the tree's structure.

    Example:
        >>> tree_flatten_with_path({"a": 1, "b": [2]})[0]
        [((MappingKey(key='a'),), 1), ((MappingKey(key='b'), SequenceKey(idx=0)), 2)]
    """
    return list(_with_paths((), tree, is_leaf)), tree_structure(tree, is_leaf)


def _with_paths(path: tuple, tree: Any, is_leaf: Callable[[Any], bool] | None) -> Iterator[tuple[tuple, Any]]:
    kind = _get_node_type(tree)
    node = SUPPORTED_NODES.get(kind)
    if node is None or (is_leaf is not None and is_leaf(tree)):
        yield path, tree
        return
    if node.flatten_with_keys_fn is None:
        raise ValueError(f"Did not find a flatten_with_keys_fn for type: {kind}. Please pass a flatten_with_keys_fn.")
    for key, part in node.flatten_with_keys_fn(tree)[0]:
        yield from _with_paths((*path, key), part, is_leaf)


def tree_leaves_with_path(tree: PyTree, is_leaf: Callable[[Any], bool] | None = None) -> list[tuple[tuple, Any]]:
    """The leaves of a tree with their paths of keys."""
    return list(_with_paths((), tree, is_leaf))


def tree_map_with_path(
    func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: Callable[[Any], bool] | None = None
) -> PyTree:
    """``tree_map`` of a function of the path of keys to a leaf and of the leaf.

    Example:
        >>> tree_map_with_path(lambda path, x: (keystr(path), x), {"a": [1]})
        {'a': [("['a'][0]", 1)]}
    """
    found, spec = tree_flatten_with_path(tree, is_leaf)
    paths, leaves = [path for path, _ in found], [leaf for _, leaf in found]
    return spec.unflatten([func(*xs) for xs in zip(paths, leaves, *[spec.flatten_up_to(r) for r in rests])])


def keystr(kp: Iterable) -> str:
    """The path of keys to a leaf, as Python source."""
    return "".join(map(str, kp))


def key_get(obj: Any, kp: Iterable) -> Any:
    """The part of a tree at a path of keys."""
    for key in kp:
        obj = key.get(obj)
    return obj


def tree_map_only(
    kind: Any, func: Callable[[Any], Any], tree: PyTree, is_leaf: Callable[[Any], bool] | None = None
) -> PyTree:
    """``tree_map`` over the leaves of given types; other leaves are unchanged."""
    return tree_map(lambda x: func(x) if isinstance(x, kind) else x, tree, is_leaf=is_leaf)


def tree_any(pred: Callable[[Any], bool], tree: PyTree, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Whether a predicate holds for a leaf."""
    return any(map(pred, tree_leaves(tree, is_leaf)))


def tree_is_leaf(tree: PyTree, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Whether an object is a leaf: not a container, or a leaf by ``is_leaf``."""
    return (is_leaf is not None and is_leaf(tree)) or _get_node_type(tree) not in SUPPORTED_NODES


_is_leaf = tree_is_leaf


def is_structseq_class(cls: type) -> bool:
    """Whether a class is a named result of operations, such as ``torch.return_types.max``."""
    return isinstance(cls, type) and issubclass(cls, tuple) and hasattr(cls, "n_fields")


def is_structseq_instance(obj: object) -> bool:
    """Whether a value is a named result of an operation."""
    return is_structseq_class(type(obj))


def is_structseq(obj: object) -> bool:
    """Whether a value is a named result of an operation, or such a class."""
    return is_structseq_class(obj if isinstance(obj, type) else type(obj))


def is_namedtuple_class(cls: type) -> bool:
    """Whether a class is made by ``collections.namedtuple``, or a subclass of one."""
    fields = getattr(cls, "_fields", None)
    names = isinstance(fields, tuple) and all(isinstance(name, str) for name in fields)
    return isinstance(cls, type) and issubclass(cls, tuple) and names and hasattr(cls, "_make")


def is_namedtuple_instance(obj: object) -> bool:
    """Whether a value is a named tuple."""
    return is_namedtuple_class(type(obj))


def is_namedtuple(obj: object) -> bool:
    """Whether a value is a named tuple, or a class of them.

    Example:
        >>> from collections import namedtuple
        >>> Point = namedtuple("Point", "x y")
        >>> is_namedtuple(Point(1, 2)), is_namedtuple(Point), is_namedtuple((1, 2))
        (True, True, False)
    """
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))
