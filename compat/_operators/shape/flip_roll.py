"""``flip``, ``roll``, ``rot90``."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from compat._core.memory.strides import channels_last_strides, contiguous_strides, preserved_strides
from compat._core.operators.composite import composite
from compat._core.operators.declaration import Arguments
from compat._core.operators.op import aten
from compat._core.tensor.tensor import Tensor
from compat._core.types.errors import wrap_dim, wrap_dims
from compat._operators.spatial import suggests_channels_last
from funcgrad import numpy as np
from funcgrad.core.tracing import type_of
from funcgrad.primitives.shape import reshape as reshaped
from funcgrad.primitives.shape import reverse


def _preserved_strides(given: dict[str, Any], types: Sequence[Any]) -> list[Any]:
    layout = given["input"]
    return [preserved_strides(tuple(layout.size), layout.stride)]


def _check_flip(input: Tensor, *dims: Any) -> None:
    wrap_dims(dims[0] if len(dims) == 1 and isinstance(dims[0], tuple) else dims, input.dim())


@aten(
    "flip(Tensor self, int[] dims) -> Tensor",
    node="FlipBackward0", saves="dims", layout=_preserved_strides, check=_check_flip, out=False,
    arguments=Arguments(static="dims"),
)  # fmt: skip
def flip(input, *dims):
    """A copy of the tensor with the elements reversed along dimensions.

    Raises:
        IndexError: for a dimension out of range.
        RuntimeError: for a repeated dimension.

    Example:
        >>> torch.flip(torch.tensor([[1, 2], [3, 4]]), [0])
        tensor([[3, 4],
                [1, 2]])
    """
    ndim = type_of(input).ndim
    return reverse(input, axes=wrap_dims(dims, ndim)) if dims and ndim else input


@composite("fliplr(Tensor self) -> Tensor")
def fliplr(input: Tensor) -> Tensor:
    """A copy of the tensor with the elements reversed along the second dimension.

    Example:
        >>> torch.fliplr(torch.tensor([[1, 2], [3, 4]]))
        tensor([[2, 1],
                [4, 3]])
    """
    if input.dim() < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return flip(input, (1,))


@composite("flipud(Tensor self) -> Tensor")
def flipud(input: Tensor) -> Tensor:
    """A copy of the tensor with the elements reversed along the first dimension.

    Example:
        >>> torch.flipud(torch.tensor([[1, 2], [3, 4]]))
        tensor([[3, 4],
                [1, 2]])
    """
    if input.dim() < 1:
        raise RuntimeError("Input must be >= 1-d.")
    return flip(input, (0,))


def _check_roll(input: Tensor, shifts: tuple[int, ...], dims: tuple[int, ...] = ()) -> None:
    if not shifts:
        raise RuntimeError("`shifts` required")
    if len(shifts) != len(dims) and not (not dims and len(shifts) == 1):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(shifts)}, dims:{len(dims)}")
    for d in dims:
        if input.dim() == 0:
            raise IndexError(f"Dimension specified as {d} but tensor has no dimensions")
        wrap_dim(d, input.dim())


def _rolled_strides(given: dict[str, Any], types: Sequence[Any]) -> list[Any]:
    """PyTorch rolls by concatenating two parts, one dimension after the other: the strides of the last ``cat``."""
    size, stride = tuple(given["input"].size), tuple(given["input"].stride)
    if not given["dims"]:
        return [None]
    if 0 in size:
        return [preserved_strides(size, stride)]
    for shift, dim in zip(given["shifts"], given["dims"]):
        d = wrap_dim(dim, len(size))
        length = shift % size[d]
        parts = [(*size[:d], n, *size[d + 1 :]) for n in (length, size[d] - length)]
        channels_last = all(suggests_channels_last(part, stride) for part in parts)
        stride = channels_last_strides(size) if channels_last else contiguous_strides(size)
    return [stride]


@aten(
    "roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor",
    node="RollBackward0", saves="dims shifts", layout=_rolled_strides, check=_check_roll, out=False,
    arguments=Arguments(static="dims"),
)  # fmt: skip
def roll(input, shifts, dims):
    """The elements shifted cyclically along dimensions.

    Args:
        shifts: the shift, or one for each dimension.
        dims: the dimensions; without them the flattened tensor is shifted.

    Example:
        >>> torch.roll(torch.tensor([1, 2, 3]), 1)
        tensor([3, 1, 2])
    """
    shape = type_of(input).shape
    if not dims:
        return reshaped(np.roll(reshaped(input, shape=(prod(shape),)), shifts[0]), shape=shape)
    for n, d in zip(shifts, dims):
        input = np.roll(input, n, wrap_dim(d, len(shape)))
    return input


def _check_rot90(input: Tensor, k: int = 1, dims: tuple[int, ...] = (0, 1)) -> None:
    n = input.dim()
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if n < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {n}")
    if dims[0] == dims[1] or abs(dims[0] - dims[1]) == n:
        raise RuntimeError(f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}")
    for i, d in enumerate(dims):
        if not -n <= d < n:
            raise RuntimeError(f"Rotation dim{i} out of range, dim{i} = {d}")


def _rotated_strides(given: dict[str, Any], types: Sequence[Any]) -> list[Any]:
    layout, (a, b) = given["input"], [d % len(given["input"].size) for d in given["dims"]]
    stride = list(preserved_strides(tuple(layout.size), layout.stride))
    if given["k"] % 2:
        stride[a], stride[b] = stride[b], stride[a]
    return [tuple(stride)]


@aten(
    "rot90(Tensor self, int k=1, int[] dims=[0,1]) -> Tensor",
    node="Rot90Backward0", saves="dims k", layout=_rotated_strides, check=_check_rot90, out=False,
    arguments=Arguments(static="dims"),
)  # fmt: skip
def rot90(input, k, dims):
    """The tensor rotated ``k`` times by 90 degrees in the plane of two dimensions, from the first towards the second.

    Example:
        >>> torch.rot90(torch.tensor([[1, 2], [3, 4]]))
        tensor([[2, 4],
                [1, 3]])
    """
    n = type_of(input).ndim
    return np.rot90(input, k, (dims[0] % n, dims[1] % n))
