"""``map``: a function of each slice, sequentially."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compat._core.pytree.trees import tree_flatten, tree_unflatten
from compat._core.tensor.tensor import Tensor
from compat._operators.shape.cat_stack import stack

__all__ = ["map"]


def map(f: Callable[..., Any], xs: Any, *args: Any) -> Any:
    """``f(x, *args)`` for each slice of ``xs`` along the first dimension, stacked.

    Args:
        f: returns a tensor, or a pytree of tensors and None, which is not stacked.
        xs: a tensor, or a pytree of them, of the same first size.
        args: arguments shared by all slices.

    Raises:
        RuntimeError: if ``xs`` or the result of ``f`` has other leaves, sizes differ, or there are no slices.

    Example:
        >>> from compat._higher_order_ops import map
        >>> map(lambda x, y: x * y, torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor(10.0))
        tensor([[10., 20.],
                [30., 40.]])
    """
    leaves, tree = tree_flatten(xs)
    if not all(isinstance(x, Tensor) for x in leaves):
        raise RuntimeError(f"Mapped xs can only consist of tensors. Got xs {leaves}.")
    shapes = [x.shape for x in leaves]
    count = shapes[0][0]
    if not count:
        raise RuntimeError("Leading dimensions of mapped xs cannot be 0.")
    if any(shape[0] != count for shape in shapes):
        raise RuntimeError(f"Leading dimensions of mapped xs must be consistent. Got shapes {shapes}.")
    rows = []
    structure: Any = None
    for i in range(count):
        row, structure = tree_flatten(f(tree_unflatten([x[i] for x in leaves], tree), *args))
        if not all(x is None or isinstance(x, Tensor) for x in row):
            types = [type(x) for x in row]
            raise RuntimeError(f"Expect outputs of map only contains tensors or None. Got types {types}.")
        rows.append(row)
    return tree_unflatten([None if column[0] is None else stack(column) for column in zip(*rows)], structure)
