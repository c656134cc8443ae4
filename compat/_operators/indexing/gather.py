"""Reading along a dimension: ``gather``, ``index_select``, ``take``, ``take_along_dim``."""

from __future__ import annotations

from typing import Any

import numpy

from compat._core.memory.strides import broadcast_size
from compat._core.operators.composite import composite
from compat._core.operators.declaration import Gradients
from compat._core.operators.op import aten
from compat._core.operators.out import of_dtype
from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor, array_of, from_array
from compat._core.types import dtype as dtypes
from compat._core.types.errors import size_text, wrap_dim
from compat._operators.indexing.indices import (
    INDEX_DTYPES,
    as_vector,
    check_in_bounds,
    check_index_size,
    check_take,
    extent,
    flat,
    flat_indices,
    from_start,
    inspect_take,
    out_of_range,
)
from funcgrad import numpy as np
from funcgrad.core.tracing import type_of
from funcgrad.primitives.indexing import take as take_slices
from funcgrad.primitives.shape import reshape


def _check_select(input: Tensor, dim: int, index: Tensor) -> None:
    wrap_dim(dim, input.dim())
    if index.dim() > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    if index.dtype not in INDEX_DTYPES:
        raise RuntimeError("index_select(): Expected dtype int32 or int64 for index")
    if not input.dim() and index.numel() != 1:
        raise RuntimeError(f"index_select(): Index to scalar can have only 1 value, got {index.numel()} value(s)")


def _inspect_select(input: Tensor, dim: int, index: Tensor) -> None:
    size = extent(input, dim)
    bad = out_of_range(index, 0, size)
    if bad is None:
        return
    if input.dim() > 1 and not size:
        raise RuntimeError("index_select(): self indexing axis dim should be positive")
    if input.dim() > 1 and (wrap_dim(dim, input.dim()) == 1 or not input.numel()):
        raise RuntimeError(f"INDICES element is out of DATA bounds, id={bad} axis_dim={size}")
    raise IndexError("index out of range in self")


@aten(
    "index_select(Tensor self, int dim, Tensor index) -> Tensor",
    node="IndexSelectBackward0", saves="dim index self.sym_sizes", check=_check_select, values=_inspect_select,
    out=of_dtype("index_select(): self and result must have the same scalar type"),
    gradients=Gradients(without="index"),
)  # fmt: skip
def index_select(input, dim, index):
    """The slices along a dimension at the indices in a vector.

    Args:
        index: a vector of int32 or int64, non-negative.
        out: a tensor to write the result into.

    Raises:
        IndexError: for indices out of bounds, or an index that is not a vector.
        RuntimeError: for an index of another dtype, and indices out of bounds along the second dimension.

    Example:
        >>> torch.tensor([[1, 2], [3, 4]]).index_select(0, torch.tensor([1, 1]))
        tensor([[3, 4],
                [3, 4]])
    """
    found = take_slices(as_vector(input), flat(index), axis=dim, mode="clip")
    return found if type_of(input).shape else reshape(found, shape=())


# ---------------------------------------------------------------- gather


