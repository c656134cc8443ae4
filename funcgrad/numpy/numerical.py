"""Numerical analysis: differences, integrals, interpolation, convolution, comparison within a tolerance."""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.arguments import validate
from funcgrad.core import dtypes
from funcgrad.core.tracing import type_of, valueless
from funcgrad.numpy import elementwise as e
from funcgrad.numpy import reductions as r
from funcgrad.numpy.constants import finfo
from funcgrad.numpy.creation.arrays import asarray
from funcgrad.numpy.elementwise.rounding import remainder
from funcgrad.numpy.indexing.getitem import getitem, take
from funcgrad.numpy.indexing.writable import Writable
from funcgrad.numpy.promotion import asoperand, astype, beside, promoted
from funcgrad.numpy.shape import broadcast_to, concatenate, flip, moveaxis, ravel, reshape, shape, stack
from funcgrad.numpy.sorting import argsort, searchsorted
from funcgrad.primitives import elementwise as p
from funcgrad.primitives.convolution import convolve as convolve_p
from funcgrad.primitives.shape import full, reverse
from funcgrad.runtime.call_cache import composite

# ---------------------------------------------------------------- differences and integrals


@composite
def diff(x: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Any:
    """The ``n``-th differences of neighbours along an axis.

    Args:
        x: an array of at least one axis.
        n: an int.
        prepend, append: values to add before and after ``x`` first: a number, or an array of compatible shape.

    Returns:
        An array of the shape of ``x`` with up to ``n`` fewer elements along the axis; of the promoted dtype of ``x``
        and the values. For booleans, whether neighbours differ.

    Raises:
        TypeError: for operands that are not arrays, and an ``n`` that is not an int.
        ValueError: for a negative ``n``, an axis out of range, and incompatible values.

    Example:
        >>> print(diff(np.array([1, 4, 9])))
        [3 5]
    """
    (x,) = promoted(asoperand(x, "diff"))
    axis = validate.axis("diff", axis, type_of(x).ndim)
    n = validate.integer("diff", "n", n, 0)
    if n == 0:
        return x
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


@composite
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """The integral of samples ``y`` at points ``x`` (or ``dx`` apart), by the trapezoidal rule.

    Args:
        y: an array of at least one axis.
        x: a vector of points along the axis, or an array like ``y``.
        dx: the spacing, a number, or one per interval.

    Returns:
        An array of the shape of ``y`` without the axis, of the promoted dtype, float32 for integers and booleans.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: for an axis out of range, and incompatible points.

    Example:
        >>> print(trapezoid(np.array([0.0, 1.0, 4.0])))
        3.0
    """
    y = asoperand(y, "trapezoid")
    y = moveaxis(y, validate.axis("trapezoid", axis, type_of(y).ndim), -1)
    widths = dx
    if x is not None:
        places = asoperand(x, "trapezoid")
        widths = diff(places if type_of(places).ndim == 1 else moveaxis(places, axis, -1))
    heights = e.multiply(0.5, e.add(getitem(y, (..., slice(1, None))), getitem(y, (..., slice(None, -1)))))
    return r.sum(e.multiply(heights, widths), -1)


@composite
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    """Linear interpolation at ``x`` of the points ``(xp, fp)``, with ``xp`` increasing.

    Args:
        x: real numbers of any shape.
        xp: the positions of the points, a real vector.
        fp: their values, a vector of the same size, real or complex.
        left, right: the values below the first point and above the last; by default theirs.
        period: the period of the data; the points need not be sorted then.

    Returns:
        An array of the shape of ``x``, of the promoted dtype of the three, float32 for integers.

    Raises:
        TypeError: for operands that are not arrays, and for complex ``x`` or ``xp``.
        ValueError: for points that are not two nonempty vectors of one size.

    Example:
        >>> print(interp(1.5, np.array([1.0, 2.0]), np.array([10.0, 20.0])))
        15.0
    """
    (x,) = promoted(asoperand(x, "interp"), floating=True)
    x, xp = promoted(x, beside(x, xp, "interp"))
    (fp,) = promoted(beside(x, fp, "interp"), floating=True)
    if type_of(xp).ndim != 1 or type_of(xp).shape != type_of(fp).shape or not type_of(xp).size:
        raise ValueError(f"interp: xp and fp must be vectors of one size, got {type_of(xp)} and {type_of(fp)}")
    if period is not None:
        period = period if valueless(period) else validate.number("interp", "period", period)
        x, xp, fp = _periodic(x, xp, fp, abs(period))
        left = right = None
    size = type_of(xp).shape[0]
    if size == 1:
        value = broadcast_to(take(fp, 0), type_of(x).shape)
    else:
        above = e.clip(searchsorted(xp, x, "right"), 1, size - 1)
        below = p.sub(above, np.int64(1))
        # In bounds by construction: the promise is cheaper than a check.
        x0, x1, f0, f1 = (take(v, at, mode="clip") for v in (xp, fp) for at in (below, above))
        width = p.sub(x1, x0)
        flat = p.eq(width, p.number(0, width))
        share = p.div(p.sub(x, x0), p.select(flat, p.number(1, width), width))
        value = e.where(flat, f0, e.add(f0, e.multiply(share, p.sub(f1, f0))))
    first, last = take(xp, 0), take(xp, size - 1)
    value = e.where(p.lt(x, first), take(fp, 0) if left is None else left, value)
    return e.where(p.gt(x, last), take(fp, size - 1) if right is None else right, value)


def _periodic(x: Any, xp: Any, fp: Any, period: Any) -> tuple[Any, Any, Any]:
    """Maps positions to one period, sorts the points, and repeats one at each end."""
    x, xp = remainder(x, period), remainder(xp, period)
    order = argsort(xp)
    xp, fp = take(xp, order, mode="clip"), take(fp, order, mode="clip")
    xp = concatenate([e.subtract(xp[-1:], period), xp, e.add(xp[:1], period)])
    return x, xp, concatenate([fp[-1:], fp, fp[:1]])


@composite
def ediff1d(x: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    """The differences of neighbours, of the flattened array.

    Args:
        x: an array or a number.
        to_end, to_begin: elements to append and prepend, cast to the dtype of ``x``.

    Returns:
        A vector of the dtype of ``x``.

    Raises:
        TypeError: for operands that are not arrays.

    Example:
        >>> print(ediff1d([1, 4, 9], to_begin=0))
        [0 3 5]
    """
    found = diff(ravel(asoperand(x, "ediff1d")))
    ends = [None if end is None else astype(ravel(asoperand(end)), type_of(found).dtype) for end in (to_begin, to_end)]
    return concatenate([part for part in (ends[0], found, ends[1]) if part is not None])


@composite
def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """The derivative of samples along each axis: second-order differences inside, one-sided ones at the ends.

    Args:
        varargs: the spacing of the samples, or their positions: one for all axes, or one for each.
        axis: one axis or several, by default all.
        edge_order: 1, or 2 for second-order differences at the ends too.

    Returns:
        An array for one axis, a tuple of them for several.

    Raises:
        ValueError: for fewer samples than ``edge_order + 1``.

    Example:
        >>> print(gradient([1.0, 2.0, 4.0]))
        [1.  1.5 2. ]
    """
    (f,) = promoted(asoperand(f, "gradient"), floating=True)
    axes = validate.axes("gradient", axis, type_of(f).ndim)
    if len(varargs) not in (0, 1, len(axes)):
        raise TypeError(f"gradient: wants one distance, or one for each of {len(axes)} axes, got {len(varargs)}")
    if edge_order not in (1, 2):
        raise ValueError(f"gradient: edge_order must be 1 or 2, got {edge_order}")
    steps = (1.0,) * len(axes) if not varargs else varargs * len(axes) if len(varargs) == 1 else varargs
    found = []
    for a, step in zip(axes, steps, strict=True):
        rows, n = moveaxis(f, a, -1), type_of(f).shape[a]
        if n <= edge_order:
            raise ValueError(f"gradient: wants more than {edge_order} samples along axis {a}, got {n}")
        step = asoperand(step, "gradient")
        widths = diff(step) if type_of(step).ndim else broadcast_to(asarray(step), (n - 1,))
        if type_of(widths).shape != (n - 1,):
            raise ValueError(f"gradient: wants {n} places along axis {a}, got {type_of(step)}")
        found.append(moveaxis(_slopes(rows, promoted(widths, f)[0], edge_order), -1, a))
    return found[0] if len(found) == 1 else tuple(found)


def _slopes(f: Any, widths: Any, edge_order: int) -> Any:
    """The derivative along the last axis; ``widths`` are the distances of neighbours."""
    slope = e.divide(diff(f), widths)
    before, after = widths[:-1], widths[1:]
    total = e.add(before, after)
    # The slopes on both sides, each weighted by the width of the other.
    inner = e.divide(e.add(e.multiply(slope[..., :-1], after), e.multiply(slope[..., 1:], before)), total)
    first, last = slope[..., :1], slope[..., -1:]
    if edge_order == 2:
        bend = e.divide(e.subtract(slope[..., 1:], slope[..., :-1]), total)
        first = e.subtract(first, e.multiply(bend[..., :1], widths[:1]))
        last = e.add(last, e.multiply(bend[..., -1:], widths[-1:]))
    return concatenate([first, inner, last], -1)


@composite
def unwrap(x: Any, discont: Any = None, axis: int = -1, *, period: Any = 6.283185307179586) -> Any:
    """Angles without jumps: differences of neighbours are reduced to at most half a period, by multiples of the period.

    Args:
        x: a real array of at least one axis.
        discont: smaller jumps are kept; at least half the period.
        period: an int preserves integer dtypes.

    Returns:
        An array of the shape of ``x``; of its dtype if that is floating, of integers for an ``int`` period, else
        floating.

    Raises:
        TypeError: for operands that are not arrays, for complex numbers, and a period that is not a number.
        ValueError: for an axis out of range.

    Example:
        >>> print(unwrap([0, 3, 6, 1], period=8))
        [0 3 6 9]
    """
    if not valueless(period):
        validate.number("unwrap", "period", period)
    (x,) = promoted(asoperand(x, "unwrap"), floating=not isinstance(period, int))
    axis = validate.axis("unwrap", axis, type_of(x).ndim)
    half = period / 2 if dtypes.is_inexact(type_of(x).dtype) else period // 2
    low = -half if dtypes.is_inexact(type_of(x).dtype) or period % 2 == 0 else -half - 1
    jumps = diff(x, axis=axis)
    brought = e.add(remainder(e.subtract(jumps, low), period), low)
    boundary = dtypes.is_inexact(type_of(x).dtype) or period % 2 == 0
    if boundary:
        brought = e.where(e.logical_and(e.equal(brought, low), e.greater(jumps, 0)), half, brought)
    small = e.less(e.absolute(jumps), half if discont is None else e.maximum(discont, half))
    # Whole periods have no derivative.
    turns = p.stop_gradient(e.where(small, 0, e.subtract(brought, jumps)))
    lead = tuple(1 if i == axis else n for i, n in enumerate(type_of(x).shape))
    return e.add(x, concatenate([full(p.number(0, x), lead), r.cumsum(turns, axis)], axis))


# ---------------------------------------------------------------- convolution


@composite
def convolve(x: Any, y: Any, mode: str = "full") -> Any:
    """The convolution of two vectors.

    Args:
        x, y: vectors of ``n`` and ``m`` elements.
        mode: ``"full"``, all ``n + m - 1`` positions of overlap; ``"same"``, the middle ``max(n, m)`` of them;
            ``"valid"``, those with complete overlap.

    Returns:
        A vector of the promoted dtype.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: for an unknown mode, an empty operand, or one that is not a vector.

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


@composite
def correlate(x: Any, y: Any, mode: str = "valid") -> Any:
    """The cross-correlation of two vectors: sums of products of shifted ``x`` with the conjugate of ``y``.

    Args:
        x, y: vectors of ``n`` and ``m`` elements.
        mode: as for ``convolve``.

    Returns:
        A vector of the promoted dtype.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: for an unknown mode, an empty operand, or one that is not a vector.

    Example:
        >>> print(correlate([1, 2, 3], [0, 1]))
        [2 3]
    """
    x, y = asoperand(x, "correlate"), asoperand(y, "correlate")
    if type_of(x).size < type_of(y).size:
        return e.conj(flip(correlate(y, x, mode)))
    return convolve(x, flip(e.conj(y)), mode)


# ---------------------------------------------------------------- products


@composite
def cross(x: Any, y: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Any:
    """The cross product of vectors of three or two elements along an axis; of two and two only the third component.

    Args:
        x, y: arrays with three or two elements along the axis; the other axes broadcast.
        axisa, axisb, axisc: the axis of the vectors in ``x``, in ``y`` and in the result.
        axis: overrides all three.

    Returns:
        An array of the broadcast shape with three elements along ``axisc``, or without that axis for two and two; of
        the promoted dtype.

    Raises:
        TypeError: for operands that are not arrays, and for booleans.
        ValueError: for vectors of other sizes, an axis out of range, and shapes that do not broadcast.

    Example:
        >>> print(cross(np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0])))
        [0. 0. 1.]
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = promoted(asoperand(x, "cross"), asoperand(y, "cross"))
    x, y = moveaxis(x, axisa, -1), moveaxis(y, axisb, -1)
    sizes = shape(x)[-1], shape(y)[-1]
    if not {2, 3}.issuperset(sizes):
        raise ValueError(
            f"cross: wants vectors of three or two, got {sizes[0]} in {type_of(x)} and {sizes[1]} in {type_of(y)}"
        )
    a, b = ([getitem(v, (..., i)) for i in range(n)] for v, n in zip((x, y), sizes, strict=True))
    third = e.subtract(e.multiply(a[0], b[1]), e.multiply(a[1], b[0]))
    if sizes == (2, 2):
        return third
    # The third component of a vector of two is zero.
    a, b = ([*v, p.mul(v[0], p.number(0, v[0]))][:3] for v in (a, b))
    parts = [e.subtract(e.multiply(a[i], b[j]), e.multiply(a[j], b[i])) for i, j in ((1, 2), (2, 0))]
    return moveaxis(stack([*parts, third], -1), -1, axisc)


