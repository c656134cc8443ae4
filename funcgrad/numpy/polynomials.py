"""Polynomials by their coefficients, the highest power first."""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.arguments import validate
from funcgrad.core import dtypes
from funcgrad.core.tracing import type_of, valueless
from funcgrad.numpy import elementwise as e
from funcgrad.numpy import reductions as r
from funcgrad.numpy.creation.arrays import asarray
from funcgrad.numpy.creation.matrices import vander
from funcgrad.numpy.indexing.getitem import At, getitem, take
from funcgrad.numpy.linalg.decompositions import eigvals
from funcgrad.numpy.linalg.systems import inv, lstsq
from funcgrad.numpy.nonzero_indices import known
from funcgrad.numpy.numerical import convolve
from funcgrad.numpy.products import matmul, outer
from funcgrad.numpy.promotion import asoperand, astype, promoted
from funcgrad.numpy.shape import atleast_1d, concatenate, expand_dims, ravel, reshape, transpose
from funcgrad.primitives import elementwise as p
from funcgrad.primitives.shape import full
from funcgrad.runtime.call_cache import composite
from funcgrad.runtime.deferred import ready


def _coefficients(x: Any, name: str) -> Any:
    x = atleast_1d(asoperand(x, name))
    if type_of(x).ndim != 1:
        raise ValueError(f"{name}: coefficients must be a vector, got {type_of(x)}")
    return x


@composite
def polyval(p: Any, x: Any) -> Any:
    """The polynomial with coefficients ``p`` at ``x``, by Horner's scheme.

    Args:
        p: a vector, the highest power first; or a number.
        x: numbers of any shape.

    Returns:
        The shape of ``x``, of the promoted dtype.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: for coefficients that are no vector.

    Example:
        >>> print(polyval(np.array([1.0, 0.0, 2.0]), 3.0))
        11.0
    """
    coefficients, x = promoted(_coefficients(p, "polyval"), asoperand(x, "polyval"))
    value = full(type_of(x).dtype.type(0), type_of(x).shape)
    for i in range(type_of(coefficients).shape[0]):
        value = e.add(e.multiply(value, x), take(coefficients, i))
    return value


@composite
def polyadd(a1: Any, a2: Any) -> Any:
    """The sum of two polynomials.

    Args:
        a1, a2: vectors, the highest power first; or numbers.

    Returns:
        A vector as long as the longer one, of the promoted dtype.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: for coefficients that are no vector.

    Example:
        >>> print(polyadd([1, 2], [1, 0, 0]))
        [1 1 2]
    """
    return e.add(*_same_length(a1, a2, "polyadd"))


@composite
def polysub(a1: Any, a2: Any) -> Any:
    """The difference of two polynomials.

    Args:
        a1, a2: vectors, the highest power first; or numbers.

    Returns:
        A vector as long as the longer one, of the promoted dtype.

    Raises:
        TypeError: for operands that are not arrays, and two operands of booleans.
        ValueError: for coefficients that are no vector.

    Example:
        >>> print(polysub([1, 2], [1, 0, 0]))
        [-1  1  2]
    """
    return e.subtract(*_same_length(a1, a2, "polysub"))


def _same_length(a1: Any, a2: Any, name: str) -> list[Any]:
    both = promoted(_coefficients(a1, name), _coefficients(a2, name))
    longest = max(type_of(a).size for a in both)
    return [concatenate([full(p.number(0, a), (longest - type_of(a).size,)), a]) for a in both]


@composite
def polymul(a1: Any, a2: Any) -> Any:
    """The product of two polynomials.

    Args:
        a1, a2: vectors, the highest power first; or numbers.

    Returns:
        A vector of ``n + m - 1``, of the promoted dtype.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: for coefficients that are no vector, or none.

    Example:
        >>> print(polymul([1, 2], [1, 0, 1]))
        [1 2 1 2]
    """
    return convolve(_coefficients(a1, "polymul"), _coefficients(a2, "polymul"))


@composite
def polydiv(u: Any, v: Any) -> tuple[Any, Any]:
    """The quotient and the remainder of two polynomials; the remainder has a static number of coefficients.

    Args:
        u: the dividend: a vector, the highest power first, or a number.
        v: the divisor, in the same way; its first coefficient must not be zero.

    Returns:
        Two vectors, of ``max(n - m + 1, 1)`` and ``max(m - 1, 1)`` elements, the second ``u`` itself if it is shorter;
        of the promoted dtype, float32 for integers.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: for coefficients that are no vector.
        IndexError: for a divisor without coefficients.

    Example:
        >>> print(*polydiv([1.0, 3.0, 5.0], [1.0, 1.0]))
        [1. 2.] [3.]
    """
    u, v = promoted(_coefficients(u, "polydiv"), _coefficients(v, "polydiv"), floating=True)
    n, m = type_of(u).size, type_of(v).size
    if n < m:
        return full(p.number(0, u), (1,)), u
    rest, quotients = u, []
    for k in range(n - m + 1):
        factor = p.div(take(rest, k), take(v, 0))
        quotients.append(reshape(factor, (1,)))
        rest = At(rest)[k : k + m].add(p.neg(p.mul(factor, v)))
    remainder = rest[n - m + 1 :] if m > 1 else full(p.number(0, u), (1,))
    return concatenate(quotients), remainder


