"""``torch.utils._pytree``: containers of tensors; ``compat.trees`` under PyTorch's name."""

from compat.trees import (
    SUPPORTED_NODES,
    LeafSpec,
    NodeDef,
    PyTree,
    TreeSpec,
    register_pytree_node,
    tree_all,
    tree_any,
    tree_flatten,
    tree_iter,
    tree_leaves,
    tree_map,
    tree_map_,
    tree_map_only,
    tree_structure,
    tree_unflatten,
    treespec_pprint,
)
from compat.trees import (
    broadcast_to_and_flatten as _broadcast_to_and_flatten,
)

__all__ = [
    "SUPPORTED_NODES", "LeafSpec", "NodeDef", "PyTree", "TreeSpec", "_broadcast_to_and_flatten", "register_pytree_node",
    "tree_all", "tree_any", "tree_flatten", "tree_iter", "tree_leaves", "tree_map", "tree_map_", "tree_map_only",
    "tree_structure", "tree_unflatten", "treespec_pprint",
]  # fmt: skip
