"""Matrix factorizations: triangular (Cholesky, LU), and orthogonal times triangular (QR).

Sources of the derivatives: I. Murray, "Differentiation of the Cholesky decomposition" (2016); S. Walter and L. Lehmann,
"Algorithmic differentiation of linear algebra functions with application in optimum experimental design" (2010).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from funcgrad.core import dtypes
from funcgrad.core.errors import NonDifferentiableError, here
from funcgrad.core.ir import ArrayType
from funcgrad.core.primitive import Primitive
from funcgrad.core.tracing import type_of
from funcgrad.primitives.elementwise import add, conjugated, imag, make_complex, number, scale, sub
from funcgrad.primitives.indexing import take_along
from funcgrad.primitives.linalg.common import (
    adjoint,
    batching,
    check_matrices,
    diagonal_part,
    identity,
    lower_part,
    matrix_primitive,
    product,
    scaled_columns,
    scaled_rows,
    triangular_solve,
    upper_part,
)
from funcgrad.primitives.shape import broadcast, concatenate, slice_

try:
    # Not public in JAX, whose public QR factorization uses it.
    from jax._src.lax.linalg import geqrf as _geqrf
except ImportError as missing:
    raise ImportError("funcgrad packs reflectors by JAX's geqrf, which is not where JAX 0.10 has it") from missing


def columns(x: Any, start: int, limit: int) -> Any:
    """A range of columns of matrices."""
    shape = type_of(x).shape
    none = (0,) * (len(shape) - 1)
    return slice_(x, start=(*none, start), limit=(*shape[:-1], limit), strides=(1,) * len(shape))


def rows(x: Any, start: int, limit: int) -> Any:
    """A range of rows of matrices."""
    shape = type_of(x).shape
    begin, end = (*(0,) * (len(shape) - 2), start, 0), (*shape[:-2], limit, shape[-1])
    return slice_(x, start=begin, limit=end, strides=(1,) * len(shape))


def _solved(a: Any, b: Any, *, left: bool, lower: bool, transposed: bool = False, unit: bool = False) -> Any:
    return triangular_solve(a, b, left=left, lower=lower, transposed=transposed, unit=unit)


# ---------------------------------------------------------------- Cholesky


def _cholesky_infer(x: ArrayType) -> list[ArrayType]:
    check_matrices("cholesky", x, square=True)
    return [x.strong(), ArrayType(x.shape[:-2], dtypes.int32)]


def _cholesky_lower(x: Any) -> list[Any]:
    factor = lax.linalg.cholesky(x, symmetrize_input=False)
    none = jnp.zeros(x.shape[:-2], np.int32)
    return [factor, lax.cond(jnp.isnan(factor).any(), _first_not_positive, lambda x: none, x)]


def _first_not_positive(x: Any) -> Any:
    """The order of the first leading minor that is not positive, or 0, by elimination."""

    def eliminate(j: Any, state: Any) -> Any:
        rest, info = state
        pivot = jnp.real(rest[..., j, j])
        info = jnp.where((info == 0) & ~(pivot > 0), j + 1, info).astype(np.int32)
        column = jnp.where(jnp.arange(x.shape[-1]) > j, rest[..., :, j], 0)
        safe = jnp.where(pivot > 0, pivot, 1)[..., None, None]
        return rest - column[..., :, None] * column[..., None, :].conj() / safe, info

    return lax.fori_loop(0, x.shape[-1], eliminate, (x, jnp.zeros(x.shape[:-2], np.int32)))[1]


def _cholesky_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    (x,), (t,) = primals, tangents
    factor, info = cholesky(x)
    return [factor, info], [cholesky_tangent(factor, t), None]


def cholesky_tangent(factor: Any, t: Any) -> Any:
    """The tangent of the lower factor for a Hermitian tangent ``t`` of the matrix."""
    inner = _solved(factor, t, left=True, lower=True)
    inner = _solved(conjugated(factor), inner, left=False, lower=True, transposed=True)
    return product(factor, sub(lower_part(inner), scale(diagonal_part(inner), 0.5)))


# The lower factor, and the order of the first leading minor that is not positive: if not 0, the factor is NaN. Only the
# lower triangle is read; the derivative is for Hermitian tangents.
cholesky = matrix_primitive("cholesky", _cholesky_infer, _cholesky_lower, jvp=_cholesky_jvp, multiple=True)

# ---------------------------------------------------------------- LU


def _permutation_infer(pivots: ArrayType, *, length: int) -> ArrayType:
    if pivots.dtype != dtypes.int32 or pivots.ndim == 0 or pivots.shape[-1] > length:
        raise TypeError(f"permutation: wants at most {length} pivots of int32 along the last axis, got {pivots}")
    return pivots.with_shape((*pivots.shape[:-1], length))


def _permutation_lower(pivots: Any, *, length: int) -> Any:
    if 0 in pivots.shape:
        return lax.broadcasted_iota(np.int32, (*pivots.shape[:-1], length), pivots.ndim - 1)
    return lax.linalg.lu_pivots_to_permutation(pivots - np.int32(1), length)


# The permutation made by interchanging rows in sequence: row i with row pivots[i], counted from one.
permutation = Primitive(
    "permutation",
    infer=_permutation_infer,
    lower=_permutation_lower,
    batch=batching(lambda: permutation),
    differentiable=False,
)


def permuted(x: Any, order: Any) -> Any:
    """The rows of matrices, permuted."""
    shape = type_of(x).shape
    places = broadcast(order, shape=shape, dims=tuple(range(len(shape) - 1)))
    return take_along(x, places, axis=len(shape) - 2, mode="promise", unique=True)


def _lu_infer(x: ArrayType) -> list[ArrayType]:
    check_matrices("lu", x)
    return [x.strong(), ArrayType((*x.shape[:-2], min(x.shape[-2:])), dtypes.int32)]


def _lu_lower(x: Any) -> list[Any]:
    packed, pivots, _ = lax.linalg.lu(x)
    return [packed, pivots + np.int32(1)]


def _lu_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    (x,), (t,) = primals, tangents
    packed, pivots = lu(x)
    order = permutation(pivots, length=type_of(x).shape[-2])
    return [packed, pivots], [lu_tangent(packed, permuted(t, order)), None]


def lu_tangent(packed: Any, change: Any) -> Any:
    """The tangent of packed LU factors for a tangent of the matrix with its rows permuted."""
    m, n = type_of(packed).shape[-2:]
    k = min(m, n)
    head = rows(columns(packed, 0, k), 0, k)
    inner = _solved(head, rows(columns(change, 0, k), 0, k), left=True, lower=True, unit=True)
    inner = _solved(head, inner, left=False, lower=False)
    below, above = lower_part(inner, strict=True), upper_part(inner)
    upper = product(above, upper_part(head))
    whole = add(add(product(lower_part(head, strict=True), below), below), upper)
    if m > n:
        rest = sub(rows(change, k, m), product(rows(packed, k, m), upper))
        whole = concatenate(whole, _solved(head, rest, left=False, lower=False), axis=type_of(change).ndim - 2)
    if m < n:
        rest = _solved(head, columns(change, k, n), left=True, lower=True, unit=True)
        rest = sub(rest, product(below, columns(packed, k, n)))
        whole = concatenate(whole, rest, axis=type_of(change).ndim - 1)
    return whole


# Both factors packed in one matrix (without the lower one's unit diagonal), and the pivots, counted from one.
lu = matrix_primitive("lu", _lu_infer, _lu_lower, jvp=_lu_jvp, multiple=True)

# ---------------------------------------------------------------- QR


def _qr_infer(x: ArrayType, *, full: bool) -> list[ArrayType]:
    check_matrices("qr", x)
    *lead, m, n = x.shape
    k = m if full else min(m, n)
    return [ArrayType((*lead, m, k), x.dtype), ArrayType((*lead, k, n), x.dtype)]


def _qr_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, full: bool) -> tuple[list[Any], list[Any]]:
    (x,), (t,) = primals, tangents
    m, n = type_of(x).shape[-2:]
    if full and m > n:
        raise NonDifferentiableError(
            f"qr of {type_of(x)} with mode='complete' has no derivative, as nothing determines the columns of q beyond "
            f"the {n}th; it was reached at {here()}"
        )
    q, r = qr(x, full=full)
    return [q, r], list(qr_tangents(q, r, t))


def qr_tangents(q: Any, r: Any, t: Any) -> tuple[Any, Any]:
    """The tangents of QR factors for a tangent ``t`` of the matrix; for a wide one the first columns determine
    ``q``."""
    m, n = type_of(t).shape[-2:]
    k = min(m, n)
    square = columns(r, 0, k)
    change = _solved(square, columns(t, 0, k), left=False, lower=False)
    inner = product(adjoint(q), change)
    below = lower_part(inner, strict=True)
    turned = sub(below, adjoint(below))
    if dtypes.is_complex(type_of(q).dtype):
        phases = imag(diagonal_part(inner))
        turned = add(turned, make_complex(number(0, phases), phases))
    rest = sub(inner, turned)
    dr = product(rest, square)
    if m < n:
        more = sub(product(adjoint(q), columns(t, k, n)), product(turned, columns(r, k, n)))
        dr = concatenate(dr, more, axis=type_of(t).ndim - 1)
    return sub(change, product(q, rest)), dr


# With ``full``, q is square.
qr = matrix_primitive(
    "qr",
    _qr_infer,
    lambda x, *, full: list(lax.linalg.qr(x, full_matrices=full)),
    jvp=_qr_jvp,
    multiple=True,
)


def _reflectors_infer(x: ArrayType) -> list[ArrayType]:
    check_matrices("reflectors", x)
    return [x.strong(), ArrayType((*x.shape[:-2], min(x.shape[-2:])), x.dtype)]


# QR packed as in LAPACK: r in the upper triangle, below it the Householder vectors whose product is q, and their taus.
reflectors = matrix_primitive(
    "reflectors", _reflectors_infer, lambda x: list(_geqrf(x)), multiple=True, differentiable=False
)


def reflected(packed: Any, taus: Any, x: Any, *, adjoint_of_product: bool = False) -> Any:
    """The product of Householder reflections, packed as in ``reflectors``, or its adjoint, times matrices ``x``.

    The reflections ``1 - tau v v.H`` are applied together: ``1 - V T V.H``, where ``T`` is upper triangular and its
    inverse has the strict upper triangle of ``V.H V`` and ``1 / tau`` on the diagonal.

    Source: C. Puglisi, "Modification of the Householder method based on the compact WY representation", SIAM J. Sci.
    Stat. Comput. 13 (1992).
    """
    k = type_of(taus).shape[-1]
    vectors = columns(packed, 0, k)
    vectors = add(lower_part(vectors, strict=True), identity(type_of(vectors).shape, type_of(packed).dtype))
    back = adjoint(vectors)
    # With a unit diagonal, so that a tau of zero is harmless.
    inner = scaled_columns(upper_part(product(back, vectors), strict=True), taus)
    inner = add(inner, identity(type_of(inner).shape, type_of(packed).dtype))
    found = product(back, x)
    if adjoint_of_product:
        found = _solved(
            conjugated(inner), scaled_rows(found, conjugated(taus)), left=True, lower=False, transposed=True
        )
    else:
        found = scaled_rows(_solved(inner, found, left=True, lower=False), taus)
    return sub(x, product(vectors, found))


# ---------------------------------------------------------------- Hessenberg and tridiagonal matrices


def _underivable(name: str) -> Any:
    def rule(*_: Any, **__: Any) -> Any:
        raise NonDifferentiableError(
            f"{name}: of its packed reflections no derivative is known; it was reached at {here()}"
        )

    return rule


def _hessenberg_infer(x: ArrayType) -> list[ArrayType]:
    check_matrices("hessenberg", x, square=True)
    return [x.strong(), ArrayType((*x.shape[:-2], max(x.shape[-1] - 1, 0)), x.dtype)]


def _tridiagonal_infer(x: ArrayType, *, lower: bool) -> list[ArrayType]:
    check_matrices("tridiagonal", x, square=True)
    *lead, n, _ = x.shape
    real = dtypes.real_of(x.dtype)
    beside = (*lead, max(n - 1, 0))
    return [x.strong(), ArrayType((*lead, n), real), ArrayType(beside, real), ArrayType(beside, x.dtype)]


# Reduced to Hessenberg form by reflections on both sides, which are packed below the subdiagonal; and their taus.
hessenberg = matrix_primitive(
    "hessenberg",
    _hessenberg_infer,
    lambda x: list(lax.linalg.hessenberg(x)),
    jvp=_underivable("hessenberg"),
    multiple=True,
)

# Hermitian matrices likewise: the reflections in one triangle, the diagonal, the off-diagonal, the taus.
tridiagonal = matrix_primitive(
    "tridiagonal",
    _tridiagonal_infer,
    lambda x, *, lower: list(lax.linalg.tridiagonal(x, lower=lower)),
    jvp=_underivable("tridiagonal"),
    multiple=True,
)
