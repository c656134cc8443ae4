"""Products of matrices of which one or both are sparse.

The product of a sparse and a dense matrix sums rows of the dense matrix, like message passing in graph networks: time
and memory are proportional to the number of stored elements.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from compat._core.autograd.callback_node import outside, pulled, without_recording
from compat._core.operators.composite import composite
from compat._core.tensor.registry import function, names_of
from compat._core.tensor.tensor import Tensor, array_of, from_array
from compat._core.types.errors import refusal
from compat._core.types.memory_format import LAYOUTS, scalar_layout_name
from compat._core.types.type_promotion import promote_types
from compat._operators.sparse.arithmetic import sparse_rule
from compat._operators.sparse.compressed import CompressedTensor, compress
from compat._operators.sparse.conversion import Gradients, values, with_elements
from compat._operators.sparse.tensor import (
    AnySparse,
    SparseTensor,
    coalesced,
    coalesced_from,
    concatenated_ranges,
    empty_coo,
    ravel_index,
    rule,
    sparse,
)


def _times_dense(a: SparseTensor, b: Tensor) -> Tensor:
    """A sparse matrix times a dense one, detached."""
    rows, columns = a.coordinates[0], a.coordinates[1]
    products = a.elements[:, None] * b.index_select(0, columns)
    return products.new_zeros((a.shape[0], b.shape[1])).index_add(0, rows, products)


def _transposed(a: SparseTensor) -> SparseTensor:
    """The transpose of a matrix, detached."""
    transpose = sparse(a.coordinates.flip(0), a.elements, a.shape[::-1], False)
    return coalesced(transpose) if a.coalesced else transpose


def _times_sparse(a: SparseTensor, b: SparseTensor) -> SparseTensor:
    """The product of sparse matrices: elements of the first times rows of the second."""
    a, b = coalesced(a), coalesced(b)
    (rows, inner), (rows_of_b, columns) = array_of(a.coordinates), array_of(b.coordinates)
    starts = np.searchsorted(rows_of_b, np.arange(b.shape[0] + 1))
    first, second = concatenated_ranges(starts[inner], (starts[1:] - starts[:-1])[inner])
    size = (a.shape[0], b.shape[1])
    products = a.elements.index_select(0, from_array(first)) * b.elements.index_select(0, from_array(second))
    return coalesced_from(ravel_index(np.stack([rows[first], columns[second]]), size), products, size, size)


def product(a: Tensor, b: Tensor) -> Tensor:
    """The product of two matrices of which one is sparse, detached; sparse if both are."""
    with without_recording():
        a, b = outside(a), outside(b)
        dtype = promote_types(a.dtype, b.dtype)
        a, b = a.to(dtype), b.to(dtype)
        if isinstance(a, AnySparse) and isinstance(b, AnySparse):
            result = _times_sparse(a.as_coo(), b.as_coo())
            compressed = isinstance(a, CompressedTensor) or isinstance(b, CompressedTensor)
            return compress(result, LAYOUTS["sparse_csr"]) if compressed else result
        if isinstance(a, AnySparse):
            return _times_dense(a.as_coo(), b)
        assert isinstance(b, AnySparse)
        return _times_dense(_transposed(b.as_coo()), a.t()).t()


def _check_product(a: Tensor, b: Tensor) -> None:
    if a.dim() != 2 or b.dim() != 2:
        raise RuntimeError(f"mm: Expected 2D tensors, got {a.dim()}D and {b.dim()}D")
    if a.shape[1] != b.shape[0]:
        if isinstance(a, SparseTensor) and not isinstance(b, AnySparse):
            raise RuntimeError(f"addmm: Argument #3 (dense): Expected dim 0 size {a.shape[1]}, got {b.shape[0]}")
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({a.shape[0]}x{a.shape[1]} and {b.shape[0]}x{b.shape[1]})"
        )


def _sized(t: Tensor, name: str) -> dict[str, Any]:
    stride = () if isinstance(t, CompressedTensor) else t.stride()
    return {name: t, f"{name}_sym_sizes": tuple(t.shape), f"{name}_sym_strides": stride}


@sparse_rule("mm")
def mm(input: Tensor, mat2: Tensor, **_: Any) -> Tensor:
    """The product of two matrices."""
    _check_product(input, mat2)

    def pull(grad: Tensor, kept: Mapping[str, Any]) -> Gradients:
        a, b = kept["self"], kept["mat2"]
        return [lambda: grad.mm(b.t().conj()), lambda: a.t().conj().mm(grad)]

    kept = _sized(input, "self") | _sized(mat2, "mat2")
    return pulled("MmBackward0", product(input, mat2), [input, mat2], pull, **kept)


@sparse_rule("mv")
def mv(input: Tensor, vec: Tensor, **_: Any) -> Tensor:
    """A sparse matrix times a vector."""
    if vec.dim() != 1 or input.dim() != 2:
        raise RuntimeError(f"mv: Expected a matrix and a vector, got {input.dim()}D and {vec.dim()}D")
    if isinstance(input, CompressedTensor) and input.shape[1] != vec.shape[0]:
        sizes = f"input ({input.shape[0]}), mat ({input.shape[0]}x{input.shape[1]}), vec ({vec.shape[0]})"
        raise RuntimeError(f"size mismatch, got {sizes}")
    _check_product(input, vec[:, None])

    def pull(grad: Tensor, kept: Mapping[str, Any]) -> Gradients:
        a, v = kept["self"], kept["vec"]
        return [lambda: grad[:, None] * v.conj()[None], lambda: a.t().conj().mv(grad)]

    result = product(input, outside(vec)[:, None])[:, 0]
    return pulled("MvBackward0", result, [input, vec], pull, self=input, vec=vec)


def _added(name: str, input: Tensor, a: Tensor, b: Tensor, beta: Any, alpha: Any, masked: bool) -> Tensor:
    """``beta * input + alpha * (a @ b)``.

    Args:
        name: the name of the node.
        masked: whether only the stored elements of a sparse ``a`` get a gradient.
    """
    _check_product(a, b)
    if isinstance(input, AnySparse) and not (isinstance(a, AnySparse) and isinstance(b, AnySparse)):
        kinds = [scalar_layout_name(t.layout) for t in (input, a, b)]
        raise RuntimeError(f"addmm: computation on CPU is not implemented for {kinds[0]} + {kinds[1]} @ {kinds[2]}")
    with without_recording():
        found = product(a, b)
        result = outside(input) * beta + (found if isinstance(input, AnySparse) else found.to_dense()) * alpha

    def pull(grad: Tensor, kept: Mapping[str, Any]) -> Gradients:
        first, second = kept["mat1"], kept["mat2"]
        return [
            lambda: (grad * beta).sum_to_size(input_size),
            lambda: _first_gradient(grad * alpha, first, second, masked),
            lambda: first.t().conj().mm(grad * alpha).to_dense(),
        ]

    input_size = tuple(input.shape)
    kept = ({"mat1": a} if masked else _sized(a, "mat1")) | _sized(b, "mat2") | {"alpha": alpha, "beta": beta}
    return pulled(name, result, [input, a, b], pull, **kept)


def _first_gradient(grad: Tensor, a: Tensor, b: Tensor, masked: bool) -> Tensor:
    """The gradient of the first factor; with ``masked``, only at its stored elements if it is sparse."""
    if not (masked and isinstance(a, AnySparse)):
        return grad.mm(b.t().conj())
    a = coalesced(a)  # elements at equal positions have one gradient
    return with_elements(a, _sampled(a, grad, b.to_dense().conj().t()))


def _sampled(a: AnySparse, first: Tensor, second: Tensor) -> Tensor:
    """The elements of the product of dense matrices at the positions of a sparse tensor."""
    rows, columns = a.coordinates[0], a.coordinates[1]
    found = (first.index_select(0, rows) * second.t().index_select(0, columns)).sum(1)
    return found.reshape(a.elements.shape)


@sparse_rule("addmm")
def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1, **_: Any) -> Tensor:
    """``beta * input + alpha * (mat1 @ mat2)``."""
    return _added("AddmmBackward0", input, mat1, mat2, beta, alpha, False)


@rule("bmm")
def bmm(input: Tensor, mat2: Tensor, **_: Any) -> Tensor:
    """Batched products of sparse and dense matrices."""
    if isinstance(mat2, SparseTensor):
        raise RuntimeError("bmm_sparse: Tensor 'mat2' must be dense")
    if input.shape[0] != mat2.shape[0]:
        raise RuntimeError("bmm_sparse: Size at dim 0 must be equal")
    each: Tensor = names_of("torch")["stack"]([a.mm(b) for a, b in zip(input.unbind(0), mat2.unbind(0))])
    return each


@function("torch.dsmm")
def dsmm(input: Tensor, mat2: Tensor) -> Tensor:
    """A deprecated alias of ``mm``."""
    return input.mm(mat2)


@composite("hspmm(Tensor mat1, Tensor mat2) -> Tensor", names="torch.hspmm")
def hspmm(mat1: Tensor, mat2: Tensor) -> Tensor:
    """A sparse matrix times a dense one, as a tensor with one sparse dimension, the rows.

    Args:
        mat1: a sparse matrix.
        mat2: a dense matrix.

    Example:
        >>> torch.hspmm(torch.tensor([[0.0, 2.0], [0.0, 0.0]]).to_sparse(), torch.ones(2, 2))
        tensor(indices=tensor([[0]]),
               values=tensor([[2., 2.]]),
               size=(2, 2), nnz=1, layout=torch.sparse_coo)
    """
    _check_product(mat1, mat2)
    with without_recording():
        rows = from_array(np.unique(array_of(mat1.coalesce().indices())[0]))
        return sparse(rows[None], product(mat1, mat2).index_select(0, rows), (mat1.shape[0], mat2.shape[1]), True)


@composite(
    "sspaddmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    names="torch.sspaddmm",
)
def sspaddmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """``beta * input + alpha * (mat1 @ mat2)``, sparse, of sparse ``input`` and ``mat1``.

    Example:
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
        >>> torch.smm(torch.eye(2).to_sparse(), torch.ones(2, 2)).to_dense()
        tensor([[1., 1.],
                [1., 1.]])
    """
    return sspaddmm(empty_coo((input.shape[0], mat2.shape[1]), input.dtype), input, mat2)


# ---------------------------------------------------------------- torch.sparse


@function("torch.spmm")
def spmm(input: Tensor, mat2: Tensor) -> Tensor:
    """A deprecated alias of ``torch.mm``.

    Example:
        >>> torch.spmm(torch.eye(2).to_sparse(), torch.tensor([[3.0], [4.0]]))
        tensor([[3.],
                [4.]])
    """
    product: Tensor = names_of("torch")["mm"](input, mat2)
    return product


@function("sparse.mm", "torch._sparse_mm")
def sparse_mm(mat1: Tensor, mat2: Tensor, reduce: str | None = None) -> Tensor:
    """The product of two matrices; the gradient of a sparse matrix is sparse.

    Args:
        mat1, mat2: two matrices; the result is sparse if both are.
        reduce: the reduction of the products for an element, for a CSR ``mat1`` and a dense ``mat2``: ``"sum"``,
            ``"mean"``, ``"amax"`` or ``"amin"``. An element without products is zero.

    Raises:
        RuntimeError: for operands that are not matrices of matching sizes, and for an unknown ``reduce``.

    Example:
        >>> adjacency = torch.sparse_coo_tensor([[0, 1, 1], [1, 0, 1]], [1.0, 0.5, 0.5], (2, 2))
        >>> torch.sparse.mm(adjacency, torch.tensor([[1.0], [3.0]]))
        tensor([[3.],
                [2.]])
    """
    if reduce is not None:
        return _reduced(mat1, mat2, reduce)
    first, second = isinstance(mat1, AnySparse), isinstance(mat2, AnySparse)
    if first and second:
        return _sparse_sparse(mat1, mat2)
    if second:
        return sparse_mm(mat2.t(), mat1.t()).transpose(-2, -1)
    if not first:
        return mat1.mm(mat2)
    if mat2.dim() != 2:
        raise IndexError("Dimension out of range (expected to be in range of [-1, 0], but got 1)")
    zero = names_of("torch")["zeros"]((), dtype=mat2.dtype)
    return _added("SparseAddmmBackward0", zero, mat1, mat2, 0, 1, True)


_REDUCTIONS = ("sum", "mean", "amax", "amin")


def _reduced(a: Tensor, b: Tensor, reduce: str) -> Tensor:
    """The product of matrices with another reduction than the sum."""
    if reduce not in _REDUCTIONS:
        raise RuntimeError(f"reduce argument must be either sum, mean, amax or amin, got {reduce}")
    if not isinstance(a, CompressedTensor) or a.layout is not LAYOUTS["sparse_csr"] or isinstance(b, AnySparse):
        raise RuntimeError("Expected self tensor to be in CSR layout")
    _check_product(a, b)
    with without_recording():
        result, weights = _reduce(a, outside(b), reduce)

    def pull(grad: Tensor, kept: Mapping[str, Any]) -> Gradients:
        first, second = kept["self"], kept["other"]
        rows, columns = first.coordinates[0], first.coordinates[1]
        grad_products = kept["chosen"] * grad.index_select(0, rows)

        def of_first() -> Tensor:
            return with_elements(first, (grad_products * second.index_select(0, columns)).sum(1))

        def of_second() -> Tensor:
            found: Tensor = second.new_zeros(second.shape).index_add(0, columns, grad_products * values(first)[:, None])
            return found

        return [of_first, of_second]

    return pulled("SparseMmReduceImplBackward0", result, [a, b], pull, self=a, other=b, chosen=weights, reduce=reduce)


def _reduce(a: CompressedTensor, b: Tensor, reduce: str) -> tuple[Tensor, Tensor]:
    """The reduced product, and the derivative of the result by each product."""
    torch = names_of("torch")
    rows, columns = a.coordinates[0], a.coordinates[1]
    products = a.elements[:, None] * b.index_select(0, columns)
    size = (a.shape[0], b.shape[1])
    lengths = from_array(np.diff(array_of(a.compressed)).astype(np.int64))
    if reduce in ("sum", "mean"):
        total = products.new_zeros(size).index_add(0, rows, products)
        if reduce == "sum":
            return total, torch["ones_like"](products)
        share = 1 / lengths.clamp(min=1).to(products.dtype)
        weights = share.index_select(0, rows)[:, None].expand(products.shape)
        return total * share[:, None], weights
    at = rows[:, None].expand(products.shape)
    found = products.new_zeros(size).scatter_reduce(0, at, products, reduce, include_self=False)
    # Of equal extreme products, the first one gets the gradient.
    numbers = torch["arange"](len(products))[:, None].expand(products.shape)
    is_extreme = products == found.index_select(0, rows)
    first = torch["full"](size, len(products)).scatter_reduce(
        0, at, torch["where"](is_extreme, numbers, len(products)), "amin"
    )
    return found, (first.index_select(0, rows) == numbers).to(products.dtype)


def _sparse_sparse(a: Tensor, b: Tensor) -> Tensor:
    _check_product(a, b)

    def pull(grad: Tensor, kept: Mapping[str, Any]) -> Gradients:
        first, second = kept["self"], kept["other"]
        return [
            lambda: sparse_mm(grad, second.t().conj()).sparse_mask(coalesced(first)),
            lambda: sparse_mm(first.t().conj(), grad).sparse_mask(coalesced(second)),
        ]

    compressed = isinstance(a, CompressedTensor) or isinstance(b, CompressedTensor)
    name = "SparseAddmmBackward0" if compressed else "SparseSparseMatmulBackward0"
    return pulled(name, product(a, b), [a, b], pull, self=a, other=b)


@function("sparse.addmm")
def sparse_addmm(mat: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1.0, alpha: Any = 1.0) -> Tensor:
    """``beta * mat + alpha * (mat1 @ mat2)``; the gradient of a sparse ``mat1`` is sparse.

    Args:
        mat: a dense matrix.
        mat1: a sparse matrix.
        mat2: a dense matrix.

    Example:
        >>> torch.sparse.addmm(torch.ones(2, 2), torch.eye(2).to_sparse(), torch.ones(2, 2))
        tensor([[2., 2.],
                [2., 2.]])
    """
    return _added("SparseAddmmBackward0", mat, mat1, mat2, beta, alpha, True)


@composite(
    "sparse_sampled_addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    names="sparse.sampled_addmm",
)
def sampled_addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1.0, alpha: Any = 1.0) -> Tensor:
    """``beta * input + alpha * (mat1 @ mat2)``, only at the positions of the elements of ``input``.

    Args:
        input: a matrix in a compressed layout.
        mat1, mat2: dense matrices.

    Raises:
        NotImplementedError: for an ``input`` of another layout.
        RuntimeError: for sizes that do not match.

    Example:
        >>> diagonal = torch.eye(2).to_sparse_csr()
        >>> torch.sparse.sampled_addmm(diagonal, torch.ones(2, 3), torch.ones(3, 2)).to_dense()
        tensor([[4., 0.],
                [0., 4.]])
    """
    _check_sampled(input, mat1, mat2)
    assert isinstance(input, CompressedTensor)
    with without_recording():
        found = _sampled(input, outside(mat1), outside(mat2))
        result = input.replace_elements(input.elements * beta + found * alpha)

    def pull(grad: Tensor, kept: Mapping[str, Any]) -> Gradients:
        first, second = kept["mat1"], kept["mat2"]
        masked = lambda: grad * alpha if isinstance(grad, AnySparse) else grad.sparse_mask(kept["self"]) * alpha
        return [
            lambda: grad * beta,
            lambda: sparse_mm(masked(), second.t().conj()),
            lambda: sparse_mm(masked().t(), first.conj()).t(),
        ]

    return pulled(
        "SparseSampledAddmmBackward0", result, [input, mat1, mat2], pull,
        self=input, mat1=mat1, mat2=mat2, beta=beta, alpha=alpha,
    )  # fmt: skip


def _check_sampled(input: Tensor, mat1: Tensor, mat2: Tensor) -> None:
    if not isinstance(input, CompressedTensor):
        raise refusal("aten::sparse_sampled_addmm", "SparseCPU" if isinstance(input, SparseTensor) else "CPU")
    for name, t in (("mat1", mat1), ("mat2", mat2)):
        if t.layout is not LAYOUTS["strided"]:
            raise RuntimeError(
                f"sampled_addmm: Expected {name} to have strided layout, but got {scalar_layout_name(t.layout)}"
            )
    if input.shape[-2] != mat1.shape[-2]:
        raise RuntimeError("sampled_addmm: self.shape[-2] must match mat1.shape[-2]")
    if input.shape[-1] != mat2.shape[-1]:
        raise RuntimeError("sampled_addmm: self.shape[-1] must match mat2.shape[-1]")
    if mat1.shape[-1] != mat2.shape[-2]:
        sizes = "x".join(map(str, mat1.shape)), "x".join(map(str, mat2.shape))
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({sizes[0]} and {sizes[1]})")
