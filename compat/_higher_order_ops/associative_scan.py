"""``associative_scan``: a parallel prefix scan along a dimension, in a logarithmic number of steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compat._core.pytree.trees import tree_flatten, tree_leaves, tree_unflatten
from compat._core.tensor.tensor import Tensor
from compat._core.types.errors import wrap_dim
from compat._higher_order_ops.scan import EMPTY
from compat._operators.shape.cat_stack import cat
from compat.func._vmap import vmap

__all__ = ["associative_scan"]


def associative_scan(
    combine_fn: Callable[[Any, Any], Any], xs: Any, dim: int, reverse: bool = False, combine_mode: str = "pointwise"
) -> Any:
    """The prefix combinations of slices: the first slice, the first two combined, the first three, ...

    Args:
        combine_fn: combines two slices to one; associative.
        xs: a tensor, or a pytree of them, of the same size along ``dim``.
        dim: the dimension.
        reverse: whether to scan from the last slice to the first.
        combine_mode: "generic"; "pointwise" is for accelerators only.

    Raises:
        ValueError: for an invalid argument, "pointwise", or an empty dimension.

    Example:
        >>> from compat._higher_order_ops import associative_scan
        >>> associative_scan(torch.mul, torch.tensor([1.0, 2.0, 3.0, 4.0]), 0, combine_mode="generic")
        tensor([ 1.,  2.,  6., 24.])
    """
    leaves, tree = tree_flatten(xs)
    _check(combine_fn, leaves, dim, reverse, combine_mode)
    dim = wrap_dim(dim, leaves[0].dim())
    if any(x.dim() <= dim or not x.shape[dim] for x in leaves):
        raise ValueError(EMPTY)
    rows = [x.movedim(dim, 0) for x in leaves]
    if reverse:
        rows = [x.flip(0) for x in rows]
    each = vmap(combine_fn)
    apart = 1  # the number of slices combined so far
    while apart < len(rows[0]):
        earlier, later = [x[:-apart] for x in rows], [x[apart:] for x in rows]
        made = tree_leaves(each(tree_unflatten(earlier, tree), tree_unflatten(later, tree)))
        rows = [cat([x[:apart], y]) for x, y in zip(rows, made)]
        apart *= 2
    if reverse:
        rows = [x.flip(0) for x in rows]
    return tree_unflatten([x.movedim(0, dim) for x in rows], tree)


def _check(combine_fn: Any, leaves: list[Any], dim: Any, reverse: Any, combine_mode: Any) -> None:
    if not callable(combine_fn):
        raise ValueError(f"Combine_fn must be a callable, but got {combine_fn}")
    if not isinstance(dim, int):
        raise ValueError(f"Dim must be an int, but got {type(dim)}")
    if not isinstance(reverse, bool):
        raise RuntimeError(f"Reverse must be a bool, but got {type(reverse)}")
    if combine_mode not in ("pointwise", "generic"):
        raise ValueError(f"Combine_mode must either 'pointwise' or 'generic', but got {combine_mode}")
    if combine_mode == "pointwise":
        raise ValueError("For combine_mode='pointwise', all input tensors need to be on CUDA or XPU")
    if not leaves:
        raise ValueError("Expected at least 1 xs leaf")
    if not all(isinstance(x, Tensor) for x in leaves):
        raise ValueError("xs leaves must be a Tensor")
