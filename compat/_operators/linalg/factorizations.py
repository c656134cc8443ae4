"""Matrix factorizations: Cholesky, LU, QR."""

from __future__ import annotations

from typing import Any

from compat._core.operators.composite import composite
from compat._core.operators.declaration import Arguments, Gradients
from compat._core.operators.op import Op, aten
from compat._core.operators.value_checks import values_of
from compat._core.tensor.tensor import Tensor
from compat._core.types.dtype import int32
from compat._core.types.errors import Once
from compat._core.types.structseq import return_type
from compat._operators.linalg.common import (
    castable,
    check_floating,
    check_implemented,
    check_info,
    check_matrix,
    check_square,
    column_major,
    column_major_strides,
    hermitian_part,
    into_outs,
    refuse_backward,
    transposed,
)
from funcgrad import numpy as np
from funcgrad.core.ir import ArrayType
from funcgrad.core.tracing import type_of
from funcgrad.primitives import elementwise as e
from funcgrad.primitives.linalg import common as p
from funcgrad.primitives.linalg import factorizations as factors
from funcgrad.primitives.linalg.solve import first_zero_pivot
from funcgrad.primitives.shape import zeros

# ---------------------------------------------------------------- Cholesky


def _lower_of(x: Any, upper: bool) -> Any:
    """The matrix whose lower triangle is factored; also the triangle that is not read gets gradients."""
    if not upper:
        return x
    return e.add(e.stop_gradient(p.adjoint(x)), e.sub(x, e.stop_gradient(x)))


def _cholesky(x: Any, upper: bool) -> tuple[Any, Any]:
    factor, info = factors.cholesky(_lower_of(x, upper))
    return p.adjoint(factor) if upper else factor, info


def _cholesky_gradient(ct: Any, factor: Any, upper: bool) -> Any:
    lower, ct = (p.adjoint(factor), p.adjoint(ct)) if upper else (factor, ct)

    def tangent(t: Any) -> list[Any]:
        return [factors.cholesky_tangent(lower, hermitian_part(t))]

    return transposed(tangent, [type_of(factor)], [ct])[0]


def _check_cholesky_ex(input: Tensor, *, upper: bool = False, check_errors: bool = False) -> None:
    check_square("linalg.cholesky", input)
    check_floating("linalg.cholesky", input)
    check_implemented("cholesky_cpu", input)


_INDEFINITE = (
    "The factorization could not be completed because the input is not positive-definite (the leading minor of order "
    "{i} is not positive-definite)."
)


@aten(
    "linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> (Tensor L, Tensor info)",
    node="LinalgCholeskyExBackward0", saves="L upper", names="", layout=column_major(0), check=_check_cholesky_ex,
    out=True,
)  # fmt: skip
def cholesky_ex_of(input, *, upper, check_errors):
    return _cholesky(input, upper)


@cholesky_ex_of.backward
def _cholesky_ex_backward(ct0: Any, L: Any, upper: Any) -> Any:
    return _cholesky_gradient(ct0, L, upper)


@composite(
    "linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> (Tensor L, Tensor info)",
    names="linalg.cholesky_ex",
)
def cholesky_ex(input: Tensor, *, upper: bool = False, check_errors: bool = False, out: Any = None) -> Any:
    """As ``linalg.cholesky``, with the order of the first leading minor that is not positive.

    Args:
        input: ``(*, n, n)``.
        upper: whether to return upper triangular factors.
        check_errors: whether to raise if a matrix is not positive definite.

    Returns:
        A named tuple of ``L``, nonfinite on failure, and ``info``, int32, 0 on success.

    Example:
        >>> torch.linalg.cholesky_ex(torch.tensor([[1.0, 2.0], [2.0, 1.0]])).info
        tensor(2, dtype=torch.int32)
    """
    found = cholesky_ex_of.function(input, upper=upper, check_errors=check_errors, out=out)
    if check_errors:
        check_info("linalg.cholesky_ex", found[1], _INDEFINITE)
    return found


@composite("linalg_cholesky(Tensor self, *, bool upper=False) -> Tensor", names="linalg.cholesky", out=True)
def linalg_cholesky(input: Tensor, *, upper: bool = False) -> Tensor:
    """The lower triangular ``L`` with ``input = L @ L.mH``, for Hermitian positive definite matrices.

    Args:
        input: ``(*, n, n)``; one triangle is read.
        upper: whether to return upper triangular factors, from the upper triangle.
        out: a tensor to write the result into.

    Raises:
        LinAlgError: for a matrix that is not positive definite.

    Example:
        >>> torch.linalg.cholesky(torch.tensor([[4.0, 2.0], [2.0, 5.0]]))
        tensor([[2., 0.],
                [1., 2.]])
    """
    factor, info = cholesky_ex_of.function(input, upper=upper)
    check_info("linalg.cholesky", info, _INDEFINITE)
    return factor


