"""Sums, norms and softmax of sparse tensors, and ``spdiags``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from compat._core.autograd.callback_node import outside, pulled, without_recording
from compat._core.operators.composite import composite
from compat._core.tensor.registry import function, names_of
from compat._core.tensor.tensor import Tensor, array_of, from_array
from compat._core.types.errors import refusal, wrap_dim
from compat._core.types.memory_format import LAYOUTS, scalar_layout_name
from compat._operators.sparse.arithmetic import sparse_rule
from compat._operators.sparse.compressed import CompressedTensor, compress
from compat._operators.sparse.conversion import Gradients, coalesce, values, with_elements
from compat._operators.sparse.tensor import (
    AnySparse,
    SparseTensor,
    coalesced,
    coalesced_from,
    ravel_index,
    rule,
    segment_sum,
    sparse,
)


def _dims(dim: Any, ndim: int) -> list[int]:
    return [wrap_dim(d, ndim) for d in ([dim] if isinstance(dim, int) else dim)]


def _total(t: SparseTensor, dims: Sequence[int]) -> Tensor:
    """The sum over dimensions, detached; dense if no sparse dimension remains."""
    count = t.sparse_dim()
    elements = t.elements
    inner = [d - count + 1 for d in dims if d >= count]
    elements = elements.sum(inner) if inner else elements
    kept = [d for d in range(count) if d not in dims]
    size = [n for d, n in enumerate(t.shape) if d not in dims]
    if not kept:
        return elements.sum(0)
    if len(kept) == count:
        return sparse(t.coordinates, elements, size, t.coalesced)
    lengths = [t.shape[d] for d in kept]
    coordinates = array_of(t.coordinates)
    return coalesced_from(ravel_index(np.stack([coordinates[d] for d in kept]), lengths), elements, lengths, size)


@sparse_rule("sum")
def total(input: AnySparse, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, **_: Any) -> Tensor:
    """The sum of all elements, or over dimensions."""
    if dim is not None and dim != [] and isinstance(input, CompressedTensor):
        return _sum_of_rows(input, dim, keepdim, dtype)
    if dim is not None and dim != []:
        assert isinstance(input, SparseTensor)
        found = _sum("SumBackward1", input, dim, dtype)
        for d in sorted(_dims(dim, input.dim())) if keepdim else ():
            found = found.unsqueeze(d)
        return found
    with without_recording():
        result = input.elements.sum(dtype=dtype)
    size, input_dtype = tuple(input.shape), input.dtype
    pull = lambda grad, _: [lambda: grad.to(input_dtype).expand(size)]
    return pulled("SumBackward0", result, [input], pull, self_sym_sizes=size)


def _sum_of_rows(t: CompressedTensor, dim: Any, keepdim: bool, dtype: Any) -> Tensor:
    """The sums over rows or columns of a CSR tensor, which are kept as dimensions of size 1."""
    if t.layout is not LAYOUTS["sparse_csr"]:
        raise RuntimeError(
            "Currently the only compressed sparse format supported for sum.dim_IntList is CSR, but got layout "
            f"{scalar_layout_name(t.layout)}"
        )
    if not keepdim:
        raise RuntimeError("reduction operations on CSR tensors with keepdim=False is unsupported")
    dims = _dims(dim, t.dim())
    with without_recording():
        elements = t.elements if dtype is None else t.elements.to(dtype)
        at = array_of(t.coordinates).copy()
        at[dims] = 0
        reduced = [1 if d in dims else n for d, n in enumerate(t.shape)]
        result = compress(sparse(from_array(at), elements, reduced, False), t.layout, (1, 1), array_of(t.plain).dtype)
    size, input_dtype = tuple(t.shape), t.dtype
    pull = lambda grad, _: [lambda: grad.to_dense().to(input_dtype).expand(size)]
    return pulled("SumBackward1", result, [t], pull, self_sym_sizes=size, dim=tuple(dims), keepdim=keepdim)


def _sum(name: str, t: SparseTensor, dim: Any, dtype: Any) -> Tensor:
    dims = _dims(dim, t.dim())
    with without_recording():
        result = _total(t, dims)
        result = result if dtype is None else result.to(dtype)

    def pull(grad: Tensor, kept: Mapping[str, Any]) -> Gradients:
        x = kept["self"]

        def gradient() -> Tensor:
            g = grad.to_dense().to(x.dtype)
            for d in sorted(dims):
                g = g.unsqueeze(d)
            return g.expand(x.shape).sparse_mask(coalesced(x))

        return [gradient]

    return pulled(name, result, [t], pull, self=t, dim=tuple(dims))


@composite(
    "_sparse_sum(Tensor self) -> Tensor",
    "_sparse_sum.dtype(Tensor self, *, ScalarType dtype) -> Tensor",
    "_sparse_sum.dim(Tensor self, int[1] dim) -> Tensor",
    "_sparse_sum.dim_dtype(Tensor self, int[1] dim, *, ScalarType dtype) -> Tensor",
    names="sparse.sum torch._sparse_sum",
)
def sparse_sum(input: Tensor, dim: Any = None, dtype: Any = None) -> Tensor:
    """The sum of all elements of a sparse tensor, or the sums over dimensions.

    Args:
        input: a sparse tensor.
        dim: the dimension, or several; all by default, for a dense 0-d tensor.
        dtype: the dtype of the result.

    Returns:
        A sparse tensor, or a dense one if no sparse dimension remains.

    Example:
        >>> torch.sparse.sum(torch.tensor([[0.0, 2.0], [3.0, 4.0]]).to_sparse(), 0)
        tensor(indices=tensor([[0, 1]]),
               values=tensor([3., 6.]),
               size=(2,), nnz=2, layout=torch.sparse_coo)
    """
    if isinstance(input, CompressedTensor) and dim is None:
        raise RuntimeError(
            f"coalesce expected sparse coordinate tensor layout but got {scalar_layout_name(input.layout)}"
        )
    if isinstance(input, CompressedTensor):
        raise refusal("aten::_indices", "SparseCsrCPU")
    if not isinstance(input, SparseTensor):
        raise refusal("aten::_sparse_sum")
    if dim is None:
        found: Tensor = values(coalesce(input)).sum(dtype=dtype)
        return found
    return _sum("SparseSumBackward0", input, dim, dtype)


@rule("any")
def any_(input: SparseTensor, **_: Any) -> Tensor:
    """Whether any element is not zero."""
    found: Tensor = coalesced(input).elements.any()
    return found


@rule("linalg_vector_norm")
def norm(input: SparseTensor, ord: Any = 2, dim: Any = None, *_: Any, **__: Any) -> Tensor:
    """The norm of all elements."""
    if dim is not None and len(_dims(dim, input.dim())) not in (0, input.dim()):
        raise RuntimeError(
            "norm_sparse currently only supports full reductions, so 'dim' must either be empty or contain all "
            "dimensions of the input"
        )
    found: Tensor = names_of("linalg")["vector_norm"](values(coalesce(input)), ord)
    return found


# ---------------------------------------------------------------- softmax


def _segments(t: SparseTensor, dim: int) -> tuple[np.ndarray, int]:
    """The slice along a dimension that each element belongs to, and the number of slices with elements."""
    coordinates = array_of(t.coordinates)
    others = [d for d in range(t.sparse_dim()) if d != dim]
    size = [t.shape[d] for d in others]
    rows = np.stack([coordinates[d] for d in others]) if others else np.zeros((0, t._nnz()), np.int64)
    found, slices = np.unique(ravel_index(rows, size), return_inverse=True)
    return slices.reshape(-1), len(found)


def _softmax(name: str, input: Tensor, dim: int, dtype: Any, logarithm: bool) -> Tensor:
    if not isinstance(input, SparseTensor):
        backend = "SparseCsrCPU" if isinstance(input, CompressedTensor) else "SparseCPU"
        raise refusal(f"aten::_sparse_{'log_' if logarithm else ''}softmax", backend)
    x = coalesced(input if dtype is None else input.to(dtype))
    dim = wrap_dim(dim, x.dim())
    count = x.sparse_dim()
    if dim >= count:
        function = names_of("torch")["log_softmax" if logarithm else "softmax"]
        return with_elements(coalesce(input), function(values(coalesce(input)), dim - count + 1))
    segments, slices = _segments(x, dim)
    at = from_array(segments)
    with without_recording():
        shape = (slices, *x.elements.shape[1:])
        index = at.reshape(-1, *[1] * (x.elements.dim() - 1)).expand(x.elements.shape)
        maximum = x.elements.new_full(shape, -float("inf")).scatter_reduce(0, index, x.elements, "amax")
        shifted = x.elements - maximum.index_select(0, at)
        sums = segment_sum(shifted.exp(), segments, slices).index_select(0, at)
        result = x.replace_elements(shifted - sums.log() if logarithm else shifted.exp() / sums)

    def pull(grad: Tensor, kept: Mapping[str, Any]) -> Gradients:
        result = kept["result"]

        def gradient() -> Tensor:
            g = grad.sparse_mask(result).coalesce().values() if grad.is_sparse else grad.sparse_mask(result).values()
            y = result.values()
            slice_sums = lambda t: t.new_zeros(shape).index_add(0, at, t).index_select(0, at)
            found = g - y.exp() * slice_sums(g) if logarithm else y * (g - slice_sums(g * y))
            return with_elements(result, found)

        return [gradient]

    return pulled(name, result, [input], pull, dim=dim, result=result.detach())


@function("sparse.softmax", "torch._sparse_softmax")
def softmax(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """Softmax along a dimension of a sparse tensor, with minus infinity for unspecified elements.

    Args:
        input: a sparse tensor.
        dim: the dimension.
        dtype: the dtype to which the input is cast first.

    Example:
        >>> torch.sparse.softmax(torch.tensor([[0.0, 2.0], [3.0, 3.0]]).to_sparse(), 1).to_dense()
        tensor([[0.0000, 1.0000],
                [0.5000, 0.5000]])
    """
    return _softmax("SparseSoftmaxBackward0", input, dim, dtype, False)


@function("sparse.log_softmax", "torch._sparse_log_softmax")
def log_softmax(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """The logarithm of ``softmax``.

    Args:
        input: a sparse tensor.
        dim: the dimension.
        dtype: the dtype to which the input is cast first.

    Example:
        >>> torch.sparse.log_softmax(torch.tensor([[0.0, 2.0]]).to_sparse(), 1).to_dense()
        tensor([[0., 0.]])
    """
    return _softmax("SparseLogSoftmaxBackward0", input, dim, dtype, True)


# ---------------------------------------------------------------- diagonals


@function("sparse.spdiags")
def spdiags(diagonals: Tensor, offsets: Tensor, shape: Sequence[int], layout: Any = None) -> Tensor:
    """A sparse matrix with the rows of ``diagonals`` on diagonals.

    Args:
        diagonals: (count, length), or one diagonal; element ``j`` of a row becomes that of column ``j``.
        offsets: the number of the diagonal of each row: 0 for the main one, positive above it.
        shape: the size of the matrix.

    Raises:
        RuntimeError: for another number of offsets than diagonals, and for equal offsets.

    Example:
        >>> torch.sparse.spdiags(torch.tensor([[1.0, 2.0]]), torch.tensor([0]), (2, 2)).to_dense()
        tensor([[1., 0.],
                [0., 2.]])
    """
    rows, steps = array_of(diagonals), array_of(offsets).reshape(-1)
    rows = rows.reshape(-1, rows.shape[-1])
    if len(rows) != len(steps):
        raise RuntimeError(f"Number of diagonals ({len(rows)}) does not match the number of offsets ({len(steps)})")
    if len(set(steps.tolist())) != len(steps):
        raise RuntimeError("Offset tensor contains duplicate values")
    columns = np.arange(min(rows.shape[1], shape[1]))
    found = [(columns - step, columns, np.full(len(columns), i)) for i, step in enumerate(steps)]
    i, j, row = (np.concatenate(parts) for parts in zip(*found))
    within = (i >= 0) & (i < shape[0])
    coordinates = np.stack([i[within], j[within]]).astype(np.int64)
    indices = from_array((row[within] * rows.shape[1] + j[within]).astype(np.int64))
    return sparse(from_array(coordinates), outside(diagonals).reshape(-1).index_select(0, indices), shape, False)
