"""Linear systems, inverses, determinants."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.linalg import LinAlgError

from funcgrad.arguments import validate
from funcgrad.core import dtypes
from funcgrad.core.tracing import type_of
from funcgrad.numpy.linalg.decompositions import svd
from funcgrad.numpy.linalg.operands import matrices, require, together, value_of
from funcgrad.numpy.promotion import asoperand, astype, promoted
from funcgrad.numpy.shape import broadcast_to, moveaxis, reshape
from funcgrad.primitives import elementwise as e
from funcgrad.primitives.linalg import common as p
from funcgrad.primitives.linalg import solve as solving
from funcgrad.primitives.reductions import reduce_max
from funcgrad.primitives.shape import expanded, full, reduce_sum, zeros
from funcgrad.runtime.call_cache import composite


class SlogdetResult(NamedTuple):
    """The sign of a determinant, of magnitude 1 or 0, and the logarithm of its magnitude.

    Example:
        >>> found = slogdet(np.array([[-1.0]]))
        >>> print(found.sign, found.logabsdet)
        -1.0 0.0
    """

    sign: Any
    logabsdet: Any


# ---------------------------------------------------------------- systems


def _right_side(a: Any, b: Any, name: str) -> tuple[Any, Any, bool]:
    """Both operands as matrices of one dtype and batch shape, and whether ``b`` was a vector."""
    a, b = promoted(matrices(a, name, square=True), asoperand(b, name), floating=True)
    vector = type_of(b).ndim == 1
    if vector:
        b = expanded(b, 1)
    if type_of(b).ndim < 2 or type_of(b).shape[-2] != type_of(a).shape[-1]:
        raise ValueError(f"{name}: {type_of(a)} and the right-hand side {type_of(b)} do not fit")
    a, b = together(name, a, b)
    return a, b, vector


def _as_vector(x: Any, vector: bool) -> Any:
    return reshape(x, type_of(x).shape[:-1]) if vector else x


@composite
def solve(a: Any, b: Any, /) -> Any:
    """``x`` with ``a @ x = b``.

    Args:
        a: ``(*, n, n)``.
        b: ``(n,)`` or ``(*, n, k)``; leading axes broadcast.

    Returns:
        ``(*, n)`` or ``(*, n, k)``, with the broadcast leading axes; of the promoted dtype, float32 for
        integers and booleans.

    Raises:
        TypeError: for operands that are not arrays, and for float16 and bfloat16.
        ValueError: if sizes are incompatible, or leading axes do not broadcast.
        LinAlgError: for operands that are not square matrices, or singular ones.

    Example:
        >>> print(solve(np.array([[2.0, 0.0], [0.0, 4.0]]), np.array([2.0, 2.0])))
        [1.  0.5]
    """
    a, b, vector = _right_side(a, b, "solve")
    packed, _, order = solving.factors(a)
    _require_pivots(packed)
    return _as_vector(solving.factored_solve(a, packed, order, b, transposed=False), vector)


def _require_pivots(packed: Any) -> None:
    first = solving.first_zero_pivot(packed)
    require(e.eq(first, e.number(0, first)), "Singular matrix")


def solve_triangular(a: Any, b: Any, /, *, lower: bool = False, unit_diagonal: bool = False) -> Any:
    """``x`` with ``a @ x = b``, for triangular matrices.

    Args:
        a: ``(*, n, n)``; one triangle of it is read.
        b: ``(n,)`` or ``(*, n, k)``; leading axes broadcast.
        lower: whether the matrix is lower triangular.
        unit_diagonal: whether the diagonal is one; it is then not read.

    Returns:
        ``(*, n)`` or ``(*, n, k)``, with the broadcast leading axes; of the promoted dtype, float32 for
        integers and booleans. Not finite for a singular matrix.

    Raises:
        TypeError: for operands that are not arrays, and for float16 and bfloat16.
        ValueError: if sizes are incompatible, or leading axes do not broadcast.
        LinAlgError: for operands that are not square matrices.

    Example:
        >>> print(solve_triangular(np.array([[2.0, 2.0], [0.0, 4.0]]), np.array([2.0, 4.0])))
        [0. 1.]
    """
    a, b, vector = _right_side(a, b, "solve_triangular")
    x = p.triangular_solve(a, b, left=True, lower=lower, transposed=False, unit=unit_diagonal)
    return _as_vector(x, vector)


def inv(a: Any, /) -> Any:
    """The inverses of square matrices.

    Args:
        a: ``(*, n, n)``.

    Returns:
        ``(*, n, n)``, of the dtype of ``a``; float32 for integers and booleans.

    Raises:
        TypeError: for operands that are not arrays, and for float16 and bfloat16.
        LinAlgError: for operands that are not square matrices, or singular ones.

    Example:
        >>> print(inv(np.array([[2.0, 0.0], [0.0, 4.0]])))
        [[0.5  0.  ]
         [0.   0.25]]
    """
    found, first = solving.inverse(matrices(a, "inv", square=True))
    require(e.eq(first, e.number(0, first)), "Singular matrix")
    return found


@composite
def tensorinv(a: Any, ind: int = 2) -> Any:
    """The inverse of ``a`` as a map between tensors: ``tensordot(tensorinv(a, ind), a, ind)`` is the identity.

    Args:
        a: numbers, with as many elements along the first ``ind`` axes as along the others.
        ind: the number of leading axes of the map's results; the other axes are its operands'.

    Returns:
        An array of the other axes followed by the first ``ind``; of the dtype of ``a``, float32 for integers and
        booleans.

    Raises:
        TypeError: for operands that are not arrays, and for float16 and bfloat16.
        ValueError: unless ``ind`` is positive.
        LinAlgError: where it is singular or not square.

    Example:
        >>> tensorinv(np.eye(6).reshape(6, 2, 3), ind=1).shape
        (2, 3, 6)
    """
    a = asoperand(a, "tensorinv")
    ind = validate.integer("tensorinv", "ind", ind, 1)
    shape = type_of(a).shape
    turned = (*shape[ind:], *shape[:ind])
    return reshape(inv(reshape(a, (math.prod(shape[:ind]), math.prod(shape[ind:])))), turned)


@composite
def tensorsolve(a: Any, b: Any, axes: Sequence[int] | None = None) -> Any:
    """``x`` with ``tensordot(a, x, x.ndim) = b``.

    Args:
        a: an array with the axes of ``b`` followed by those of ``x``, with equal numbers of elements.
        b: the right-hand side; only its rank and number of elements are used.
        axes: axes of ``a`` to move to its end first.

    Returns:
        An array of the last axes of ``a``, those after ``b.ndim``; of the promoted dtype, float32 for integers and
        booleans.

    Raises:
        TypeError: for operands that are not arrays, and for float16 and bfloat16.
        ValueError: for axes out of range.
        LinAlgError: where it is singular or not square.

    Example:
        >>> tensorsolve(np.eye(6).reshape(2, 3, 6), np.ones((2, 3))).shape
        (6,)
    """
    a, b = asoperand(a, "tensorsolve"), asoperand(b, "tensorsolve")
    if axes is not None:
        found = validate.axes("tensorsolve", tuple(axes), type_of(a).ndim)
        a = moveaxis(a, found, tuple(range(type_of(a).ndim - len(found), type_of(a).ndim)))
    shape, size = type_of(a).shape[type_of(b).ndim :], type_of(b).size
    if math.prod(shape) != size:
        raise LinAlgError(f"tensorsolve: {type_of(a)} is no square system for the right-hand side {type_of(b)}")
    return reshape(solve(reshape(a, (size, size)), reshape(b, (size,))), shape)


# ---------------------------------------------------------------- determinants


@composite
def det(a: Any, /) -> Any:
    """The determinants of square matrices; singular matrices have derivatives too.

    Args:
        a: ``(*, n, n)``.

    Returns:
        ``(*)``, of the dtype of ``a``; float32 for integers and booleans.

    Raises:
        TypeError: for operands that are not arrays, and for float16 and bfloat16.
        LinAlgError: for operands that are not square matrices.

    Example:
        >>> print(det(np.array([[1.0, 2.0], [3.0, 4.0]])))
        -2.0
    """
    a = matrices(a, "det", square=True)
    packed, pivots, _ = solving.factors(a)
    return solving.factored_determinant(a, packed, pivots)


@composite
def slogdet(a: Any, /) -> SlogdetResult:
    """The signs of determinants, and the logarithms of their magnitudes, which do not overflow.

    Args:
        a: ``(*, n, n)``.

    Returns:
        A named tuple of ``sign``, ``(*)``, of the dtype of ``a``, float32 for integers and booleans, and ``logabsdet``,
        ``(*)``, real; of a singular matrix, 0 and ``-inf``.

    Raises:
        TypeError: for operands that are not arrays, and for float16 and bfloat16.
        LinAlgError: for operands that are not square matrices.

    Example:
        >>> found = slogdet(np.array([[1.0, 2.0], [3.0, 4.0]]))
        >>> print(found.sign, np.round(found.logabsdet, 6))
        -1.0 0.693147
    """
    a = matrices(a, "slogdet", square=True)
    packed, pivots, _ = solving.factors(a)
    return SlogdetResult(*solving.factored_logdet(a, packed, pivots))


# ---------------------------------------------------------------- pseudoinverses and least squares


def _tolerance(value: Any, a: Any) -> Any:
    """A tolerance per matrix."""
    t = type_of(a)
    return broadcast_to(astype(asoperand(value), dtypes.real_of(t.dtype)), t.shape[:-2])


def _default(a: Any) -> float:
    t = type_of(a)
    return max(t.shape[-2:], default=0) * float(np.finfo(t.dtype).eps)


def pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:
    """The pseudoinverses of matrices, through their singular values.

    Args:
        a: ``(*, m, n)``.
        rcond, rtol: synonyms for the cutoff relative to the largest singular value, one for all or one for each matrix;
            by default the larger of ``m`` and ``n`` times the dtype's precision.
        hermitian: ``a`` is Hermitian, which is faster; only the lower triangle is read.

    Returns:
        ``(*, n, m)``.

    Raises:
        ValueError: for both tolerances.

    Example:
        >>> print(np.round(pinv(np.array([[1.0], [1.0]])), 6))
        [[0.5 0.5]]
    """
    if rcond is not None and rtol is not None:
        raise ValueError("pinv: rcond and rtol are two names of one tolerance; both were given")
    a = matrices(a, "pinv", square=hermitian)
    fraction = rtol if rcond is None else rcond
    fraction = _tolerance(_default(a) if fraction is None else fraction, a)
    return solving.pseudoinverse(a, zeros(type_of(fraction)), fraction, hermitian=hermitian)


@composite
def lstsq(a: Any, b: Any, rcond: float | None = None) -> tuple[Any, Any, Any, Any]:
    """The least-squares solution ``x`` with minimal ``|b - a @ x|`` and, among those, minimal ``|x|``.

    Args:
        a: ``(m, n)``.
        b: ``(m,)`` or ``(m, k)``.
        rcond: the singular value cutoff, relative to the largest; by default the larger of ``m`` and ``n`` times the
            dtype's precision.

    Returns:
        ``x``; the sums of squared residuals, empty unless ``m > n`` and ``a`` has full rank (which is assumed under
        ``jit`` and ``vmap``); the rank; the singular values.

    Raises:
        LinAlgError: if ``a`` is not a matrix, or ``b`` is neither a vector nor a matrix.

    Example:
        >>> x, rest, rank, values = lstsq(np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]]), np.array([1.0, 2.0, 3.0]))
        >>> print(np.round(x, 6), int(rank))
        [1. 1.] 2
    """
    a, b = promoted(matrices(a, "lstsq"), asoperand(b, "lstsq"), floating=True)
    if type_of(a).ndim != 2 or type_of(b).ndim not in (1, 2):
        raise LinAlgError(f"lstsq: takes a matrix and a vector or matrix, got {type_of(a)} and {type_of(b)}")
    vector = type_of(b).ndim == 1
    b = expanded(b, 1) if vector else b
    if type_of(b).shape[0] != type_of(a).shape[0]:
        raise LinAlgError(f"lstsq: {type_of(a)} and the right-hand side {type_of(b)} do not fit")
    if rcond is not None:
        rcond = validate.number("lstsq", "rcond", rcond)
    fraction = _tolerance(_default(a) if rcond is None or rcond < 0 else rcond, a)
    x = p.product(solving.pseudoinverse(a, zeros(type_of(fraction)), fraction, hermitian=False), b)
    values = svd(a, compute_uv=False)
    rank = _above(values, fraction)
    return _as_vector(x, vector), _remaining(a, b, x, rank), rank, values


def _above(values: Any, fraction: Any) -> Any:
    """The number of singular values above the cutoff, int32."""
    if not type_of(values).size:
        return np.int32(0)
    least = e.mul(fraction, reduce_max(values, axes=(0,)))
    return reduce_sum(e.cast(e.gt(values, least), dtype=dtypes.int32), axes=(0,))


def _remaining(a: Any, b: Any, x: Any, rank: Any) -> Any:
    m, n = type_of(a).shape
    known = value_of(rank)
    dtype = dtypes.real_of(type_of(a).dtype)
    if m <= n or (known is not None and int(known) < n):
        return full(dtype.type(0), (0,))
    rest = e.sub(b, p.product(a, x))
    squares = e.add(e.square(e.real(rest)), e.square(e.imag(rest))) if dtypes.is_complex(type_of(a).dtype) else None
    return reduce_sum(e.square(rest) if squares is None else squares, axes=(0,))


__all__ = [
    "SlogdetResult", "det", "inv", "lstsq", "pinv", "slogdet", "solve", "solve_triangular", "tensorinv", "tensorsolve",
]  # fmt: skip