def _check_cholesky(input: Tensor, upper: bool = False) -> None:
    check_square("cholesky", input)
    check_implemented("cholesky_cpu", input)


@aten(
    "cholesky(Tensor self, bool upper=False) -> Tensor",
    node="CholeskyBackward0", saves="result upper", names="",
    layout=lambda _, types: [column_major_strides(types[0].shape) if types[0].size else None, None],
    check=_check_cholesky, arguments=Arguments(results="result info"),
)  # fmt: skip
def _cholesky_of(input, upper):
    return _cholesky(input, upper)


@_cholesky_of.backward
def _cholesky_backward(ct0: Any, result: Any, upper: Any) -> Any:
    return _cholesky_gradient(ct0, result, upper)


@composite("cholesky(Tensor self, bool upper=False) -> Tensor")
@castable("cholesky")
def cholesky(input: Tensor, upper: bool = False) -> Tensor:
    """A deprecated alias of ``torch.linalg.cholesky``."""
    Once.warn(
        "torch.cholesky is deprecated in favor of torch.linalg.cholesky and will be removed in a future PyTorch "
        "release.\nL = torch.cholesky(A)\nshould be replaced with\nL = torch.linalg.cholesky(A)\nand\nU = "
        "torch.cholesky(A, upper=True)\nshould be replaced with\nU = torch.linalg.cholesky(A).mH\nThis transform will "
        "produce equivalent results for all valid (symmetric positive definite) inputs."
    )
    factor, info = _cholesky_of.function(input, upper)
    check_info("cholesky", info, _INDEFINITE)
    return factor


# ---------------------------------------------------------------- LU


def _check_batch(name: str, A: Tensor) -> None:
    if A.dim() < 2:
        raise RuntimeError(f"{name}: Expected tensor with 2 or more dimensions. Got size: {list(A.shape)} instead")


def _check_factored(name: str, A: Tensor, pivot: bool) -> None:
    _check_batch(name, A)
    check_implemented("lu_cpu", A)
    if not pivot:
        raise RuntimeError("linalg.lu_factor: LU without pivoting is not implemented on the CPU")


def _check_lu_factor(A: Tensor, *, pivot: bool = True, check_errors: bool = False) -> None:
    _check_factored("torch.lu_factor", A, pivot)


@aten(
    "linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) -> (Tensor LU, Tensor pivots, "
    "Tensor info)",
    node="LinalgLuFactorExBackward0", saves="LU pivot pivots", names="", layout=column_major(0), check=_check_lu_factor,
    out=True,
)  # fmt: skip
def lu_factor_ex_of(A, *, pivot, check_errors):
    packed, pivots = factors.lu(A)
    return packed, pivots, first_zero_pivot(packed)


@composite(
    "linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) -> (Tensor LU, Tensor pivots, "
    "Tensor info)",
    names="linalg.lu_factor_ex",
)
def lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False, out: Any = None) -> Any:
    """As ``linalg.lu_factor``, with the one-based index of the first zero pivot.

    Args:
        A: ``(*, m, n)``.
        check_errors: whether to raise if a pivot is zero.

    Returns:
        A named tuple of ``LU``, ``pivots`` and ``info``, int32, 0 if there is none.

    Example:
        >>> torch.linalg.lu_factor_ex(torch.zeros(2, 2)).info
        tensor(1, dtype=torch.int32)
    """
    found = lu_factor_ex_of.function(A, pivot=pivot, check_errors=check_errors, out=out)
    if check_errors:
        check_info("torch.linalg.lu_factor_ex", found[2], _ZERO_PIVOT, RuntimeError)
    return found


_ZERO_PIVOT = (
    "U[{i},{i}] is zero and using it on lu_solve would result in a division by zero. If you still want to perform the "
    "factorization, consider calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)"
)


@composite("linalg_lu_factor(Tensor A, *, bool pivot=True) -> (Tensor LU, Tensor pivots)", names="linalg.lu_factor")
def lu_factor(A: Tensor, *, pivot: bool = True, out: Any = None) -> Any:
    """The LU factors of matrices in one matrix, and the pivots.

    Args:
        A: ``(*, m, n)``.

    Returns:
        A named tuple of ``LU`` and ``pivots``: row ``i`` was interchanged with row ``pivots[i]``, counted from one.

    Raises:
        RuntimeError: where a pivot is zero.

    Example:
        >>> torch.linalg.lu_factor(torch.tensor([[1.0, 2.0], [4.0, 4.0]])).LU
        tensor([[4.0000, 4.0000],
                [0.2500, 1.0000]])
    """
    outs = None if out is None else (*out, A.new_empty(0).int())
    packed, pivots, info = lu_factor_ex_of.function(A, pivot=pivot, out=outs)
    check_info("torch.linalg.lu_factor", info, _ZERO_PIVOT, RuntimeError)
    return return_type("linalg_lu_factor", ("LU", "pivots"))(packed, pivots)


