"""Sparse tensors whose coordinates are moved about: transposed, cut, joined."""

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
from compat._operators.sparse.tensor import SparseTensor, coalesced, nothing, rule, runs, sparse

# ---------------------------------------------------------------- dimensions


def _permuted(t: SparseTensor, dims: Sequence[int]) -> SparseTensor:
    count = t.sparse_dim()
    if sorted(dims[:count]) != list(range(count)):
        raise RuntimeError(
            "transpose(): sparse dimensions cannot be exchanged with dense ones; make the tensor sparse in all of them"
        )
    coordinates = array_of(t.coordinates)
    elements = t.elements.permute(0, *[d - count + 1 for d in dims[count:]])
    rows = from_array(np.stack([coordinates[d] for d in dims[:count]])) if count else t.coordinates
    return sparse(rows, elements, [t.shape[d] for d in dims], t.coalesced and list(dims[:count]) == list(range(count)))


def _permutation(name: str, t: SparseTensor, order: Sequence[int], /, **shown: Any) -> Tensor:
    dims = [wrap_dim(d, t.dim()) for d in order]
    back = [int(d) for d in np.argsort(dims)]
    with without_recording():
        made = _permuted(t, dims)
    return pulled(name, made, [t], lambda grad, _: [lambda: grad.permute(back)], **shown)


@rule("transpose", "swapaxes", "swapdims")
def transpose(input: SparseTensor, dim0: int, dim1: int) -> Tensor:
    """Two dimensions exchanged."""
    dims = list(range(input.dim()))
    dim0, dim1 = wrap_dim(dim0, input.dim()), wrap_dim(dim1, input.dim())
    dims[dim0], dims[dim1] = dim1, dim0
    return _permutation("TransposeBackward0", input, dims, dim0=dim0, dim1=dim1)


@rule("t")
def t(input: SparseTensor) -> Tensor:
    """Rows and columns exchanged."""
    return _permutation("TBackward0", input, range(input.dim())[::-1])


@rule("permute")
def permute(input: SparseTensor, dims: Sequence[int]) -> Tensor:
    """The dimensions in another order."""
    return _permutation("PermuteBackward0", input, list(dims), dims=tuple(dims))


@rule("T", "numpy_T", "mT", "matrix_H")
def reversed_dims(input: SparseTensor) -> Tensor:
    """The dimensions in the opposite order."""
    return permute(input, range(input.dim())[::-1])


@rule("unsqueeze")
def unsqueeze(input: SparseTensor, dim: int) -> Tensor:
    """One more dimension."""
    dim = wrap_dim(dim, input.dim() + 1)
    coordinates, size, count = list(array_of(input.coordinates)), list(input.shape), input.sparse_dim()
    size.insert(dim, 1)
    elements = input.elements
    if dim <= count:
        coordinates.insert(dim, np.zeros(input._nnz(), np.int64))
    else:
        elements = elements.unsqueeze(dim - count + 1)
    with without_recording():
        made = sparse(from_array(np.stack(coordinates)), elements, size, input.coalesced)
    return pulled("UnsqueezeBackward0", made, [input], lambda grad, _: [lambda: _first(grad, dim)], dim=dim)


def _first(grad: Tensor, dim: int) -> Tensor:
    return grad.select(dim, 0)


# ---------------------------------------------------------------- parts


def _cut(t: SparseTensor, dim: int, choose: Callable[[np.ndarray], np.ndarray], move: Any, size: list[int]) -> Tensor:
    """The elements whose coordinate along a dimension is chosen.

    Args:
        move: from the coordinates of those to the new ones; None to leave the dimension out.
    """
    coordinates = array_of(t.coordinates)
    (kept,) = np.nonzero(choose(coordinates[dim]))
    rows = [move(row[kept]) if d == dim else row[kept] for d, row in enumerate(coordinates) if d != dim or move]
    elements = t.elements.index_select(0, from_array(kept))
    if not rows:
        return elements.sum(0)
    return sparse(from_array(np.stack(rows)), elements, size, t.coalesced)


