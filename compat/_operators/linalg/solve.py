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
from compat._core.types.errors import warn
from compat._core.types.structseq import return_type
from compat._operators.linalg.common import (
    LinAlgError,
    by_columns,
    castable,
    check_fits,
    check_floating,
    check_implemented,
    check_matrix,
    check_same_dtype,
    check_singular,
    check_square,
    failure,
    in_columns,
    into_outs,
    spread,
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
    check_fits(name, input, B.shape[-2], B.shape[-1], left)
    broadcast_size(tuple(input.shape[:-2]), tuple(B.shape[:-2]))
    check_implemented("triangular_solve_cpu", input)


def _triangular(a: Any, b: Any, *, left: bool = True, upper: bool, transpose: bool = False, unit: bool = False) -> Any:
    """``triangular_solve`` with broadcast leading axes."""
    lead = broadcast_size(type_of(a).shape[:-2], type_of(b).shape[:-2])
    return p.triangular_solve(
        spread(a, lead), spread(b, lead), left=left, lower=not upper, transposed=transpose, unit=unit
    )


@aten(
    "linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, bool unitriangular=False) -> Tensor",
    node="LinalgSolveTriangularBackward0", saves="left result! self unitriangular upper",
    names="linalg.solve_triangular", layout=by_columns(0), check=_check_solve_triangular, out=True,
)  # fmt: skip
def solve_triangular(input, B, *, upper, left, unitriangular):
    """``X`` with ``input @ X = B``, or ``X @ input = B``, for triangular matrices.

    Args:
        input: ``(*, n, n)``; one triangle is read.
        B: ``(*, n, k)``, or ``(*, k, n)`` from the right; leading dimensions broadcast.
        upper: whether the upper triangle is read.
        left: whether ``input`` is the left factor.
        unitriangular: whether the diagonal is one; it is then not read.

    Raises:
        RuntimeError: if sizes do not match.

    Example:
        >>> a = torch.tensor([[2.0, 2.0], [0.0, 4.0]])
        >>> torch.linalg.solve_triangular(a, torch.tensor([[2.0], [4.0]]), upper=True)
        tensor([[0.],
                [1.]])
    """
    return _triangular(input, B, left=left, upper=upper, unit=unitriangular)


def check_systems(name: str, b: Tensor, A: Tensor) -> None:
    """Raises unless matrices are square and compatible with a right-hand side."""
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
    layout=by_columns(0, 1), check=_check_triangular_solve, out=True,
)  # fmt: skip
def _triangular_solve_of(input, A, upper, transpose, unitriangular):
    lead = broadcast_size(type_of(A).shape[:-2], type_of(input).shape[:-2])
    found = _triangular(A, input, upper=upper, transpose=transpose, unit=unitriangular)
    return found, spread(A, lead)


