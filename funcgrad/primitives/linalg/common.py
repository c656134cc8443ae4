"""Shared parts of the primitives of linear algebra, matrix products, and triangular systems.

A matrix is the last two axes of an array; the leading axes are batches. Operands of one primitive have the same leading
axes, so that ``vmap`` adds one.

Rules that need a factorization take it as an operand: ``factored_solve(a, lu, permutation, b)`` solves with the factors
and differentiates with respect to ``a``. So nothing is factored twice, and no rule differentiates the factorization.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jax import lax

from funcgrad.core import dtypes
from funcgrad.core.ir import ArrayType
from funcgrad.core.primitive import Primitive, Rule
from funcgrad.core.tracing import type_of
from funcgrad.primitives.contraction import dot
from funcgrad.primitives.elementwise import cast, conjugated, eq, ge, gt, mul, number, select, sub
from funcgrad.primitives.shape import Dims, broadcast, expanded, full, iota, moved, reduce_sum, transpose

#: The dtypes that XLA factors.
FACTORED = (dtypes.float32, dtypes.float64, dtypes.complex64, dtypes.complex128)


# ---------------------------------------------------------------- matrices


def product(x: Any, y: Any) -> Any:
    """Batched matrix products; the batch axes are equal."""
    n = type_of(x).ndim
    lead = tuple(range(n - 2))
    return dot(x, y, contract=((n - 1,), (n - 2,)), batch=(lead, lead))


def flipped(x: Any) -> Any:
    """The transposes of matrices."""
    n = type_of(x).ndim
    return transpose(x, permutation=(*range(n - 2), n - 1, n - 2))


def adjoint(x: Any) -> Any:
    """The conjugate transposes of matrices."""
    return conjugated(flipped(x))


def _places(shape: Dims) -> tuple[Any, Any]:
    rows, columns = shape[-2:]
    size = (rows, columns)
    return iota(shape=size, axis=0, dtype=dtypes.int32), iota(shape=size, axis=1, dtype=dtypes.int32)


def _masked(x: Any, keep: Any) -> Any:
    return select(keep, x, number(0, x))


def lower_part(x: Any, *, strict: bool = False) -> Any:
    """Matrices with zeros above the diagonal; if ``strict``, also on it."""
    row, column = _places(type_of(x).shape)
    return _masked(x, (gt if strict else ge)(row, column))


def upper_part(x: Any, *, strict: bool = False) -> Any:
    """Matrices with zeros below the diagonal; if ``strict``, also on it."""
    row, column = _places(type_of(x).shape)
    return _masked(x, (gt if strict else ge)(column, row))


def diagonal_part(x: Any) -> Any:
    """Matrices with zeros off the diagonal."""
    return _masked(x, eq(*_places(type_of(x).shape)))


def diagonal_of(x: Any) -> Any:
    """The diagonals of square matrices."""
    return reduce_sum(diagonal_part(x), axes=(type_of(x).ndim - 2,))


def scaled_columns(x: Any, v: Any) -> Any:
    """Matrices with columns scaled by the elements of a vector; complex ones may be scaled by real numbers."""
    return mul(x, expanded(_as(v, x), type_of(v).ndim - 1))


def scaled_rows(x: Any, v: Any) -> Any:
    """Matrices with rows scaled by the elements of a vector; complex ones may be scaled by real numbers."""
    return mul(x, expanded(_as(v, x), type_of(v).ndim))


def _as(v: Any, x: Any) -> Any:
    dtype = type_of(x).dtype
    return v if type_of(v).dtype == dtype else cast(v, dtype=dtype)


def identity(shape: Dims, dtype: np.dtype) -> Any:
    """Identity matrices of a shape."""
    return diagonal_part(full(dtype.type(1), shape))


# ---------------------------------------------------------------- shared


def check_matrices(name: str, x: ArrayType, *, square: bool = False) -> None:
    """Raises unless ``x`` has matrices (square ones if ``square``) of a dtype that XLA factors."""
    if x.dtype not in FACTORED:
        raise TypeError(f"{name}: takes float32, float64, complex64 or complex128, got {x}")
    if x.ndim < 2:
        raise ValueError(f"{name}: takes matrices, which are the last two axes, got {x}")
    if square and x.shape[-1] != x.shape[-2]:
        raise ValueError(f"{name}: takes square matrices, got {x}")


def batching(primitive: Callable[[], Primitive]) -> Rule:
    """The batching rule: a leading axis for all operands and results."""

    def batch(size: int, operands: Sequence[Any], dims: Sequence[int | None], **params: Any) -> tuple[Any, Any]:
        aligned = []
        for x, d in zip(operands, dims, strict=True):
            shape = type_of(x).shape
            spread = broadcast(x, shape=(size, *shape), dims=tuple(range(1, len(shape) + 1))) if d is None else None
            aligned.append(moved(x, d, 0) if d is not None else spread)
        out = primitive()(*aligned, **params)
        return out, [0] * len(out) if primitive().multiple else 0

    return batch


def of_something(infer: Rule, lower: Rule) -> Rule:
    """A lowering rule guarded against empty matrices, which LAPACK does not accept.

    Square results are then identity matrices, like factors of empty matrices, and others are zeros.
    """

    @functools.wraps(lower)
    def lowered(*operands: Any, **params: Any) -> Any:
        if all(0 not in x.shape for x in operands):
            return lower(*operands, **params)
        found = infer(*[ArrayType(x.shape, x.dtype) for x in operands], **params)
        filled = [_nothing(t) for t in (found if isinstance(found, list) else [found])]
        return filled if isinstance(found, list) else filled[0]

    return lowered


def _nothing(t: ArrayType) -> Any:
    if t.ndim < 2 or t.shape[-1] != t.shape[-2] or not t.inexact:
        return lax.full(t.shape, np.zeros((), t.dtype)[()])
    one = lax.eq(*[lax.broadcasted_iota(np.int32, t.shape, t.ndim - i) for i in (1, 2)])
    return lax.convert_element_type(one, t.dtype)


def matrix_primitive(name: str, infer: Rule, lower: Rule, **rules: Any) -> Primitive:
    """A primitive on matrices, with rules for batching and empty arrays."""
    made = Primitive(name, infer=infer, lower=of_something(infer, lower), batch=batching(lambda: made), **rules)
    return made


# ---------------------------------------------------------------- triangular systems


def _triangular_infer(
    a: ArrayType, b: ArrayType, *, left: bool, lower: bool, transposed: bool, unit: bool
) -> ArrayType:
    check_matrices("triangular_solve", a, square=True)
    if a.dtype != b.dtype:
        raise TypeError(f"triangular_solve: operands must have one dtype, got {a} and {b}")
    if b.ndim != a.ndim or b.shape[:-2] != a.shape[:-2] or b.shape[-2 if left else -1] != a.shape[-1]:
        raise ValueError(f"triangular_solve: {a} and the right-hand side {b} do not fit")
    return b.strong()


def _triangular_jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, left: bool, lower: bool, transposed: bool, unit: bool
) -> tuple[Any, Any]:
    (a, b), (da, db) = primals, tangents
    params = dict(left=left, lower=lower, transposed=transposed, unit=unit)
    x = triangular_solve(a, b, **params)
    right = db
    if da is not None:
        change = (lower_part if lower else upper_part)(da, strict=unit)
        change = flipped(change) if transposed else change
        moved_by = product(change, x) if left else product(x, change)
        right = sub(number(0, x) if db is None else db, moved_by)
    return x, triangular_solve(a, right, **params)


def _triangular_transpose(ct: Any, a: Any, b: Any, *, left: bool, lower: bool, transposed: bool, unit: bool) -> Any:
    return triangular_solve(a, ct, left=left, lower=lower, transposed=not transposed, unit=unit)


def _triangular_lower(a: Any, b: Any, *, left: bool, lower: bool, transposed: bool, unit: bool) -> Any:
    return lax.linalg.triangular_solve(a, b, left_side=left, lower=lower, transpose_a=transposed, unit_diagonal=unit)


# x with a x = b (left) or x a = b; only one triangle of a is read. With ``transposed``, a is transposed.
triangular_solve = matrix_primitive(
    "triangular_solve",
    _triangular_infer,
    _triangular_lower,
    jvp=_triangular_jvp,
    transpose=(None, _triangular_transpose),
)