def polyder(p: Any, m: int = 1) -> Any:
    """The ``m``-th derivative of a polynomial.

    Args:
        p: a vector, the highest power first; or a number.
        m: an int.

    Returns:
        A vector with up to ``m`` fewer elements, of the dtype of ``p``.

    Raises:
        TypeError: for operands that are not arrays, and an ``m`` that is not an int.
        ValueError: for a negative ``m``, and coefficients that are no vector.

    Example:
        >>> print(polyder([1, 2, 3]))
        [2 2]
    """
    m = validate.integer("polyder", "m", m, 0)
    p = _coefficients(p, "polyder")
    for _ in range(m):
        n = type_of(p).size
        p = e.multiply(p[: n - 1], np.arange(n - 1, 0, -1).astype(type_of(p).dtype))
    return p


@composite
def polyint(p: Any, m: int = 1, k: Any = None) -> Any:
    """The ``m``-th integral of a polynomial.

    Args:
        p: a vector, the highest power first; or a number.
        m: an int.
        k: the integration constants, the first integral's first, or one for all; by default 0.

    Returns:
        A vector with ``m`` more elements, of the promoted dtype of ``p`` and ``k``, float32 for integers.

    Raises:
        TypeError: for operands that are not arrays, and an ``m`` that is not an int.
        ValueError: for a negative ``m``, another number of constants, and coefficients that are no vector.

    Example:
        >>> print(polyint([2.0, 2.0], k=3.0))
        [1. 2. 3.]
    """
    m = validate.integer("polyint", "m", m, 0)
    (p,) = promoted(_coefficients(p, "polyint"), floating=True)
    constants = full(type_of(p).dtype.type(0), (m,)) if k is None else atleast_1d(asoperand(k, "polyint"))
    if type_of(constants).size not in (1, m):
        raise ValueError(f"polyint: k must be one constant, or {m}, got {type_of(constants)}")
    for i in range(m):
        n = type_of(p).size
        scaled = e.divide(p, np.arange(n, 0, -1).astype(type_of(p).dtype))
        p = concatenate([scaled, reshape(take(constants, min(i, type_of(constants).size - 1)), (1,))])
    return p


@composite
def poly(seq_of_zeros: Any) -> Any:
    """The monic polynomial with given roots, or the characteristic polynomial of a square matrix.

    Args:
        seq_of_zeros: ``(n,)`` or ``(n, n)``, or one root.

    Returns:
        ``(n + 1,)``: real, if the roots or the matrix are real, or concrete roots are conjugate pairs; otherwise
        complex. Of the precision of the roots, float32 for integers.

    Raises:
        TypeError: for operands that are not arrays, and a matrix of float16 or bfloat16.
        ValueError: for anything but a vector or a square matrix.
        LinAlgError: for a matrix with nonfinite elements.

    Example:
        >>> print(poly([1.0, 2.0]))
        [ 1. -3.  2.]
    """
    (zeros,) = promoted(atleast_1d(asoperand(seq_of_zeros, "poly")), floating=True)
    shape = type_of(zeros).shape
    real = not dtypes.is_complex(type_of(zeros).dtype)
    if len(shape) == 2 and shape[0] == shape[1]:
        zeros = eigvals(zeros)
    elif len(shape) != 1:
        raise ValueError(f"poly: wants a vector or a square matrix, got {type_of(zeros)}")
    elif not real and not valueless(ready(zeros)):
        values = np.asarray(zeros)
        real = bool(np.all(np.sort(values) == np.sort(values.conj())))
    found = full(p.number(1, zeros), (1,))
    for i in range(type_of(zeros).shape[0]):
        found = convolve(found, concatenate([full(p.number(1, zeros), (1,)), p.neg(reshape(take(zeros, i), (1,)))]))
    return e.real(found) if real else found


