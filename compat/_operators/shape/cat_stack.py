"""``cat``, ``stack`` and their variants; ``flatten``, ``repeat``, ``meshgrid``."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from compat._core.memory.strides import Layout, broadcast_size, channels_last_strides, view_strides
from compat._core.operators.composite import composite
from compat._core.operators.declaration import Arguments, Dtypes
from compat._core.operators.op import aten
from compat._core.tensor.registry import function
from compat._core.tensor.tensor import Tensor
from compat._core.types.errors import Once, size_text, wrap_dim, wrong_argument
from compat._core.types.type_promotion import can_cast
from compat._operators.arguments import missing, size_argument, tensors_argument
from compat._operators.spatial import suggests_channels_last
from compat._operators.view.shape import expand, inferred, reshape, unsqueeze, view_size
from funcgrad import numpy as np
from funcgrad.core.tracing import type_of
from funcgrad.primitives.shape import concatenate
from funcgrad.primitives.shape import reshape as reshaped

# ---------------------------------------------------------------- cat and stack


def _skipped(size: Sequence[int]) -> bool:
    """Whether ``cat`` ignores a tensor of this size: an empty vector."""
    return tuple(size) == (0,)


def _check_cat(tensors: Sequence[Tensor], dim: int = 0) -> None:
    if not tensors:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    for i, t in enumerate(tensors):
        if t.dim() == 0:
            raise RuntimeError(f"zero-dimensional tensor (at position {i}) cannot be concatenated")
    used = [(i, t) for i, t in enumerate(tensors) if not _skipped(t.shape)]
    if not used:
        return
    first = used[0][1]
    d = wrap_dim(dim, first.dim())
    for i, t in used[1:]:
        if t.dim() != first.dim():
            raise RuntimeError(f"Tensors must have same number of dimensions: got {first.dim()} and {t.dim()}")
        for k, (expected, size) in enumerate(zip(first.shape, t.shape)):
            if k != d and expected != size:
                raise RuntimeError(
                    f"Sizes of tensors must match except in dimension {d}. Expected size {expected} but got size "
                    f"{size} for tensor number {i} in the list."
                )


def _cat_strides(layouts: Sequence[Layout], size: tuple[int, ...]) -> tuple[int, ...] | None:
    """The strides of a result of ``cat``: channels-last if all tensors are, else None for contiguous."""
    if len(size) in (4, 5) and all(suggests_channels_last(k.size, k.stride) for k in layouts):
        return channels_last_strides(size)
    return None


def _operands(given: dict[str, Any]) -> list[Layout]:
    return [v for n, v in given.items() if n.startswith("tensors[")]


def _check_cat_out(result: Tensor, out: Tensor, operands: Any) -> None:
    if not can_cast(result.dtype, out.dtype):
        raise TypeError(f"torch.cat(): input types can't be cast to the desired output type {out.dtype.scalar_name}")


@aten(
    "cat(Tensor[] tensors, int dim=0) -> Tensor",
    node="CatBackward0", saves="dim", names="torch.cat torch.concat torch.concatenate",
    dtypes=Dtypes(promote="common", numbers=True),
    layout=lambda given, types: [_cat_strides(_operands(given), types[0].shape)], check=_check_cat,
    out=_check_cat_out, arguments=Arguments(static="dim"),
)  # fmt: skip
def cat(tensors, dim):
    """Concatenates tensors along a dimension.

    Args:
        tensors: tensors of the same size, except along ``dim``; dtypes are promoted.
        dim: the dimension.

    Raises:
        RuntimeError: if sizes do not match.

    Example:
        >>> torch.cat([torch.tensor([1, 2]), torch.tensor([3])])
        tensor([1, 2, 3])
    """
    shape = next((type_of(x).shape for x in tensors if not _skipped(type_of(x).shape)), (0,))
    d = wrap_dim(dim, len(shape)) if shape != (0,) else 0
    empty = (*shape[:d], 0, *shape[d + 1 :])
    parts = [reshaped(x, shape=empty) if _skipped(type_of(x).shape) else x for x in tensors]
    return concatenate(*parts, axis=d) if len(parts) > 1 else parts[0]


def _check_stack(tensors: Sequence[Tensor], dim: int = 0) -> None:
    if not tensors:
        raise RuntimeError("stack expects a non-empty TensorList")
    wrap_dim(dim, tensors[0].dim() + 1)
    for i, t in enumerate(tensors):
        if t.shape != tensors[0].shape:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {size_text(tensors[0].shape)} at entry 0 and "
                f"{size_text(t.shape)} at entry {i}"
            )


def _stacked_strides(given: dict[str, Any], types: Sequence[Any]) -> list[Any]:
    """The strides of the result of ``cat``, with the concatenated dimension split into two."""
    layouts, size = _operands(given), types[0].shape
    d = wrap_dim(given["dim"], len(size))
    if d == len(size) - 1:
        return [None]
    joined = (*size[:d], size[d] * size[d + 1], *size[d + 2 :])
    stride = _cat_strides(layouts, joined)
    return [None if stride is None else view_strides(joined, stride, size)]


@aten(
    "stack(Tensor[] tensors, int dim=0) -> Tensor",
    node="StackBackward0", saves="dim", names="torch.stack", dtypes=Dtypes(promote="common", numbers=True),
    layout=_stacked_strides, check=_check_stack, out=_check_cat_out, arguments=Arguments(static="dim"),
)  # fmt: skip
def stack(tensors, dim):
    """Concatenates tensors of the same size along a new dimension.

    Raises:
        RuntimeError: for different sizes.

    Example:
        >>> torch.stack([torch.tensor([1, 2]), torch.tensor([3, 4])])
        tensor([[1, 2],
                [3, 4]])
    """
    return np.stack(tensors, axis=wrap_dim(dim, type_of(tensors[0]).ndim + 1))


def _nonempty(name: str, tensors: Any) -> tuple[Tensor, ...]:
    checked = tensors_argument(name, tensors)
    if not checked:
        raise RuntimeError(f"{name} expects a non-empty TensorList")
    return checked


@composite(names="torch.atleast_1d")
def atleast_1d(*tensors: Any) -> Any:
    """Tensors with at least one dimension; 0-d tensors get one, others are returned unchanged.

    Example:
        >>> torch.atleast_1d(torch.tensor(5))
        tensor([5])
    """
    return _at_least(1, tensors)


@composite(names="torch.atleast_2d")
def atleast_2d(*tensors: Any) -> Any:
    """Tensors with at least two dimensions; new dimensions are added in front.

    Example:
        >>> torch.atleast_2d(torch.tensor([5, 6]))
        tensor([[5, 6]])
    """
    return _at_least(2, tensors)


@composite(names="torch.atleast_3d")
def atleast_3d(*tensors: Any) -> Any:
    """Tensors with at least three dimensions: a matrix gets one at the end, a vector one on each side.

    Example:
        >>> torch.atleast_3d(torch.tensor([5, 6])).shape
        torch.Size([1, 2, 1])
    """
    return _at_least(3, tensors)


def _at_least(n: int, tensors: Any) -> Any:
    if len(tensors) == 1:
        if isinstance(tensors[0], Tensor):
            return _with_ndim(n, tensors[0])
        tensors = tensors[0]
    return tuple(_with_ndim(n, t) for t in tensors_argument(f"atleast_{n}d", tensors))


def _with_ndim(n: int, t: Tensor) -> Tensor:
    """The tensor with at least ``n`` dimensions."""
    if t.dim() == 0:
        return reshape(t, (1,) * n)
    if t.dim() == 1 and n > 1:
        t = unsqueeze(t, 0)
    return unsqueeze(t, -1) if t.dim() == 2 and n == 3 else t


@composite("hstack(Tensor[] tensors) -> Tensor", names="torch.hstack", out=True, last="cat")
def hstack(tensors: Any) -> Tensor:
    """Concatenates tensors along the second dimension, vectors along the first.

    Example:
        >>> torch.hstack([torch.tensor([1]), torch.tensor([2])])
        tensor([1, 2])
    """
    parts = [_with_ndim(1, t) for t in _nonempty("hstack", tensors)]
    return cat(parts, 0 if parts[0].dim() == 1 else 1)


@composite("vstack(Tensor[] tensors) -> Tensor", names="torch.vstack torch.row_stack", out=True, last="cat")
def vstack(tensors: Any) -> Tensor:
    """Concatenates tensors along the first dimension, vectors as rows.

    Example:
        >>> torch.vstack([torch.tensor([1]), torch.tensor([2])])
        tensor([[1],
                [2]])
    """
    return cat([_with_ndim(2, t) for t in _nonempty("vstack", tensors)], 0)


@composite("dstack(Tensor[] tensors) -> Tensor", names="torch.dstack", out=True, last="cat")
def dstack(tensors: Any) -> Tensor:
    """Concatenates tensors along the third dimension.

    Example:
        >>> torch.dstack([torch.ones(2), torch.zeros(2)]).shape
        torch.Size([1, 2, 2])
    """
    return cat([_with_ndim(3, t) for t in _nonempty("dstack", tensors)], 2)


@composite("column_stack(Tensor[] tensors) -> Tensor", names="torch.column_stack", out=True, last="cat")
def column_stack(tensors: Any) -> Tensor:
    """Concatenates tensors along the second dimension, vectors as columns.

    Example:
        >>> torch.column_stack([torch.tensor([1, 2]), torch.tensor([3, 4])])
        tensor([[1, 3],
                [2, 4]])
    """
    parts = _nonempty("column_stack", tensors)
    return cat([reshape(t, (t.numel(), 1)) if t.dim() <= 1 else t for t in parts], 1)


# ---------------------------------------------------------------- flatten


@composite("flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)", errors="own")
def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Merges the dimensions from ``start_dim`` to ``end_dim`` into one.

    Raises:
        RuntimeError: if ``start_dim`` comes after ``end_dim``.

    Example:
        >>> torch.zeros(2, 3, 4).flatten(1).shape
        torch.Size([2, 12])
    """
    n = input.dim()
    start, end = wrap_dim(start_dim, n), wrap_dim(end_dim, n)
    if start > end:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if n == 0:
        return reshape(input, (1,))
    if start == end:
        return input
    size = tuple(input.shape)
    return reshape(input, (*size[:start], prod(size[start : end + 1]), *size[end + 1 :]))


