"""Pytrees are JAX's, so dataclasses, modules and optimizer states registered there are arguments here."""

from jax.tree_util import (
    keystr,
    register_dataclass,
    register_pytree_node,
    register_pytree_node_class,
    tree_flatten_with_path,
)
from jax.tree_util import tree_all as all
from jax.tree_util import tree_flatten as flatten
from jax.tree_util import tree_leaves as leaves
from jax.tree_util import tree_map as map
from jax.tree_util import tree_structure as structure
from jax.tree_util import tree_unflatten as unflatten

__all__ = [
    "all", "flatten", "keystr", "leaves", "map", "register_dataclass", "register_pytree_node",
    "register_pytree_node_class", "structure", "tree_flatten_with_path", "unflatten",
]  # fmt: skip
