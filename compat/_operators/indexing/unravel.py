"""Index conversions and Vandermonde matrices: ``unravel_index``, ``nonzero_static``, ``vander``."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from compat._core.operators.composite import composite
from compat._core.operators.out import resize_out
from compat._core.tensor.registry import function
from compat._core.tensor.tensor import Tensor
from compat._core.types import dtype as dtypes
from compat._core.types.size import Size
from compat._operators.create.factories import empty, full
from compat._operators.create.from_data import tensor
from compat._operators.indexing.masked import nonzero


def _shape(shape: Any) -> tuple[int, ...]:
    """The shape of an array, given as one integer or as a sequence.

    Raises:
        TypeError: for a sequence of anything but integers.
        ValueError: for a negative size.
    """
    if not isinstance(shape, (int, Size, Sequence)):
        raise TypeError(f"expected 'shape' to be int or sequence of ints, but got {type(shape)}")
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    for n in sizes:
        if not isinstance(n, int):
            raise TypeError(f"expected 'shape' sequence to only contain ints, but got {type(n)}")
    if any(n < 0 for n in sizes):
        raise ValueError(f"'shape' cannot have negative values, but got {sizes}")
    return sizes


@function("torch.unravel_index")
def unravel_index(indices: Tensor, shape: Any) -> tuple[Tensor, ...]:
    """The coordinates of flat, row-major indices.

    Args:
        indices: the flat indices, integers.
        shape: the shape of the array, as an integer or a sequence of integers.

    Returns:
        A tensor of the size of ``indices`` for each dimension.

    Raises:
        TypeError: for indices or sizes that are not integers.
        ValueError: for negative sizes.

    Example:
        >>> torch.unravel_index(torch.tensor([1, 5]), (3, 2))
        (tensor([0, 2]), tensor([1, 1]))
    """
    if indices.dtype.category != dtypes.INTEGER:
        raise TypeError(f"expected 'indices' to be integer dtype, but got {indices.dtype}")
    sizes = _shape(shape)
    if indices.numel() and 0 in sizes:
        raise RuntimeError("ZeroDivisionError")
    if not sizes:
        return ()
    steps = [prod(sizes[d + 1 :]) or 1 for d in range(len(sizes))]
    quotients = indices.unsqueeze(-1).div(tensor(steps), rounding_mode="floor")
    return (quotients % tensor([max(n, 1) for n in sizes])).unbind(-1)


@composite("nonzero_static(Tensor self, *, SymInt size, int fill_value=-1) -> Tensor")
def nonzero_static(input: Tensor, *, size: int, fill_value: int = -1, out: Tensor | None = None) -> Tensor:
    """The indices of the first ``size`` nonzero elements, one row for each, padded with rows of ``fill_value``.

    Example:
        >>> torch.nonzero_static(torch.tensor([0, 7]), size=2)
        tensor([[ 1],
                [-1]])
    """
    if size < 0:
        raise RuntimeError("nonzero_static: 'size' must be an non-negative integer")
    if out is not None and out.dtype is not dtypes.int64:
        raise RuntimeError(
            f"nonzero_static: Expected out tensor to have scalar type Long but got scalar type{out.dtype.scalar_name}"
        )
    rows = nonzero(input)[:size]
    made = full((size, input.dim()), fill_value, dtype=dtypes.int64)
    made[: rows.shape[0]] = rows
    if out is None:
        return made
    resize_out(out, tuple(made.shape))
    return out.copy_(made)


@composite("vander(Tensor x, int? N=None, bool increasing=False) -> Tensor", names="torch.vander")
def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """The matrix whose rows are the powers of the elements of a vector, in decreasing order.

    Args:
        x: the vector.
        N: the number of powers; by default that of the elements.
        increasing: whether powers are in increasing order.

    Raises:
        RuntimeError: for an argument that is not a vector, and a negative number of powers.

    Example:
        >>> torch.vander(torch.tensor([1, 2, 3]))
        tensor([[1, 1, 1],
                [4, 2, 1],
                [9, 3, 1]])
    """
    if x.dim() != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    n = x.shape[0] if N is None else N
    if n < 0:
        raise RuntimeError("N must be non-negative.")
    dtype = dtypes.int64 if x.dtype.category < dtypes.FLOATING else x.dtype
    powers = empty(x.shape[0], n, dtype=dtype)
    if n > 0:
        powers.select(-1, 0).fill_(1)
    if n > 1:
        rest = powers[:, 1:]
        rest.copy_(x.unsqueeze(1))
        rest.copy_(rest.cumprod(1))
    return powers if increasing or n <= 1 else powers.flip(1)
