"""Linear systems, inverses, determinants, pseudoinverses.

Source of the derivative of the pseudoinverse: G. Golub and V. Pereyra, "The differentiation of pseudo-inverses and
nonlinear least squares problems whose variables separate", SIAM J. Numer. Anal. 10 (1973).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from funcgrad.core import dtypes
from funcgrad.core.ir import ArrayType
from funcgrad.core.primitive import Primitive
from funcgrad.core.tracing import type_of
from funcgrad.primitives.elementwise import (
    add,
    conjugated,
    eq,
    imag,
    make_complex,
    mul,
    neg,
    number,
    real,
    select,
    stop_gradient,
    sub,
)
from funcgrad.primitives.linalg.common import (
    adjoint,
    batching,
    check_matrices,
    diagonal_of,
    flipped,
    identity,
    matrix_primitive,
    product,
    scaled_columns,
)
from funcgrad.primitives.linalg.factorizations import lu, permutation
from funcgrad.primitives.shape import expanded, pad, reduce_sum, reshape

# ---------------------------------------------------------------- systems


def _solve_infer(a: ArrayType, packed: ArrayType, order: ArrayType, b: ArrayType, *, transposed: bool) -> ArrayType:
    check_matrices("factored_solve", a, square=True)
    if b.dtype != a.dtype or packed != a.strong() or order.shape != a.shape[:-1]:
        raise TypeError(f"factored_solve: operands must have one dtype and size, got {a}, {packed}, {order} and {b}")
    if b.ndim != a.ndim or b.shape[:-1] != a.shape[:-1]:
        raise ValueError(f"factored_solve: {a} and the right-hand side {b} do not fit")
    return b.strong()


def _solve_lower(a: Any, packed: Any, order: Any, b: Any, *, transposed: bool) -> Any:
    def solved(b: Any, lower: bool) -> Any:
        return lax.linalg.triangular_solve(
            packed, b, left_side=True, lower=lower, unit_diagonal=lower, transpose_a=transposed
        )

    places = jnp.argsort(order, axis=-1) if transposed else order
    if transposed:
        return jnp.take_along_axis(solved(solved(b, False), True), places[..., None], -2)
    return solved(solved(jnp.take_along_axis(b, places[..., None], -2), True), False)


def _solve_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, transposed: bool) -> tuple[Any, Any]:
    (a, packed, order, b), (da, _, _, db) = primals, tangents
    x = factored_solve(a, packed, order, b, transposed=transposed)
    right = db
    if da is not None:
        moved_by = product(flipped(da) if transposed else da, x)
        right = sub(number(0, x) if db is None else db, moved_by)
    if right is None:
        return x, None
    return x, factored_solve(a, packed, order, right, transposed=transposed)


def _solve_transpose(ct: Any, a: Any, packed: Any, order: Any, b: Any, *, transposed: bool) -> Any:
    return factored_solve(a, packed, order, ct, transposed=not transposed)


# x with a x = b, or a.T x = b, from the packed LU factors of a and its row permutation. It is differentiated with
# respect to a and b, not the factors, which depend on a.
factored_solve = matrix_primitive(
    "factored_solve", _solve_infer, _solve_lower, jvp=_solve_jvp, transpose=(None, None, None, _solve_transpose)
)


def factors(a: Any) -> tuple[Any, Any, Any]:
    """The LU factors, pivots and row permutation of square matrices, without derivatives."""
    packed, pivots = lu(stop_gradient(a))
    return packed, pivots, permutation(pivots, length=type_of(a).shape[-1])


def solve(a: Any, b: Any) -> Any:
    """``x`` with ``a @ x = b``, for matrices ``b``."""
    packed, _, order = factors(a)
    return factored_solve(a, packed, order, b, transposed=False)


def _definite_infer(factor: ArrayType, b: ArrayType) -> ArrayType:
    check_matrices("definite_solve", factor, square=True)
    if b.dtype != factor.dtype or b.ndim != factor.ndim or b.shape[:-1] != factor.shape[:-1]:
        raise TypeError(f"definite_solve: the factor {factor} and the right-hand side {b} do not fit")
    return b.strong()


def _definite_lower(factor: Any, b: Any) -> Any:
    for turned in (False, True):
        b = lax.linalg.triangular_solve(factor, b, left_side=True, lower=True, transpose_a=turned, conjugate_a=turned)
    return b


def _definite_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    (factor, b), (t, db) = primals, tangents
    x = definite_solve(factor, b)
    right = db
    if t is not None:
        half = product(t, adjoint(factor))
        moved_by = product(add(half, adjoint(half)), x)
        right = sub(number(0, x) if db is None else db, moved_by)
    return x, None if right is None else definite_solve(factor, right)


# x with l l.H x = b, for the lower Cholesky factor l: reads the lower triangle; the derivative is for all of it.
definite_solve = matrix_primitive(
    "definite_solve",
    _definite_infer,
    _definite_lower,
    jvp=_definite_jvp,
    transpose=(None, lambda ct, factor, b: definite_solve(conjugated(factor), ct)),
)

# ---------------------------------------------------------------- inverses


def _inverse_infer(x: ArrayType) -> list[ArrayType]:
    check_matrices("inverse", x, square=True)
    return [x.strong(), ArrayType(x.shape[:-2], dtypes.int32)]


def _inverse_lower(x: Any) -> list[Any]:
    packed, _, order = lax.linalg.lu(x)
    one = jnp.broadcast_to(jnp.eye(x.shape[-1], dtype=x.dtype), x.shape)
    return [_solve_lower(x, packed, order, one, transposed=False), _first_zero(packed)]


def _first_zero(packed: Any) -> Any:
    zero = jnp.diagonal(packed, axis1=-2, axis2=-1) == 0
    return jnp.where(zero.any(-1), jnp.argmax(zero, -1) + 1, 0).astype(np.int32)


def _inverse_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    (x,), (t,) = primals, tangents
    out, info = inverse(x)
    return [out, info], [neg(product(product(out, t), out)), None]


# The inverse, and the one-based index of the first zero pivot, or 0.
inverse = matrix_primitive("inverse", _inverse_infer, _inverse_lower, jvp=_inverse_jvp, multiple=True)

# The same index, from packed LU factors.
first_zero_pivot = matrix_primitive(
    "first_zero_pivot",
    lambda packed: ArrayType(packed.shape[:-2], dtypes.int32),
    _first_zero,
    differentiable=False,
)

# ---------------------------------------------------------------- determinants


def _determinant_infer(a: ArrayType, packed: ArrayType, pivots: ArrayType) -> ArrayType:
    check_matrices("factored_determinant", a, square=True)
    return ArrayType(a.shape[:-2], a.dtype)


def _sign_of(pivots: Any, dtype: np.dtype) -> Any:
    """1 for an even number of row interchanges, -1 for an odd one."""
    moved = pivots != jnp.arange(1, pivots.shape[-1] + 1)
    return (1 - 2 * (jnp.sum(moved, -1) % 2)).astype(dtype)


def _determinant_lower(a: Any, packed: Any, pivots: Any) -> Any:
    return jnp.prod(jnp.diagonal(packed, axis1=-2, axis2=-1), -1) * _sign_of(pivots, packed.dtype)


def _determinant_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    (a, packed, pivots), (t, _, _) = primals, tangents
    out = factored_determinant(a, packed, pivots)
    return out, None if t is None else reduce_sum(mul(_cofactors(a, packed, pivots, out), t), axes=_last_two(t))


def _cofactors(a: Any, packed: Any, pivots: Any, out: Any) -> Any:
    # det(a) inv(a).T, with zero pivots replaced by tiny ones: a single one cancels in the product; several make the
    # product nearly zero, as it should be.
    pivot = diagonal_of(packed)
    zero = number(0, pivot)
    small = select(eq(pivot, zero), number(np.finfo(type_of(a).dtype).eps, a), zero)
    one = identity(type_of(a).shape, type_of(a).dtype)
    safe = add(packed, scaled_columns(one, small))
    nearly = factored_determinant(stop_gradient(a), safe, pivots)
    value = select(eq(out, zero), nearly, out)
    order = permutation(pivots, length=type_of(a).shape[-1])
    turned = factored_solve(a, safe, order, one, transposed=True)
    return mul(turned, reshape(value, shape=(*type_of(value).shape, 1, 1)))


def _last_two(x: Any) -> tuple[int, int]:
    n = type_of(x).ndim
    return n - 2, n - 1


# The determinant of a, from its packed LU factors and pivots; singular matrices have first derivatives.
factored_determinant = Primitive(
    "factored_determinant",
    infer=_determinant_infer,
    lower=_determinant_lower,
    jvp=_determinant_jvp,
    batch=batching(lambda: factored_determinant),
)


def _logarithm_infer(a: ArrayType, packed: ArrayType, pivots: ArrayType) -> list[ArrayType]:
    check_matrices("factored_logdet", a, square=True)
    return [ArrayType(a.shape[:-2], a.dtype), ArrayType(a.shape[:-2], dtypes.real_of(a.dtype))]


def _logarithm_lower(a: Any, packed: Any, pivots: Any) -> list[Any]:
    pivot = jnp.diagonal(packed, axis1=-2, axis2=-1)
    return [jnp.prod(jnp.sign(pivot), -1) * _sign_of(pivots, packed.dtype), jnp.sum(jnp.log(jnp.abs(pivot)), -1)]


def _logarithm_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    (a, packed, pivots), (t, _, _) = primals, tangents
    sign, size = factored_logdet(a, packed, pivots)
    if t is None:
        return [sign, size], [None, None]
    order = permutation(pivots, length=type_of(a).shape[-1])
    one = identity(type_of(a).shape, type_of(a).dtype)
    turned = factored_solve(a, packed, order, one, transposed=True)
    change = reduce_sum(mul(turned, t), axes=_last_two(t))
    if not dtypes.is_complex(type_of(a).dtype):
        return [sign, size], [None, change]
    angle = imag(change)
    return [sign, size], [mul(sign, make_complex(number(0, angle), angle)), real(change)]


# The sign of the determinant (or a complex number of magnitude 1) and the logarithm of its magnitude.
factored_logdet = Primitive(
    "factored_logdet",
    infer=_logarithm_infer,
    lower=_logarithm_lower,
    jvp=_logarithm_jvp,
    batch=batching(lambda: factored_logdet),
    multiple=True,
)

# ---------------------------------------------------------------- pseudoinverses


def _pseudo_infer(x: ArrayType, atol: ArrayType, rtol: ArrayType, *, hermitian: bool) -> ArrayType:
    check_matrices("pseudoinverse", x, square=hermitian)
    wanted = ArrayType(x.shape[:-2], dtypes.real_of(x.dtype))
    if atol.strong() != wanted or rtol.strong() != wanted:
        raise TypeError(f"pseudoinverse: tolerances for {x} must be {wanted}, got {atol} and {rtol}")
    return ArrayType((*x.shape[:-2], x.shape[-1], x.shape[-2]), x.dtype)


def _pseudo_lower(x: Any, atol: Any, rtol: Any, *, hermitian: bool) -> Any:
    if hermitian:
        vectors, values = lax.linalg.eigh(x, symmetrize_input=False)
        left, right = vectors, jnp.conj(jnp.swapaxes(vectors, -1, -2))
    else:
        left, values, right = lax.linalg.svd(x, full_matrices=False)
    size = jnp.abs(values)
    least = jnp.maximum(atol, rtol * size.max(-1))[..., None]
    inverted = jnp.where(size > least, 1 / jnp.where(size > least, values, 1), 0)
    left, right = (jnp.conj(jnp.swapaxes(v, -1, -2)) for v in (left, right))
    return jnp.matmul(right * inverted[..., None, :], left, precision=lax.Precision.HIGHEST)


def _pseudo_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, hermitian: bool) -> tuple[Any, Any]:
    (x, atol, rtol), (t, _, _) = primals, tangents
    out = pseudoinverse(x, atol, rtol, hermitian=hermitian)
    return out, None if t is None else pseudoinverse_tangent(x, out, t)


def pseudoinverse_tangent(x: Any, out: Any, t: Any) -> Any:
    """The tangent of a pseudoinverse ``out`` for a tangent ``t`` of the matrix that preserves its rank."""
    turned, back = adjoint(t), adjoint(out)
    beside = product(product(out, back), turned)
    above = product(turned, product(back, out))
    rest = sub(beside, product(product(beside, x), out))
    rest = add(rest, sub(above, product(out, product(x, above))))
    return sub(rest, product(product(out, t), out))


# The pseudoinverse; singular values up to max(atol, rtol * largest) count as zero. For a Hermitian matrix only the
# lower triangle is read.
pseudoinverse = matrix_primitive("pseudoinverse", _pseudo_infer, _pseudo_lower, jvp=_pseudo_jvp)

# ---------------------------------------------------------------- tridiagonal systems


def _tridiagonal_infer(below: ArrayType, diagonal: ArrayType, above: ArrayType, b: ArrayType) -> ArrayType:
    types = (below, diagonal, above, b)
    if any(t.dtype != b.dtype for t in types) or not b.inexact:
        raise TypeError(f"tridiagonal_solve: wants one dtype, floating or complex, got {', '.join(map(str, types))}")
    if b.ndim < 2 or any(t.shape != b.shape[:-1] for t in types[:3]):
        raise ValueError(f"tridiagonal_solve: wants three of (*, n) and (*, n, k), got {', '.join(map(str, types))}")
    return b.strong()


def _neighbour(x: Any, by: int, axis: int) -> Any:
    """The previous (-1) or next (1) element along an axis; 0 at the end."""
    shape = type_of(x).shape
    low, high, none = [0] * len(shape), [0] * len(shape), (0,) * len(shape)
    low[axis], high[axis] = -by, by
    return pad(x, number(0, x), low=tuple(low), high=tuple(high), interior=none)


def _tridiagonal_product(below: Any, diagonal: Any, above: Any, x: Any) -> Any:
    """The product of a tridiagonal matrix, whose diagonals may be None for zeros, with ``x``."""
    total = number(0, x)
    for d, by in ((below, -1), (diagonal, 0), (above, 1)):
        if d is not None:
            row = expanded(d, type_of(d).ndim)
            total = add(total, mul(row, _neighbour(x, by, type_of(x).ndim - 2) if by else x))
    return total


def _tridiagonal_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    *diagonals, _ = primals
    below, diagonal, above, right = tangents
    out = tridiagonal_solve(*primals)
    if any(t is not None for t in (below, diagonal, above)):
        right = sub(number(0, out) if right is None else right, _tridiagonal_product(below, diagonal, above, out))
    return out, tridiagonal_solve(*diagonals, right)


def _tridiagonal_transpose(ct: Any, below: Any, diagonal: Any, above: Any, b: ArrayType) -> Any:
    last = type_of(diagonal).ndim - 1
    return tridiagonal_solve(_neighbour(above, -1, last), diagonal, _neighbour(below, 1, last), ct)


# x with a x = b for a tridiagonal matrix given by its lower, main and upper diagonals, all of full length: the first
# element of the lower and the last of the upper are not read.
tridiagonal_solve = matrix_primitive(
    "tridiagonal_solve",
    _tridiagonal_infer,
    lax.linalg.tridiagonal_solve,
    jvp=_tridiagonal_jvp,
    transpose=(None, None, None, _tridiagonal_transpose),
)
