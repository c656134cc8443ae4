"""Singular values, eigenvalues, and the matrix exponential."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compat._core.operators.composite import composite
from compat._core.operators.declaration import Arguments
from compat._core.operators.op import Op, aten
from compat._core.operators.opmath import in_single
from compat._core.tensor.tensor import Tensor
from compat._core.transforms.grad_mode import mode
from compat._core.types import dtype as dtypes
from compat._core.types.structseq import return_type
from compat._operators.linalg import gauge
from compat._operators.linalg.common import (
    NOT_CONVERGED,
    castable,
    check_floating,
    check_implemented,
    check_info,
    check_matrix,
    check_square,
    column_major,
    first_failure,
    hermitian_part,
    into_outs,
    not_finite,
    transposed,
)
from funcgrad import numpy as np
from funcgrad.core.ir import ArrayType
from funcgrad.core.tracing import type_of
from funcgrad.primitives import elementwise as e
from funcgrad.primitives.linalg import common as p
from funcgrad.primitives.linalg import factorizations as factors
from funcgrad.primitives.linalg import svd_eig as spectral
from funcgrad.primitives.shape import zeros

# ---------------------------------------------------------------- singular values


def _check_svd(A: Tensor, full_matrices: bool = False, compute_uv: bool = True, *, driver: str | None = None) -> None:
    check_matrix("linalg.svd", A)
    check_floating("linalg.svd", A)
    if driver is not None:
        raise RuntimeError(
            "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend."
        )
    check_implemented("linalg_svd_cpu", A)


_declare_svd = aten(
    "_linalg_svd(Tensor A, bool full_matrices=False, bool compute_uv=True, *, str? driver=None) -> (Tensor U, "
    "Tensor S, Tensor Vh)",
    node="LinalgSvdBackward0", saves="S S_sym_argsize_minus_1 U Vh full_matrices", names="", layout=column_major(0, 2),
    check=_check_svd,
    arguments=Arguments(
        shows={"S_sym_argsize_minus_1": lambda layouts, **_: min(layouts["A"].size[-2:])}, results="U S Vh info"
    ),
)  # fmt: skip


@_declare_svd
def _svd_of(A, full_matrices, compute_uv, *, driver):
    if compute_uv:
        left, values, right = spectral.svd(A, full=False, vectors=True)
    else:
        (values,) = spectral.svd(A, full=False, vectors=False)
        left = right = zeros(ArrayType((0,), type_of(A).dtype))
    return left, values, right, not_finite(e.stop_gradient(values))


@_declare_svd
def _svd_full_of(A, full_matrices, compute_uv, *, driver):
    left, values, right = spectral.svd(A, full=True, vectors=True)
    left, right = _without_null_derivative(left, values, -1), _without_null_derivative(right, values, -2)
    return left, values, right, not_finite(e.stop_gradient(values))


def _without_null_derivative(vectors: Any, values: Any, axis: int) -> Any:
    """Singular vectors; those beyond the singular values are not unique, so they get no derivative."""
    parts = np.split(vectors, [type_of(values).shape[-1]], axis=axis)
    return np.concatenate([parts[0], e.stop_gradient(parts[1])], axis=axis)


@_svd_full_of.backward
def _svd_full_backward(ct0: Any, ct1: Any, ct2: Any, U: Any, S: Any, Vh: Any) -> Any:
    k, m, n = type_of(S).shape[-1], type_of(U).shape[-2], type_of(Vh).shape[-1]
    left, right = factors.columns(U, 0, k), factors.rows(Vh, 0, k)

    def tangents(t: Any) -> Sequence[Any]:
        return spectral.svd_tangents(left, S, right, t)

    cts = [factors.columns(ct0, 0, k), ct1, factors.rows(ct2, 0, k)]
    found = transposed(tangents, [ArrayType((*type_of(U).shape[:-2], m, n), type_of(U).dtype)], cts)[0]
    # If the vectors have zero gradients, singular values may be equal.
    vectors_used = np.logical_or(np.any(np.not_equal(cts[0], 0)), np.any(np.not_equal(cts[2], 0)))
    return np.where(vectors_used, found, p.product(p.scaled_columns(left, ct1), right))


def _svd(A: Tensor, full: bool, vectors: bool, driver: str | None = None) -> Any:
    op = _svd_full_of if full else _svd_of
    left, values, right, info = op.function(A, full, vectors, driver=driver)
    check_info("linalg.svd", info, NOT_CONVERGED)
    if vectors:
        gauge.check_phases(gauge.SVD, gauge.Vectors(0, left), gauge.Vectors(2, right, rows=True))
    return left, values, right


def _results(name: str, fields: tuple[str, ...], found: Sequence[Tensor], out: Any, names: Any = None) -> Any:
    return return_type(name, fields)(*(found if out is None else into_outs(out, found, names)))


@composite(
    "linalg_svd(Tensor A, bool full_matrices=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)",
    names="linalg.svd",
)
def linalg_svd(A: Tensor, full_matrices: bool = True, *, driver: str | None = None, out: Any = None) -> Any:
    """``U``, ``S`` and ``Vh`` with ``A = U @ diag(S) @ Vh``: singular values, in descending order, and their vectors.

    Args:
        A: ``(*, m, n)``.
        full_matrices: whether ``U`` and ``Vh`` are square.

    Returns:
        A named tuple of ``U``, with vectors in columns, ``S`` and ``Vh``, with vectors in rows.

    Raises:
        LinAlgError: for nonfinite numbers.

    Example:
        >>> torch.linalg.svd(torch.tensor([[0.0, 2.0], [1.0, 0.0]])).S
        tensor([2., 1.])
    """
    return _results("linalg_svd", ("U", "S", "Vh"), _svd(A, full_matrices, True, driver), out)


@composite("linalg_svdvals(Tensor A, *, str? driver=None) -> Tensor", names="linalg.svdvals", out=True)
def svdvals(A: Tensor, *, driver: str | None = None) -> Tensor:
    """The singular values of matrices, in descending order.

    Args:
        A: ``(*, m, n)``.
        out: a tensor to write the result into.

    Raises:
        LinAlgError: for nonfinite numbers.

    Example:
        >>> torch.linalg.svdvals(torch.tensor([[0.0, 2.0], [1.0, 0.0]]))
        tensor([2., 1.])
    """
    # The vectors are needed for the derivative.
    needed = isinstance(A, Tensor) and ((mode.grad and A.requires_grad) or A._layout_.base.traced)
    return _svd(A, False, needed, driver)[1]


@composite(
    "svd(Tensor self, bool some=True, bool compute_uv=True) -> (Tensor U, Tensor S, Tensor V)",
    errors="before",
)
def svd(input: Tensor, some: bool = True, compute_uv: bool = True, *, out: Any = None) -> Any:
    """The deprecated form of ``torch.linalg.svd``.

    Args:
        some: False for square ``U`` and ``V``.
        compute_uv: False for ``U`` and ``V`` of zeros.

    Returns:
        A named tuple of ``U``, ``S`` and ``V``, with vectors in columns.

    Example:
        >>> torch.svd(torch.tensor([[0.0, 2.0], [1.0, 0.0]])).S
        tensor([2., 1.])
    """
    if input.dim() < 2:
        raise RuntimeError(
            f"linalg.svd: input should have at least 2 dimensions, but has {input.dim()} dimensions instead"
        )
    if compute_uv:
        left, values, right = _svd(input, not some, True)
        return _results("svd", ("U", "S", "V"), (left, values, right.mH), out)
    *lead, m, n = input.shape
    left, right = (input.new_zeros(*lead, size, size) for size in (m, n))
    return _results("svd", ("U", "S", "V"), (left, svdvals(input), right), out)


# ---------------------------------------------------------------- eigenvalues


def _check_eigh(A: Tensor, UPLO: str = "L", compute_v: bool = True) -> None:
    check_square("linalg.eigh", A)
    if UPLO.upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    check_implemented("linalg_eigh_cpu", A)


@aten(
    '_linalg_eigh(Tensor A, str UPLO="L", bool compute_v=True) -> (Tensor eigenvalues, Tensor eigenvectors)',
    node="LinalgEighBackward0", saves="eigenvalues eigenvectors", names="", layout=column_major(1), check=_check_eigh,
)  # fmt: skip
def _eigh_of(A, UPLO, compute_v):
    # Also the triangle that is not read gets gradients.
    part = hermitian_part(A)
    A = e.add(e.stop_gradient(A), e.sub(part, e.stop_gradient(part)))
    return spectral.eigh(A, lower=UPLO.upper() == "L")


@composite("linalg_eigh(Tensor self, str UPLO='L') -> (Tensor eigenvalues, Tensor eigenvectors)", names="linalg.eigh")
def eigh(A: Tensor, UPLO: str = "L", *, out: Any = None) -> Any:
    """The eigenvalues, in ascending order, and eigenvectors of Hermitian matrices.

    Args:
        A: ``(*, n, n)``; one triangle is read.
        UPLO: the triangle: ``"L"`` or ``"U"``.

    Returns:
        A named tuple of ``eigenvalues``, real, and ``eigenvectors``, in columns.

    Raises:
        RuntimeError: for an invalid ``UPLO``.

    Example:
        >>> torch.linalg.eigh(torch.tensor([[2.0, 0.0], [0.0, 1.0]])).eigenvalues
        tensor([1., 2.])
    """
    values, vectors = _eigh_of.function(A, UPLO)
    gauge.check_phases(gauge.EIGH, gauge.Vectors(1, vectors))
    return _results("linalg_eigh", ("eigenvalues", "eigenvectors"), (values, vectors), out)


@composite("linalg_eigvalsh(Tensor self, str UPLO='L') -> Tensor", names="linalg.eigvalsh", out=True)
def eigvalsh(A: Tensor, UPLO: str = "L") -> Tensor:
    """The eigenvalues of Hermitian matrices, in ascending order.

    Args:
        A: ``(*, n, n)``; one triangle is read.
        UPLO: the triangle: ``"L"`` or ``"U"``.
        out: a tensor to write the result into.

    Example:
        >>> torch.linalg.eigvalsh(torch.tensor([[2.0, 0.0], [0.0, 1.0]]))
        tensor([1., 2.])
    """
    return _eigh_of.function(A, UPLO)[0]


def _declare_eig(schema: str, name: str) -> Op:
    def check(input: Tensor) -> None:
        check_square(name, input)
        if input.dtype.category < dtypes.FLOATING:
            raise RuntimeError(f"Unknown Complex ScalarType for {input.dtype.scalar_name}")
        check_implemented("linalg_eig_out_cpu", input)

    @aten(
        schema,
        node="LinalgEigBackward0", saves="eigenvalues eigenvectors", names="", layout=column_major(1), check=check,
        arguments=Arguments(results="eigenvalues eigenvectors info"),
    )  # fmt: skip
    def eig_of(input):
        values, vectors = spectral.eig(input, vectors=True)
        return values, vectors, not_finite(e.stop_gradient(values))

    return eig_of


_eig_of = _declare_eig("linalg_eig(Tensor self) -> (Tensor eigenvalues, Tensor eigenvectors)", "linalg.eig")
_eigvals_of = _declare_eig("linalg_eigvals(Tensor self) -> Tensor", "linalg.eigvals")


def _eig(op: Op, input: Tensor) -> tuple[Tensor, Tensor]:
    values, vectors, info = op.function(input)
    if first_failure(info) is not None:
        raise RuntimeError("torch.linalg.eig: input tensor should not contain infs or NaNs.")
    gauge.check_phases(gauge.EIG, gauge.Vectors(1, vectors))
    return values, vectors


@composite("linalg_eig(Tensor self) -> (Tensor eigenvalues, Tensor eigenvectors)", names="linalg.eig")
def eig(input: Tensor, *, out: Any = None) -> Any:
    """The eigenvalues, unordered, and normalized eigenvectors of square matrices.

    Args:
        input: ``(*, n, n)``.

    Returns:
        A named tuple of ``eigenvalues`` and ``eigenvectors``, in columns; complex.

    Raises:
        RuntimeError: for nonfinite numbers.

    Example:
        >>> torch.linalg.eig(torch.tensor([[1.0, 5.0], [0.0, 2.0]])).eigenvalues
        tensor([1.+0.j, 2.+0.j])
    """
    fields = ("eigenvalues", "eigenvectors")
    return _results("linalg_eig", fields, _eig(_eig_of, input), out, lambda i: ("torch.linalg.eig", fields[i]))


@composite("linalg_eigvals(Tensor self) -> Tensor", names="linalg.eigvals")
@castable("torch.linalg.eigvals", "eigenvalues")
def eigvals(input: Tensor) -> Tensor:
    """The eigenvalues of square matrices, unordered; complex.

    Args:
        input: ``(*, n, n)``.
        out: a tensor to write the result into.

    Raises:
        RuntimeError: for nonfinite numbers.

    Example:
        >>> torch.linalg.eigvals(torch.tensor([[1.0, 5.0], [0.0, 2.0]]))
        tensor([1.+0.j, 2.+0.j])
    """
    return _eig(_eigvals_of, input)[0]


# ---------------------------------------------------------------- the exponential


def _check_exponential(input: Tensor) -> None:
    check_square("linalg.matrix_exp", input)
    check_floating("linalg.matrix_exp", input)


@aten(
    "linalg_matrix_exp(Tensor self) -> Tensor",
    node="LinalgMatrixExpBackward0", saves="self", names="linalg.matrix_exp torch.matrix_exp Tensor.matrix_exp",
    check=_check_exponential, out=False,
)  # fmt: skip
def matrix_exp(input):
    """The exponentials of square matrices.

    Args:
        input: ``(*, n, n)``.

    Example:
        >>> torch.linalg.matrix_exp(torch.tensor([[0.0, 1.0], [0.0, 0.0]]))
        tensor([[1., 1.],
                [0., 1.]])
    """
    return in_single(spectral.matrix_exponential)(input)