def _whole(grad: Tensor, size: Sequence[int], count: int, dim: int, start: int, removed: bool = False) -> Tensor:
    """The gradient of the whole, of that of a part: nothing around it.

    Args:
        size, count: the whole's size, and how many of its dimensions have coordinates.
        dim, start: where the part begins.
        removed: whether the part, of length one, has not that dimension.
    """
    torch = names_of("torch")
    if dim >= count or count == removed:
        part = grad.to_dense().unsqueeze(dim) if removed else grad.to_dense()
        before, after = list(size), list(size)
        before[dim], after[dim] = start, size[dim] - start - part.shape[dim]
        around = [torch["zeros"](n, dtype=grad.dtype) for n in (before, after)]
        found: Tensor = torch["cat"]([around[0], part, around[1]], dim).to_sparse(count)
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
    """The slice at one index of a dimension."""
    dim, index = wrap_dim(dim, input.dim()), int(index)
    n = input.shape[dim]
    if not -n <= index < n:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(input.shape)} at dimension {dim}"
        )
    index, size = index % n, [m for d, m in enumerate(input.shape) if d != dim]
    count = input.sparse_dim()
    shape = tuple(input.shape)
    with without_recording():
        if dim < count:
            made = _cut(input, dim, lambda row: row == index, None, size)
        else:
            made = sparse(input.coordinates, input.elements.select(dim - count + 1, index), size, input.coalesced)
    pull = lambda grad, _: [lambda: _whole(grad, shape, count, dim, index, True)]
    return pulled("SelectBackward0", made, [input], pull, dim=dim, index=index, self_sym_sizes=shape)


@rule("narrow_copy")
def narrow_copy(input: SparseTensor, dim: int, start: int, length: int) -> Tensor:
    """Some places along a dimension."""
    dim, count = wrap_dim(dim, input.dim()), input.sparse_dim()
    start = wrap_dim(int(start), input.shape[dim] + 1)
    size = [length if d == dim else n for d, n in enumerate(input.shape)]
    shape = tuple(input.shape)
    with without_recording():
        if dim < count:
            chosen = lambda row: (row >= start) & (row < start + length)
            made = _cut(input, dim, chosen, lambda row: row - start, size)
        else:
            elements = input.elements.narrow(dim - count + 1, start, length)
            made = sparse(input.coordinates, elements, size, input.coalesced)
    return pulled(
        "NarrowCopyBackward0", made, [input], lambda grad, _: [lambda: _whole(grad, shape, count, dim, start)]
    )


@rule("index_select")
def index_select(input: SparseTensor, dim: int, index: Tensor, **_: Any) -> Tensor:
    """The positions along a dimension that an index selects, in order."""
    dim, count = wrap_dim(dim, input.dim()), input.sparse_dim()
    wanted = array_of(index)
    n = input.shape[dim]
    if wanted.size and (wanted.min() < -n or wanted.max() >= n):
        raise IndexError(f"index_select(): index contains a number out of range for dimension of size {n}")
    size = [len(wanted) if d == dim else m for d, m in enumerate(input.shape)]

    def pull(grad: Tensor, kept: Mapping[str, Any]) -> Gradients:
        torch = names_of("torch")
        zeros = torch["zeros"](kept["self_sym_sizes"], dtype=grad.dtype)
        return [lambda: zeros.index_add(dim, kept["index"], grad.to_dense()).to_sparse(count)]

    with without_recording():
        if dim >= count:
            made = sparse(input.coordinates, input.elements.index_select(dim - count + 1, index), size, input.coalesced)
        else:
            made = _picked(coalesced(input), dim, wanted % max(n, 1), size)
    shown = {"dim": dim, "index": index, "self_sym_sizes": tuple(input.shape)}
    return pulled("IndexSelectBackward0", made, [input], pull, **shown)


