"""``scan``: a loop with a carry along a dimension."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compat._core.pytree.trees import tree_flatten, tree_leaves, tree_map, tree_unflatten
from compat._core.tensor.tensor import Tensor
from compat._core.types.errors import wrap_dim
from compat._higher_order_ops.while_loop import check_carried
from compat._operators.shape.cat_stack import stack

__all__ = ["scan"]


def scan(
    combine_fn: Callable[[Any, Any], tuple[Any, Any]], init: Any, xs: Any, *, dim: int = 0, reverse: bool = False
) -> tuple[Any, Any]:
    """A loop along a dimension, with a carry.

    Args:
        combine_fn: ``(carry, x) -> (carry, y)``, one step; the carry keeps its structure, sizes and dtypes.
        init: the initial carry: a tensor, or a pytree of them.
        xs: a tensor, or a pytree of them, whose slices the steps receive.
        dim: the dimension.
        reverse: from the last slice to the first; the results are stacked in the order of the slices.

    Returns:
        The final carry, and the other results of the steps, stacked along ``dim``.

    Raises:
        RuntimeError: for an invalid argument, an empty ``dim``, or a carry whose type changes.

    Example:
        >>> from compat._higher_order_ops import scan
        >>> scan(lambda total, x: (total + x, total * x), torch.tensor(0.0), torch.tensor([1.0, 2.0, 3.0]))
        (tensor(6.), tensor([0., 2., 9.]))
    """
    leaves, tree = tree_flatten(xs)
    if not leaves:
        return init, []
    dim = wrap_dim(dim, leaves[0].dim()) if isinstance(dim, int) and isinstance(leaves[0], Tensor) else dim
    _check(combine_fn, init, leaves, dim, reverse)
    places = range(leaves[0].shape[dim])
    carry, rows = init, []
    structure: Any = None
    for i in reversed(places) if reverse else places:
        made = combine_fn(carry, tree_unflatten([x.select(dim, i) for x in leaves], tree))
        if not isinstance(made, (tuple, list)) or len(made) != 2:
            raise RuntimeError(f"combine_fn must return a carry and an output, but got {made}")
        check_carried("init and carry", carry, made[0])
        carry, y = made
        row, structure = tree_flatten(y)
        rows.append(row)
    ys = [stack(column) for column in zip(*(reversed(rows) if reverse else rows))]
    return carry, tree_map(lambda y: y.movedim(0, dim) if dim < y.dim() else y, tree_unflatten(ys, structure))


def _check(combine_fn: Any, init: Any, leaves: list[Any], dim: Any, reverse: Any) -> None:
    if not callable(combine_fn):
        raise RuntimeError(f"Combine_fn must be a callable, but got {combine_fn}")
    if not isinstance(dim, int):
        raise RuntimeError(f"Dim must be an int, but got {type(dim)}")
    if not isinstance(reverse, bool):
        raise RuntimeError(f"Reverse must be a bool, but got {type(reverse)}")
    first = tree_leaves(init)
    if not first:
        raise RuntimeError("scan() operator requires init leaves.")
    for name, tensors in (("init", first), ("xs", leaves)):
        for x in tensors:
            if not isinstance(x, Tensor):
                raise RuntimeError(f"All {name} leaves must be a Tensor but got {x}")
    if any(x.dim() <= dim or not x.shape[dim] for x in leaves):
        raise RuntimeError(EMPTY)


EMPTY = "All xs leaves must at least have 'dim' number of dimensions and scan dimension > 0"
