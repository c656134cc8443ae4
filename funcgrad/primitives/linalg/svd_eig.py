"""Eigenvalues, singular values, and the matrix exponential.

For repeated values the vectors are not unique: their derivatives are not finite there, while those of the values alone
are.

Sources: M. Giles, "Collected matrix derivative results for forward and reverse mode algorithmic differentiation"
(2008); J. Townsend, "Differentiating the singular value decomposition" (2016); N. Higham, "The scaling and squaring
method for the matrix exponential revisited", SIAM J. Matrix Anal. Appl. 26 (2005), and "Functions of matrices" (2008),
section 3.2, for the derivative as a block of the function of a larger matrix.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from funcgrad.core import dtypes
from funcgrad.core.ir import ArrayType
from funcgrad.core.tracing import type_of
from funcgrad.primitives.elementwise import (
    add,
    cast,
    div,
    eq,
    imag,
    make_complex,
    mul,
    number,
    real,
    select,
    sub,
)
from funcgrad.primitives.linalg.common import (
    adjoint,
    check_matrices,
    diagonal_of,
    flipped,
    identity,
    matrix_primitive,
    product,
    scaled_columns,
    scaled_rows,
)
from funcgrad.primitives.linalg.factorizations import columns, rows
from funcgrad.primitives.linalg.solve import solve
from funcgrad.primitives.shape import concatenate, expanded, zeros

# ---------------------------------------------------------------- eigenvalues


def _real(x: Any) -> Any:
    return real(x) if dtypes.is_complex(type_of(x).dtype) else x


def _as(x: Any, dtype: np.dtype) -> Any:
    return x if type_of(x).dtype == dtype else cast(x, dtype=dtype)


def _inverted(x: Any) -> Any:
    """``1 / x``, and 0 where ``x`` is 0."""
    zero, one = number(0, x), number(1, x)
    return select(eq(x, zero), zero, div(one, select(eq(x, zero), one, x)))


def _inverse_differences(v: Any) -> Any:
    """Matrices of ``1 / (v[j] - v[i])``, with zeros on the diagonal."""
    n = type_of(v).ndim
    one = identity((*type_of(v).shape, type_of(v).shape[-1]), type_of(v).dtype)
    apart = add(sub(expanded(v, n - 1), expanded(v, n)), one)
    return sub(div(number(1, v), apart), one)


def _hermitian_infer(x: ArrayType, *, lower: bool) -> list[ArrayType]:
    check_matrices("eigh", x, square=True)
    return [ArrayType(x.shape[:-1], dtypes.real_of(x.dtype)), x.strong()]


def _hermitian_lower(x: Any, *, lower: bool) -> list[Any]:
    vectors, values = lax.linalg.eigh(x, lower=lower, symmetrize_input=False)
    return [values, vectors]


def _hermitian_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, lower: bool) -> tuple[list[Any], list[Any]]:
    (x,), (t,) = primals, tangents
    values, vectors = eigh(x, lower=lower)
    return [values, vectors], list(eigh_tangents(values, vectors, t))


def eigh_tangents(values: Any, vectors: Any, t: Any) -> tuple[Any, Any]:
    """The tangents of eigenvalues and eigenvectors for a Hermitian tangent ``t`` of the matrix."""
    inner = product(adjoint(vectors), product(t, vectors))
    turned = mul(inner, _as(_inverse_differences(values), type_of(t).dtype))
    return _real(diagonal_of(inner)), product(vectors, turned)


# The eigenvalues of Hermitian matrices in ascending order, and the eigenvectors; one triangle is read. The derivative
# is for Hermitian tangents.
eigh = matrix_primitive("eigh", _hermitian_infer, _hermitian_lower, jvp=_hermitian_jvp, multiple=True)


def _general_infer(x: ArrayType, *, vectors: bool) -> list[ArrayType]:
    check_matrices("eig", x, square=True)
    dtype = dtypes.complex_of(x.dtype)
    return [ArrayType(x.shape[:-1], dtype), *([ArrayType(x.shape, dtype)] if vectors else [])]


def _general_lower(x: Any, *, vectors: bool) -> list[Any]:
    return list(lax.linalg.eig(x, compute_left_eigenvectors=False, compute_right_eigenvectors=vectors))


def _general_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, vectors: bool) -> tuple[list[Any], list[Any]]:
    (x,), (t,) = primals, tangents
    values, right = eig(x, vectors=True)
    inner = solve(right, product(_as(t, type_of(right).dtype), right))
    change = diagonal_of(inner)
    if not vectors:
        return [values], [change]
    turned = product(right, mul(inner, _inverse_differences(values)))
    # The vectors stay normalized.
    along = real(diagonal_of(product(adjoint(right), turned)))
    return [values, right], [change, sub(turned, scaled_columns(right, along))]


# The eigenvalues of square matrices and, with ``vectors``, eigenvectors of length 1; complex.
eig = matrix_primitive("eig", _general_infer, _general_lower, jvp=_general_jvp, multiple=True)

# ---------------------------------------------------------------- singular values


def _svd_infer(x: ArrayType, *, full: bool, vectors: bool) -> list[ArrayType]:
    check_matrices("svd", x)
    *lead, m, n = x.shape
    k = min(m, n)
    values = ArrayType((*lead, k), dtypes.real_of(x.dtype))
    if not vectors:
        return [values]
    return [ArrayType((*lead, m, m if full else k), x.dtype), values, ArrayType((*lead, n if full else k, n), x.dtype)]


def _svd_lower(x: Any, *, full: bool, vectors: bool) -> list[Any]:
    found = lax.linalg.svd(x, full_matrices=full, compute_uv=vectors)
    return list(found) if vectors else [found]


def _svd_jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, full: bool, vectors: bool
) -> tuple[list[Any], list[Any]]:
    (x,), (t,) = primals, tangents
    if not vectors:
        left, values, right = svd(x, full=False, vectors=True)
        inner = product(adjoint(left), product(t, adjoint(right)))
        return [values], [_real(diagonal_of(inner))]
    left, values, right = svd(x, full=full, vectors=True)
    return [left, values, right], list(svd_tangents(left, values, right, t))


def svd_tangents(left: Any, values: Any, right: Any, t: Any) -> tuple[Any, Any, Any]:
    """The tangents of singular vectors and values for a tangent ``t`` of the matrix."""
    k = type_of(values).shape[-1]
    dtype = type_of(t).dtype
    back = adjoint(right)
    inner = product(adjoint(left), product(t, back))
    core = rows(columns(inner, 0, k), 0, k)
    # The difference of squares as a product: equal squares may be rounded differently.
    n = type_of(values).ndim
    sums = add(expanded(values, n - 1), expanded(values, n))
    apart = _as(mul(_inverse_differences(values), _inverted(sums)), dtype)
    inverse = _inverted(values)
    turn_left = mul(apart, _plus_adjoint(scaled_columns(core, values)))
    turn_right = mul(apart, _plus_adjoint(scaled_rows(core, values)))
    if dtypes.is_complex(dtype):
        # A common phase of a vector pair is free: the left vector rotates.
        phase = mul(imag(diagonal_of(core)), inverse)
        one = identity(type_of(turn_left).shape, dtype)
        turn_left = add(turn_left, scaled_columns(one, make_complex(number(0, phase), phase)))
    change_left = _turned(left, t, back, inner, turn_left, inverse, k)
    change_right = _turned(back, adjoint(t), left, adjoint(inner), turn_right, inverse, k)
    return change_left, _real(diagonal_of(core)), adjoint(change_right)


def _plus_adjoint(x: Any) -> Any:
    return add(x, adjoint(x))


def _turned(u: Any, t: Any, v: Any, inner: Any, turn: Any, inverse: Any, k: int) -> Any:
    """The tangent of the vectors ``u`` on one side, given those on the other, ``v``.

    Args:
        inner: ``u.H @ t @ v``.
        turn: the rotation of the first ``k`` vectors among each other.
    """
    m, count = type_of(u).shape[-2:]
    first = columns(u, 0, k)
    if count == m:
        # A full basis: components that leave the first vectors enter the others, which rotate the opposite way.
        if m == k:
            return product(u, turn)
        out = scaled_columns(columns(rows(inner, k, m), 0, k), inverse)
        beyond = columns(u, k, m)
        change = add(product(first, turn), product(beyond, out))
        return concatenate(change, sub(number(0, u), product(first, adjoint(out))), axis=type_of(u).ndim - 1)
    moving = scaled_columns(product(t, columns(v, 0, k)), inverse)
    away = sub(moving, product(first, scaled_columns(rows(columns(inner, 0, k), 0, k), inverse)))
    return add(product(first, turn), away)


# Left singular vectors (columns), singular values in descending order, and right vectors (rows); square if ``full``;
# only the values without ``vectors``.
svd = matrix_primitive("svd", _svd_infer, _svd_lower, jvp=_svd_jvp, multiple=True)

# ---------------------------------------------------------------- the exponential

#: By dtype: the norm up to which the Padé approximant of the exponential is accurate, and its degree.
PADE = {np.dtype(np.float32): (3.925724783138660, 7), np.dtype(np.float64): (5.371920351148152, 13)}


def pade_weights(m: int) -> list[float]:
    """The coefficients of the Padé approximant of the exponential of degree ``m``."""
    f = math.factorial
    return [f(2 * m - j) * f(m) / (f(2 * m) * f(m - j) * f(j)) for j in range(m + 1)]


def _exponential_infer(x: ArrayType) -> ArrayType:
    check_matrices("matrix_exponential", x, square=True)
    return x.strong()


def _exponential_lower(x: Any) -> Any:
    bound, m = PADE[dtypes.real_of(x.dtype)]
    size = jnp.abs(x).sum(-2).max(-1)
    halvings = jnp.maximum(0, jnp.ceil(jnp.log2(jnp.where(size > bound, size, bound) / bound))).astype(np.int32)
    # Nonfinite values stay so however often they are halved.
    halvings = jnp.where(jnp.isfinite(size), halvings, 0)
    found = _pade(x * jnp.exp2(-halvings).astype(x.dtype)[..., None, None], m)

    def squared(i: Any, y: Any) -> Any:
        return jnp.where((i < halvings)[..., None, None], _times(y, y), y)

    return lax.fori_loop(0, jnp.max(halvings), squared, found)


def _times(x: Any, y: Any) -> Any:
    return jnp.matmul(x, y, precision=lax.Precision.HIGHEST)


def _pade(x: Any, m: int) -> Any:
    """The Padé approximant of the exponential of degree ``m``."""
    weights = pade_weights(m)
    one = jnp.broadcast_to(jnp.eye(x.shape[-1], dtype=x.dtype), x.shape)
    even, odd, power, squared = weights[0] * one, weights[1] * one, one, _times(x, x)
    for j in range(2, m + 1, 2):
        power = _times(power, squared)
        even = even + weights[j] * power
        if j < m:
            odd = odd + weights[j + 1] * power
    odd = _times(x, odd)
    packed, _, order = lax.linalg.lu(even - odd)
    right = jnp.take_along_axis(even + odd, order[..., None], -2)
    for lower in (True, False):
        right = lax.linalg.triangular_solve(packed, right, left_side=True, lower=lower, unit_diagonal=lower)
    return right


def _exponential_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    return matrix_exponential(primals[0]), exponential_tangent(primals[0], tangents[0])


matrix_exponential = matrix_primitive(
    "matrix_exponential", _exponential_infer, _exponential_lower, jvp=_exponential_jvp
)


def _tangent_infer(x: ArrayType, t: ArrayType) -> ArrayType:
    check_matrices("exponential_tangent", x, square=True)
    if t.strong() != x.strong():
        raise TypeError(f"exponential_tangent: wants two operands of one type, got {x} and {t}")
    return x.strong()


def _blocks(x: Any, t: Any) -> Any:
    axis = type_of(x).ndim - 1
    below = concatenate(zeros(type_of(x).strong()), x, axis=axis)
    return concatenate(concatenate(x, t, axis=axis), below, axis=axis - 1)


def _upper_right(x: Any) -> Any:
    n = type_of(x).shape[-1]
    return columns(rows(x, 0, n // 2), n // 2, n)


def _tangent_lower(x: Any, t: Any) -> Any:
    n = x.shape[-1]
    whole = jnp.concatenate([jnp.concatenate([x, t], -1), jnp.concatenate([jnp.zeros_like(x), x], -1)], -2)
    return _exponential_lower(whole)[..., :n, n:]


def _tangent_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    (x, t), (dx, dt) = primals, tangents
    out = exponential_tangent(x, t)
    change = None if dt is None else exponential_tangent(x, dt)
    if dx is not None:
        # The tangent is a block of the exponential of a larger matrix, whose tangent is known.
        more = _upper_right(exponential_tangent(_blocks(x, t), _blocks(dx, zeros(type_of(dx).strong()))))
        change = more if change is None else add(change, more)
    return out, change


# The tangent of the exponential of x for a tangent t, in which it is linear.
exponential_tangent = matrix_primitive(
    "exponential_tangent",
    _tangent_infer,
    _tangent_lower,
    jvp=_tangent_jvp,
    transpose=(None, lambda ct, x, t: exponential_tangent(flipped(x), ct)),
)