@composite("ravel(Tensor(a) self) -> Tensor(a)", errors="own")
def ravel(input: Tensor) -> Tensor:
    """The flattened tensor; a view if the tensor is contiguous, else a copy.

    Example:
        >>> torch.ones(2, 3).ravel().shape
        torch.Size([6])
    """
    return reshape(input.contiguous(), (-1,)) if input.numel() else reshape(input.contiguous(), (0,))


@composite("unflatten.int(Tensor(a) self, int dim, SymInt[] sizes) -> Tensor(a)", names="torch.unflatten")
@composite(names="Tensor.unflatten")
def unflatten(input: Tensor, dim: int, sizes: Any) -> Tensor:
    """Splits one dimension into several; one of the sizes may be -1.

    Raises:
        RuntimeError: if the product of the sizes is not the dimension's size.

    Example:
        >>> torch.zeros(2, 12).unflatten(1, (3, -1)).shape
        torch.Size([2, 3, 4])
    """
    if input.dim() == 0:
        raise RuntimeError(
            f"unflatten got an unexpected error:\nDimension specified as {dim} but tensor has no dimensions"
        )
    if not hasattr(dim, "__index__"):
        raise wrong_argument("unflatten", "dim", 2, "int", dim)
    d = wrap_dim(dim.__index__(), input.dim())
    sizes = tuple(sizes)
    if not sizes:
        raise RuntimeError("unflatten: sizes must be non-empty")
    size = tuple(input.shape)
    try:
        new = inferred(sizes, size[d])
    except RuntimeError as error:
        if "is invalid for" not in str(error):
            raise RuntimeError(f"unflatten got an unexpected error:\n{error}") from None
        raise RuntimeError(
            f"unflatten: Provided sizes {size_text(sizes)} don't multiply up to the size of dim {d} ({size[d]}) in "
            "the input tensor"
        ) from None
    return view_size(input, (*size[:d], *new, *size[d + 1 :]))


