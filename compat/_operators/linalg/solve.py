"""Linear systems."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compat._core.memory.strides import broadcast_size
from compat._core.operators.composite import composite
from compat._core.operators.declaration import Arguments, Gradients
from compat._core.operators.op import aten
from compat._core.tensor.tensor import Tensor
from compat._core.types import dtype
from compat._core.types.errors import Once
from compat._core.types.structseq import return_type
from compat._operators.linalg.common import (
    SINGULAR,
    broadcast_batch,
    castable,
    check_floating,
    check_implemented,
    check_info,
    check_matrix,
    check_right_hand_side,
    check_same_dtype,
    check_square,
    column_major,
    column_major_strides,
    into_outs,
    transposed,
)
from funcgrad import numpy as np
from funcgrad.core.ir import ArrayType
from funcgrad.core.tracing import type_of
from funcgrad.primitives import elementwise as e
from funcgrad.primitives.linalg import common as p
from funcgrad.primitives.linalg import factorizations as factors
from funcgrad.primitives.linalg import solve as solving
from funcgrad.primitives.shape import expanded, reshape

# ---------------------------------------------------------------- triangular systems


def _check_solve_triangular(input, B, *, upper, left=True, unitriangular=False):
    name = "linalg.solve_triangular"
    check_square(name, input)
    check_matrix(name, B, "B")
    check_right_hand_side(name, input, B.shape[-2], B.shape[-1], left)
    broadcast_size(tuple(input.shape[:-2]), tuple(B.shape[:-2]))
    check_implemented("triangular_solve_cpu", input)


def _solve_triangular(
    a: Any, b: Any, *, left: bool = True, upper: bool, transpose: bool = False, unit: bool = False
) -> Any:
    """``triangular_solve`` with broadcast leading axes."""
    batch = broadcast_size(type_of(a).shape[:-2], type_of(b).shape[:-2])
    return p.triangular_solve(
        broadcast_batch(a, batch),
        broadcast_batch(b, batch),
        left=left,
        lower=not upper,
        transposed=transpose,
        unit=unit,
    )


@aten(
    "linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, bool unitriangular=False) -> Tensor",
    node="LinalgSolveTriangularBackward0", saves="left result! self unitriangular upper",
    names="linalg.solve_triangular", layout=column_major(0), check=_check_solve_triangular, out=True,
)  # fmt: skip
def solve_triangular(input, B, *, upper, left, unitriangular):
    """``X`` with ``input @ X = B``, or ``X @ input = B``, for triangular matrices.

    Args:
        input: ``(*, n, n)``; one triangle is read.
        B: ``(*, n, k)``, or ``(*, k, n)`` from the right; leading dimensions broadcast.
        upper: whether the upper triangle is read.
        left: whether ``input`` is the left factor.
        unitriangular: whether the elements of the diagonal are one; they are then not read.

    Raises:
        RuntimeError: if sizes do not match.

    Example:
        >>> a = torch.tensor([[2.0, 2.0], [0.0, 4.0]])
        >>> torch.linalg.solve_triangular(a, torch.tensor([[2.0], [4.0]]), upper=True)
        tensor([[0.],
                [1.]])
    """
    return _solve_triangular(input, B, left=left, upper=upper, unit=unitriangular)


def check_systems(name: str, b: Tensor, A: Tensor) -> None:
    """Raises unless ``A`` is square and has the size and the dtype that the right-hand side requires."""
    if A.shape[-1] != A.shape[-2]:
        raise RuntimeError(
            f"A must be batches of square matrices, but they are {A.shape[-2]} by {A.shape[-1]} matrices"
        )
    if A.shape[-1] != b.size(-2):
        raise RuntimeError(
            f"Incompatible matrix sizes for {name}: each A matrix is {A.shape[-1]} by {A.shape[-1]} but each b matrix "
            f"is {b.shape[-2]} by {b.shape[-1]}"
        )
    if A.dtype is not b.dtype:
        raise RuntimeError(
            f"Expected b and A to have the same dtype, but found b of type {b.dtype.scalar_name} and A of type "
            f"{A.dtype.scalar_name} instead."
        )


def _check_triangular_solve(input, A, upper=True, transpose=False, unitriangular=False):
    for what, x in (("b", input), ("A", A)):
        if x.dim() < 2:
            raise RuntimeError(
                f"torch.triangular_solve: Expected {what} to have at least 2 dimensions, but it has {x.dim()} "
                "dimensions instead"
            )
    check_systems("triangular_solve", input, A)
    check_implemented("triangular_solve_cpu", input)


@aten(
    "triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool unitriangular=False) -> "
    "(Tensor solution, Tensor cloned_coefficient)",
    node="TriangularSolveBackward0", saves="A self! solution! transpose unitriangular upper", names="",
    layout=column_major(0, 1), check=_check_triangular_solve, out=True,
)  # fmt: skip
def _triangular_solve_of(input, A, upper, transpose, unitriangular):
    batch = broadcast_size(type_of(A).shape[:-2], type_of(input).shape[:-2])
    found = _solve_triangular(A, input, upper=upper, transpose=transpose, unit=unitriangular)
    return found, broadcast_batch(A, batch)


@composite(
    "triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, "
    "bool unitriangular=False) -> (Tensor solution, Tensor cloned_coefficient)",
)
def triangular_solve(input, A, upper=True, transpose=False, unitriangular=False, *, out=None):
    """The deprecated form of ``torch.linalg.solve_triangular``, with the right-hand side first.

    Returns:
        A named tuple of ``solution`` and ``cloned_coefficient``, a copy of ``A``.
    """
    Once.warn(
        "torch.triangular_solve is deprecated in favor of torch.linalg.solve_triangularand will be removed in a future "
        "PyTorch release.\ntorch.linalg.solve_triangular has its arguments reversed and does not return a copy of one "
        "of the inputs.\nX = torch.triangular_solve(B, A).solution\nshould be replaced with\nX = "
        "torch.linalg.solve_triangular(A, B)."
    )
    return _triangular_solve_of.function(input, A, upper, transpose, unitriangular, out=out)


def _check_cholesky_solve(input: Tensor, input2: Tensor, upper: bool = False) -> None:
    for what, x in (("b", input), ("u", input2)):
        if x.dim() < 2:
            raise RuntimeError(f"{what} should have at least 2 dimensions, but has {x.dim()} dimensions instead")
    check_systems("cholesky_solve", input, input2)
    check_implemented("cholesky_solve_cpu", input)


def _solve_by_cholesky(b: Any, factor: Any, upper: bool) -> Any:
    batch = broadcast_size(type_of(factor).shape[:-2], type_of(b).shape[:-2])
    return solving.definite_solve(
        broadcast_batch(p.adjoint(factor) if upper else factor, batch), broadcast_batch(b, batch)
    )


@aten(
    "cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor",
    node="CholeskySolveBackward0", saves="input2 result! self! upper", names="", layout=column_major(0),
    check=_check_cholesky_solve,
)  # fmt: skip
def _cholesky_solve_of(input, input2, upper):
    return _solve_by_cholesky(input, input2, upper)


@composite("cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor")
@castable("cholesky_solve")
def cholesky_solve(input: Tensor, input2: Tensor, upper: bool = False) -> Tensor:
    """``X`` with ``A @ X = input``, from the Cholesky factors of ``A``.

    Args:
        input: ``(*, n, k)``.
        input2: ``(*, n, n)``, the factors; leading dimensions broadcast.
        upper: whether the factors are upper triangular.

    Raises:
        RuntimeError: if sizes or dtypes do not match.

    Example:
        >>> torch.cholesky_solve(torch.tensor([[4.0], [9.0]]), torch.tensor([[2.0, 0.0], [0.0, 3.0]]))
        tensor([[1.],
                [1.]])
    """
    return _cholesky_solve_of.function(input, input2, upper)


def _check_cholesky_inverse(input: Tensor, upper: bool = False) -> None:
    check_square("cholesky_inverse", input)
    check_implemented("cholesky_inverse_out_cpu", input)


@aten(
    "cholesky_inverse(Tensor self, bool upper=False) -> Tensor",
    node="CholeskyInverseBackward0", saves="result! self upper", names="", layout=column_major(0),
    check=_check_cholesky_inverse, arguments=Arguments(results="result info"),
)  # fmt: skip
def _cholesky_inverse_of(input, upper):
    one = p.identity(type_of(input).shape, type_of(input).dtype)
    return _solve_by_cholesky(one, input, upper), solving.first_zero_pivot(e.stop_gradient(input))


@composite("cholesky_inverse(Tensor self, bool upper=False) -> Tensor")
@castable("cholesky_inverse")
def cholesky_inverse(input: Tensor, upper: bool = False) -> Tensor:
    """The inverse of ``A``, from its Cholesky factors.

    Args:
        input: ``(*, n, n)``, the factors.
        upper: whether the factors are upper triangular.
        out: a tensor to write the result into.

    Raises:
        LinAlgError: for a zero on the diagonal.

    Example:
        >>> torch.cholesky_inverse(torch.tensor([[2.0, 0.0], [0.0, 1.0]]))
        tensor([[0.2500, 0.0000],
                [0.0000, 1.0000]])
    """
    found, info = _cholesky_inverse_of.function(input, upper)
    check_info("cholesky_inverse", info, SINGULAR)
    return found


# ---------------------------------------------------------------- square systems


def is_vector(a: Sequence[int], b: Sequence[int]) -> bool:
    """Whether a right-hand side of size ``b`` has one vector for each matrix of a batch of size ``a``."""
    return len(b) == 1 or (len(a) - 1 == len(b) and tuple(b) == tuple(a[:-1]))


def _check_solve(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> None:
    name = "linalg.solve"
    check_floating(name, A, low=False)
    check_same_dtype(name, A, B)
    check_square(name, A)
    vector = is_vector(A.shape, B.shape)
    if not vector:
        check_matrix(name, B, "B")
    rows, columns = (B.shape[-1], 1) if vector else B.shape[-2:]
    check_right_hand_side(name, A, rows, columns, left or vector)
    if not left and vector:
        raise RuntimeError(
            f"{name}: Incompatible shapes of A and B for the equation XA = B ({A.shape[-2]}x{A.shape[-1]} and {rows}x1)"
        )
    broadcast_size(tuple(A.shape[:-2]), tuple(B.shape[:-1] if vector else B.shape[:-2]))


def _solve_strides(known: dict[str, Any], types: Sequence[ArrayType]) -> list[Any]:
    return [
        column_major_strides(types[0].shape) if known["left"] else None,
        column_major_strides(types[1].shape),
        None,
        None,
    ]


@aten(
    "_linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, Tensor "
    "LU, Tensor pivots, Tensor info)",
    node="LinalgSolveExBackward0", saves="A LU left pivots result", names="", layout=_solve_strides, check=_check_solve,
    gradients=Gradients(constant=(1,)),
)  # fmt: skip
def _solve_of(A, B, *, left, check_errors):
    packed, pivots = factors.lu(e.stop_gradient(A))
    order = factors.permutation(pivots, length=type_of(A).shape[-1])
    vector = is_vector(type_of(A).shape, type_of(B).shape)
    b = expanded(B, type_of(B).ndim) if vector else B if left else p.flipped(B)
    batch = broadcast_size(type_of(A).shape[:-2], type_of(b).shape[:-2])
    found = solving.factored_solve(
        broadcast_batch(A, batch),
        broadcast_batch(packed, batch),
        broadcast_batch(order, batch, 1),
        broadcast_batch(b, batch),
        transposed=not left,
    )
    found = reshape(found, shape=type_of(found).shape[:-1]) if vector else found if left else p.flipped(found)
    return found, packed, pivots, solving.first_zero_pivot(packed)


@_solve_of.backward
def _solve_backward(ct0: Any, A: Any, B: Any, LU: Any, pivots: Any, left: Any, result: Any) -> Any:
    vector = is_vector(type_of(A).shape, type_of(B).shape)
    ct, x = (expanded(v, type_of(v).ndim) if vector else v if left else p.flipped(v) for v in (ct0, result))
    batch = type_of(x).shape[:-2]
    order = factors.permutation(pivots, length=type_of(A).shape[-1])
    gradient = solving.factored_solve(
        broadcast_batch(A, batch),
        broadcast_batch(LU, batch),
        broadcast_batch(order, batch, 1),
        e.conjugated(ct),
        transposed=left,
    )
    grad_b = e.conjugated(gradient)
    grad_a = e.neg(p.product(grad_b, p.adjoint(x)) if left else p.product(e.conjugated(x), p.flipped(grad_b)))
    shape = type_of(grad_b).shape[:-1]
    return grad_a, reshape(grad_b, shape=shape) if vector else grad_b if left else p.flipped(grad_b)


_UNSOLVED = "The solver failed because the input matrix is singular."


@composite(
    "linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, Tensor info)",
    names="linalg.solve_ex",
)
def solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False, out: Any = None) -> Any:
    """As ``linalg.solve``, with the one-based index of the first zero pivot.

    Args:
        check_errors: whether to raise if a matrix is singular.

    Returns:
        A named tuple of ``result`` and ``info``, int32, 0 on success.

    Example:
        >>> torch.linalg.solve_ex(torch.zeros(2, 2), torch.ones(2)).info
        tensor(1, dtype=torch.int32)
    """
    found, _, _, info = _solve_of.function(A, B, left=left, check_errors=check_errors)
    if check_errors:
        check_info("torch.linalg.solve_ex", info, _UNSOLVED)
    results = (found, info) if out is None else into_outs(out, (found, info))
    return return_type("linalg_solve_ex", ("result", "info"))(*results)


@composite("linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor", names="linalg.solve", out=True)
def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
    """``X`` with ``A @ X = B``, or ``X @ A = B``.

    Args:
        A: ``(*, n, n)``.
        B: ``(n,)``, ``(*, n)``, ``(*, n, k)``, or ``(*, k, n)`` from the right; leading dimensions broadcast.
        left: whether ``A`` is the left factor.
        out: a tensor to write the result into.

    Raises:
        RuntimeError: if sizes or dtypes do not match.
        LinAlgError: for a singular matrix.

    Example:
        >>> torch.linalg.solve(torch.tensor([[2.0, 0.0], [0.0, 4.0]]), torch.tensor([2.0, 2.0]))
        tensor([1.0000, 0.5000])
    """
    found, _, _, info = _solve_of.function(A, B, left=left)
    check_info("torch.linalg.solve", info, _UNSOLVED)
    return found


def _check_lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False) -> None:
    name = "linalg.lu_solve"
    check_square(f"torch.{name}", LU)
    check_matrix(name, B, "B")
    check_same_dtype(name, LU, B, "LU")
    if pivots.dtype is not dtype.int32:
        raise RuntimeError(f"{name}: pivots should be a Tensor of scalar type torch.int32")
    check_right_hand_side(name, LU, B.shape[-2], B.shape[-1], left)
    if pivots.dim() == 0 or pivots.shape[-1] != LU.shape[-1]:
        raise RuntimeError(f"{name}: Number of pivots per batch should be same as the dimension of the matrix")
    if pivots.shape[:-1] != LU.shape[:-2]:
        raise RuntimeError(
            f"{name}: Expected LU.shape[:-1] and pivots.shape to be the same, but got pivots with shape "
            f"{list(pivots.shape)} instead"
        )
    broadcast_size(tuple(LU.shape[:-2]), tuple(B.shape[:-2]))
    check_implemented("lu_solve_cpu", LU)


class _FactoredSystem:
    """A linear system in LU factors, as ``op(A) @ Z = C``.

    ``op`` is the identity or the transpose, and the factors may be conjugated: systems with ``A`` on the right and
    systems of the adjoint have this form, too.
    """

    def __init__(self, packed: Any, pivots: Any, batch: Sequence[int], left: bool, adjoint: bool):
        self.left, self.conjugate = left, adjoint
        self.transpose = left == adjoint
        self.batch = tuple(batch)
        self.packed = self.factors(packed)
        self.order = broadcast_batch(factors.permutation(pivots, length=type_of(packed).shape[-1]), batch, 1)

    def factors(self, packed: Any) -> Any:
        packed = broadcast_batch(packed, self.batch)
        return e.conjugated(packed) if self.conjugate else packed

    def right_hand_side(self, b: Any) -> Any:
        b = broadcast_batch(b, self.batch)
        return b if self.left else p.flipped(b)

    def _solve_lower(self, x: Any) -> Any:
        return p.triangular_solve(self.packed, x, left=True, lower=True, transposed=self.transpose, unit=True)

    def _solve_upper(self, x: Any) -> Any:
        return p.triangular_solve(self.packed, x, left=True, lower=False, transposed=self.transpose, unit=False)

    def _permuted(self, x: Any) -> Any:
        """The rows in the order of the factors."""
        return factors.permuted(x, self.order)

    def solve(self, c: Any) -> Any:
        """``Z``."""
        return self._solve_permuted(c if self.transpose else self._permuted(c))

    def _solve_permuted(self, c: Any) -> Any:
        """``Z``, where the rows of ``c`` are in the order of the factors unless these are transposed."""
        if self.transpose:
            return factors.permuted(self._solve_lower(self._solve_upper(c)), np.argsort(self.order))
        return self._solve_upper(self._solve_lower(c))

    def tangent(self, z: Any, dpacked: Any, dc: Any) -> Any:
        """The tangent of ``Z`` for tangents of the factors and of ``C``."""
        one = p.identity(type_of(self.packed).shape, type_of(self.packed).dtype)
        lower = e.add(p.lower_part(self.packed, strict=True), one)
        upper, dlower, dupper = p.upper_part(self.packed), p.lower_part(dpacked, strict=True), p.upper_part(dpacked)
        if not self.transpose:
            product = e.add(p.product(dlower, p.product(upper, z)), p.product(lower, p.product(dupper, z)))
            return self._solve_permuted(e.sub(self._permuted(dc), product))
        w = self._permuted(z)
        lower, upper, dlower, dupper = (p.flipped(x) for x in (lower, upper, dlower, dupper))
        product = e.add(p.product(dupper, p.product(lower, w)), p.product(upper, p.product(dlower, w)))
        return self._solve_permuted(e.sub(dc, product))


@aten(
    "linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False) -> Tensor",
    node="LinalgLuSolveBackward0", saves="LU adjoint left pivots! result!", names="linalg.lu_solve",
    layout=lambda known, types: _solve_strides(known, [types[0], types[0]])[:1], check=_check_lu_solve, out=True,
    gradients=Gradients(without="pivots"),
)  # fmt: skip
def linalg_lu_solve(LU, pivots, B, *, left, adjoint):
    """``X`` with ``A @ X = B``, from the result of ``linalg.lu_factor`` of ``A``.

    Args:
        LU: ``(*, n, n)``.
        pivots: ``(*, n)``, int32.
        B: ``(*, n, k)``, or ``(*, k, n)`` from the right; leading dimensions broadcast.
        left: whether ``A`` is the left factor.
        adjoint: whether to use the conjugate transpose of ``A``.

    Raises:
        RuntimeError: if sizes or dtypes do not match.

    Example:
        >>> a = torch.tensor([[2.0, 0.0], [0.0, 4.0]])
        >>> torch.linalg.lu_solve(*torch.linalg.lu_factor(a), torch.tensor([[2.0], [2.0]]))
        tensor([[1.0000],
                [0.5000]])
    """
    batch = broadcast_size(type_of(LU).shape[:-2], type_of(B).shape[:-2])
    system = _FactoredSystem(LU, pivots, batch, left, adjoint)
    found = system.solve(system.right_hand_side(B))
    return found if left else p.flipped(found)


@linalg_lu_solve.backward
def _lu_solve_backward(ct: Any, LU: Any, pivots: Any, left: Any, adjoint: Any, result: Any) -> Any:
    system = _FactoredSystem(LU, pivots, type_of(result).shape[:-2], left, adjoint)
    z = system.right_hand_side(result)

    def tangent(dpacked: Any, db: Any) -> list[Any]:
        found = system.tangent(z, system.factors(dpacked), system.right_hand_side(db))
        return [found if left else p.flipped(found)]

    return tuple(transposed(tangent, [type_of(LU), type_of(result)], [ct]))


@composite("lu_solve(Tensor self, Tensor LU_data, Tensor LU_pivots) -> Tensor", out=True)
def lu_solve(input: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    """The deprecated form of ``torch.linalg.lu_solve``, with the right-hand side first."""
    Once.warn(
        "torch.lu_solve is deprecated in favor of torch.linalg.lu_solveand will be removed in a future PyTorch release."
        "\nNote that torch.linalg.lu_solve has its arguments reversed.\nX = torch.lu_solve(B, LU, pivots)\nshould be "
        "replaced with\nX = torch.linalg.lu_solve(LU, pivots, B)"
    )
    return linalg_lu_solve.function(LU_data, LU_pivots, input)
