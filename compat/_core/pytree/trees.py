"""Pytrees as in PyTorch: every object whose type is not registered as a container, ``None`` included, is a leaf.

Unlike those of ``funcgrad.trees``, dictionaries keep the order of their keys.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from compat._core.pytree.registry import SUPPORTED_NODES

PyTree = Any


def kind_of(tree: Any) -> Any:
    """The container type of an object; of a leaf, its class."""
    cls = type(tree)
    named = cls not in SUPPORTED_NODES and issubclass(cls, tuple) and hasattr(cls, "_fields")
    return namedtuple if named else cls


class TreeSpec:
    """The structure of a tree.

    Attributes:
        type: the kind of container; None for a leaf.
        context: the container's context, which unflattening needs besides the children.
        num_nodes, num_leaves, num_children: the numbers of nodes (containers and leaves), leaves and children.
    """

    __module__ = "compat.utils._pytree"

    def __init__(self, type: Any, context: Any, children: list[TreeSpec]):
        self.type = type
        self.context = context
        self._children = children
        self.num_children = len(children)
        leaf = type is None
        self.num_nodes: int = 1 + sum(c.num_nodes for c in children)
        self.num_leaves: int = 1 if leaf else sum(c.num_leaves for c in children)

    def children(self) -> list[TreeSpec]:
        """The structures of its parts."""
        return list(self._children)

    def child(self, index: int) -> TreeSpec:
        """The structure of one part."""
        return self._children[index]

    def is_leaf(self) -> bool:
        """Whether it is a leaf's."""
        return self.type is None

    def unflatten(self, leaves: Iterable) -> Any:
        """The tree of this structure with these leaves.

        Raises:
            ValueError: if they are too few or too many.
        """
        given = list(leaves)
        if len(given) != self.num_leaves:
            raise ValueError(
                f"treespec.unflatten(leaves): `leaves` has length {len(given)} but the spec refers to a pytree that "
                f"holds {self.num_leaves} items ({self})."
            )
        return self._filled(iter(given))

    def _filled(self, leaves: Iterator) -> Any:
        if self.type is None:
            return next(leaves)
        node = SUPPORTED_NODES.get(self.type)
        assert node is not None, f"{self.type} is no pytree node any more"
        return node.unflatten_fn([c._filled(leaves) for c in self._children], self.context)

    def flatten_up_to(self, tree: Any) -> list:
        """The parts of a tree that begins like this structure, where this structure has leaves.

        Raises:
            ValueError: if the tree is of another structure.
        """
        if self.type is None:
            return [tree]
        kind = kind_of(tree)
        if kind is not self.type:
            raise ValueError(f"Node type mismatch; expected {self.type!r}, but got {kind!r}.")
        parts, context = _taken_apart(tree)
        if len(parts) != self.num_children:
            raise ValueError(f"Node arity mismatch; expected {self.num_children}, but got {len(parts)}.")
        if context != self.context:
            raise ValueError(f"Node context mismatch for custom node type {self.type!r}.")
        return [leaf for c, part in zip(self._children, parts) for leaf in c.flatten_up_to(part)]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TreeSpec):
            return NotImplemented
        mine, theirs = (self.type, self.context, self._children), (other.type, other.context, other._children)
        return mine == theirs

    def __hash__(self) -> int:
        return hash((self.type, repr(self.context), tuple(self._children)))

    def __repr__(self, indent: int = 0) -> str:
        if self.type is None:
            return "*"
        blanks = f",\n{' ' * (indent + 2)}"
        parts = blanks.join(c.__repr__(indent + 2) for c in self._children)
        return f"TreeSpec({self.type.__name__}, {self.context}, [{parts}])"


class LeafSpec(TreeSpec):
    """The structure of a leaf."""

    __module__ = "compat.utils._pytree"

    def __init__(self) -> None:
        super().__init__(None, None, [])


_LEAF = LeafSpec()


def _taken_apart(tree: Any) -> tuple[list, Any]:
    node = SUPPORTED_NODES.get(kind_of(tree))
    assert node is not None, f"{type(tree)} is no pytree node"
    return node.flatten_fn(tree)


def tree_flatten(tree: PyTree, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list, TreeSpec]:
    """The leaves of a tree, and its structure.

    Args:
        is_leaf: a predicate of further leaves.

    Example:
        >>> tree_flatten({"a": 1, "b": [2, None]})[0]
        [1, 2, None]
    """
    leaves: list = []
    return leaves, _flatten(tree, leaves, is_leaf)


def _flatten(tree: Any, leaves: list, is_leaf: Callable[[Any], bool] | None) -> TreeSpec:
    kind = kind_of(tree)
    node = SUPPORTED_NODES.get(kind)
    if node is None or (is_leaf is not None and is_leaf(tree)):
        leaves.append(tree)
        return _LEAF
    parts, context = node.flatten_fn(tree)
    return TreeSpec(kind, context, [_flatten(part, leaves, is_leaf) for part in parts])


def tree_unflatten(leaves: Iterable, treespec: TreeSpec) -> PyTree:
    """The tree of a structure with these leaves."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError(
            f"tree_unflatten(leaves, treespec): Expected `treespec` to be instance of TreeSpec but got item of type "
            f"{type(treespec)}."
        )
    return treespec.unflatten(leaves)


def tree_leaves(tree: PyTree, is_leaf: Callable[[Any], bool] | None = None) -> list:
    """The leaves of a tree."""
    return tree_flatten(tree, is_leaf)[0]


def tree_map(
    func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: Callable[[Any], bool] | None = None
) -> PyTree:
    """The tree of ``func`` applied to each leaf, and to the corresponding leaves of other trees."""
    leaves, spec = tree_flatten(tree, is_leaf)
    return spec.unflatten([func(*xs) for xs in zip(leaves, *[spec.flatten_up_to(r) for r in rests])])


def tree_all(pred: Callable[[Any], bool], tree: PyTree, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Whether something holds of all leaves."""
    return all(map(pred, tree_leaves(tree, is_leaf)))


class _Asterisk:
    def __repr__(self) -> str:
        return "*"


def treespec_pprint(treespec: TreeSpec) -> str:
    """A structure as its tree is written, with asterisks for leaves."""
    return repr(treespec.unflatten([_Asterisk()] * treespec.num_leaves))


def broadcast_to_and_flatten(
    tree: PyTree, treespec: TreeSpec, is_leaf: Callable[[Any], bool] | None = None
) -> list | None:
    """For each leaf of a structure, the leaf of the prefix ``tree`` for it.

    Returns:
        None if ``tree`` is not a prefix of the structure.
    """
    node = SUPPORTED_NODES.get(kind_of(tree))
    if node is None or (is_leaf is not None and is_leaf(tree)):
        return [tree] * treespec.num_leaves
    if kind_of(tree) is not treespec.type:
        return None
    parts, context = _taken_apart(tree)
    if len(parts) != treespec.num_children or context != treespec.context:
        return None
    found: list = []
    for part, child in zip(parts, treespec.children()):
        some = broadcast_to_and_flatten(part, child, is_leaf)
        if some is None:
            return None
        found += some
    return found
