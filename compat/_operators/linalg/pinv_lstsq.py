"""Ranks, pseudoinverses, least squares, condition numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy

from compat._core.memory.strides import broadcast_size
from compat._core.operators.composite import composite
from compat._core.operators.declaration import Arguments, Gradients
from compat._core.operators.op import aten
from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor, array_of
from compat._core.types import dtype as dtypes
from compat._core.types.structseq import return_type
from compat._operators.linalg.common import (
    LAPACK_DTYPES,
    NOT_CONVERGED,
    broadcast_batch,
    castable,
    check_info,
    check_matrix,
    check_square,
    column_major,
    into_outs,
    not_finite,
)
from compat._operators.linalg.inverse_det import inv_ex
from compat._operators.linalg.solve import is_vector
from compat._operators.linalg.svd_eig import eigvalsh, svdvals
from compat._operators.reduction.vector_norms import matrix_norm
from funcgrad import numpy as np
from funcgrad.core import dtypes as fdtypes
from funcgrad.core.ir import ArrayType
from funcgrad.core.tracing import type_of
from funcgrad.primitives.elementwise import stop_gradient
from funcgrad.primitives.linalg import common as p
from funcgrad.primitives.linalg import solve as solving
from funcgrad.primitives.linalg import svd_eig as spectral
from funcgrad.primitives.shape import expanded, full, reshape, zeros

_DOUBLE_DTYPES = (dtypes.float64, dtypes.complex128)

# ---------------------------------------------------------------- tolerances


def _precision(x: Tensor) -> float:
    """The default relative cutoff of singular values."""
    eps = float(numpy.finfo(numpy.float64 if x.dtype in _DOUBLE_DTYPES else numpy.float32).eps)
    return max(x.shape[-2:]) * eps


def _check_tolerance(name: str, what: str, value: Any) -> None:
    if isinstance(value, Tensor) and value.dtype.is_complex:
        raise RuntimeError(f"{name}: {what} tensor of complex type is not supported. Got {value.dtype.scalar_name}")


def _tolerances(name: str, x: Tensor, atol: Any, rtol: Any) -> tuple[Tensor, Tensor]:
    """``atol`` and ``rtol``, or their defaults, as real tensors."""
    _check_tolerance(name, "atol", atol)
    _check_tolerance(name, "rtol", rtol)
    dtype = dtypes.float64 if x.dtype in _DOUBLE_DTYPES else dtypes.float32

    def real(value: Any) -> Any:
        if isinstance(value, Tensor):
            return value.detach().to(dtype)
        return names_of("torch")["full"]((), value, dtype=dtype)

    absolute = real(0.0 if atol is None else atol)
    if rtol is not None:
        return absolute, real(rtol)
    if isinstance(atol, Tensor):
        return absolute, names_of("torch")["where"](absolute > 0, real(0.0), real(_precision(x)))
    return absolute, real(0.0 if atol is not None and atol > 0 else _precision(x))


# ---------------------------------------------------------------- pseudoinverses


def _check_pinv(input: Tensor, atol: Tensor, rtol: Tensor, hermitian: bool = False) -> None:
    if input.dim() < 2 or input.dtype not in LAPACK_DTYPES:
        raise RuntimeError(
            f"linalg.pinv({input.dtype.scalar_name}{{{list(input.shape)}}}): expected a tensor with 2 or more "
            "dimensions of float, double, cfloat or cdouble types"
        )
    if hermitian:
        check_square("linalg.eigh", input)


@aten(
    "linalg_pinv.atol_rtol_tensor(Tensor self, *, Tensor? atol=None, Tensor? rtol=None, bool hermitian=False) -> "
    "Tensor",
    node="LinalgPinvBackward0", saves="result self", names="", check=_check_pinv,
    arguments=Arguments(results="result info"), gradients=Gradients(without="atol rtol"),
)  # fmt: skip
def _pinv_of(input, *, atol, rtol, hermitian):
    lead = type_of(input).shape[:-2]
    found = solving.pseudoinverse(
        input, broadcast_batch(atol, lead, 0), broadcast_batch(rtol, lead, 0), hermitian=hermitian
    )
    return found, not_finite(stop_gradient(found), 2)


def _pinv(A: Tensor, atol: Any, rtol: Any, hermitian: bool) -> Tensor:
    if A.dim() < 2 or A.dtype not in LAPACK_DTYPES:
        _check_pinv(A, A, A)
    absolute, relative = _tolerances("torch.linalg.pinv", A, atol, rtol)
    found, info = _pinv_of.function(A, atol=absolute, rtol=relative, hermitian=hermitian)
    if not hermitian:
        check_info("linalg.svd", info, NOT_CONVERGED)
    return found


@composite(
    "linalg_pinv.atol_rtol_tensor(Tensor self, *, Tensor? atol=None, Tensor? rtol=None, "
    "bool hermitian=False) -> Tensor",
    "linalg_pinv.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, bool hermitian=False) -> Tensor",
    "linalg_pinv.rcond_tensor(Tensor self, Tensor rcond, bool hermitian=False) -> Tensor",
    "linalg_pinv(Tensor self, float rcond, bool hermitian=False) -> Tensor",
    names="linalg.pinv",
)
@castable("linalg.pinv")
def pinv(A: Tensor, rcond: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None) -> Tensor:
    """The pseudoinverses of matrices, through their singular values.

    Args:
        A: ``(*, m, n)``.
        rcond: a deprecated alias of ``rtol``.
        hermitian: ``A`` is Hermitian, which is faster; one triangle is read.
        atol: the absolute cutoff of singular values; a number or a tensor.
        rtol: the cutoff relative to the largest one; by default the larger of ``m`` and ``n`` times the dtype's
            precision, or 0 if ``atol`` is given.
        out: a tensor to write the result into.

    Returns:
        ``(*, n, m)``.

    Raises:
        LinAlgError: for nonfinite numbers.

    Example:
        >>> torch.linalg.pinv(torch.tensor([[2.0, 0.0], [0.0, 0.0]]))
        tensor([[0.5000, 0.0000],
                [0.0000, 0.0000]])
    """
    return _pinv(A, atol, rtol if rcond is None else rcond, hermitian)


@composite("pinverse(Tensor self, float rcond=1e-15) -> Tensor")
def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """As ``torch.linalg.pinv``, with another default of ``rcond``.

    Example:
        >>> torch.pinverse(torch.tensor([[2.0], [0.0]]))
        tensor([[0.5000, 0.0000]])
    """
    return _pinv(input, None, rcond, False)


# ---------------------------------------------------------------- least squares

_DRIVERS = ("gels", "gelsy", "gelsd", "gelss")


def _check_lstsq(A: Tensor, b: Tensor, rcond: float, driver: str) -> None:
    name = "torch.linalg.lstsq"
    if A.dim() < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    if b.dim() < 1:
        raise RuntimeError(f"{name}: other must have at least 1 dimension.")
    if not 0 <= A.dim() - b.dim() <= 1:
        raise RuntimeError(
            f"{name}: input.dim() must be greater or equal to other.dim() and (input.dim() - other.dim()) <= 1"
        )
    vector = is_vector(A.shape, b.shape)
    if A.shape[-2] != b.shape[-1 if vector else -2]:
        raise RuntimeError(f"{name}: input.size(-2) should match other.size({-1 if vector else -2})")
    if A.dtype is not b.dtype:
        raise RuntimeError(
            f"{name}: Expected input and other to have the same dtype, but got input's dtype {A.dtype.scalar_name} and "
            f"other's dtype {b.dtype.scalar_name}"
        )
    if driver not in _DRIVERS:
        raise RuntimeError(f"{name}: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)")
    broadcast_size(tuple(A.shape[:-2]), tuple(b.shape[:-1] if vector else b.shape[:-2]))
    if A.dtype not in LAPACK_DTYPES:
        raise RuntimeError(_UNSUPPORTED)


@aten(
    "linalg_lstsq(Tensor self, Tensor b, float? rcond=None, *, str? driver=None) -> (Tensor solution, Tensor "
    "residuals, Tensor rank, Tensor singular_values)",
    node="LinalgLstsqBackward0", saves="b! self! solution!", names="", layout=column_major(0), check=_check_lstsq,
    gradients=Gradients(constant=(3,)),
)  # fmt: skip
def _lstsq_of(input, b, rcond, *, driver):
    *batch, m, n = type_of(input).shape
    vector = is_vector(type_of(input).shape, type_of(b).shape)
    right = expanded(b, type_of(b).ndim) if vector else b
    lead = broadcast_size(tuple(batch), type_of(right).shape[:-2])
    fraction = full(fdtypes.real_of(type_of(input).dtype).type(rcond), tuple(batch))
    inverse = solving.pseudoinverse(input, zeros(type_of(fraction)), fraction, hermitian=False)
    solution = p.product(broadcast_batch(inverse, lead), broadcast_batch(right, lead))
    (values,) = spectral.svd(stop_gradient(input), full=False, vectors=False)
    residuals = zeros(ArrayType((0,), fdtypes.real_of(type_of(input).dtype)))
    if driver != "gelsy" and m > n:
        residual = np.abs(np.subtract(broadcast_batch(right, lead), p.product(broadcast_batch(input, lead), solution)))
        residuals = np.sum(np.multiply(residual, residual), axis=-2)
    rank = zeros(ArrayType((0,), fdtypes.int64))
    if driver != "gels":
        rank = broadcast_batch(_above(values, fraction), lead, 0)
    if driver in ("gels", "gelsy"):
        values = zeros(ArrayType((0,), type_of(values).dtype))
    solution = reshape(solution, shape=type_of(solution).shape[:-1]) if vector else solution
    return solution, residuals, rank, values


def _above(values: Any, fraction: Any) -> Any:
    """The number of singular values above a relative cutoff, int64."""
    if not type_of(values).shape[-1]:
        return full(fdtypes.int64.type(0), type_of(values).shape[:-1])
    least = np.multiply(fraction, np.max(values, axis=-1))
    return np.sum(np.astype(np.greater(values, np.expand_dims(least, -1)), fdtypes.int64), axis=-1)


@composite(
    "linalg_lstsq(Tensor self, Tensor b, float? rcond=None, *, str? driver=None) -> (Tensor solution, "
    "Tensor residuals, Tensor rank, Tensor singular_values)",
    names="linalg.lstsq",
)
def lstsq(A: Tensor, B: Tensor, rcond: float | None = None, *, driver: str | None = None, out: Any = None) -> Any:
    """The least-squares solution ``X`` with minimal ``|B - A @ X|`` and, among those, minimal ``|X|``.

    All drivers use singular values here; they differ in the other results.

    Args:
        A: ``(*, m, n)``.
        B: ``(*, m)`` or ``(*, m, k)``; leading dimensions broadcast.
        rcond: the singular value cutoff, relative to the largest; by default the larger of ``m`` and ``n`` times the
            dtype's precision.
        driver: LAPACK's: ``"gels"``, ``"gelsy"`` (the default), ``"gelsd"`` or ``"gelss"``.

    Returns:
        A named tuple of ``solution``; ``residuals``, the sums of squared residuals, empty for ``gelsy`` and unless ``m
        > n`` and ``A`` has full rank; ``rank``, empty for ``gels``; ``singular_values``, empty for ``gels`` and
        ``gelsy``.

    Raises:
        RuntimeError: if sizes or dtypes do not match, and for another driver.

    Example:
        >>> a = torch.tensor([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
        >>> torch.linalg.lstsq(a, torch.tensor([[1.0], [2.0], [3.0]])).solution.round(decimals=4)
        tensor([[1.],
                [1.]])
    """
    fraction = 0.0 if A.dim() < 2 else _precision(A) if rcond is None else rcond
    found = list(_lstsq_of.function(A, B, fraction, driver=driver or "gelsy"))
    if found[1].numel() and found[2].numel() and not is_full_rank(found[2], A.shape[-1]):
        found[1] = found[1].new_empty(0)
    made = return_type("linalg_lstsq", ("solution", "residuals", "rank", "singular_values"))
    fields = made._fields  # type: ignore[attr-defined]
    return made(*(found if out is None else into_outs(out, found, lambda i: ("torch.linalg.lstsq", fields[i]))))


def is_full_rank(rank: Tensor, n: int) -> bool:
    """Whether all matrices are known to have rank ``n``."""
    if rank._layout_.base.traced:
        return True
    return bool((array_of(rank) == n).all())


# ---------------------------------------------------------------- ranks and condition numbers

_UNSUPPORTED = "This function doesn't handle types other than float and double"


@composite(
    "linalg_matrix_rank.atol_rtol_tensor(Tensor input, *, Tensor? atol=None, Tensor? rtol=None, "
    "bool hermitian=False) -> Tensor",
    "linalg_matrix_rank.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, "
    "bool hermitian=False) -> Tensor",
    "linalg_matrix_rank.tol_tensor(Tensor input, Tensor tol, bool hermitian=False) -> Tensor",
    "linalg_matrix_rank(Tensor self, float tol, bool hermitian=False) -> Tensor",
    names="linalg.matrix_rank", errors="before",
)  # fmt: skip
@castable("torch.linalg.matrix_rank")
def matrix_rank(A: Tensor, tol: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None) -> Tensor:
    """The number of singular values above a tolerance, int64.

    Args:
        A: ``(*, m, n)``.
        tol: a deprecated alias of ``atol``.
        hermitian: ``A`` is Hermitian, which is faster; one triangle is read.
        atol: the absolute cutoff of singular values; a number or a tensor.
        rtol: the cutoff relative to the largest one; by default the larger of ``m`` and ``n`` times the dtype's
            precision, or 0 if ``atol`` is given.
        out: a tensor to write the result into.

    Raises:
        LinAlgError: for nonfinite numbers.

    Example:
        >>> torch.linalg.matrix_rank(torch.tensor([[1.0, 2.0], [2.0, 4.0]]))
        tensor(1)
    """
    name = "torch.linalg.matrix_rank"
    check_matrix(name, A, "input")
    if A.dtype not in LAPACK_DTYPES:
        raise RuntimeError(_UNSUPPORTED)
    if tol is not None:
        _check_tolerance(name, "tol", tol)
        atol, rtol = tol, 0.0
    absolute, relative = _tolerances(name, A, atol, rtol)
    A = A.detach()
    if not A.numel():
        return names_of("torch")["zeros"](A.shape[:-2], dtype=dtypes.int64)
    values = eigvalsh(A).abs() if hermitian else svdvals(A)
    least = names_of("torch")["maximum"](absolute, relative * values.amax(-1))
    return (values > least.unsqueeze(-1)).sum(-1)


def _is_order(p: Any) -> bool:
    return p in ("fro", "nuc") if isinstance(p, str) else abs(p) in (1, 2, math.inf)


@composite(
    "linalg_cond(Tensor self, Scalar? p=None) -> Tensor",
    "linalg_cond.p_str(Tensor self, str p) -> Tensor",
    names="linalg.cond",
)
@castable("linalg.cond")
def cond(A: Tensor, p: Any = None) -> Tensor:
    """The condition numbers of matrices: their norms times those of their inverses; may be infinite.

    Args:
        A: ``(*, n, n)``, or, for ``p`` of 2 and -2, ``(*, m, n)``.
        p: the order of the norm, as for ``matrix_norm``; by default 2.
        out: a tensor to write the result into.

    Raises:
        RuntimeError: for an unknown order.

    Example:
        >>> torch.linalg.cond(torch.tensor([[4.0, 0.0], [0.0, 2.0]]))
        tensor(2.)
    """
    if A.dim() < 2:
        raise RuntimeError("linalg.cond: The input tensor must have at least 2 dimensions.")
    order = p if isinstance(p, str) or p is None else format(p, "g")
    if p is not None and not _is_order(p):
        raise RuntimeError(f"linalg.cond got an invalid norm type: {order}")
    by_singular_values = p in (None, 2, -2)
    if not by_singular_values:
        check_square(f"linalg.cond(ord={order})", A)
    if not A.numel():
        return names_of("torch")["zeros"](A.shape[:-2], dtype=A.abs().dtype)
    if by_singular_values:
        values = svdvals(A)
        first, last = values.narrow(-1, 0, 1), values.narrow(-1, values.shape[-1] - 1, 1)
        return (last / first if p == -2 else first / last).squeeze(-1)
    if p == "nuc":
        values = svdvals(A)
        return values.sum(-1) * values.reciprocal().sum(-1)
    inverse, info = inv_ex(A)
    inverse.masked_fill_(info.unsqueeze(-1).unsqueeze(-1) > 0, math.inf)
    found = matrix_norm(A, p) * matrix_norm(inverse, p)
    return found.nan_to_num(math.inf, math.inf, -math.inf)
