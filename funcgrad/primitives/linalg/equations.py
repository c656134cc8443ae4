"""Matrix equations: Sylvester's, and ``x x = a``. Both use triangular Schur factors.

Sources: R. Bartels, G. Stewart, "Solution of the matrix equation AX + XB = C", Comm. ACM 15 (1972); Å. Björck,
S. Hammarling, "A Schur method for the square root of a matrix", Linear Algebra Appl. 52/53 (1983).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from jax import lax

from funcgrad.core import dtypes
from funcgrad.core.errors import NonDifferentiableError
from funcgrad.core.ir import ArrayType
from funcgrad.core.tracing import type_of
from funcgrad.primitives.elementwise import cast, number, sub
from funcgrad.primitives.linalg.common import check_matrices, flipped, matrix_primitive, product

# ---------------------------------------------------------------- shared


def _schur(x: Any) -> tuple[Any, Any]:
    """Upper triangular ``t`` and unitary ``u``, both complex, with ``u @ t @ u.H = x``."""
    t, u = lax.linalg.schur(x.astype(dtypes.complex_of(x.dtype)))
    return t, u


def _times(*xs: Any) -> Any:
    first, *rest = xs
    for x in rest:
        first = jnp.matmul(first, x, precision=lax.Precision.HIGHEST)
    return first


def _adjoint(x: Any) -> Any:
    return jnp.conj(jnp.swapaxes(x, -1, -2))


def _column(x: Any, k: Any) -> Any:
    return lax.dynamic_slice_in_dim(x, k, 1, x.ndim - 1)


def _with_column(x: Any, column: Any, k: Any) -> Any:
    return lax.dynamic_update_slice_in_dim(x, column, k, x.ndim - 1)


def _upper_solve(a: Any, b: Any) -> Any:
    return lax.linalg.triangular_solve(a, b, left_side=True, lower=False)


# ---------------------------------------------------------------- the Schur factors


def _schur_infer(x: ArrayType, *, real: bool) -> list[ArrayType]:
    check_matrices("schur", x, square=True)
    return [x.strong()] * 2 if real else [ArrayType(x.shape, dtypes.complex_of(x.dtype))] * 2


def _schur_jvp(*_: Any, **__: Any) -> Any:
    raise NonDifferentiableError("schur: the factors are not unique, and no derivative of them is known")


# ``t`` and ``u`` with ``u @ t @ u.H = x``: upper triangular and unitary, or, if ``real``, quasi-triangular with 2x2
# blocks, and orthogonal. They are not unique, and have no derivative.
schur = matrix_primitive(
    "schur",
    _schur_infer,
    lambda x, *, real: list(lax.linalg.schur(x) if real else _schur(x)),
    jvp=_schur_jvp,
    multiple=True,
)

# ---------------------------------------------------------------- Sylvester's equation


def _sylvester_infer(a: ArrayType, b: ArrayType, q: ArrayType) -> ArrayType:
    check_matrices("sylvester", a, square=True)
    check_matrices("sylvester", b, square=True)
    if not a.dtype == b.dtype == q.dtype:
        raise TypeError(f"sylvester: operands must have one dtype, got {a}, {b} and {q}")
    if q.shape != (*a.shape[:-1], b.shape[-1]) or b.shape[:-2] != a.shape[:-2]:
        raise ValueError(f"sylvester: {a}, {b} and the right-hand side {q} do not fit")
    return q.strong()


def _sylvester_lower(a: Any, b: Any, q: Any) -> Any:
    (r, u), (s, v) = _schur(a), _schur(b)
    right = _times(_adjoint(u), q.astype(r.dtype), v)
    one = jnp.eye(a.shape[-1], dtype=r.dtype)

    def column(k: Any, y: Any) -> Any:
        # Unknown columns are zero, so the product contains only the known ones.
        of_s = _column(s, k)
        at = lax.dynamic_slice_in_dim(of_s, k, 1, of_s.ndim - 2)
        return _with_column(y, _upper_solve(r + at * one, _column(right, k) - _times(y, of_s)), k)

    y = lax.fori_loop(0, b.shape[-1], column, jnp.zeros_like(right))
    x = _times(u, y, _adjoint(v))
    return x if jnp.iscomplexobj(q) else x.real


def _sylvester_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    (a, b, q), (da, db, dq) = primals, tangents
    x = sylvester(a, b, q)
    moved = [product(da, x)] if da is not None else []
    moved += [product(x, db)] if db is not None else []
    right = dq
    for term in moved:
        right = sub(number(0, x) if right is None else right, term)
    return x, sylvester(a, b, right)


# x with a x + x b = q.
sylvester = matrix_primitive(
    "sylvester",
    _sylvester_infer,
    _sylvester_lower,
    jvp=_sylvester_jvp,
    transpose=(None, None, lambda ct, a, b, q: sylvester(flipped(a), flipped(b), ct)),
)

# ---------------------------------------------------------------- square roots


def _root_infer(x: ArrayType) -> ArrayType:
    check_matrices("matrix_root", x, square=True)
    return ArrayType(x.shape, dtypes.complex_of(x.dtype))


def _root_lower(x: Any) -> Any:
    t, u = _schur(x)
    n = x.shape[-1]
    row = jnp.arange(n)[:, None]

    def column(j: Any, root: Any) -> Any:
        # Above the diagonal a column solves a triangular system of the previous columns.
        of_t = _column(t, j)
        corner = jnp.sqrt(lax.dynamic_slice_in_dim(of_t, j, 1, of_t.ndim - 2))
        known = jnp.where(row < j, root + corner * jnp.eye(n, dtype=t.dtype), jnp.eye(n, dtype=t.dtype))
        above = _upper_solve(known, jnp.where(row < j, of_t, 0))
        return _with_column(root, jnp.where(row == j, corner, above), j)

    return _times(u, lax.fori_loop(0, n, column, jnp.zeros_like(t)), _adjoint(u))


def _root_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    root = matrix_root(primals[0])
    (t,) = tangents
    dtype = type_of(root).dtype
    return root, sylvester(root, root, t if type_of(t).dtype == dtype else cast(t, dtype=dtype))


# The principal square roots of matrices, complex.
matrix_root = matrix_primitive("matrix_root", _root_infer, _root_lower, jvp=_root_jvp)
