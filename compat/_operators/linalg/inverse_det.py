"""Inverses and determinants."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from compat._core.operators.composite import composite
from compat._core.operators.declaration import Arguments, Gradients
from compat._core.operators.op import aten
from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor
from compat._core.types.structseq import return_type
from compat._operators.linalg.common import (
    SINGULAR,
    castable,
    check_floating,
    check_implemented,
    check_info,
    check_square,
    column_major,
    into_outs,
)
from compat._operators.linalg.solve import solve
from funcgrad.primitives import elementwise as e
from funcgrad.primitives.linalg import common as p
from funcgrad.primitives.linalg import factorizations as factors
from funcgrad.primitives.linalg import solve as solving

# ---------------------------------------------------------------- inverses


def _check_inverse(A: Tensor, *, check_errors: bool = False) -> None:
    check_square("linalg.inv", A)
    check_floating("linalg.inv", A, low=False)


@aten(
    "linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)",
    node="LinalgInvExBackward0", saves="inverse", names="", layout=column_major(0), check=_check_inverse, out=True,
)  # fmt: skip
def _inverse_of(A, *, check_errors):
    return solving.inverse(A)


@composite(
    "linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)",
    names="linalg.inv_ex",
)
def inv_ex(A: Tensor, *, check_errors: bool = False, out: Any = None) -> Any:
    """As ``linalg.inv``, with the one-based index of the first zero pivot.

    Args:
        A: ``(*, n, n)``.
        check_errors: whether to raise if a matrix is singular.

    Returns:
        A named tuple of ``inverse`` and ``info``, int32, 0 on success.

    Example:
        >>> torch.linalg.inv_ex(torch.zeros(2, 2)).info
        tensor(1, dtype=torch.int32)
    """
    found = _inverse_of.function(A, check_errors=check_errors, out=out)
    if check_errors:
        check_info("linalg.inv_ex", found[1], SINGULAR)
    return found


@composite("linalg_inv(Tensor A) -> Tensor", names="linalg.inv", out=True)
def inv(A: Tensor) -> Tensor:
    """The inverses of square matrices.

    Args:
        A: ``(*, n, n)``.
        out: a tensor to write the result into.

    Raises:
        LinAlgError: for a singular matrix.

    Example:
        >>> torch.linalg.inv(torch.tensor([[2.0, 0.0], [0.0, 4.0]]))
        tensor([[0.5000, 0.0000],
                [0.0000, 0.2500]])
    """
    found, info = _inverse_of.function(A)
    check_info("linalg.inv", info, SINGULAR)
    return found


@composite("inverse(Tensor self) -> Tensor", out=True)
def inverse(input: Tensor) -> Tensor:
    """As ``torch.linalg.inv``.

    Example:
        >>> torch.inverse(torch.tensor([[2.0]]))
        tensor([[0.5000]])
    """
    return inv(input)


@composite("linalg_tensorinv(Tensor self, int ind=2) -> Tensor", names="linalg.tensorinv")
@castable("tensorinv")
def tensorinv(A: Tensor, ind: int = 2) -> Tensor:
    """The inverse of ``A`` as a map between tensors: ``tensordot(tensorinv(A, ind), A, ind)`` is the identity.

    Args:
        ind: the number of leading dimensions of the map's results; the others have as many elements.
        out: a tensor to write the result into.

    Raises:
        RuntimeError: unless ``ind`` is positive and the numbers of elements are equal.
        LinAlgError: if the map is singular.

    Example:
        >>> torch.linalg.tensorinv(torch.eye(6).reshape(6, 2, 3), ind=1).shape
        torch.Size([2, 3, 6])
    """
    if ind <= 0:
        raise RuntimeError(f"Expected a strictly positive integer for 'ind', but got {ind}")
    result, operand = tuple(A.shape[:ind]), tuple(A.shape[ind:])
    if ind > A.dim():
        raise RuntimeError(f"ArrayRef: invalid slice, N = {ind}; size = {A.dim()}")
    n, m = math.prod(result), math.prod(operand)
    if n != m:
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got "
            f"{m} != {n}"
        )
    return inv(A.reshape(m, n)).reshape(*operand, *result)


@composite("linalg_tensorsolve(Tensor self, Tensor other, int[]? dims=None) -> Tensor", names="linalg.tensorsolve")
@castable("tensorsolve")
def tensorsolve(A: Tensor, B: Tensor, dims: Sequence[int] | None = None) -> Tensor:
    """``X`` with ``tensordot(A, X, X.dim()) = B``.

    Args:
        A: a tensor with the dimensions of ``B`` followed by those of ``X``, with equal numbers of elements.
        dims: dimensions of ``A`` that are moved to its end first.
        out: a tensor to write the result into.

    Raises:
        RuntimeError: unless the numbers of elements are equal.
        LinAlgError: if ``A`` is singular.

    Example:
        >>> torch.linalg.tensorsolve(torch.eye(6).reshape(2, 3, 6), torch.ones(2, 3)).shape
        torch.Size([6])
    """
    if dims is not None:
        A = A.movedim(tuple(dims), tuple(range(A.dim() - len(dims), A.dim())))
    size = tuple(A.shape[B.dim() :])
    n, m = math.prod(A.shape[: B.dim()]), math.prod(size)
    if n != m:
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), "
            f"but got {m} != {n}"
        )
    return solve(A.reshape(m, n), B.flatten()).reshape(size)


# ---------------------------------------------------------------- determinants


def _is_row_major(A: Tensor) -> bool:
    """Whether a real matrix is row-major, so that PyTorch factors its transpose."""
    return isinstance(A, Tensor) and A.is_contiguous() and not A.dtype.is_complex


def _factored(A: Any, row_major: bool) -> tuple[Any, Any, Any]:
    """``A`` or, with ``row_major``, its transpose, which has the same determinant; its LU factors; the pivots."""
    x = p.flipped(A) if row_major else A
    return x, *factors.lu(e.stop_gradient(x))


def _check_det(A: Tensor, row_major: bool) -> None:
    check_square("linalg.det", A)
    check_floating("linalg.det", A)
    check_implemented("lu_cpu", A)


@aten(
    "_linalg_det(Tensor A, bool row_major) -> (Tensor, Tensor, Tensor)",
    node="LinalgDetBackward0", saves="A! LU pivots result", names="", layout=column_major(1), check=_check_det,
    arguments=Arguments(results="result LU pivots"), gradients=Gradients(constant=(1,)),
)  # fmt: skip
def _det_of(A, row_major):
    x, packed, pivots = _factored(A, row_major)
    return solving.factored_determinant(x, packed, pivots), packed, pivots


@composite("linalg_det(Tensor A) -> Tensor", names="linalg.det", out=True)
@composite("det(Tensor self) -> Tensor")
def det(A: Tensor) -> Tensor:
    """The determinants of square matrices; singular matrices have gradients too.

    Args:
        A: ``(*, n, n)``.
        out: a tensor to write the result into.

    Example:
        >>> torch.linalg.det(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
        tensor(-2.)
    """
    return _det_of.function(A, _is_row_major(A))[0]


def _check_slogdet(A: Tensor, row_major: bool) -> None:
    check_square("linalg.slogdet", A)
    check_floating("linalg.slogdet", A, low=False)


@aten(
    "_linalg_slogdet(Tensor A, bool row_major) -> (Tensor, Tensor, Tensor, Tensor)",
    node="LinalgSlogdetBackward0", saves="A! LU pivots sign!", names="", layout=column_major(2), check=_check_slogdet,
    arguments=Arguments(results="sign logabsdet LU pivots"), gradients=Gradients(constant=(2,)),
)  # fmt: skip
def _slogdet_of(A, row_major):
    x, packed, pivots = _factored(A, row_major)
    return *solving.factored_logdet(x, packed, pivots), packed, pivots


def _slogdet(name: str, A: Tensor, out: Any) -> Any:
    found = _slogdet_of.function(A, _is_row_major(A))[:2]
    return return_type(name, ("sign", "logabsdet"))(*(found if out is None else into_outs(out, found)))


@composite("linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)", names="linalg.slogdet")
def linalg_slogdet(A: Tensor, *, out: Any = None) -> Any:
    """The signs of determinants, and the logarithms of their magnitudes, which do not overflow.

    Args:
        A: ``(*, n, n)``.

    Returns:
        A named tuple of ``sign``, of magnitude 1 or 0, and ``logabsdet``.

    Example:
        >>> torch.linalg.slogdet(torch.tensor([[1.0, 2.0], [3.0, 4.0]])).logabsdet
        tensor(0.6931)
    """
    return _slogdet("linalg_slogdet", A, out)


@composite("slogdet(Tensor self) -> (Tensor sign, Tensor logabsdet)")
def slogdet(input: Tensor, *, out: Any = None) -> Any:
    """As ``torch.linalg.slogdet``.

    Example:
        >>> torch.slogdet(torch.tensor([[-2.0]])).sign
        tensor(-1.)
    """
    return _slogdet("slogdet", input, out)


@composite("logdet(Tensor self) -> Tensor")
def logdet(input: Tensor) -> Tensor:
    """The logarithms of determinants: ``-inf`` for 0, and NaN for a negative one.

    Example:
        >>> torch.logdet(torch.tensor([[1.0, 0.0], [0.0, 1.0]]))
        tensor(0.)
    """
    check_square("logdet", input)
    check_floating("logdet", input, low=False)
    sign, logabsdet, _, _ = _slogdet_of.function(input, _is_row_major(input))
    if input.dtype.is_complex:
        return sign.log() + logabsdet
    return names_of("torch")["where"](sign == -1.0, math.nan, logabsdet)