def _check_gather(input: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> None:
    check_index_size(input, dim, index, "gather")
    along = wrap_dim(dim, input.dim())
    if index.numel():
        for d in range(min(index.dim(), input.dim())):
            if d != along and index.shape[d] > input.shape[d]:
                raise RuntimeError(
                    f"Size does not match at dimension {d} expected index {size_text(index.shape)} to be no larger "
                    f"than self {size_text(input.shape)} apart from dimension {along}"
                )


def _inspect_gather(input: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> None:
    check_in_bounds(index, input, wrap_dim(dim, input.dim()))


@aten(
    "gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor",
    node="GatherBackward0", saves="self! dim index! sparse_grad", check=_check_gather, values=_inspect_gather,
    gradients=Gradients(without="index"),
)  # fmt: skip
def gather(input, dim, index, *, sparse_grad):
    """The elements at indices along a dimension: for ``dim=1``, ``out[i][j][k] = input[i][index[i][j][k]][k]``.

    Args:
        index: int32 or int64, non-negative; no larger than ``input`` except along ``dim``.
        sparse_grad: whether the gradient of ``input`` is a sparse tensor.
        out: a tensor to write the result into.

    Raises:
        RuntimeError: for indices out of bounds, sizes that do not match, and an index of another dtype.

    Example:
        >>> torch.tensor([[1, 2], [3, 4]]).gather(1, torch.tensor([[1], [0]]))
        tensor([[2],
                [3]])
    """
    size = type_of(index).shape
    if not type_of(index).size:
        return reshape(np.at(flat(input))[slice(0, 0)].get(), shape=size)
    places = flat_indices(as_vector(index), type_of(as_vector(input)).shape, dim)
    return reshape(take_slices(flat(input), places, axis=0, mode="clip"), shape=size)


@gather.gradient_if("sparse_grad")
def gather_sparse_gradient(node: Any, grad: Tensor) -> Tensor:
    """The gradient as a sparse tensor with one element for each index."""
    size = node._saved_self.shape
    index = array_of(node._saved_index).reshape(-1 if len(size) == 1 else node._saved_index.shape)
    coordinates = numpy.indices(index.shape).reshape(index.ndim, index.size)
    if size:
        coordinates[node.plan.kernel.shows["dim"]] = index.ravel()
    indices = from_array(coordinates[: len(size)].astype(numpy.int64))
    made: Tensor = names_of("torch")["sparse_coo_tensor"](indices, grad.reshape(-1), size)
    return made


# ---------------------------------------------------------------- take


@aten(
    "take(Tensor self, Tensor index) -> Tensor",
    node="TakeBackward0", saves="self! index!", check=check_take, values=inspect_take,
    out=of_dtype(
        "take(): self and out expected to have the same dtype, but got self.dtype = {result} and out.dtype = {out}"
    ),
    gradients=Gradients(without="index"),
)  # fmt: skip
def take(input, index):
    """The elements at flat indices; negative ones count from the end.

    Raises:
        RuntimeError: for an index that is not int64.
        IndexError: for indices out of bounds.

    Example:
        >>> torch.tensor([[1, 2], [3, 4]]).take(torch.tensor([0, -1]))
        tensor([1, 4])
    """
    elements = flat(input)
    if not type_of(elements).size:
        return reshape(elements, shape=type_of(index).shape)
    return take_slices(elements, from_start(index, type_of(elements).size), axis=0, mode="clip")


@composite("take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor")
def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None, *, out: Tensor | None = None) -> Tensor:
    """``gather`` with the other dimensions broadcast; without ``dim``, from the flattened tensor.

    Raises:
        RuntimeError: for indices that are not int64, or have a different number of dimensions.

    Example:
        >>> x = torch.tensor([[3, 1], [2, 4]])
        >>> torch.take_along_dim(x, x.argmax(1, keepdim=True), 1)
        tensor([[3],
                [4]])
    """
    if indices.dtype is not dtypes.int64:
        raise RuntimeError(
            f"torch.take_along_dim(): dtype of indices should be Long but got {indices.dtype.scalar_name}"
        )
    if dim is None:
        return gather.function(input.view(-1), 0, indices.view(-1), out=out)
    if indices.dim() != input.dim():
        raise RuntimeError(
            "torch.take_along_dim(): input and indices should have the same number of dimensions, "
            f"but got {input.dim()} dimensions for input, and {indices.dim()} dimensions for indices"
        )
    dim = wrap_dim(dim, input.dim())
    common = list(broadcast_size(*[tuple(n for d, n in enumerate(t.shape) if d != dim) for t in (input, indices)]))
    sizes = [[*common[:dim], t.shape[dim], *common[dim:]] if t.dim() else [] for t in (input, indices)]
    indices = indices.expand(sizes[1])
    if input.dim():
        indices = indices.remainder(input.shape[dim])
    return gather.function(input.expand(sizes[0]), dim, indices, out=out)
