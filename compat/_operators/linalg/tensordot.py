"""Contractions: tensordot, inner, outer, kron."""

from __future__ import annotations

from math import prod
from typing import Any

from compat._core.operators.composite import composite
from compat._core.operators.out import check_dtype
from compat._core.tensor.autograd_state import SHARED
from compat._core.tensor.tensor import Tensor
from compat._core.types.errors import size_text, wrap_dims
from compat._operators.arguments import tensor_argument
from compat._operators.linalg.matmul import dot, mm
from compat._operators.shape.cat_stack import flatten
from compat._operators.view.shape import permute, reshape, squeeze, unsafe_view


def _pairs(dims: Any, a: Tensor, b: Tensor) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The pairs of contracted dimensions, from their number or from two lists."""
    if isinstance(dims, Tensor):
        dims = dims.tolist()
    if not isinstance(dims, (tuple, list)):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a.dim(), b.dim()):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        return tuple(range(-dims, 0)), tuple(range(dims))
    first, second = ((d,) if hasattr(d, "__index__") else tuple(d) for d in dims)
    if len(first) != len(second):
        raise RuntimeError("both dimension lists should have same length")
    return first, second


@composite(names="torch.tensordot", out=True)
def tensordot(a: Tensor, b: Tensor, dims: Any = 2) -> Tensor:
    """The products of two tensors' elements summed over pairs of dimensions.

    Args:
        a, b: of one dtype.
        dims: the number of dimensions at the end of ``a`` and the start of ``b``; or two lists of dimensions.

    Returns:
        A tensor with the other dimensions of ``a``, then those of ``b``.

    Raises:
        RuntimeError: if the sizes of a pair differ, unless one of them is 1.

    Example:
        >>> torch.tensordot(torch.ones(2, 3, 4), torch.ones(4, 3, 5), dims=([1, 2], [1, 0])).shape
        torch.Size([2, 5])
    """
    tensor_argument("tensordot", "a", 1, a)
    tensor_argument("tensordot", "b", 2, b)
    given_a, given_b = _pairs(dims, a, b)
    dims_a, dims_b = wrap_dims(given_a, a.dim()), wrap_dims(given_b, b.dim())
    shared = 1
    for i, (p, q) in enumerate(zip(dims_a, dims_b)):
        n, m = a.shape[p], b.shape[q]
        if m == 1:
            a = a.sum(p, keepdim=True)
        elif n == 1:
            b = b.sum(q, keepdim=True)
        elif n != m:
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {n} in dim {given_a[i]} and second has "
                f"size {m} in dim {given_b[i]}"
            )
        else:
            shared *= n
    free_a, free_b = ([d for d in range(t.dim()) if d not in used] for t, used in ((a, dims_a), (b, dims_b)))
    size = (*[a.shape[d] for d in free_a], *[b.shape[d] for d in free_b])
    rows, columns = prod(a.shape[d] for d in free_a), prod(b.shape[d] for d in free_b)
    left, right = permute(a, (*free_a, *given_a)), permute(b, (*given_b, *free_b))
    if rows == columns == 1:
        return reshape(_full_contraction(left, right), size)
    return reshape(mm(reshape(left, (rows, shared)), reshape(right, (shared, columns))), size)


def _full_contraction(left: Tensor, right: Tensor) -> Tensor:
    """Contracts all dimensions, without copies even if the operands are not contiguous."""
    if left.is_contiguous() and right.is_contiguous():
        return dot(flatten(left), flatten(right))
    return (squeeze(left) * squeeze(right)).sum()


@composite("inner(Tensor self, Tensor other) -> Tensor", out=True)
def inner(input: Tensor, other: Tensor) -> Tensor:
    """The products of elements summed over the last dimensions; a 0-d tensor multiplies the other one.

    Raises:
        RuntimeError: if the last dimensions differ.

    Example:
        >>> torch.inner(torch.tensor([1, 2]), torch.tensor([3, 4]))
        tensor(11)
    """
    if input.dim() == 0 or other.dim() == 0:
        return input * other
    if input.shape[-1] != other.shape[-1]:
        raise RuntimeError(
            "inner() the last dimension must match on both input tensors but got shapes "
            f"{size_text(input.shape)} and {size_text(other.shape)}"
        )
    return tensordot(input, other, ([-1], [-1]))


def _check_out(result: Tensor, out: Tensor, operands: Any) -> None:
    check_dtype(result, out, exact=False)


@composite("kron(Tensor self, Tensor other) -> Tensor", out=_check_out, last="mul")
def kron(input: Tensor, other: Tensor) -> Tensor:
    """The Kronecker product: a block of each element of ``input`` times ``other``.

    Example:
        >>> torch.kron(torch.tensor([1, 10]), torch.tensor([1, 2]))
        tensor([ 1,  2, 10, 20])
    """
    n = max(input.dim(), other.dim())
    a, b = ((1,) * (n - t.dim()) + tuple(t.shape) for t in (input, other))
    left = unsafe_view(input, tuple(v for k in a for v in (k, 1)))
    right = unsafe_view(other, tuple(v for k in b for v in (1, k)))
    left._view_ = right._view_ = SHARED  # they share memory that the caller may write to
    return unsafe_view(left * right, tuple(k * m for k, m in zip(a, b)))


@composite(
    "outer(Tensor self, Tensor vec2) -> Tensor",
    names="torch.outer Tensor.outer torch.ger Tensor.ger", out=_check_out, last="mul",
)  # fmt: skip
def outer(input: Tensor, vec2: Tensor) -> Tensor:
    """The outer product of two vectors.

    Args:
        input: ``(n,)``.
        vec2: ``(m,)``.

    Returns:
        ``(n, m)``.

    Raises:
        RuntimeError: for tensors that are not vectors.

    Example:
        >>> torch.outer(torch.tensor([1, 2]), torch.tensor([1, 10]))
        tensor([[ 1, 10],
                [ 2, 20]])
    """
    for what, v in (("self", input), ("vec2", vec2)):
        if v.dim() != 1:
            raise RuntimeError(f"outer: Expected 1-D argument {what}, but got {v.dim()}-D")
    return reshape(input, (input.shape[0], 1)) * vec2