@composite
def kron(x: Any, y: Any) -> Any:
    """The Kronecker product: a block ``x[i, j] * y`` for each element of ``x``.

    Args:
        x, y: arrays or numbers; leading axes of size 1 are added to the one of lower rank.

    Returns:
        An array whose sizes are the products of the operands' sizes, of the promoted dtype.

    Raises:
        TypeError: for operands that are not arrays.

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


# ---------------------------------------------------------------- comparison


@composite
def isclose(x: Any, y: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Any:
    """Elementwise, whether equal within ``atol + rtol * |y|``; infinities equal themselves.

    Args:
        x, y: numbers or booleans; they broadcast together.
        rtol, atol: the relative and the absolute tolerance.
        equal_nan: whether NaN equals NaN.

    Returns:
        Booleans of the broadcast shape.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: for shapes that do not broadcast.

    Example:
        >>> print(isclose(1.0, 1.000001))
        True
    """
    x, y = promoted(asoperand(x, "isclose"), asoperand(y, "isclose"), floating=True)
    near = e.less_equal(e.absolute(e.subtract(x, y)), e.add(atol, e.multiply(rtol, e.absolute(y))))
    close = e.logical_or(e.equal(x, y), e.logical_and(near, e.isfinite(y)))
    return e.logical_or(close, e.logical_and(e.isnan(x), e.isnan(y))) if equal_nan else close


@composite
def allclose(x: Any, y: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Any:
    """Whether all elements are close, as in ``isclose``.

    Args:
        x, y: numbers or booleans; they broadcast together.
        rtol, atol: the relative and the absolute tolerance.
        equal_nan: whether NaN equals NaN.

    Returns:
        One boolean.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: for shapes that do not broadcast.

    Example:
        >>> print(allclose([1.0, 2.0], [1.0, 2.000001]))
        True
    """
    return r.all(isclose(x, y, rtol, atol, equal_nan))


@composite
def array_equal(x: Any, y: Any, equal_nan: bool = False) -> Any:
    """Whether two arrays have equal shapes and elements.

    Args:
        x, y: numbers or booleans of any shapes.
        equal_nan: whether NaN equals NaN.

    Returns:
        One boolean.

    Raises:
        TypeError: for operands that are not arrays.

    Example:
        >>> print(array_equal(np.arange(3), [0, 1, 2]))
        True
    """
    x, y = asoperand(x, "array_equal"), asoperand(y, "array_equal")
    if type_of(x).shape != type_of(y).shape:
        return asarray(False)
    same = e.equal(x, y)
    return r.all(e.logical_or(same, e.logical_and(e.isnan(x), e.isnan(y))) if equal_nan else same)


@composite
def array_equiv(x: Any, y: Any) -> Any:
    """Whether two arrays broadcast together with equal elements.

    Args:
        x, y: numbers or booleans of any shapes.

    Returns:
        One boolean; False for shapes that do not broadcast.

    Raises:
        TypeError: for operands that are not arrays.

    Example:
        >>> print(array_equiv([1, 1], 1))
        True
    """
    x, y = asoperand(x, "array_equiv"), asoperand(y, "array_equiv")
    try:
        p.broadcast_shapes("array_equiv", type_of(x).shape, type_of(y).shape)
    except ValueError:
        return asarray(False)
    return r.all(e.equal(x, y))


def nan_to_num(x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    """``x`` with NaN and infinities replaced: by 0, and the largest and smallest number of the dtype.

    Args:
        x: an array or a number; the parts of a complex one are replaced separately.
        copy: False to write to ``x`` itself, if it is writable.
        nan, posinf, neginf: the replacements.

    Returns:
        An array of the shape and the dtype of ``x``; integers and booleans are unchanged.

    Raises:
        TypeError: for operands that are not arrays, or replacements that are not real numbers.

    Example:
        >>> print(nan_to_num(np.array([1.0, np.nan])))
        [1. 0.]
    """
    given = [("nan", nan), ("posinf", posinf), ("neginf", neginf)]
    put = [None if v is None else validate.number("nan_to_num", name, v) for name, v in given]
    if not copy and isinstance(x, Writable):
        x[...] = _of_numbers(x, *put)
        return x
    return _of_numbers(promoted(asoperand(x, "nan_to_num"))[0], *put)


@composite
def _of_numbers(x: Any, nan: float | None, posinf: float | None, neginf: float | None) -> Any:
    dtype = type_of(x).dtype
    if dtypes.is_complex(dtype):
        return p.make_complex(*[_of_numbers(part, nan, posinf, neginf) for part in (p.real(x), p.imag(x))])
    if not dtypes.is_floating(dtype):
        return x
    info = finfo(dtype)
    x = p.select(p.ne(x, x), p.number(nan or 0.0, x), x)
    x = p.select(p.eq(x, p.number(np.inf, x)), p.number(info.max if posinf is None else posinf, x), x)
    return p.select(p.eq(x, p.number(-np.inf, x)), p.number(info.min if neginf is None else neginf, x), x)


__all__ = [
    "allclose", "array_equal", "array_equiv", "convolve", "correlate", "cross", "diff", "ediff1d", "gradient",
    "interp", "isclose", "kron", "nan_to_num", "trapezoid", "unwrap",
]  # fmt: skip
