"""Small numerical analysis: differences, integrals, interpolation, polynomials, comparisons within a tolerance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from funcgrad import dtypes
from funcgrad.numpy import elementwise as e
from funcgrad.numpy import reductions as r
from funcgrad.numpy.constants import finfo
from funcgrad.numpy.creation import asarray
from funcgrad.numpy.indexing import getitem, take
from funcgrad.numpy.promotion import asoperand, normalized_axis, promoted
from funcgrad.numpy.shape import broadcast_to, concatenate, moveaxis, reshape, shape, stack
from funcgrad.numpy.sorting import searchsorted
from funcgrad.primitives import elementwise as p
from funcgrad.primitives.convolution import convolve as convolve_p
from funcgrad.primitives.shape import reverse
from funcgrad.tracing import type_of

# ---------------------------------------------------------------- differences and integrals


def diff(x: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Any:
    """The differences of neighbours along an axis, ``n`` times over.

    Args:
        prepend, append: values to put before and after ``x`` first.

    Example:
        >>> print(diff(np.array([1, 4, 9])))
        [3 5]
    """
    (x,) = promoted(asoperand(x, "diff"))
    axis = normalized_axis(axis, type_of(x).ndim, "diff")
    if n < 0:
        raise ValueError(f"diff: n must not be negative, got {n}")
    ends = [None if end is None else _as_end(end, x, axis) for end in (prepend, append)]
    parts = [part for part in (ends[0], x, ends[1]) if part is not None]
    x = concatenate(parts, axis) if len(parts) > 1 else x
    before = (slice(None),) * axis
    for _ in range(n):
        upper, lower = getitem(x, (*before, slice(1, None))), getitem(x, (*before, slice(None, -1)))
        x = e.not_equal(upper, lower) if type_of(x).dtype == dtypes.bool_ else p.sub(upper, lower)
    return x


def _as_end(end: Any, x: Any, axis: int) -> Any:
    if type_of(asoperand(end, "diff")).ndim:
        return end
    return broadcast_to(end, tuple(1 if i == axis else n for i, n in enumerate(type_of(x).shape)))


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """The integral of samples ``y`` at places ``x`` (or ``dx`` apart), by straight lines between them.

    Example:
        >>> print(trapezoid(np.array([0.0, 1.0, 4.0])))
        3.0
    """
    y = asoperand(y, "trapezoid")
    y = moveaxis(y, axis, -1)
    widths = dx
    if x is not None:
        places = asoperand(x, "trapezoid")
        widths = diff(places if type_of(places).ndim == 1 else moveaxis(places, axis, -1))
    heights = e.multiply(0.5, e.add(getitem(y, (..., slice(1, None))), getitem(y, (..., slice(None, -1)))))
    return r.sum(e.multiply(heights, widths), -1)


def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None) -> Any:
    """The values at ``x`` of the line through the points ``(xp, fp)``, with ``xp`` increasing.

    Args:
        left, right: the values before the first point and after the last; by default theirs.

    Example:
        >>> print(interp(1.5, np.array([1.0, 2.0]), np.array([10.0, 20.0])))
        15.0
    """
    x, xp, fp = promoted(asoperand(x, "interp"), asoperand(xp, "interp"), asoperand(fp, "interp"), floating=True)
    if type_of(xp).ndim != 1 or type_of(xp) != type_of(fp):
        raise ValueError(f"interp: xp and fp must be vectors of one size, got {type_of(xp)} and {type_of(fp)}")
    size = type_of(xp).shape[0]
    if size == 1:
        value = broadcast_to(take(fp, 0), type_of(x).shape)
    else:
        above = e.clip(searchsorted(xp, x, "right"), 1, size - 1)
        below = p.sub(above, np.int64(1))
        x0, x1, f0, f1 = take(xp, below), take(xp, above), take(fp, below), take(fp, above)
        width = p.sub(x1, x0)
        flat = p.eq(width, p.number(0, width))
        slope = p.div(p.sub(f1, f0), p.select(flat, p.number(1, width), width))
        value = p.select(flat, f0, p.add(f0, p.mul(p.sub(x, x0), slope)))
    first, last = take(xp, 0), take(xp, size - 1)
    value = e.where(p.lt(x, first), take(fp, 0) if left is None else left, value)
    return e.where(p.gt(x, last), take(fp, size - 1) if right is None else right, value)


# ---------------------------------------------------------------- polynomials and convolution


def polyval(coefficients: Any, x: Any) -> Any:
    """The polynomial with ``coefficients``, the highest power first, at ``x``: by Horner's scheme.

    Example:
        >>> print(polyval(np.array([1.0, 0.0, 2.0]), 3.0))
        11.0
    """
    coefficients, x = promoted(asoperand(coefficients, "polyval"), asoperand(x, "polyval"))
    value = p.mul(x, p.number(0, x))
    for i in range(type_of(coefficients).shape[0]):
        value = p.add(p.mul(value, x), take(coefficients, i))
    return value


def convolve(x: Any, y: Any, mode: str = "full") -> Any:
    """The convolution of two vectors.

    Args:
        mode: ``"full"``, all ``n + m - 1`` places where they overlap; ``"same"``, the middle ``max(n, m)`` of them;
            ``"valid"``, those where the shorter one overlaps completely.

    Raises:
        ValueError: for an unknown mode, an empty operand, or what is not a vector.

    Example:
        >>> print(convolve(np.array([1.0, 2.0]), np.array([1.0, 1.0, 1.0])))
        [1. 3. 3. 2.]
    """
    x, y = promoted(asoperand(x, "convolve"), asoperand(y, "convolve"))
    a, b = type_of(x), type_of(y)
    if a.ndim != 1 or b.ndim != 1 or not a.size or not b.size:
        raise ValueError(f"convolve: wants two vectors with elements, got {a} and {b}")
    if a.size < b.size:
        x, y, a, b = y, x, b, a
    low, high = {"full": (b.size - 1, b.size - 1), "same": (b.size // 2, (b.size - 1) // 2), "valid": (0, 0)}.get(
        mode, (None, None)
    )
    if low is None or high is None:
        raise ValueError(f'convolve: mode must be "full", "same" or "valid", got {mode!r}')
    kernel = reshape(reverse(y, axes=(0,)), (1, 1, b.size))
    return reshape(convolve_p(reshape(x, (1, 1, a.size)), kernel, padding=((low, high),)), (-1,))


# ---------------------------------------------------------------- products


def cross(x: Any, y: Any, axis: int = -1) -> Any:
    """The cross product of vectors of three along an axis.

    Example:
        >>> print(cross(np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0])))
        [0. 0. 1.]
    """
    x, y = (moveaxis(v, axis, -1) for v in promoted(asoperand(x, "cross"), asoperand(y, "cross")))
    if shape(x)[-1] != 3 or shape(y)[-1] != 3:
        raise ValueError(f"cross: wants vectors of three along axis {axis}, got {type_of(x)} and {type_of(y)}")
    a, b = ([getitem(v, (..., i)) for i in range(3)] for v in (x, y))
    parts = [e.subtract(e.multiply(a[i], b[j]), e.multiply(a[j], b[i])) for i, j in ((1, 2), (2, 0), (0, 1))]
    return stack(parts, axis)


def kron(x: Any, y: Any) -> Any:
    """The Kronecker product: a block ``x[i, j] * y`` for each element of ``x``.

    Example:
        >>> print(kron(np.array([1, 2]), np.array([1, 1, 1])))
        [1 1 1 2 2 2]
    """
    x, y = promoted(asoperand(x, "kron"), asoperand(y, "kron"))
    rank = max(type_of(x).ndim, type_of(y).ndim)
    a, b = ((1,) * (rank - type_of(v).ndim) + type_of(v).shape for v in (x, y))
    left = reshape(x, [n for size in a for n in (size, 1)])
    right = reshape(y, [n for size in b for n in (1, size)])
    return reshape(p.mul(left, right), tuple(n * m for n, m in zip(a, b, strict=True)))


def average(x: Any, axis: Any = None, weights: Any = None, *, keepdims: bool = False) -> Any:
    """The mean over axes, each element with its weight.

    Args:
        weights: of the shape of ``x``, or a vector along the one axis.

    Example:
        >>> print(average(np.array([1.0, 4.0]), weights=np.array([2.0, 1.0])))
        2.0
    """
    if weights is None:
        return r.mean(x, axis, keepdims=keepdims)
    x, weights = promoted(asoperand(x, "average"), asoperand(weights, "average"), floating=True)
    if type_of(weights).shape != type_of(x).shape:
        if not isinstance(axis, int) or type_of(weights).shape != (shape(x)[axis],):
            raise ValueError(
                f"average: weights {type_of(weights)} must be like {type_of(x)}, or a vector along axis={axis}"
            )
        along = normalized_axis(axis, type_of(x).ndim, "average")
        weights = reshape(weights, [-1 if i == along else 1 for i in range(type_of(x).ndim)])
        weights = broadcast_to(weights, shape(x))
    total = r.sum(p.mul(x, weights), axis, keepdims=keepdims)
    return p.div(total, r.sum(weights, axis, keepdims=keepdims))


# ---------------------------------------------------------------- comparison


def isclose(x: Any, y: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Any:
    """Whether equal within ``atol + rtol * |y|``; infinities equal themselves.

    Example:
        >>> print(isclose(1.0, 1.000001))
        True
    """
    x, y = promoted(asoperand(x, "isclose"), asoperand(y, "isclose"), floating=True)
    near = e.less_equal(e.absolute(e.subtract(x, y)), e.add(atol, e.multiply(rtol, e.absolute(y))))
    close = e.logical_or(e.equal(x, y), e.logical_and(near, e.isfinite(y)))
    return e.logical_or(close, e.logical_and(e.isnan(x), e.isnan(y))) if equal_nan else close


def allclose(x: Any, y: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Any:
    """Whether all elements are close, as ``isclose`` has it."""
    return r.all(isclose(x, y, rtol, atol, equal_nan))


def array_equal(x: Any, y: Any, equal_nan: bool = False) -> Any:
    """Whether of one shape, with equal elements.

    Example:
        >>> print(array_equal(np.arange(3), [0, 1, 2]))
        True
    """
    x, y = asoperand(x, "array_equal"), asoperand(y, "array_equal")
    if type_of(x).shape != type_of(y).shape:
        return asarray(False)
    same = e.equal(x, y)
    return r.all(e.logical_or(same, e.logical_and(e.isnan(x), e.isnan(y))) if equal_nan else same)


def nan_to_num(x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    """``x`` with numbers in place of NaN and the infinities: 0, and the largest and smallest of the dtype.

    Example:
        >>> print(nan_to_num(np.array([1.0, np.nan])))
        [1. 0.]
    """
    (x,) = promoted(asoperand(x, "nan_to_num"))
    dtype = type_of(x).dtype
    if dtypes.is_complex(dtype):
        return p.make_complex(*[nan_to_num(part, copy, nan, posinf, neginf) for part in (p.real(x), p.imag(x))])
    if not dtypes.is_floating(dtype):
        return x
    info = finfo(dtype)
    x = p.select(p.ne(x, x), p.number(nan, x), x)
    x = p.select(p.eq(x, p.number(np.inf, x)), p.number(info.max if posinf is None else posinf, x), x)
    return p.select(p.eq(x, p.number(-np.inf, x)), p.number(info.min if neginf is None else neginf, x), x)


# ---------------------------------------------------------------- selection


def select(conditions: Sequence[Any], choices: Sequence[Any], default: Any = 0) -> Any:
    """For each place, the element of the first choice whose condition holds there, or ``default``.

    Example:
        >>> x = np.array([-2.0, 0.5, 3.0])
        >>> print(select([x < 0, x > 1], [-x, x * x]))
        [2. 0. 9.]
    """
    if len(conditions) != len(choices):
        raise ValueError(f"select: {len(conditions)} conditions for {len(choices)} choices; wanted as many")
    result = default
    for condition, choice in zip(reversed(conditions), reversed(choices), strict=True):
        result = e.where(condition, choice, result)
    return result


__all__ = [
    "allclose", "array_equal", "average", "convolve", "cross", "diff", "interp", "isclose", "kron", "nan_to_num",
    "polyval", "select", "trapezoid",
]  # fmt: skip