@composite(
    "triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, "
    "bool unitriangular=False) -> (Tensor solution, Tensor cloned_coefficient)",
)
def triangular_solve(input, A, upper=True, transpose=False, unitriangular=False, *, out=None):
    """The deprecated form of ``torch.linalg.solve_triangular``, with the right-hand side first.

    Returns:
        A named tuple of ``solution`` and ``cloned_coefficient``, a copy of ``A``.
    """
    warn(
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


def _cholesky_solved(b: Any, factor: Any, upper: bool) -> Any:
    lead = broadcast_size(type_of(factor).shape[:-2], type_of(b).shape[:-2])
    return solving.definite_solve(spread(p.adjoint(factor) if upper else factor, lead), spread(b, lead))


@aten(
    "cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor",
    node="CholeskySolveBackward0", saves="input2 result! self! upper", names="", layout=by_columns(0),
    check=_check_cholesky_solve,
)  # fmt: skip
def _cholesky_solve_of(input, input2, upper):
    return _cholesky_solved(input, input2, upper)


@composite("cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor")
@castable("cholesky_solve")
def cholesky_solve(input: Tensor, input2: Tensor, upper: bool = False) -> Tensor:
    """``X`` with ``A @ X = input``, by the Cholesky factors of ``A``.

    Args:
        input: ``(*, n, k)``.
        input2: ``(*, n, n)``, the factors; leading dimensions broadcast.
        upper: whether they are upper triangular.

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
    node="CholeskyInverseBackward0", saves="result! self upper", names="", layout=by_columns(0),
    check=_check_cholesky_inverse, arguments=Arguments(results="result info"),
)  # fmt: skip
def _cholesky_inverse_of(input, upper):
    one = p.identity(type_of(input).shape, type_of(input).dtype)
    return _cholesky_solved(one, input, upper), solving.first_zero_pivot(e.stop_gradient(input))


@composite("cholesky_inverse(Tensor self, bool upper=False) -> Tensor")
@castable("cholesky_inverse")
def cholesky_inverse(input: Tensor, upper: bool = False) -> Tensor:
    """The inverse of ``A``, by its Cholesky factors.

    Args:
        input: ``(*, n, n)``, the factors.
        upper: whether they are upper triangular.
        out: a tensor to write the result into.

    Raises:
        LinAlgError: for a zero on the diagonal.

    Example:
        >>> torch.cholesky_inverse(torch.tensor([[2.0, 0.0], [0.0, 1.0]]))
        tensor([[0.2500, 0.0000],
                [0.0000, 1.0000]])
    """
    found, info = _cholesky_inverse_of.function(input, upper)
    check_singular("cholesky_inverse", info)
    return found


# ---------------------------------------------------------------- square systems


def is_vector(a: Sequence[int], b: Sequence[int]) -> bool:
    """Whether a right-hand side of a size is one vector per matrix."""
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
    check_fits(name, A, rows, columns, left or vector)
    if not left and vector:
        raise RuntimeError(
            f"{name}: Incompatible shapes of A and B for the equation XA = B ({A.shape[-2]}x{A.shape[-1]} and {rows}x1)"
        )
    broadcast_size(tuple(A.shape[:-2]), tuple(B.shape[:-1] if vector else B.shape[:-2]))


def _solve_strides(known: dict[str, Any], types: Sequence[ArrayType]) -> list[Any]:
    return [in_columns(types[0].shape) if known["left"] else None, in_columns(types[1].shape), None, None]


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
    lead = broadcast_size(type_of(A).shape[:-2], type_of(b).shape[:-2])
    found = solving.factored_solve(
        spread(A, lead), spread(packed, lead), spread(order, lead, 1), spread(b, lead), transposed=not left
    )
    found = reshape(found, shape=type_of(found).shape[:-1]) if vector else found if left else p.flipped(found)
    return found, packed, pivots, solving.first_zero_pivot(packed)


@_solve_of.backward
def _solve_backward(ct0: Any, A: Any, B: Any, LU: Any, pivots: Any, left: Any, result: Any) -> Any:
    # Only the shape of the right-hand side is used.
    vector = is_vector(type_of(A).shape, type_of(B).shape)
    ct, x = (expanded(v, type_of(v).ndim) if vector else v if left else p.flipped(v) for v in (ct0, result))
    lead = type_of(x).shape[:-2]
    order = factors.permutation(pivots, length=type_of(A).shape[-1])
    gradient = solving.factored_solve(
        spread(A, lead), spread(LU, lead), spread(order, lead, 1), e.conjugated(ct), transposed=left
    )
    by_b = e.conjugated(gradient)
    by_a = e.neg(p.product(by_b, p.adjoint(x)) if left else p.product(e.conjugated(x), p.flipped(by_b)))
    shape = type_of(by_b).shape[:-1]
    return by_a, reshape(by_b, shape=shape) if vector else by_b if left else p.flipped(by_b)


def _check_solved(name: str, info: Tensor) -> None:
    found = failure(info)
    if found is not None:
        raise LinAlgError(f"{name}: {found[0]}The solver failed because the input matrix is singular.")


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
        _check_solved("torch.linalg.solve_ex", info)
    made = return_type("linalg_solve_ex", ("result", "info"))
    return made(*((found, info) if out is None else into_outs(out, (found, info))))


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
    _check_solved("torch.linalg.solve", info)
    return found


def _check_lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False) -> None:
    name = "linalg.lu_solve"
    check_square(f"torch.{name}", LU)
    check_matrix(name, B, "B")
    check_same_dtype(name, LU, B, "LU")
    if pivots.dtype is not dtype.int32:
        raise RuntimeError(f"{name}: pivots should be a Tensor of scalar type torch.int32")
    check_fits(name, LU, B.shape[-2], B.shape[-1], left)
    if pivots.dim() == 0 or pivots.shape[-1] != LU.shape[-1]:
        raise RuntimeError(f"{name}: Number of pivots per batch should be same as the dimension of the matrix")
    if pivots.shape[:-1] != LU.shape[:-2]:
        raise RuntimeError(
            f"{name}: Expected LU.shape[:-1] and pivots.shape to be the same, but got pivots with shape "
            f"{list(pivots.shape)} instead"
        )
    broadcast_size(tuple(LU.shape[:-2]), tuple(B.shape[:-2]))
    check_implemented("lu_solve_cpu", LU)


class _Factored:
    """A system in LU factors: ``op(A) @ Z = C``, where ``op`` is the identity or the transpose, and the factors may be
    conjugated; right-sided and adjoint systems are reduced to it.
    """

    def __init__(self, packed: Any, pivots: Any, lead: Sequence[int], left: bool, adjoint: bool):
        self.left, self.conjugate = left, adjoint
        self.turned = left == adjoint
        self.lead = tuple(lead)
        self.packed = self.prepared(packed)
        self.order = spread(factors.permutation(pivots, length=type_of(packed).shape[-1]), lead, 1)

    def prepared(self, packed: Any) -> Any:
        packed = spread(packed, self.lead)
        return e.conjugated(packed) if self.conjugate else packed

    def side(self, b: Any) -> Any:
        b = spread(b, self.lead)
        return b if self.left else p.flipped(b)

    def _lower(self, x: Any) -> Any:
        return p.triangular_solve(self.packed, x, left=True, lower=True, transposed=self.turned, unit=True)

    def _upper(self, x: Any) -> Any:
        return p.triangular_solve(self.packed, x, left=True, lower=False, transposed=self.turned, unit=False)

    def _back(self, x: Any) -> Any:
        return factors.permuted(x, np.argsort(self.order))

    def solve(self, c: Any) -> Any:
        """``Z``."""
        return self._back(self._lower(self._upper(c))) if self.turned else self._upper(self._lower(self.sorted(c)))

    def sorted(self, x: Any) -> Any:
        """The rows permuted as the factors are."""
        return factors.permuted(x, self.order)

    def tangent(self, z: Any, change: Any, dc: Any) -> Any:
        """The tangent of ``Z`` for tangents of the factors and of ``C``."""
        one = p.identity(type_of(self.packed).shape, type_of(self.packed).dtype)
        lower = e.add(p.lower_part(self.packed, strict=True), one)
        upper, below, above = p.upper_part(self.packed), p.lower_part(change, strict=True), p.upper_part(change)
        if not self.turned:
            moved = e.add(p.product(below, p.product(upper, z)), p.product(lower, p.product(above, z)))
            return self._upper(self._lower(e.sub(self.sorted(dc), moved)))
        w = self.sorted(z)
        lower, upper, below, above = (p.flipped(x) for x in (lower, upper, below, above))
        moved = e.add(p.product(above, p.product(lower, w)), p.product(upper, p.product(below, w)))
        return self._back(self._lower(self._upper(e.sub(dc, moved))))


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
    lead = broadcast_size(type_of(LU).shape[:-2], type_of(B).shape[:-2])
    system = _Factored(LU, pivots, lead, left, adjoint)
    found = system.solve(system.side(B))
    return found if left else p.flipped(found)


@linalg_lu_solve.backward
def _lu_solve_backward(ct: Any, LU: Any, pivots: Any, left: Any, adjoint: Any, result: Any) -> Any:
    system = _Factored(LU, pivots, type_of(result).shape[:-2], left, adjoint)
    z = system.side(result)

    def tangent(change: Any, db: Any) -> list[Any]:
        found = system.tangent(z, system.prepared(change), system.side(db))
        return [found if left else p.flipped(found)]

    return tuple(transposed(tangent, [type_of(LU), type_of(result)], [ct]))


@composite("lu_solve(Tensor self, Tensor LU_data, Tensor LU_pivots) -> Tensor", out=True)
def lu_solve(input: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    """The deprecated form of ``torch.linalg.lu_solve``, with the right-hand side first."""
    warn(
        "torch.lu_solve is deprecated in favor of torch.linalg.lu_solveand will be removed in a future PyTorch release."
        "\nNote that torch.linalg.lu_solve has its arguments reversed.\nX = torch.lu_solve(B, LU, pivots)\nshould be "
        "replaced with\nX = torch.linalg.lu_solve(LU, pivots, B)"
    )
    return linalg_lu_solve.function(LU_data, LU_pivots, input)