@composite(names="torch.lu Tensor.lu")
def lu(A: Tensor, pivot: bool = True, get_infos: bool = False, out: Any = None) -> tuple:
    """A deprecated alias of ``torch.linalg.lu_factor``.

    Args:
        get_infos: whether to return the one-based index of the first zero pivot as a third tensor.
    """
    Once.warn(
        "torch.lu is deprecated in favor of torch.linalg.lu_factor / torch.linalg.lu_factor_ex and will be removed in "
        "a future PyTorch release.\nLU, pivots = torch.lu(A, compute_pivots)\nshould be replaced with\nLU, pivots = "
        "torch.linalg.lu_factor(A, compute_pivots)\nand\nLU, pivots, info = torch.lu(A, compute_pivots, "
        "get_infos=True)\nshould be replaced with\nLU, pivots, info = torch.linalg.lu_factor_ex(A, compute_pivots)"
    )
    packed, pivots, info = lu_factor_ex_of.function(A, pivot=pivot)
    found: tuple = (packed, pivots, info) if get_infos else (packed, pivots)
    return found if out is None else tuple(into_outs(out, found))


def _unpacked(packed: Any) -> tuple[Any, Any]:
    """The factors that LU packs into one matrix."""
    k = min(type_of(packed).shape[-2:])
    left = factors.columns(packed, 0, k)
    lower = e.add(p.lower_part(left, strict=True), p.identity(type_of(left).shape, type_of(left).dtype))
    return lower, p.upper_part(factors.rows(packed, 0, k))


def _permutation_matrix(pivots: Any, packed: Any) -> Any:
    t = type_of(packed)
    m = t.shape[-2]
    one = p.identity((*t.shape[:-2], m, m), t.dtype)
    return p.flipped(factors.permuted(one, factors.permutation(pivots, length=m)))


def _check_lu(A: Tensor, *, pivot: bool = True) -> None:
    _check_factored("linalg.lu", A, pivot)


@aten(
    "linalg_lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)",
    node="LinalgLuBackward0", saves="L P U pivot", names="linalg.lu", check=_check_lu, out=True,
    arguments=Arguments(results="L U P"), gradients=Gradients(constant=(2,)),
)  # fmt: skip
def linalg_lu(A, *, pivot):
    """``P``, ``L`` and ``U`` with ``A = P @ L @ U``: a permutation, and lower and upper triangular matrices.

    Args:
        A: ``(*, m, n)``.

    Example:
        >>> torch.linalg.lu(torch.tensor([[1.0, 2.0], [4.0, 4.0]])).U
        tensor([[4., 4.],
                [0., 1.]])
    """
    packed, pivots = factors.lu(A)
    return *_unpacked(packed), _permutation_matrix(pivots, packed)


@linalg_lu.backward
def _lu_backward(ct0: Any, ct1: Any, P: Any, L: Any, U: Any) -> Any:
    *lead, m, k = type_of(L).shape
    n = type_of(U).shape[-1]
    below = p.lower_part(L, strict=True)
    if m == n:
        packed = e.add(below, U)
    elif m > n:
        packed = np.concatenate([e.add(factors.rows(below, 0, k), U), factors.rows(L, k, m)], -2)
    else:
        head = e.add(below, factors.columns(U, 0, k))
        packed = np.concatenate([head, factors.columns(U, k, n)], -1)

    def tangent(t: Any) -> list[Any]:
        change = factors.lu_tangent(packed, p.product(p.flipped(P), t))
        return [p.lower_part(factors.columns(change, 0, k), strict=True), p.upper_part(factors.rows(change, 0, k))]

    return transposed(tangent, [ArrayType((*lead, m, n), type_of(L).dtype)], [ct0, ct1])[0]


def _check_unpack(LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True) -> None:
    _check_batch("torch.lu_unpack", LU_data)
    if unpack_pivots and LU_pivots.dtype is not int32:
        raise RuntimeError(
            "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.\nNote: this "
            "function is intended to be used with the output produced by torch.linalg.lu_factor"
        )


def _inspect_unpack(LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True) -> None:
    found = values_of(LU_pivots) if unpack_pivots else None
    if found is not None and found.size and (found.min() < 1 or found.max() > LU_data.shape[-2]):
        raise RuntimeError(
            "pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive.Did you properly pass the result "
            "of lu_factor?"
        )


