"""Operators on sparse tensors that change their coordinates: transposition, slices, concatenation, sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from compat._core.autograd.callback_node import pulled, without_recording
from compat._core.operators.composite import composite
from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor, array_of, from_array
from compat._core.types.errors import refusal, wrap_dim
from compat._operators.sparse.conversion import Gradients, coalesce, sparse_coo_tensor, values
from compat._operators.sparse.tensor import (
    SparseTensor,
    checked_index,
    coalesced,
    concatenated_ranges,
    empty_coo,
    rule,
    sparse,
)

# ---------------------------------------------------------------- dimensions


def _permuted(t: SparseTensor, dims: Sequence[int]) -> SparseTensor:
    count = t.sparse_dim()
    if sorted(dims[:count]) != list(range(count)):
        raise RuntimeError(
            "transpose(): sparse dimensions cannot be transposed with dense ones; make the tensor sparse in all of them"
        )
    coordinates = array_of(t.coordinates)
    elements = t.elements.permute(0, *[d - count + 1 for d in dims[count:]])
    rows = from_array(np.stack([coordinates[d] for d in dims[:count]])) if count else t.coordinates
    return sparse(rows, elements, [t.shape[d] for d in dims], t.coalesced and list(dims[:count]) == list(range(count)))


def _permutation(name: str, t: SparseTensor, order: Sequence[int], /, **saved: Any) -> Tensor:
    dims = [wrap_dim(d, t.dim()) for d in order]
    inverse = [int(d) for d in np.argsort(dims)]
    with without_recording():
        result = _permuted(t, dims)
    return pulled(name, result, [t], lambda grad, _: [lambda: grad.permute(inverse)], **saved)


@rule("transpose", "swapaxes", "swapdims")
def transpose(input: SparseTensor, dim0: int, dim1: int) -> Tensor:
    """The tensor with two dimensions transposed."""
    dims = list(range(input.dim()))
    dim0, dim1 = wrap_dim(dim0, input.dim()), wrap_dim(dim1, input.dim())
    dims[dim0], dims[dim1] = dim1, dim0
    return _permutation("TransposeBackward0", input, dims, dim0=dim0, dim1=dim1)


@rule("t")
def t(input: SparseTensor) -> Tensor:
    """The transpose of a matrix."""
    return _permutation("TBackward0", input, range(input.dim())[::-1])


@rule("permute")
def permute(input: SparseTensor, dims: Sequence[int]) -> Tensor:
    """The tensor with its dimensions in another order."""
    return _permutation("PermuteBackward0", input, list(dims), dims=tuple(dims))


@rule("T", "numpy_T", "mT", "matrix_H")
def reversed_dims(input: SparseTensor) -> Tensor:
    """The tensor with its dimensions in reverse order."""
    return permute(input, range(input.dim())[::-1])


@rule("unsqueeze")
def unsqueeze(input: SparseTensor, dim: int) -> Tensor:
    """The tensor with a new dimension of size 1."""
    dim = wrap_dim(dim, input.dim() + 1)
    coordinates, size, count = list(array_of(input.coordinates)), list(input.shape), input.sparse_dim()
    size.insert(dim, 1)
    elements = input.elements
    if dim <= count:
        coordinates.insert(dim, np.zeros(input._nnz(), np.int64))
    else:
        elements = elements.unsqueeze(dim - count + 1)
    with without_recording():
        result = sparse(from_array(np.stack(coordinates)), elements, size, input.coalesced)
    return pulled("UnsqueezeBackward0", result, [input], lambda grad, _: [lambda: grad.select(dim, 0)], dim=dim)


# ---------------------------------------------------------------- slices


def _slice(t: SparseTensor, dim: int, select: Callable[[np.ndarray], np.ndarray], move: Any, size: list[int]) -> Tensor:
    """The elements whose coordinates along a dimension are selected.

    Args:
        select: the mask of selected coordinates.
        move: the new coordinates of selected ones; None to remove the dimension.
    """
    coordinates = array_of(t.coordinates)
    (kept,) = np.nonzero(select(coordinates[dim]))
    rows = [move(row[kept]) if d == dim else row[kept] for d, row in enumerate(coordinates) if d != dim or move]
    elements = t.elements.index_select(0, from_array(kept))
    if not rows:
        return elements.sum(0)
    return sparse(from_array(np.stack(rows)), elements, size, t.coalesced)


def _padded(grad: Tensor, size: Sequence[int], count: int, dim: int, start: int, removed: bool = False) -> Tensor:
    """The gradient of a tensor, from that of a slice.

    Args:
        size, count: the size of the tensor, and the number of its sparse dimensions.
        dim, start: the dimension of the slice, and its first index.
        removed: whether the slice, of length one, does not have the dimension.
    """
    torch = names_of("torch")
    if dim >= count or count == removed:
        part = grad.to_dense().unsqueeze(dim) if removed else grad.to_dense()
        before, after = list(size), list(size)
        before[dim], after[dim] = start, size[dim] - start - part.shape[dim]
        first, last = [torch["zeros"](n, dtype=grad.dtype) for n in (before, after)]
        found: Tensor = torch["cat"]([first, part, last], dim).to_sparse(count)
        return found
    g = coalesce(grad if isinstance(grad, SparseTensor) else grad.to_sparse(count - removed))
    rows = list(array_of(g.coordinates))
    if removed:
        rows.insert(dim, np.full(g._nnz(), start))
    else:
        rows[dim] = rows[dim] + start
    return sparse_coo_tensor(from_array(np.stack(rows)), values(g), size)


@rule("select")
def select(input: SparseTensor, dim: int, index: Any) -> Tensor:
    """The slice at an index of a dimension."""
    dim, index = checked_index(input, dim, index)
    size = [m for d, m in enumerate(input.shape) if d != dim]
    count = input.sparse_dim()
    shape = tuple(input.shape)
    with without_recording():
        if dim < count:
            result = _slice(input, dim, lambda row: row == index, None, size)
        else:
            result = sparse(input.coordinates, input.elements.select(dim - count + 1, index), size, input.coalesced)
    pull = lambda grad, _: [lambda: _padded(grad, shape, count, dim, index, True)]
    return pulled("SelectBackward0", result, [input], pull, dim=dim, index=index, self_sym_sizes=shape)


@rule("narrow_copy")
def narrow_copy(input: SparseTensor, dim: int, start: int, length: int) -> Tensor:
    """A range of a dimension."""
    dim, count = wrap_dim(dim, input.dim()), input.sparse_dim()
    start = wrap_dim(int(start), input.shape[dim] + 1)
    size = [length if d == dim else n for d, n in enumerate(input.shape)]
    shape = tuple(input.shape)
    with without_recording():
        if dim < count:
            in_range = lambda row: (row >= start) & (row < start + length)
            result = _slice(input, dim, in_range, lambda row: row - start, size)
        else:
            elements = input.elements.narrow(dim - count + 1, start, length)
            result = sparse(input.coordinates, elements, size, input.coalesced)
    return pulled(
        "NarrowCopyBackward0", result, [input], lambda grad, _: [lambda: _padded(grad, shape, count, dim, start)]
    )


@rule("index_select")
def index_select(input: SparseTensor, dim: int, index: Tensor, **_: Any) -> Tensor:
    """The slices of a dimension at the numbers in ``index``."""
    dim, count = wrap_dim(dim, input.dim()), input.sparse_dim()
    numbers = array_of(index)
    n = input.shape[dim]
    if numbers.size and (numbers.min() < -n or numbers.max() >= n):
        raise IndexError(f"index_select(): index contains a number out of range for dimension of size {n}")
    size = [len(numbers) if d == dim else m for d, m in enumerate(input.shape)]

    def pull(grad: Tensor, kept: Mapping[str, Any]) -> Gradients:
        torch = names_of("torch")
        zeros = torch["zeros"](kept["self_sym_sizes"], dtype=grad.dtype)
        return [lambda: zeros.index_add(dim, kept["index"], grad.to_dense()).to_sparse(count)]

    with without_recording():
        if dim >= count:
            result = sparse(
                input.coordinates, input.elements.index_select(dim - count + 1, index), size, input.coalesced
            )
        else:
            result = _selected(coalesced(input), dim, numbers % max(n, 1), size)
    return pulled(
        "IndexSelectBackward0", result, [input], pull, dim=dim, index=index, self_sym_sizes=tuple(input.shape)
    )


def _selected(t: SparseTensor, dim: int, index: np.ndarray, size: Sequence[int]) -> SparseTensor:
    coordinates = array_of(t.coordinates)
    order = np.argsort(coordinates[dim], kind="stable")
    row = coordinates[dim][order]
    starts, ends = np.searchsorted(row, index), np.searchsorted(row, index, side="right")
    new, found = concatenated_ranges(starts, ends - starts)
    kept = order[found]
    rows = [new if d == dim else row[kept] for d, row in enumerate(coordinates)]
    return sparse(from_array(np.stack(rows)), t.elements.index_select(0, from_array(kept)), size, False)


# ---------------------------------------------------------------- concatenation


@rule("cat", "concat", "concatenate")
def cat(tensors: Sequence[Any], dim: int = 0, **_: Any) -> Tensor:
    """The concatenation of sparse tensors along a dimension."""
    first = tensors[0]
    if not all(isinstance(t, SparseTensor) for t in tensors):
        raise RuntimeError("cat(): sparse tensors can only be concatenated with sparse tensors")
    dim, count = wrap_dim(dim, first.dim()), first.sparse_dim()
    sizes = [t.shape[dim] for t in tensors]
    size = [sum(sizes) if d == dim else n for d, n in enumerate(first.shape)]
    starts = np.cumsum([0, *sizes[:-1]])
    if dim >= count:
        raise RuntimeError("cat(): sparse tensors can only be concatenated along sparse dimensions")
    with without_recording():
        parts = []
        for t, start in zip(tensors, starts):
            coordinates = array_of(t.coordinates).copy()
            coordinates[dim] += start
            parts.append(coordinates)
        elements = names_of("torch")["cat"]([t.elements for t in tensors])
        result = sparse(from_array(np.concatenate(parts, 1)), elements, size, False)
        if dim == 0 and all(t.coalesced for t in tensors):
            result = coalesced(result)

    def pull(grad: Tensor, _: Any) -> Gradients:
        part = grad.narrow_copy if isinstance(grad, SparseTensor) else grad.narrow
        return [partial(part, dim, int(start), n) for start, n in zip(starts, sizes)]

    return pulled("CatBackward0", result, list(tensors), pull, dim=dim)


@rule("stack")
def stack(tensors: Sequence[Any], dim: int = 0, **_: Any) -> Tensor:
    """The concatenation of sparse tensors along a new dimension."""
    return cat([unsqueeze(t, dim) for t in tensors], dim)


# ---------------------------------------------------------------- sizes


def _resized(t: SparseTensor, size: Sequence[int], sparse_dim: int, dense_dim: int, clear: bool) -> SparseTensor:
    if sparse_dim + dense_dim != len(size):
        raise RuntimeError(
            f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(size)}, sparse_dim = "
            f"{sparse_dim}, dense_dim = {dense_dim}"
        )
    if clear:
        return empty_coo(size, t.dtype, sparse_dim)
    if sparse_dim != t.sparse_dim() or tuple(size[sparse_dim:]) != tuple(t.shape[sparse_dim:]):
        raise RuntimeError("changing the number of sparse or dense dimensions on a non-empty tensor is not supported")
    if any(new < old for new, old in zip(size, t.shape)):
        raise RuntimeError("shrinking the size of sparse dimensions on a non-empty sparse tensor is not supported.")
    return sparse(t.coordinates, t.elements, size, t.coalesced)


@composite(
    "sparse_resize_(Tensor(a!) self, int[] size, int sparse_dim, int dense_dim) -> Tensor(a!)",
    names="Tensor.sparse_resize_", errors="own",
)  # fmt: skip
def sparse_resize_(self: Tensor, size: Sequence[int], sparse_dim: int, dense_dim: int) -> Tensor:
    """Changes the size of a sparse tensor in place to a larger one; the coordinates of elements stay the same.

    Raises:
        NotImplementedError: for a tensor that is not sparse.
        RuntimeError: for a smaller size.
    """
    return _resize("sparse_resize_", self, size, sparse_dim, dense_dim, False)


@composite(
    "sparse_resize_and_clear_(Tensor(a!) self, int[] size, int sparse_dim, int dense_dim) -> Tensor(a!)",
    names="Tensor.sparse_resize_and_clear_", errors="own",
)  # fmt: skip
def sparse_resize_and_clear_(self: Tensor, size: Sequence[int], sparse_dim: int, dense_dim: int) -> Tensor:
    """Changes the size of a sparse tensor in place, and removes all elements.

    Raises:
        NotImplementedError: for a tensor that is not sparse.
    """
    return _resize("sparse_resize_and_clear_", self, size, sparse_dim, dense_dim, True)


def _resize(name: str, t: Tensor, size: Sequence[int], sparse_dim: int, dense_dim: int, clear: bool) -> Tensor:
    from compat._core.dispatch.layout_tensor import written

    if not isinstance(t, SparseTensor):
        raise refusal(f"aten::{name}", "CPU")
    return written(t, _resized(t, tuple(size), sparse_dim, dense_dim, clear))
