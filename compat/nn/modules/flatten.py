"""Flattening and unflattening dimensions."""

from __future__ import annotations

from typing import Any

from compat._core.tensor.tensor import Tensor
from compat.nn.modules.module import Module
from compat.nn.modules.utils import described

__all__ = ["Flatten", "Unflatten"]


class Flatten(Module):
    """Flattens the dimensions from ``start_dim`` to ``end_dim``; by default all but the first.

    Example:
        >>> torch.nn.Flatten()(torch.ones(32, 5, 5)).shape
        torch.Size([32, 25])
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1):
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Tensor) -> Any:
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return described(self, "start_dim", "end_dim")


class Unflatten(Module):
    """Splits the dimension ``dim`` into several.

    Args:
        dim: the dimension.
        unflattened_size: the sizes it is split into; one of them may be -1.

    Raises:
        TypeError: if these are not integers.

    Example:
        >>> torch.nn.Unflatten(1, (2, 3))(torch.ones(4, 6)).shape
        torch.Size([4, 2, 3])
    """

    def __init__(self, dim: Any, unflattened_size: Any):
        super().__init__()
        if not isinstance(unflattened_size, (tuple, list)):
            raise TypeError(
                f"unflattened_size must be a tuple of ints, but found type {type(unflattened_size).__name__}"
            )
        for i, size in enumerate(unflattened_size):
            if not isinstance(size, int):
                raise TypeError(
                    "unflattened_size must be tuple of ints, but found element of type "
                    f"{type(size).__name__} at pos {i}"
                )
        self.dim = dim
        self.unflattened_size = unflattened_size

    def forward(self, input: Tensor) -> Any:
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
