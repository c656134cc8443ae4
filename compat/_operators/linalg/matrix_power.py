"""Products of several matrices, matrix powers, and Vandermonde matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compat._core.operators.composite import composite
from compat._core.operators.out import check_dtype, of_dtype
from compat._core.tensor.registry import function, names_of
from compat._core.tensor.tensor import Tensor
from compat._core.types.dtype import index_number
from compat._core.types.errors import Once, cpp_name, size_text
from compat._operators.create.factories import ones
from compat._operators.linalg.common import casts_safely, check_square
from compat._operators.linalg.matmul import matmul, mm
from compat._operators.shape.cat_stack import cat
from compat._operators.view.slicing import diagonal

# ---------------------------------------------------------------- diagonals


@composite(
    "linalg_diagonal(Tensor(a) A, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor(a)",
    names="linalg.diagonal",
)
def linalg_diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The diagonals of matrices, as a view.

    Args:
        A: ``(*, n, m)``.
        offset: the diagonal; positive above the main one.
        dim1, dim2: the dimensions of the matrices.

    Example:
        >>> torch.linalg.diagonal(torch.tensor([[1, 2], [3, 4]]))
        tensor([1, 4])
    """
    return diagonal(A, offset, dim1, dim2)


# ---------------------------------------------------------------- multi_dot


def _check_chain(tensors: Sequence[Tensor]) -> None:
    n = len(tensors)
    if n < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {n}")
    for which, t in (("first", tensors[0]), ("last", tensors[-1])):
        if t.dim() not in (1, 2):
            raise RuntimeError(f"multi_dot(): the {which} tensor must be 1D or 2D but got {t.dim()}D")
    for i, t in enumerate(tensors):
        if 0 < i < n - 1 and t.dim() != 2:
            raise RuntimeError(f"multi_dot(): tensor {i} must be 2D but got {t.dim()}D")
        if t.dtype is not tensors[0].dtype:
            raise RuntimeError(
                "multi_dot(): all tensors must have be the same dtype but tensor 0 is "
                f"{cpp_name(tensors[0].dtype)} and tensor {i} {cpp_name(t.dtype)}"
            )


def _check_inner(matrices: Sequence[Tensor], tensors: Sequence[Tensor]) -> None:
    for i in range(len(matrices) - 1):
        if matrices[i].shape[1] != matrices[i + 1].shape[0]:
            raise RuntimeError(
                f"multi_dot(): tensors {i} and {i + 1} with shapes {size_text(tensors[i].shape)} and "
                f"{size_text(tensors[i + 1].shape)} cannot be multiplied"
            )


def _splits(matrices: Sequence[Tensor]) -> list[list[int]]:
    """The cheapest place to split each part ``i`` to ``j`` of a chain of matrices, as ``result[i][j]``.

    Source: T. Cormen et al., "Introduction to algorithms", the section on matrix chains.
    """
    n = len(matrices)
    sizes = [matrices[0].shape[0], *[m.shape[1] for m in matrices]]
    cost = [[0] * n for _ in range(n)]
    split = [[0] * n for _ in range(n)]
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            costs = [cost[i][k] + cost[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1] for k in range(i, j)]
            cost[i][j] = min(costs)
            split[i][j] = i + costs.index(cost[i][j])
    return split


def _multiplied(matrices: Sequence[Tensor], split: list[list[int]], i: int, j: int) -> Tensor:
    if i == j:
        return matrices[i]
    k = split[i][j]
    return mm(_multiplied(matrices, split, i, k), _multiplied(matrices, split, k + 1, j))


