"""Norms, condition numbers and ranks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from funcgrad.arguments import validate
from funcgrad.core import dtypes
from funcgrad.core.tracing import type_of
from funcgrad.numpy import reductions as r
from funcgrad.numpy.elementwise import power
from funcgrad.numpy.indexing.getitem import getitem
from funcgrad.numpy.linalg.decompositions import svd
from funcgrad.numpy.linalg.operands import matrices
from funcgrad.numpy.promotion import asoperand, astype, promoted
from funcgrad.numpy.shape import broadcast_to, expand_dims, moveaxis, ravel, reshape
from funcgrad.primitives import elementwise as e
from funcgrad.primitives.linalg.solve import inverse
from funcgrad.primitives.shape import full
from funcgrad.runtime.call_cache import composite


def _magnitude(x: Any) -> Any:
    return e.complex_abs(x) if dtypes.is_complex(type_of(x).dtype) else e.absolute(x)


def _squares(x: Any) -> Any:
    if dtypes.is_complex(type_of(x).dtype):
        return e.add(e.square(e.real(x)), e.square(e.imag(x)))
    return e.square(x)


def _where_zero(x: Any, value: float, otherwise: Any) -> Any:
    return e.select(e.eq(x, e.number(0, x)), e.number(value, otherwise), otherwise)


def _root(total: Any, p: float) -> Any:
    """``total ** (1 / p)``, with derivative zero at zero."""
    safe = _where_zero(total, 1, total)
    return _where_zero(total, 0, e.sqrt(safe) if p == 2 else power(safe, 1 / p))


def _vector_norm(x: Any, p: float, axes: tuple[int, ...], keepdims: bool) -> Any:
    size = _magnitude(x)
    if math.isinf(p):
        return (r.max if p > 0 else r.min)(size, axes, keepdims=keepdims)
    if p == 0:
        counted = astype(e.ne(x, e.number(0, x)), type_of(size).dtype)
        return r.sum(counted, axes, keepdims=keepdims)
    if p == 1:
        return r.sum(size, axes, keepdims=keepdims)
    if p == 2:
        return _root(r.sum(_squares(x), axes, keepdims=keepdims), 2)
    if p > 1:
        return _root(r.sum(power(size, p), axes, keepdims=keepdims), p)
    # The root of a zero magnitude has no finite derivative; a negative power of zero is infinite.
    powers = _where_zero(size, 0 if p > 0 else math.inf, power(_where_zero(size, 1, size), p))
    total = r.sum(powers, axes, keepdims=keepdims)
    return _root(total, p) if p > 0 else power(total, 1 / p)


@composite
def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: float = 2) -> Any:
    """The norms of vectors: ``sum(|x| ** ord) ** (1 / ord)``. At zero, the derivative is zero.

    Args:
        x: numbers of any shape.
        axis: the axes of the vectors, one or several; by default all.
        keepdims: whether to keep these axes, with size 1.
        ord: the order; ``inf`` and ``-inf`` for the maximum and minimum magnitude, 0 for the number of nonzero
            elements.

    Returns:
        The shape of ``x`` without these axes; real, of the precision of ``x``, float32 for integers and booleans.

    Raises:
        TypeError: for operands that are not arrays, and an order that is not a number.
        ValueError: for an axis that is out of range or repeated, and the maximum or minimum of no elements.

    Example:
        >>> print(vector_norm(np.array([3.0, 4.0])), vector_norm(np.array([3.0, 4.0]), ord=np.inf))
        5.0 4.0
    """
    (x,) = promoted(asoperand(x, "vector_norm"), floating=True)
    order = validate.number("vector_norm", "ord", ord)
    return _vector_norm(x, order, validate.axes("vector_norm", axis, type_of(x).ndim), keepdims)


def _by_singular_values(x: Any, ord: Any) -> Any:
    values = svd(x, compute_uv=False)
    return r.sum(values, -1) if ord == "nuc" else (r.max if ord > 0 else r.min)(values, -1)


@composite
def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    """The norms of matrices, which are the last two axes.

    Args:
        x: ``(*, m, n)``.
        keepdims: whether to keep these axes, with size 1.
        ord: ``"fro"`` for the Frobenius norm; 1 and ``inf`` for the maximum sum of magnitudes of a column and of a row,
            -1 and ``-inf`` for the minimum; 2 and -2 for the largest and the smallest singular value, ``"nuc"`` for
            their sum.

    Returns:
        ``(*)``, or ``(*, 1, 1)``; real, of the precision of ``x``, float32 for integers and booleans.

    Raises:
        TypeError: for operands that are not arrays, and for float16 and bfloat16 if singular values are needed.
        ValueError: for an unknown order.
        LinAlgError: for fewer than two axes; if singular values are needed, for nonfinite numbers.

    Example:
        >>> print(matrix_norm(np.array([[1.0, -2.0], [3.0, 4.0]]), ord=1))
        6.0
    """
    x = matrices(x, "matrix_norm")
    n = type_of(x).ndim
    if ord in ("fro", None):
        return _vector_norm(x, 2, (n - 2, n - 1), keepdims)
    if ord in (1, -1, math.inf, -math.inf):
        across, along = (n - 2, n - 1) if abs(ord) == 1 else (n - 1, n - 2)
        sums = r.sum(_magnitude(x), across, keepdims=True)
        found = (r.max if ord > 0 else r.min)(sums, along, keepdims=True)
        return found if keepdims else reshape(found, type_of(x).shape[:-2])
    if ord not in (2, -2, "nuc"):
        raise ValueError(f'matrix_norm: ord must be "fro", "nuc", 1, -1, 2, -2, inf or -inf, got {ord!r}')
    found = _by_singular_values(x, ord)
    return expand_dims(found, (-2, -1)) if keepdims else found


@composite
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """The norms of vectors or matrices.

    Args:
        x: numbers of any shape.
        ord: as for ``vector_norm`` and ``matrix_norm``; by default the 2-norm or the Frobenius norm.
        axis: one axis for vectors, two for matrices; by default the rank of ``x`` decides, or, without ``ord``, all
            elements.
        keepdims: whether to keep these axes, with size 1.

    Returns:
        The shape of ``x`` without these axes; real, of the precision of ``x``, float32 for integers and booleans.

    Raises:
        TypeError: for operands that are not arrays, and for float16 and bfloat16 if singular values are needed.
        ValueError: for more than two axes, an axis that is out of range or repeated, and an unsupported order.
        LinAlgError: if singular values are needed, for nonfinite numbers.

    Example:
        >>> print(norm(np.array([[3.0, 4.0], [6.0, 8.0]]), axis=1))
        [ 5. 10.]
    """
    (x,) = promoted(asoperand(x, "norm"), floating=True)
    ndim = type_of(x).ndim
    if axis is None and ord is None:
        found = _vector_norm(ravel(x), 2, (0,), False)
        return reshape(found, (1,) * ndim) if keepdims else found
    axes = validate.axes("norm", axis, ndim)
    if len(axes) == 1:
        if isinstance(ord, str):
            raise ValueError(f"norm: there is no norm of vectors of order {ord!r}")
        return _vector_norm(x, 2.0 if ord is None else float(ord), axes, keepdims)
    if len(axes) != 2:
        raise ValueError(f"norm: takes one axis for vectors or two for matrices, got {axis} for {type_of(x)}")
    found = matrix_norm(moveaxis(x, axes, (-2, -1)), ord=ord)
    return expand_dims(found, tuple(sorted(axes))) if keepdims else found


@composite
def cond(x: Any, p: Any = None) -> Any:
    """The condition number of a matrix: its norm times that of its inverse; infinite if it is singular.

    Args:
        x: ``(*, m, n)``; ``(*, n, n)`` unless ``p`` is None, 2 or -2.
        p: the order of the norm, as for ``matrix_norm``; by default 2.

    Returns:
        ``(*)``, real, of the precision of ``x``; float32 for integers and booleans.

    Raises:
        TypeError: for operands that are not arrays, and for float16 and bfloat16.
        ValueError: for an unknown order.
        LinAlgError: for fewer than two axes, or a matrix that is not square where it must be; by singular values, for
            nonfinite numbers.

    Example:
        >>> print(cond(np.array([[4.0, 0.0], [0.0, 2.0]])))
        2.0
    """
    x = matrices(x, "cond", square=p not in (None, 2, -2))
    if p in (None, 2, -2):
        values = svd(x, compute_uv=False)
        first, last = getitem(values, (..., 0)), getitem(values, (..., -1))
        found = e.div(last, first) if p == -2 else e.div(first, last)
    else:
        found = e.mul(matrix_norm(x, ord=p), matrix_norm(inverse(x)[0], ord=p))
    # A singular matrix is valid, nonfinite numbers are not.
    numbers = r.all(e.eq(x, x), (-2, -1))
    return e.select(e.bitwise_and(e.ne(found, found), numbers), e.number(math.inf, found), found)


@composite
def matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:
    """The number of singular values above a tolerance, int64.

    Args:
        A: ``(*, m, n)``; for a vector or a number the result is whether any element is nonzero.
        tol: the absolute tolerance, one for all or one for each matrix.
        hermitian: ``A`` is Hermitian, which is faster; only the lower triangle is read.
        rtol: the tolerance relative to the largest value; by default the larger of ``m`` and ``n`` times the dtype's
            precision.

    Returns:
        ``(*)``, int64; a scalar for a vector or a number.

    Raises:
        TypeError: for operands that are not arrays, and for matrices of float16 or bfloat16.
        ValueError: for both tolerances, and more of them than matrices.
        LinAlgError: for nonfinite numbers, and, if ``hermitian``, no square matrix.

    Example:
        >>> print(matrix_rank(np.array([[1.0, 2.0], [2.0, 4.0]])))
        1
    """
    if tol is not None and rtol is not None:
        raise ValueError("matrix_rank: tol and rtol exclude each other; both were given")
    (A,) = promoted(asoperand(A, "matrix_rank"), floating=True)
    t = type_of(A)
    if t.ndim < 2:
        return astype(r.any(e.ne(A, e.number(0, A))), dtypes.int64)
    values = svd(A, compute_uv=False, hermitian=hermitian)
    if not type_of(values).shape[-1]:
        return full(np.int64(0), t.shape[:-2])
    if tol is None:
        fraction = max(t.shape[-2:]) * float(np.finfo(t.dtype).eps) if rtol is None else rtol
        least = e.mul(r.max(values, -1), _each(fraction, values))
    else:
        least = _each(tol, values)
    return r.sum(astype(e.gt(values, expand_dims(least, -1)), dtypes.int64), -1)


def _each(tolerance: Any, values: Any) -> Any:
    t = type_of(values)
    return broadcast_to(astype(asoperand(tolerance), t.dtype), t.shape[:-1])


__all__ = ["cond", "matrix_norm", "matrix_rank", "norm", "vector_norm"]
