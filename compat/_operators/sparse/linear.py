"""Products of matrices of which one or both are sparse.

A sparse matrix times a dense one picks rows of the dense one and adds them up, as graph networks pass messages: work
and memory follow the number of elements that are kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from compat._core.autograd.callback_node import outside, pulled, without_recording
from compat._core.operators.composite import composite
from compat._core.tensor.registry import function, names_of
from compat._core.tensor.tensor import Tensor, array_of, from_array
from compat._core.types.dtype import promote_types
from compat._operators.sparse.conversion import Gradients, with_elements
from compat._operators.sparse.rules import rule
from compat._operators.sparse.tensor import SparseTensor, added_up, coalesced, flat, nothing, runs, sparse


def _times_dense(a: SparseTensor, b: Tensor) -> Tensor:
    """A sparse matrix times a dense one, outside the graph."""
    rows, columns = a.coordinates[0], a.coordinates[1]
    picked = a.elements[:, None] * b.index_select(0, columns)
    return picked.new_zeros((a.shape[0], b.shape[1])).index_add(0, rows, picked)


def _transposed(a: SparseTensor) -> SparseTensor:
    """The same elements with rows and columns exchanged, outside the graph."""
    turned = sparse(a.coordinates.flip(0), a.elements, a.shape[::-1], False)
    return coalesced(turned) if a.coalesced else turned


def _times_sparse(a: SparseTensor, b: SparseTensor) -> SparseTensor:
    """A product of two sparse matrices: each element of the first meets the row of the second that it asks for."""
    a, b = coalesced(a), coalesced(b)
    (rows, inner), (heads, columns) = array_of(a.coordinates), array_of(b.coordinates)
    starts = np.searchsorted(heads, np.arange(b.shape[0] + 1))
    first, second = runs(starts[inner], (starts[1:] - starts[:-1])[inner])
    size = (a.shape[0], b.shape[1])
    products = a.elements.index_select(0, from_array(first)) * b.elements.index_select(0, from_array(second))
    return added_up(flat(np.stack([rows[first], columns[second]]), size), products, size, size)


def product(a: Tensor, b: Tensor) -> Tensor:
    """The product of two matrices of which one is sparse, outside the graph: sparse if both are."""
    with without_recording():
        a, b = outside(a), outside(b)
        dtype = promote_types(a.dtype, b.dtype)
        a, b = a.to(dtype), b.to(dtype)
        if isinstance(a, SparseTensor):
            return _times_sparse(a, b) if isinstance(b, SparseTensor) else _times_dense(a, b)
        assert isinstance(b, SparseTensor)
        return _times_dense(_transposed(b), a.t()).t()


def _check_product(a: Tensor, b: Tensor) -> None:
    if a.dim() != 2 or b.dim() != 2:
        raise RuntimeError(f"mm: Expected 2D tensors, got {a.dim()}D and {b.dim()}D")
    if a.shape[1] != b.shape[0]:
        if isinstance(a, SparseTensor) and not isinstance(b, SparseTensor):
            raise RuntimeError(f"addmm: Argument #3 (dense): Expected dim 0 size {a.shape[1]}, got {b.shape[0]}")
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({a.shape[0]}x{a.shape[1]} and {b.shape[0]}x{b.shape[1]})"
        )


def _sized(t: Tensor, name: str) -> dict[str, Any]:
    return {name: t, f"{name}_sym_sizes": tuple(t.shape), f"{name}_sym_strides": t.stride()}


@rule("mm")
def mm(input: Tensor, mat2: Tensor, **_: Any) -> Tensor:
    """A product of matrices."""
    _check_product(input, mat2)

    def pull(grad: Tensor, kept: Mapping[str, Any]) -> Gradients:
        a, b = kept["self"], kept["mat2"]
        return [lambda: grad.mm(b.t().conj()), lambda: a.t().conj().mm(grad)]

    kept = _sized(input, "self") | _sized(mat2, "mat2")
    return pulled("MmBackward0", product(input, mat2), [input, mat2], pull, **kept)


@rule("mv")
def mv(input: Tensor, vec: Tensor, **_: Any) -> Tensor:
    """A sparse matrix times a vector."""
    if vec.dim() != 1 or input.dim() != 2:
        raise RuntimeError(f"mv: Expected a matrix and a vector, got {input.dim()}D and {vec.dim()}D")
    _check_product(input, vec[:, None])

    def pull(grad: Tensor, kept: Mapping[str, Any]) -> Gradients:
        a, v = kept["self"], kept["vec"]
        return [lambda: grad[:, None] * v.conj()[None], lambda: a.t().conj().mv(grad)]

    made = product(input, outside(vec)[:, None])[:, 0]
    return pulled("MvBackward0", made, [input, vec], pull, self=input, vec=vec)


def _added(name: str, input: Tensor, a: Tensor, b: Tensor, beta: Any, alpha: Any, masked: bool) -> Tensor:
    """``beta * input + alpha * (a @ b)``.

    Args:
        name: the node's.
        masked: whether a sparse matrix gets a gradient only where it has elements.
    """
    _check_product(a, b)
    with without_recording():
        made = outside(input) * beta + product(a, b).to_dense() * alpha

    def pull(grad: Tensor, kept: Mapping[str, Any]) -> Gradients:
        first, second = kept["mat1"], kept["mat2"]
        return [
            lambda: (grad * beta).sum_to_size(input_size),
            lambda: _of_first(grad * alpha, first, second, masked),
            lambda: first.t().conj().mm(grad * alpha).to_dense(),
        ]

    input_size = tuple(input.shape)
    kept = ({"mat1": a} if masked else _sized(a, "mat1")) | _sized(b, "mat2") | {"alpha": alpha, "beta": beta}
    return pulled(name, made, [input, a, b], pull, **kept)


def _of_first(grad: Tensor, a: Tensor, b: Tensor, masked: bool) -> Tensor:
    """The gradient of the first factor: at the places that it has alone, if it is sparse and that is wanted."""
    if not (masked and isinstance(a, SparseTensor)):
        return grad.mm(b.t().conj())
    a = coalesced(a)  # a place that is there twice has one gradient
    rows, columns = a.coordinates[0], a.coordinates[1]
    other = b.to_dense().conj()
    return with_elements(a, (grad.index_select(0, rows) * other.index_select(0, columns)).sum(1))


@rule("addmm")
def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1, **_: Any) -> Tensor:
    """``beta * input + alpha * (mat1 @ mat2)``."""
    return _added("AddmmBackward0", input, mat1, mat2, beta, alpha, False)


@rule("bmm")
def bmm(input: Tensor, mat2: Tensor, **_: Any) -> Tensor:
    """Products of matrices, the first of them sparse, along a batch."""
    if isinstance(mat2, SparseTensor):
        raise RuntimeError("bmm_sparse: Tensor 'mat2' must be dense")
    if input.shape[0] != mat2.shape[0]:
        raise RuntimeError("bmm_sparse: Size at dim 0 must be equal")
    each: Tensor = names_of("torch")["stack"]([a.mm(b) for a, b in zip(input.unbind(0), mat2.unbind(0))])
    return each


@function("torch.dsmm")
def dsmm(input: Tensor, mat2: Tensor) -> Tensor:
    """A sparse matrix times a dense one; a deprecated name of ``mm``."""
    return input.mm(mat2)


@composite("hspmm(Tensor mat1, Tensor mat2) -> Tensor", names="torch.hspmm")
def hspmm(mat1: Tensor, mat2: Tensor) -> Tensor:
    """A sparse matrix times a dense one, as a tensor that is sparse in its rows.

    Args:
        mat1: sparse.
        mat2: dense.

    Example:
        >>> import compat as torch
        >>> torch.hspmm(torch.tensor([[0.0, 2.0], [0.0, 0.0]]).to_sparse(), torch.ones(2, 2))
        tensor(indices=tensor([[0]]),
               values=tensor([[2., 2.]]),
               size=(2, 2), nnz=1, layout=torch.sparse_coo)
    """
    _check_product(mat1, mat2)
    with without_recording():
        rows = np.unique(array_of(mat1.coalesce().indices())[0])
        where = from_array(rows)
        return sparse(where[None], product(mat1, mat2).index_select(0, where), (mat1.shape[0], mat2.shape[1]), True)


@composite(
    "sspaddmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    names="torch.sspaddmm",
)
def sspaddmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """``beta * input + alpha * (mat1 @ mat2)`` of a sparse ``input`` and a sparse ``mat1``: sparse.

    Example:
        >>> import compat as torch
        >>> one = torch.eye(2).to_sparse()
        >>> torch.sspaddmm(one, one, torch.ones(2, 2)).to_dense()
        tensor([[2., 1.],
                [1., 2.]])
    """
    with without_recording():
        rows = hspmm(mat1, mat2)
        at = array_of(rows._indices())[0]
        columns = np.arange(mat2.shape[1])
        coordinates = from_array(np.stack([np.repeat(at, len(columns)), np.tile(columns, len(at))]))
        torch = names_of("torch")
        elements = torch["cat"]([input._values() * beta, rows._values().reshape(-1) * alpha])
        return sparse(torch["cat"]([input._indices(), coordinates], 1), elements, input.shape, False)


@composite("smm(Tensor self, Tensor mat2) -> Tensor", names="torch.smm")
def smm(input: Tensor, mat2: Tensor) -> Tensor:
    """A sparse matrix times a dense one, as a sparse tensor.

    Example:
        >>> import compat as torch
        >>> torch.smm(torch.eye(2).to_sparse(), torch.ones(2, 2)).to_dense()
        tensor([[1., 1.],
                [1., 1.]])
    """
    return sspaddmm(nothing((input.shape[0], mat2.shape[1]), input.dtype), input, mat2)


# ---------------------------------------------------------------- torch.sparse


@function("torch.spmm")
def spmm(input: Tensor, mat2: Tensor) -> Tensor:
    """``torch.mm`` under its deprecated name.

    Example:
        >>> import compat as torch
        >>> torch.spmm(torch.eye(2).to_sparse(), torch.tensor([[3.0], [4.0]]))
        tensor([[3.],
                [4.]])
    """
    product: Tensor = names_of("torch")["mm"](input, mat2)
    return product


@function("sparse.mm", "torch._sparse_mm")
def sparse_mm(mat1: Tensor, mat2: Tensor, reduce: str | None = None) -> Tensor:
    """A product of matrices, whose gradient with respect to a sparse one is sparse.

    Args:
        mat1, mat2: two matrices; the result is sparse if both are.
        reduce: what is done with the products of a place: they are added up, as ``"sum"`` says.

    Raises:
        RuntimeError: for operands that are not matching matrices.
        NotImplementedError: for another ``reduce``.

    Example:
        >>> import compat as torch
        >>> adjacency = torch.sparse_coo_tensor([[0, 1, 1], [1, 0, 1]], [1.0, 0.5, 0.5], (2, 2))
        >>> torch.sparse.mm(adjacency, torch.tensor([[1.0], [3.0]]))
        tensor([[3.],
                [2.]])
    """
    if reduce not in (None, "sum"):
        raise NotImplementedError(f"sparse.mm(): products can be added up here, but not reduced by {reduce!r}")
    first, second = isinstance(mat1, SparseTensor), isinstance(mat2, SparseTensor)
    if first and second:
        return _sparse_sparse(mat1, mat2)
    if second:
        return sparse_mm(mat2.t(), mat1.t()).transpose(-2, -1)
    if not first:
        return mat1.mm(mat2)
    if mat2.dim() != 2:
        raise IndexError("Dimension out of range (expected to be in range of [-1, 0], but got 1)")
    zero = names_of("torch")["zeros"]((), dtype=mat2.dtype)  # it broadcasts
    return _added("SparseAddmmBackward0", zero, mat1, mat2, 0, 1, True)


def _sparse_sparse(a: Tensor, b: Tensor) -> Tensor:
    _check_product(a, b)

    def pull(grad: Tensor, kept: Mapping[str, Any]) -> Gradients:
        first, second = kept["self"], kept["other"]
        return [
            lambda: sparse_mm(grad, second.t().conj()).sparse_mask(coalesced(first)),
            lambda: sparse_mm(first.t().conj(), grad).sparse_mask(coalesced(second)),
        ]

    return pulled("SparseSparseMatmulBackward0", product(a, b), [a, b], pull, self=a, other=b)


@function("sparse.addmm")
def sparse_addmm(mat: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1.0, alpha: Any = 1.0) -> Tensor:
    """``beta * mat + alpha * (mat1 @ mat2)``, whose gradient with respect to a sparse ``mat1`` is sparse.

    Args:
        mat: dense.
        mat1: sparse.
        mat2: dense.

    Example:
        >>> import compat as torch
        >>> torch.sparse.addmm(torch.ones(2, 2), torch.eye(2).to_sparse(), torch.ones(2, 2))
        tensor([[2., 2.],
                [2., 2.]])
    """
    return _added("SparseAddmmBackward0", mat, mat1, mat2, beta, alpha, True)