def _three(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """The product of three matrices, in the cheaper order."""
    left = a.shape[0] * b.shape[1] * (a.shape[1] + c.shape[1])
    right = a.shape[1] * c.shape[1] * (a.shape[0] + b.shape[1])
    return mm(mm(a, b), c) if left <= right else mm(a, mm(b, c))


@composite(
    "linalg_multi_dot(Tensor[] tensors) -> Tensor",
    names="linalg.multi_dot",
    out=of_dtype("multi_dot(): expected out tensor to have dtype {result_cpp} but got {out_cpp}"), last="mm",
)  # fmt: skip
def multi_dot(tensors: Sequence[Tensor]) -> Tensor:
    """The product of several matrices, in the cheapest order.

    Args:
        tensors: matrices; the first may be a row vector and the last a column vector.

    Raises:
        RuntimeError: for fewer than two, and if sizes or dtypes do not match.

    Example:
        >>> torch.linalg.multi_dot([torch.ones(2, 3), torch.ones(3, 4), torch.ones(4)])
        tensor([12., 12.])
    """
    _check_chain(tensors)
    first, last = tensors[0], tensors[-1]
    size = [*first.shape[:-1], *last.shape[1:]]
    matrices = list(tensors)
    matrices[0] = first.unsqueeze(0) if first.dim() == 1 else first
    matrices[-1] = last.unsqueeze(-1) if last.dim() == 1 else last
    _check_inner(matrices, tensors)
    if len(matrices) == 2:
        return mm(*matrices).view(size)
    if len(matrices) == 3:
        return _three(*matrices).view(size)
    return _multiplied(matrices, _splits(matrices), 0, len(matrices) - 1).view(size)


@function("torch.chain_matmul")
def chain_matmul(*matrices: Any, out: Tensor | None = None) -> Tensor:
    """The deprecated form of ``torch.linalg.multi_dot``, of matrices as separate arguments."""
    Once.warn(
        "torch.chain_matmul is deprecated and will be removed in a future PyTorch release. Use torch.linalg.multi_dot "
        "instead, which accepts a list of two or more tensors rather than multiple parameters."
    )
    if not matrices:
        raise RuntimeError("chain_matmul(): Expected one or more matrices")
    for t in matrices:
        if t.dim() != 2:
            raise RuntimeError(f"Tensor dimension is {t.dim()}, expected 2 instead.")
    if len(matrices) == 1:
        return matrices[0]
    return multi_dot(matrices, out=out)


# ---------------------------------------------------------------- powers


def _check_power_out(result: Tensor, out: Tensor, operands: Any) -> None:
    casts_safely("matrix_power")(result, out, operands)
    check_dtype(result, out, exact=True)


@composite(
    "linalg_matrix_power(Tensor self, int n) -> Tensor",
    names="linalg.matrix_power torch.matrix_power Tensor.matrix_power", out=_check_power_out, last="matmul",
)  # fmt: skip
def matrix_power(A: Tensor, n: int) -> Tensor:
    """The ``n``-th power of a matrix, by squaring.

    Args:
        A: ``(*, m, m)``.
        n: the exponent; negative for the inverse.

    Raises:
        RuntimeError: for matrices that are not square.
        LinAlgError: for a singular matrix and a negative ``n``.

    Example:
        >>> torch.linalg.matrix_power(torch.tensor([[1, 1], [0, 1]]), 5)
        tensor([[1, 5],
                [0, 1]])
    """
    check_square("linalg.matrix_power", A)
    n = index_number(n)
    if n < 0:
        A, n = names_of("linalg")["inv"](A), -n
        if n == 1:
            return A
    if n == 0:
        return A.clone().copy_(names_of("torch")["eye"](A.shape[-1], dtype=A.dtype))
    if n == 1:
        return A.clone()
    if n == 3:
        return matmul(matmul(A, A), A)
    return _squared(A, n)


def _squared(A: Tensor, n: int) -> Tensor:
    result, power = None, A
    while True:
        n, odd = divmod(n, 2)
        if odd:
            result = power if result is None else matmul(result, power)
        if not n:
            assert result is not None
            return result
        power = matmul(power, power)


@composite("linalg_vander(Tensor x, *, SymInt? N=None) -> Tensor", names="linalg.vander")
def vander(x: Tensor, *, N: int | None = None) -> Tensor:
    """The powers of the elements: ``x ** 0``, ``x ** 1``, ..., ``x ** (N - 1)`` as a row for each.

    Args:
        x: ``(*, n)``.
        N: the number of powers; ``n`` by default.

    Returns:
        ``(*, n, N)``.

    Raises:
        RuntimeError: unless ``N`` is greater than 1.

    Example:
        >>> torch.linalg.vander(torch.tensor([2, 3]), N=3)
        tensor([[1, 2, 4],
                [1, 3, 9]])
    """
    x = x.unsqueeze(-1) if x.dim() == 0 else x
    count = x.shape[-1] if N is None else N
    if count <= 1:
        raise RuntimeError("N must be greater than 1.")
    one = ones(*x.shape, 1, dtype=x.dtype)
    powers = x.unsqueeze(-1).expand(*x.shape, count - 1).cumprod(-1)
    return cat([one.to(powers.dtype) if powers.dtype is not x.dtype else one, powers], dim=-1)