@aten(
    "lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True) -> (Tensor P, "
    "Tensor L, Tensor U)",
    node="LuUnpackBackward0", saves="LU_data.sym_argsize_minus_1 LU_data.sym_argsize_minus_2", names="torch.lu_unpack",
    check=_check_unpack, values=_inspect_unpack, arguments=Arguments(results="L U P"),
    gradients=Gradients(without="LU_pivots", constant=(2,)),
)  # fmt: skip
def lu_unpack(LU_data, LU_pivots, unpack_data, unpack_pivots):
    """``P``, ``L`` and ``U`` from the result of ``linalg.lu_factor``.

    Args:
        LU_data: ``(*, m, n)``.
        LU_pivots: ``(*, min(m, n))``, int32.
        unpack_data, unpack_pivots: False for empty ``L`` and ``U``, and an empty ``P``.

    Raises:
        RuntimeError: for pivots out of range.

    Example:
        >>> torch.lu_unpack(*torch.linalg.lu_factor(torch.tensor([[1.0, 2.0], [4.0, 4.0]]))).P
        tensor([[0., 1.],
                [1., 0.]])
    """
    empty = zeros(ArrayType((0,), type_of(LU_data).dtype))
    lower, upper = _unpacked(LU_data) if unpack_data else (empty, empty)
    return lower, upper, _permutation_matrix(LU_pivots, LU_data) if unpack_pivots else empty


# ---------------------------------------------------------------- QR


def _check_qr(A: Tensor, mode: str = "reduced") -> None:
    check_matrix("linalg.qr", A)
    check_floating("linalg.qr", A)
    check_implemented("geqrf_cpu", A)
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'"
        )


def _declare_qr(saves: str, error: str = "") -> Op:
    """``linalg_qr``; with ``error``, its backward raises a RuntimeError of that text."""

    @aten(
        'linalg_qr(Tensor A, str mode="reduced") -> (Tensor Q, Tensor R)',
        node="LinalgQrBackward0", saves=saves, names="", layout=column_major(0, 1), check=_check_qr, out=True,
    )  # fmt: skip
    def qr_of(A, mode):
        q, r = factors.qr(A, full=mode == "complete")
        return (zeros(ArrayType((0,), type_of(A).dtype)) if mode == "r" else q), r

    if error:
        qr_of.backward(lambda ct0, A: None)
        refuse_backward(qr_of, error)
    return qr_of


_qr_of = _declare_qr("Q R mode")
_qr_complete_of = _declare_qr(
    "Q! R! mode", "The QR decomposition is not differentiable when mode='complete' and nrows > ncols"
)
_qr_r_of = _declare_qr(
    "Q! R! mode",
    "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use linalg.qr(A, "
    "mode='reduced') if you are going to require gradients.",
)


@composite("linalg_qr(Tensor A, str mode='reduced') -> (Tensor Q, Tensor R)", names="linalg.qr")
def linalg_qr(A: Tensor, mode: str = "reduced", *, out: Any = None) -> Any:
    """``Q`` with orthonormal columns and upper triangular ``R`` with ``A = Q @ R``.

    Args:
        A: ``(*, m, n)``.
        mode: ``"reduced"``, with ``min(m, n)`` columns; ``"complete"`` for a square ``Q``, not differentiable if ``m >
            n``; ``"r"`` for an empty ``Q``, not differentiable.

    Returns:
        A named tuple of ``Q`` and ``R``.

    Raises:
        RuntimeError: for an unknown mode.

    Example:
        >>> torch.linalg.qr(torch.ones(3, 2)).Q.shape
        torch.Size([3, 2])
    """
    tall = isinstance(A, Tensor) and A.dim() > 1 and A.shape[-2] > A.shape[-1]
    op = _qr_r_of if mode == "r" else _qr_complete_of if mode == "complete" and tall else _qr_of
    return op.function(A, mode, out=out)


@composite("qr(Tensor self, bool some=True) -> (Tensor Q, Tensor R)", errors="before")
def qr(input: Tensor, some: bool = True, *, out: Any = None) -> Any:
    """A deprecated alias of ``torch.linalg.qr``.

    Args:
        some: False for ``mode="complete"``.
    """
    Once.warn(
        "torch.qr is deprecated in favor of torch.linalg.qr and will be removed in a future PyTorch release.\nThe "
        "boolean parameter 'some' has been replaced with a string parameter 'mode'.\nQ, R = torch.qr(A, some)\nshould "
        "be replaced with\nQ, R = torch.linalg.qr(A, 'reduced' if some else 'complete')"
    )
    return return_type("qr", ("Q", "R"))(*linalg_qr(input, "reduced" if some else "complete", out=out))