@composite
def roots(p: Any, *, strip_zeros: bool = True) -> Any:
    """The roots of a polynomial, complex: the eigenvalues of its companion matrix.

    Args:
        p: a vector, the highest power first.
        strip_zeros: whether to strip zeros at both ends first; False for use under ``jit``, where the first coefficient
            must then not be zero.

    Returns:
        A vector of the roots; complex128 for coefficients of float64 and complex128, otherwise complex64.

    Raises:
        TypeError: for operands that are not arrays, and for float16 and bfloat16.
        ValueError: for coefficients that are no vector.
        LinAlgError: for nonfinite coefficients; without ``strip_zeros``, for a first coefficient of zero.
        ConcretizationError: for a traced array with ``strip_zeros``.

    Example:
        >>> print(sorted(roots([1.0, -3.0, 2.0]).real.tolist()))
        [1.0, 2.0]
    """
    (p,) = promoted(_coefficients(p, "roots"), floating=True)
    trailing = 0
    if strip_zeros:
        places = np.flatnonzero(known(p, "roots"))
        if not places.size:
            return asarray(np.zeros(0, dtypes.complex_of(type_of(p).dtype)))
        trailing = type_of(p).size - 1 - int(places[-1])
        p = getitem(p, slice(int(places[0]), int(places[-1]) + 1))
    n = type_of(p).size - 1
    zeros = full(dtypes.complex_of(type_of(p).dtype).type(0), (trailing,))
    if n < 1:
        return zeros
    first = e.negative(e.divide(p[1:], take(p, 0)))
    below = np.eye(n - 1, n).astype(type_of(p).dtype)
    return concatenate([eigvals(concatenate([expand_dims(first, 0), below])), zeros])


@composite
def polyfit(
    x: Any, y: Any, deg: int, rcond: float | None = None, full: bool = False, w: Any = None, cov: Any = False
) -> Any:
    """The least-squares polynomial fit of a degree.

    Args:
        x: the positions, a vector.
        y: the values, as many; a matrix gives a polynomial per column.
        deg: an int.
        rcond: the singular value cutoff, relative to the largest.
        full: whether to return the residuals, the rank, the singular values and ``rcond`` too.
        w: the weights of the residuals, a vector.
        cov: whether to return the coefficients' covariances too, scaled by the residuals; unscaled if ``"unscaled"``.

    Returns:
        ``(deg + 1,)`` or ``(deg + 1, k)``, the highest power first, of the dtype that ``x`` and ``y`` promote to,
        float32 for integers; with ``full`` five results; with ``cov`` a pair, the second ``(deg + 1, deg + 1)`` or
        ``(deg + 1, deg + 1, k)``.

    Raises:
        TypeError: for operands that are not arrays, for float16 and bfloat16, a ``y`` of other than one or two axes,
            and a ``deg`` that is not an int.
        ValueError: for a negative degree, no points, another number of values or weights, and too few points for
            ``cov``.
        LinAlgError: for nonfinite numbers, and with ``cov`` for positions that do not determine the polynomial.

    Example:
        >>> print(np.round(polyfit(np.array([0.0, 1.0, 2.0]), np.array([1.0, 3.0, 5.0]), 1), 6))
        [2. 1.]
    """
    x, y = promoted(asoperand(x, "polyfit"), asoperand(y, "polyfit"), floating=True)
    count = type_of(x).size
    deg = validate.integer("polyfit", "deg", deg, 0)
    if type_of(y).ndim not in (1, 2):
        raise TypeError(f"polyfit: y must be a vector or a matrix, got {type_of(y)}")
    if type_of(x).ndim != 1 or not count or type_of(y).shape[0] != count:
        raise ValueError(f"polyfit: wants a vector of places and as many values, got {type_of(x)} and {type_of(y)}")
    if rcond is not None:
        rcond = validate.number("polyfit", "rcond", rcond)
    rcond = count * float(np.finfo(dtypes.real_of(type_of(x).dtype)).eps) if rcond is None else rcond
    left, right = vander(x, deg + 1), y
    if w is not None:
        weights = astype(asoperand(w, "polyfit"), type_of(x).dtype)
        left = e.multiply(left, expand_dims(weights, 1))
        right = e.multiply(right, expand_dims(weights, 1) if type_of(y).ndim == 2 else weights)
    # Normalized columns: powers differ by orders of magnitude.
    scale = e.sqrt(r.sum(e.multiply(left, left), 0))
    scaled = e.divide(left, scale)
    found, residuals, rank, values = lstsq(scaled, right, rcond)
    found = e.divide(found, expand_dims(scale, 1) if type_of(y).ndim == 2 else scale)
    if full:
        return found, residuals, rank, values, rcond
    if not cov:
        return found
    spread = e.divide(inv(matmul(transpose(scaled), scaled)), outer(scale, scale))
    if cov == "unscaled":
        factor: Any = 1.0
    elif count <= deg + 1:
        raise ValueError(f"polyfit: {count} points are too few to scale the covariances of {deg + 1} coefficients")
    else:
        factor = e.divide(r.sum(e.square(e.subtract(right, matmul(left, found))), 0), count - deg - 1)
    if type_of(y).ndim == 2:
        return found, e.multiply(expand_dims(spread, -1), ravel(factor) if cov != "unscaled" else factor)
    return found, e.multiply(spread, factor)


__all__ = [
    "poly", "polyadd", "polyder", "polydiv", "polyfit", "polyint", "polymul", "polysub", "polyval", "roots",
]  # fmt: skip
