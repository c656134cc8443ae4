"""Conversion of dense and sparse tensors to sparse layouts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from compat._core.autograd.callback_node import outside, pulled, without_recording
from compat._core.operators.composite import composite
from compat._core.tensor.registry import function
from compat._core.tensor.tensor import Tensor, array_of, from_array
from compat._core.types.memory_format import LAYOUTS, scalar_layout_name, strided
from compat._operators.sparse.compressed import BLOCKED, COMPRESSED, CompressedTensor, compress
from compat._operators.sparse.tensor import AnySparse, SparseTensor, coalesced, ravel_index, sparse

_COO = LAYOUTS["sparse_coo"]


@composite(
    "to_sparse.sparse_dim(Tensor self, int sparse_dim) -> Tensor",
    "to_sparse(Tensor self, *, Layout? layout=None, int[2]? blocksize=None, int? dense_dim=None) -> Tensor",
    names="Tensor.to_sparse", errors="own",
)  # fmt: skip
def to_sparse(self, sparse_dim=None, *, layout=None, blocksize=None, dense_dim=None):
    """The tensor in a sparse layout: its nonzero elements, or, of a sparse tensor, its stored elements.

    Args:
        sparse_dim: the number of sparse dimensions; all by default.
        layout: one of the sparse layouts; ``torch.sparse_coo`` by default.
        blocksize: the height and width of blocks, for ``torch.sparse_bsr`` and ``torch.sparse_bsc``.
        dense_dim: for compressed layouts, the number of dense dimensions.

    Raises:
        RuntimeError: for a number of dimensions out of range, for blocks that do not divide the size, and for a pair of
            layouts between which PyTorch does not convert.

    Example:
        >>> x = torch.tensor([[0.0, 2.0], [3.0, 0.0]])
        >>> x.to_sparse()
        tensor(indices=tensor([[0, 1],
                               [1, 0]]),
               values=tensor([2., 3.]),
               size=(2, 2), nnz=2, layout=torch.sparse_coo)
        >>> x.to_sparse(layout=torch.sparse_csr)
        tensor(crow_indices=tensor([0, 1, 2]),
               col_indices=tensor([1, 0]),
               values=tensor([2., 3.]), size=(2, 2), nnz=2, layout=torch.sparse_csr)
    """
    if layout is not None and layout is not _COO:
        if layout not in COMPRESSED:
            raise RuntimeError(f"to_sparse: conversion to layout {layout} is not supported")
        return _compressed("ToSparseBackward1", "to_sparse", self, layout, blocksize, dense_dim)
    if isinstance(self, CompressedTensor):
        return _compressed_to_coo(self, sparse_dim)
    if isinstance(self, SparseTensor):
        if sparse_dim is None or sparse_dim == self.sparse_dim():
            return self
        return to_sparse(self.to_dense(), sparse_dim)
    count = self.dim() if sparse_dim is None else sparse_dim
    if count > self.dim() or count < 0:
        raise RuntimeError(
            f"dense_to_sparse: sparse_dim argument must be in [0,{self.dim()}] range, but {count} is given"
        )
    if count == 0 and self.dim() > 0:
        raise RuntimeError("dense_to_sparse: sparse_dim argument must be in >0 when self.dim()>0")
    with without_recording():
        result = _nonzero(self, count)
    name = "ToSparseBackward1" if sparse_dim is None else "ToSparseBackward0"
    return pulled(name, result, [self], lambda grad, _: [grad.to_dense], self_self_sym_blocksize_opt=None)


def _nonzero(t: Tensor, count: int) -> SparseTensor:
    """The nonzero elements of a dense tensor with the coordinates of its first ``count`` dimensions, detached."""
    array = array_of(t)
    rows = array.reshape(*array.shape[:count], -1) if count < t.dim() else array[..., None]
    coordinates = np.stack(np.nonzero((rows != 0).any(-1))) if count else np.zeros((0, 1), np.int64)
    indices = from_array(ravel_index(coordinates.astype(np.int64), t.shape[:count]))
    elements = outside(t).reshape(-1, *t.shape[count:]).index_select(0, indices)
    return sparse(from_array(coordinates.astype(np.int64)), elements, t.shape, True)


def _compressed_to_coo(t: CompressedTensor, sparse_dim: int | None) -> Tensor:
    if sparse_dim not in (None, 2):
        raise RuntimeError(
            f"sparse_compressed_to_sparse: conversion from {scalar_layout_name(t.layout)} to Sparse with sparse_dim "
            "argument !=2 is not supported"
        )
    with without_recording():
        result = t.as_coo()
        if t.layout not in BLOCKED:
            result = coalesced(result)
    convert = _gradient_conversion(t)
    return pulled("ToSparseBackward1", result, [t], lambda grad, _: [lambda: convert(grad)])


def _gradient_conversion(t: Tensor) -> Callable[[Tensor], Tensor]:
    """The function that converts a gradient of a tensor to its layout."""
    layout = t.layout
    if isinstance(t, CompressedTensor):
        block, dense_dim = t.block, t.dense_dim()

        def convert(grad: Tensor) -> Tensor:
            if grad.layout is layout:
                return grad
            if isinstance(grad, AnySparse) and (dense_dim or t.layout in BLOCKED):
                grad = grad.to_dense()
            return to_sparse(
                grad, layout=layout, blocksize=block if layout in BLOCKED else None,
                dense_dim=dense_dim if grad.layout is strided else None,
            )  # fmt: skip

        return convert
    if isinstance(t, SparseTensor):
        count = t.sparse_dim()
        return lambda grad: grad if grad.layout is layout else grad.to_dense().to_sparse(count)
    return lambda grad: grad.to_dense()


def _compressed(node: str, name: str, t: Tensor, layout: Any, blocksize: Any, dense_dim: Any) -> Tensor:
    """A tensor in a compressed layout.

    Args:
        node: the name of the node.
        name: the name of the called function in messages.
    """
    source, target = (scalar_layout_name(kind) for kind in (t.layout, layout))
    conversion = f"conversion from {source} to {target}"
    if layout in BLOCKED and blocksize is None and not (isinstance(t, CompressedTensor) and t.layout in BLOCKED):
        prefix = "dense_to_sparse" if t.layout is strided else name
        raise RuntimeError(f"{prefix}: {conversion} without blocksize argument given is not supported")
    if layout not in BLOCKED and blocksize is not None:
        prefix = "dense_to_sparse" if t.layout is strided else name
        raise RuntimeError(f"{prefix}: {conversion} with blocksize argument given is not supported")
    if dense_dim is not None and isinstance(t, AnySparse):
        raise RuntimeError(f"{name}: {conversion} with dense_dim argument given is not supported")
    block: tuple[int, int] = (1, 1) if blocksize is None else (int(blocksize[0]), int(blocksize[1]))
    if isinstance(t, CompressedTensor):
        block = _check_recompressed(name, t, layout, blocksize, block)
        if t.layout is layout:
            return t
    coo = _to_coo(t, dense_dim, name)
    if layout in BLOCKED:
        _check_blocks(name, t.layout is strided, coo, layout, block)
    index = array_of(t.plain).dtype if isinstance(t, CompressedTensor) else np.int64
    with without_recording():
        result = compress(coo, layout, block, index)
    convert = _gradient_conversion(t)
    return pulled(node, result, [t], lambda grad, _: [lambda: convert(grad)])


def _check_recompressed(
    name: str, t: CompressedTensor, layout: Any, blocksize: Any, block: tuple[int, int]
) -> tuple[int, int]:
    """The block size of a compressed tensor in another compressed layout.

    Raises:
        RuntimeError: for layouts between which PyTorch does not convert.
    """
    source, target = (scalar_layout_name(kind) for kind in (t.layout, layout))
    if t.layout in BLOCKED and layout not in BLOCKED:
        kind = str(layout).removeprefix("torch.")
        raise RuntimeError(f"sparse_compressed_to_{kind}: expected SparseCsr or SparseCsc layout but got {source}")
    if t.layout not in BLOCKED:
        return block
    if blocksize is not None and block != t.block:
        raise RuntimeError(
            f"{name}: conversion from {source} to {target} with blocksize changed from {list(t.block)} to "
            f"{list(block)} is not supported"
        )
    return t.block


def _to_coo(t: Tensor, dense_dim: int | None, name: str) -> SparseTensor:
    """The operand of a conversion to a compressed layout, in coordinate format and detached."""
    with without_recording():
        if isinstance(t, CompressedTensor):
            return t.as_coo()
        if isinstance(t, SparseTensor):
            if t.sparse_dim() != 2:
                raise RuntimeError(
                    f"sparse_to_sparse_{name.rpartition('_')[2]}: conversion from Sparse to a compressed layout for "
                    "input tensors with sparse_dim()!=2 is not supported"
                )
            return coalesced(t)
        count = t.dim() - (dense_dim or 0)
        if count < 2:
            raise IndexError(f"select(): index 1 out of range for tensor of size {[*t.shape, 1]} at dimension 1")
        return _nonzero(t, count)


def _check_blocks(name: str, dense: bool, t: SparseTensor, layout: Any, block: tuple[int, int]) -> None:
    rows, columns = t.shape[t.sparse_dim() - 2 : t.sparse_dim()]
    if min(block) < 1 or rows % block[0] or columns % block[1]:
        kind = str(layout).removeprefix("torch.")
        raise RuntimeError(
            f"{'dense' if dense else 'sparse'}_to_{kind}: tensor sparse size ({rows},{columns}) must be divisible by "
            f"given blocksize ({block[0]},{block[1]})"
        )


# ---------------------------------------------------------------- one function for each layout


@composite("to_sparse_csr(Tensor self, int? dense_dim=None) -> Tensor", names="Tensor.to_sparse_csr", errors="own")
def to_sparse_csr(self: Tensor, dense_dim: int | None = None) -> Tensor:
    """The tensor in the layout ``torch.sparse_csr``, with compressed rows.

    Args:
        dense_dim: the number of dense dimensions.

    Raises:
        RuntimeError: for a layout that PyTorch does not convert to ``torch.sparse_csr``.

    Example:
        >>> torch.tensor([[0.0, 2.0], [3.0, 4.0]]).to_sparse_csr().crow_indices()
        tensor([0, 1, 3])
    """
    return _compressed("ToSparseCsrBackward0", "to_sparse_csr", self, LAYOUTS["sparse_csr"], None, dense_dim)


@composite("to_sparse_csc(Tensor self, int? dense_dim=None) -> Tensor", names="Tensor.to_sparse_csc", errors="own")
def to_sparse_csc(self: Tensor, dense_dim: int | None = None) -> Tensor:
    """The tensor in the layout ``torch.sparse_csc``, with compressed columns.

    Args:
        dense_dim: the number of dense dimensions.

    Example:
        >>> torch.tensor([[0.0, 2.0], [3.0, 4.0]]).to_sparse_csc().row_indices()
        tensor([1, 0, 1])
    """
    return _compressed("ToSparseCscBackward0", "to_sparse_csc", self, LAYOUTS["sparse_csc"], None, dense_dim)


@composite(
    "to_sparse_bsr(Tensor self, int[2] blocksize, int? dense_dim=None) -> Tensor",
    names="Tensor.to_sparse_bsr", errors="own",
)  # fmt: skip
def to_sparse_bsr(self: Tensor, blocksize: Any, dense_dim: int | None = None) -> Tensor:
    """The tensor in the layout ``torch.sparse_bsr``: its nonzero blocks, with compressed rows of blocks.

    Args:
        blocksize: the height and width of a block.
        dense_dim: the number of dense dimensions.

    Example:
        >>> torch.eye(4).to_sparse_bsr((2, 2)).values().shape
        torch.Size([2, 2, 2])
    """
    return _compressed("ToSparseBsrBackward0", "to_sparse_bsr", self, LAYOUTS["sparse_bsr"], blocksize, dense_dim)


@composite(
    "to_sparse_bsc(Tensor self, int[2] blocksize, int? dense_dim=None) -> Tensor",
    names="Tensor.to_sparse_bsc", errors="own",
)  # fmt: skip
def to_sparse_bsc(self: Tensor, blocksize: Any, dense_dim: int | None = None) -> Tensor:
    """The tensor in the layout ``torch.sparse_bsc``: its nonzero blocks, with compressed columns of blocks.

    Args:
        blocksize: the height and width of a block.
        dense_dim: the number of dense dimensions.

    Example:
        >>> torch.eye(4).to_sparse_bsc((2, 2)).ccol_indices()
        tensor([0, 1, 2])
    """
    return _compressed("ToSparseBscBackward0", "to_sparse_bsc", self, LAYOUTS["sparse_bsc"], blocksize, dense_dim)


@function("Tensor.to_sparse_coo")
def to_sparse_coo(self: Tensor) -> Tensor:
    """The tensor in the layout ``torch.sparse_coo``."""
    return to_sparse(self)