def _picked(t: SparseTensor, dim: int, wanted: np.ndarray, size: Sequence[int]) -> SparseTensor:
    coordinates = array_of(t.coordinates)
    order = np.argsort(coordinates[dim], kind="stable")
    row = coordinates[dim][order]
    starts, ends = np.searchsorted(row, wanted), np.searchsorted(row, wanted, side="right")
    new, found = runs(starts, ends - starts)
    kept = order[found]
    rows = [new if d == dim else row[kept] for d, row in enumerate(coordinates)]
    return sparse(from_array(np.stack(rows)), t.elements.index_select(0, from_array(kept)), size, False)


@rule("unbind")
def unbind(input: SparseTensor, dim: int = 0) -> tuple[Tensor, ...]:
    """The slices at each index of a dimension."""
    return tuple(select(input, dim, i) for i in range(input.shape[wrap_dim(dim, input.dim())]))


# ---------------------------------------------------------------- joined


@rule("cat", "concat", "concatenate")
def cat(tensors: Sequence[Any], dim: int = 0, **_: Any) -> Tensor:
    """Sparse tensors one after the other along a dimension."""
    first = tensors[0]
    if not all(isinstance(t, SparseTensor) for t in tensors):
        raise RuntimeError("cat(): sparse tensors can be joined with sparse ones only; convert the others first")
    dim, count = wrap_dim(dim, first.dim()), first.sparse_dim()
    sizes = [t.shape[dim] for t in tensors]
    size = [sum(sizes) if d == dim else n for d, n in enumerate(first.shape)]
    starts = np.cumsum([0, *sizes[:-1]])
    if dim >= count:
        raise RuntimeError("cat(): sparse tensors are joined along dimensions that have coordinates")
    with without_recording():
        parts = []
        for t, start in zip(tensors, starts):
            coordinates = array_of(t.coordinates).copy()
            coordinates[dim] += start
            parts.append(coordinates)
        elements = names_of("torch")["cat"]([t.elements for t in tensors])
        made = sparse(from_array(np.concatenate(parts, 1)), elements, size, False)
        if dim == 0 and all(t.coalesced for t in tensors):
            made = coalesced(made)

    def pull(grad: Tensor, _: Any) -> Gradients:
        part = grad.narrow_copy if isinstance(grad, SparseTensor) else grad.narrow
        return [partial(part, dim, int(start), n) for start, n in zip(starts, sizes)]

    return pulled("CatBackward0", made, list(tensors), pull, dim=dim)


@rule("stack")
def stack(tensors: Sequence[Any], dim: int = 0, **_: Any) -> Tensor:
    """Sparse tensors side by side along a new dimension."""
    return cat([unsqueeze(t, dim) for t in tensors], dim)


# ---------------------------------------------------------------- sizes


def _resized(t: SparseTensor, size: Sequence[int], sparse_dim: int, dense_dim: int, clear: bool) -> SparseTensor:
    if sparse_dim + dense_dim != len(size):
        raise RuntimeError(
            f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(size)}, sparse_dim = "
            f"{sparse_dim}, dense_dim = {dense_dim}"
        )
    if clear:
        return nothing(size, t.dtype, sparse_dim)
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
    """Gives a sparse tensor a larger size in place, without moving its elements.

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
    """Gives a sparse tensor another size in place, and takes all elements from it.

    Raises:
        NotImplementedError: for a tensor that is not sparse.
    """
    return _resize("sparse_resize_and_clear_", self, size, sparse_dim, dense_dim, True)


def _resize(name: str, t: Tensor, size: Sequence[int], sparse_dim: int, dense_dim: int, clear: bool) -> Tensor:
    from compat._core.dispatch.layout_tensor import written

    if not isinstance(t, SparseTensor):
        raise refusal(f"aten::{name}", "CPU")
    return written(t, _resized(t, tuple(size), sparse_dim, dense_dim, clear))