# ---------------------------------------------------------------- repetition


def _check_repeat(input: Tensor, *repeats: Any) -> None:
    counts = repeats[0] if len(repeats) == 1 and isinstance(repeats[0], tuple) else repeats
    if len(counts) < input.dim():
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
    size = [n * c for n, c in zip((1,) * (len(counts) - input.dim()) + tuple(input.shape), counts)]
    if any(n < 0 for n in size):
        raise RuntimeError(
            f"Trying to create tensor with negative dimension {min(n for n in size if n < 0)}: {size_text(size)}"
        )


@aten(
    "repeat(Tensor self, SymInt[] repeats) -> Tensor",
    node="RepeatBackward0", saves="repeats self.sym_sizes", names="Tensor.repeat", check=_check_repeat,
)  # fmt: skip
def repeat(input, *repeats):
    """The tensor repeated ``repeats`` times along each dimension; more counts than dimensions add dimensions in front.

    Example:
        >>> torch.tensor([1, 2]).repeat(2, 2)
        tensor([[1, 2, 1, 2],
                [1, 2, 1, 2]])
    """
    shape = (1,) * (len(repeats) - type_of(input).ndim) + type_of(input).shape
    split = tuple(v for n in shape for v in (1, n))
    wide = tuple(v for n, c in zip(shape, repeats) for v in (c, n))
    return reshaped(
        np.broadcast_to(reshaped(input, shape=split), wide), shape=tuple(n * c for n, c in zip(shape, repeats))
    )


@composite("tile(Tensor self, SymInt[] dims) -> Tensor")
def tile(input: Tensor, *dims: Any) -> Tensor:
    """``repeat``, where missing counts are 1.

    Example:
        >>> torch.tile(torch.tensor([[1, 2]]), (2,))
        tensor([[1, 2, 1, 2]])
    """
    if not dims:
        raise missing("tile", "dims")
    counts = size_argument("tile", "dims", 2, dims)
    return repeat(input, (1,) * (input.dim() - len(counts)) + counts)


@function("torch.broadcast_tensors")
def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    """Tensors expanded to their broadcast size.

    Example:
        >>> [x.shape for x in torch.broadcast_tensors(torch.zeros(2, 1), torch.zeros(3))]
        [torch.Size([2, 3]), torch.Size([2, 3])]
    """
    found = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)) else tensors
    size = broadcast_size(*[tuple(t.shape) for t in found])
    return tuple(t if tuple(t.shape) == tuple(size) else expand(t, size) for t in found)


@function("torch.meshgrid")
def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Tensor, ...]:
    """The coordinates of the points of a grid: each vector along its own dimension, expanded along the others.

    Args:
        tensors: vectors, or numbers.
        indexing: ``"ij"``, or ``"xy"`` with the first two dimensions exchanged. By default ``"ij"``, with a warning.

    Raises:
        RuntimeError: for tensors with more than one dimension, and different dtypes or devices.

    Example:
        >>> torch.meshgrid(torch.arange(2), torch.arange(3), indexing="ij")[0]
        tensor([[0, 0, 0],
                [1, 1, 1]])
    """
    if indexing is None:
        Once.warn("torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument.")
    found = list(tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)) else tensors)
    if not found:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    if any(t.dtype is not found[0].dtype for t in found):
        raise RuntimeError("meshgrid expects all tensors to have the same dtype")
    if any(t.device != found[0].device for t in found):
        raise RuntimeError("meshgrid expects all tensors to have the same device")
    for t in found:
        if t.dim() > 1:
            raise RuntimeError(f"torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: {t}")
    if indexing not in (None, "ij", "xy"):
        raise RuntimeError(f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    swap = indexing == "xy" and len(found) >= 2
    if swap:
        found[0], found[1] = found[1], found[0]
    size = tuple(t.numel() for t in found)
    grids = [
        expand(view_size(t, (1,) * i + (t.numel(),) + (1,) * (len(found) - 1 - i)), size) for i, t in enumerate(found)
    ]
    if swap:
        grids[0], grids[1] = grids[1], grids[0]
    return tuple(grids)


@function("torch.cartesian_prod")
def cartesian_prod(*tensors: Tensor) -> Tensor:
    """All combinations of elements, one from each vector, as rows; a single vector is returned unchanged.

    Example:
        >>> torch.cartesian_prod(torch.tensor([1, 2]), torch.tensor([3, 4]))
        tensor([[1, 3],
                [1, 4],
                [2, 3],
                [2, 4]])
    """
    found = tensors_argument("cartesian_prod", tensors)
    for t in found:
        if t.dim() != 1:
            raise RuntimeError(f"Expect a 1D vector, but got shape {size_text(t.shape)}")
    return found[0] if len(found) == 1 else stack([flatten(g) for g in meshgrid(*found, indexing="ij")], 1)
