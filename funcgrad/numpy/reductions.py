"""Reductions along axes."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np

from funcgrad import dtypes
from funcgrad.numpy import elementwise as e
from funcgrad.numpy.promotion import asoperand, astype, normalized_axes, normalized_axis, promoted
from funcgrad.numpy.shape import broadcast_to, concatenate, ravel, reshape
from funcgrad.primitive import Primitive
from funcgrad.primitives import elementwise as p
from funcgrad.primitives import reductions as r
from funcgrad.primitives.shape import reduce_sum
from funcgrad.tracing import type_of

Axis = int | tuple[int, ...] | None


def _with_axes(x: Any, axes: tuple[int, ...], keepdims: bool, out: Any) -> Any:
    if not keepdims:
        return out
    return reshape(out, tuple(1 if i in axes else n for i, n in enumerate(type_of(x).shape)))


def _reduce(primitive: Primitive, x: Any, axis: Axis, keepdims: bool, name: str) -> Any:
    axes = normalized_axes(axis, type_of(x).ndim, name)
    return _with_axes(x, axes, keepdims, primitive(x, axes=axes) if axes else x)


def _summable(x: Any, dtype: Any, name: str) -> Any:
    """Sums and products of bools and small ints are int64 (or uint64), as in NumPy."""
    (x,) = promoted(asoperand(x, name))
    if dtype is not None:
        return astype(x, dtypes.canonical(dtype))
    own = type_of(x).dtype
    if own == dtypes.bool_ or own in dtypes.SIGNED:
        return astype(x, dtypes.int64)
    return astype(x, dtypes.uint64) if own in dtypes.UNSIGNED else x


def _masked(x: Any, where: Any, neutral: Any) -> Any:
    """``x`` with what changes nothing in place of the elements that ``where`` leaves out."""
    return x if where is None else e.where(where, x, p.number(neutral, x))


def sum(
    x: Any, axis: Axis = None, dtype: Any = None, *, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Any:
    """The sum over axes, by default over all.

    Args:
        x: an array or number of any dtype.
        axis: one or several; by default all.
        dtype: what to compute in.
        keepdims: whether the axes stay, of size 1.
        initial: a number to add.
        where: a mask, True for the elements that count; it broadcasts with ``x``.

    Returns:
        An array of the axes that remain; int64 of bools and signed integers, uint64 of unsigned ones, else of the dtype
        of ``x``, or of ``dtype``, promoted with that of ``initial``.

    Raises:
        TypeError: for what is no array, an axis that is no int, or an unknown dtype.
        ValueError: for an axis out of range or named twice, or a mask that does not broadcast.

    Example:
        >>> print(sum(np.ones((2, 3)), axis=0))
        [2. 2. 2.]
    """
    x = _masked(_summable(x, dtype, "sum"), where, 0)
    total = _reduce(reduce_sum, x, axis, keepdims, "sum")
    return total if initial is None else e.add(total, initial)


def prod(
    x: Any, axis: Axis = None, dtype: Any = None, *, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Any:
    """The product over axes, by default over all; its derivative is right where factors are zero.

    Args:
        x: an array or number of any dtype.
        axis: one or several; by default all.
        dtype: what to compute in.
        keepdims: whether the axes stay, of size 1.
        initial: a number to multiply with.
        where: a mask, True for the elements that count; it broadcasts with ``x``.

    Returns:
        An array of the axes that remain; int64 of bools and signed integers, uint64 of unsigned ones, else of the dtype
        of ``x``, or of ``dtype``, promoted with that of ``initial``.

    Raises:
        TypeError: for what is no array, an axis that is no int, or an unknown dtype.
        ValueError: for an axis out of range or named twice, or a mask that does not broadcast.

    Example:
        >>> print(prod(np.array([2.0, 3.0])))
        6.0
    """
    x = _masked(_summable(x, dtype, "prod"), where, 1)
    product = _reduce(r.reduce_prod, x, axis, keepdims, "prod")
    return product if initial is None else e.multiply(product, initial)


def max(x: Any, axis: Axis = None, *, keepdims: bool = False, initial: Any = None, where: Any = None) -> Any:
    """The largest element over axes; ties share the derivative.

    Args:
        x: an array or number of any dtype.
        axis: one or several; by default all.
        keepdims: whether the axes stay, of size 1.
        initial: the result is not below it; wanted with ``where``, and over no elements.
        where: a mask, True for the elements that count; it broadcasts with ``x``.

    Returns:
        An array of the axes that remain, of the dtype of ``x``, promoted with that of ``initial``.

    Raises:
        TypeError: for what is no array, or an axis that is no int.
        ValueError: over no elements or with ``where``, without ``initial``; for an axis out of range or named twice, or
            a mask that does not broadcast.

    Example:
        >>> print(max(np.array([[1, 5], [7, 3]]), axis=1))
        [5 7]
    """
    return _extreme(r.reduce_max, e.maximum, lambda info: info.min, x, axis, keepdims, initial, where, "max")


def min(x: Any, axis: Axis = None, *, keepdims: bool = False, initial: Any = None, where: Any = None) -> Any:
    """The smallest element over axes; ties share the derivative.

    Args:
        x: an array or number of any dtype.
        axis: one or several; by default all.
        keepdims: whether the axes stay, of size 1.
        initial: the result is not above it; wanted with ``where``, and over no elements.
        where: a mask, True for the elements that count; it broadcasts with ``x``.

    Returns:
        An array of the axes that remain, of the dtype of ``x``, promoted with that of ``initial``.

    Raises:
        TypeError: for what is no array, or an axis that is no int.
        ValueError: over no elements or with ``where``, without ``initial``; for an axis out of range or named twice, or
            a mask that does not broadcast.

    Example:
        >>> print(min(np.array([[1, 5], [7, 3]]), axis=1))
        [1 3]
    """
    return _extreme(r.reduce_min, e.minimum, lambda info: info.max, x, axis, keepdims, initial, where, "min")


amax, amin = max, min


def _extreme(
    primitive: Primitive, pairwise: Callable[[Any, Any], Any], last: Callable[[Any], Any],
    x: Any, axis: Axis, keepdims: bool, initial: Any, where: Any, name: str,
) -> Any:  # fmt: skip
    (x,) = promoted(asoperand(x, name))
    if initial is None:
        if where is not None:
            raise ValueError(f"{name}: with where= it wants initial= too, the result where nothing counts")
        return _reduce(primitive, x, axis, keepdims, name)
    if where is not None:
        x = _masked(x, where, last(_limits(type_of(x).dtype)))
    if _count(x, axis, name):
        return pairwise(_reduce(primitive, x, axis, keepdims, name), initial)
    return e.add(_reduce(reduce_sum, e.multiply(x, 0), axis, keepdims, name), initial)


def _limits(dtype: np.dtype) -> Any:
    if dtypes.is_integer(dtype):
        return np.iinfo(dtype)
    return SimpleNamespace(min=False, max=True) if dtype == dtypes.bool_ else SimpleNamespace(min=-np.inf, max=np.inf)


def all(x: Any, axis: Axis = None, *, keepdims: bool = False, where: Any = None) -> Any:
    """Whether every element is nonzero; ``where`` is a mask of those that count.

    Args:
        x: an array or number of any dtype.
        axis: one or several; by default all.
        keepdims: whether the axes stay, of size 1.
        where: a mask, True for the elements that count; it broadcasts with ``x``.

    Returns:
        An array of the axes that remain, of bools.

    Raises:
        TypeError: for what is no array, or an axis that is no int.
        ValueError: for an axis out of range or named twice, or a mask that does not broadcast.

    Example:
        >>> print(all([True, False]), all([[1, 0], [1, 1]], axis=1))
        False [False  True]
    """
    return _reduce(r.reduce_all, _masked(e.not_equal(x, 0), where, True), axis, keepdims, "all")


def any(x: Any, axis: Axis = None, *, keepdims: bool = False, where: Any = None) -> Any:
    """Whether some element is nonzero; ``where`` is a mask of those that count.

    Args:
        x: an array or number of any dtype.
        axis: one or several; by default all.
        keepdims: whether the axes stay, of size 1.
        where: a mask, True for the elements that count; it broadcasts with ``x``.

    Returns:
        An array of the axes that remain, of bools.

    Raises:
        TypeError: for what is no array, or an axis that is no int.
        ValueError: for an axis out of range or named twice, or a mask that does not broadcast.

    Example:
        >>> print(any([True, False]), any([[0, 0], [1, 1]], axis=1))
        True [False  True]
    """
    return _reduce(r.reduce_any, _masked(e.not_equal(x, 0), where, False), axis, keepdims, "any")


def _count(x: Any, axis: Axis, name: str) -> int:
    shape = type_of(x).shape
    return math.prod(shape[a] for a in normalized_axes(axis, len(shape), name))


def _weight(x: Any, axis: Axis, keepdims: bool, where: Any, name: str) -> Any:
    """How many elements a mean is over: a number, or an array where a mask says."""
    real = dtypes.real_of(type_of(x).dtype)
    if where is None:
        return real.type(_count(x, axis, name))
    mask = p.cast(broadcast_to(e.not_equal(where, 0), type_of(x).shape), dtype=real)
    return _reduce(reduce_sum, mask, axis, keepdims, name)


def _averaged(x: Any, dtype: Any, name: str) -> tuple[Any, np.dtype]:
    """``x`` in the dtype to average in, and the result's dtype: sums of halves overflow, so they are float32."""
    (x,) = promoted(asoperand(x, name), floating=True)
    own = type_of(x).dtype if dtype is None else dtypes.canonical(dtype)
    return astype(x, dtypes.float32 if own in (dtypes.float16, dtypes.bfloat16) else own), own


def mean(x: Any, axis: Axis = None, dtype: Any = None, *, keepdims: bool = False, where: Any = None) -> Any:
    """The arithmetic mean over axes; NaN over no elements.

    Args:
        x: an array or number of any dtype.
        axis: one or several; by default all.
        dtype: of the result, and what to compute in; halves are averaged in float32.
        keepdims: whether the axes stay, of size 1.
        where: a mask that broadcasts to the shape of ``x``, True for the elements that count.

    Returns:
        An array of the axes that remain; of the dtype of ``x``, float32 of bools and integers, or of ``dtype``.

    Raises:
        TypeError: for what is no array, an axis that is no int, or an unknown dtype.
        ValueError: for an axis out of range or named twice, or a mask that does not broadcast.

    Example:
        >>> print(mean(np.array([1.0, 3.0])))
        2.0
    """
    x, own = _averaged(x, dtype, "mean")
    total = _reduce(reduce_sum, _masked(x, where, 0), axis, keepdims, "mean")
    return astype(e.divide(total, _weight(x, axis, keepdims, where, "mean")), own)


def var(
    x: Any, axis: Axis = None, dtype: Any = None, *, ddof: float = 0, keepdims: bool = False, where: Any = None,
    correction: float | None = None,
) -> Any:  # fmt: skip
    """The variance over axes: the mean squared distance from the mean, over ``n - ddof``.

    Args:
        x: an array or number of any dtype.
        axis: one or several; by default all.
        dtype: of the result, and what to compute in.
        ddof, correction: two names of what is taken off the number of elements.
        keepdims: whether the axes stay, of size 1.
        where: a mask that broadcasts to the shape of ``x``, True for the elements that count.

    Returns:
        An array of the axes that remain; real: of the dtype of ``x``, of the parts of complex numbers, float32 of bools
        and integers, or of ``dtype``.

    Raises:
        TypeError: for what is no array, an axis that is no int, or an unknown dtype.
        ValueError: for an axis out of range or named twice, or a mask that does not broadcast.

    Example:
        >>> print(var(np.array([1.0, 3.0])), var(np.array([1.0, 3.0]), ddof=1))
        1.0 2.0
    """
    x, own = _averaged(x, dtype, "var")
    centred = _masked(e.subtract(x, mean(x, axis, keepdims=True, where=where)), where, 0)
    squares = p.square(centred) if not dtypes.is_complex(type_of(x).dtype) else p.real(p.mul(centred, p.conj(centred)))
    total = _reduce(reduce_sum, squares, axis, keepdims, "var")
    freedom = e.subtract(_weight(x, axis, keepdims, where, "var"), ddof if correction is None else correction)
    return astype(e.divide(total, e.maximum(freedom, 0)), dtypes.real_of(own))


def std(
    x: Any, axis: Axis = None, dtype: Any = None, *, ddof: float = 0, keepdims: bool = False, where: Any = None,
    correction: float | None = None,
) -> Any:  # fmt: skip
    """The standard deviation: the root of the variance, with the same arguments.

    Args:
        x, axis, dtype, ddof, keepdims, where, correction: as for ``var``.

    Returns:
        An array of the axes that remain; real: of the dtype of ``x``, of the parts of complex numbers, float32 of bools
        and integers, or of ``dtype``.

    Raises:
        TypeError: for what is no array, an axis that is no int, or an unknown dtype.
        ValueError: for an axis out of range or named twice, or a mask that does not broadcast.

    Example:
        >>> print(std(np.array([1.0, 3.0])))
        1.0
    """
    variance = var(x, axis, dtype, ddof=ddof, keepdims=keepdims, where=where, correction=correction)
    # Where nothing varies the root has no derivative; as that of a norm it is 0 then.
    zero = p.eq(variance, p.number(0, variance))
    return p.select(zero, p.number(0, variance), p.sqrt(p.select(zero, p.number(1, variance), variance)))


def _position(primitive: Primitive, name: str, what: str, shown: str) -> Callable[..., Any]:
    def function(x: Any, axis: int | None = None, *, keepdims: bool = False) -> Any:
        (x,) = promoted(asoperand(x, name))
        shape = type_of(x).shape
        if axis is None:
            found = primitive(ravel(x), axis=0, dtype=dtypes.int64)
            return reshape(found, (1,) * len(shape)) if keepdims else found
        axis = normalized_axis(axis, len(shape), name)
        return _with_axes(x, (axis,), keepdims, primitive(x, axis=axis, dtype=dtypes.int64))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"The position, int64, of the first {what} element along an axis, or in all.\n\n"
        "Raises:\n    ValueError: over no elements.\n\n"
        f"Example:\n    >>> print({name}(np.array([3, 1, 2])))\n    {shown}\n"
    )
    return function


argmax = _position(r.argmax, "argmax", "largest", "0")
argmin = _position(r.argmin, "argmin", "smallest", "1")


def count_nonzero(x: Any, axis: Axis = None, *, keepdims: bool = False) -> Any:
    """How many elements are nonzero.

    Args:
        x: an array or number of any dtype.
        axis: one or several; by default all.
        keepdims: whether the axes stay, of size 1.

    Returns:
        An array of the axes that remain, int64.

    Raises:
        TypeError: for what is no array, or an axis that is no int.
        ValueError: for an axis out of range or named twice.

    Example:
        >>> print(count_nonzero(np.array([0, 3, 5])))
        2
    """
    return sum(e.not_equal(x, 0), axis, keepdims=keepdims)


def _running(primitive: Primitive, name: str, what: str, shown: str, summing: bool) -> Callable[..., Any]:
    def function(x: Any, axis: int | None = None, dtype: Any = None) -> Any:
        x = _summable(x, dtype, name) if summing else promoted(asoperand(x, name))[0]
        if axis is None:
            x, axis = ravel(x), 0
        return primitive(x, axis=normalized_axis(axis, type_of(x).ndim, name), reverse=False)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"The running {what} along an axis; by default of all elements in order.\n\nExample:\n"
        f"    >>> print({name}(np.array([3, 1, 2])))\n    {shown}\n"
    )
    return function


cumsum = _running(r.cumulative_sum, "cumsum", "sum", "[3 4 6]", True)
cumprod = _running(r.cumulative_prod, "cumprod", "product", "[3 3 6]", True)
cummax = _running(r.cumulative_max, "cummax", "maximum", "[3 3 3]", False)
cummin = _running(r.cumulative_min, "cummin", "minimum", "[3 1 1]", False)


def cumulative_sum(x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Any:
    """As ``cumsum``, along the only axis if none is given; with ``include_initial`` a 0 comes first.

    Args:
        x: an array of any dtype, of at least one axis.
        axis: one; may be left out where there is one only.
        dtype: what to compute in.
        include_initial: whether a 0 comes first.

    Returns:
        An array of the shape of ``x``, one longer along the axis with ``include_initial``; int64 of bools and signed
        integers, uint64 of unsigned ones, else of the dtype of ``x``, or of ``dtype``.

    Raises:
        TypeError: for what is no array, an axis that is no int, or an unknown dtype.
        ValueError: for an axis out of range, or none where ``x`` has not exactly one.

    Example:
        >>> print(cumulative_sum(np.array([1, 2]), include_initial=True))
        [0 1 3]
    """
    return _cumulative(cumsum, 0, x, axis, dtype, include_initial)


def cumulative_prod(x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Any:
    """As ``cumprod``, along the only axis if none is given; with ``include_initial`` a 1 comes first.

    Args:
        x: an array of any dtype, of at least one axis.
        axis: one; may be left out where there is one only.
        dtype: what to compute in.
        include_initial: whether a 1 comes first.

    Returns:
        An array of the shape of ``x``, one longer along the axis with ``include_initial``; int64 of bools and signed
        integers, uint64 of unsigned ones, else of the dtype of ``x``, or of ``dtype``.

    Raises:
        TypeError: for what is no array, an axis that is no int, or an unknown dtype.
        ValueError: for an axis out of range, or none where ``x`` has not exactly one.

    Example:
        >>> print(cumulative_prod(np.array([2, 3]), include_initial=True))
        [1 2 6]
    """
    return _cumulative(cumprod, 1, x, axis, dtype, include_initial)


def _cumulative(running: Callable[..., Any], first: int, x: Any, axis: int | None, dtype: Any, initial: bool) -> Any:
    t = type_of(asoperand(x, "cumulative"))
    if axis is None and t.ndim != 1:
        raise ValueError(f"cumulative_sum and cumulative_prod: axis must be given for {t}, which has {t.ndim} axes")
    out = running(x, 0 if axis is None else axis, dtype)
    if not initial:
        return out
    along = normalized_axis(axis or 0, t.ndim, "cumulative")
    lead = tuple(1 if i == along else n for i, n in enumerate(t.shape))
    return concatenate([broadcast_to(p.number(first, out), lead), out], along)


def ptp(x: Any, axis: Axis = None, *, keepdims: bool = False) -> Any:
    """The largest element less the smallest, over axes.

    Args:
        x: an array or number of any dtype but bool.
        axis: one or several; by default all.
        keepdims: whether the axes stay, of size 1.

    Returns:
        An array of the axes that remain, of the dtype of ``x``.

    Raises:
        TypeError: for what is no array, bools, or an axis that is no int.
        ValueError: over no elements; for an axis out of range or named twice.

    Example:
        >>> print(ptp(np.array([3, 1, 7])))
        6
    """
    return e.subtract(max(x, axis, keepdims=keepdims), min(x, axis, keepdims=keepdims))


def logsumexp(x: Any, axis: Axis = None, *, keepdims: bool = False) -> Any:
    """``log(sum(exp(x)))`` without overflow.

    Args:
        x: a real array or number.
        axis: one or several; by default all.
        keepdims: whether the axes stay, of size 1.

    Returns:
        An array of the axes that remain; of the dtype of ``x``, float32 of bools and integers; ``-inf`` over no
        elements.

    Raises:
        TypeError: for what is no array, complex numbers, or an axis that is no int.
        ValueError: for an axis out of range or named twice.

    Example:
        >>> print(logsumexp(np.array([1000.0, 1000.0], "float32")))
        1000.6931
    """
    (x,) = promoted(asoperand(x, "logsumexp"), floating=True)
    high = p.stop_gradient(max(x, axis, keepdims=True)) if type_of(x).size else p.number(0, x)
    high = p.select(p.is_finite(high), high, p.number(0, high))
    axes = normalized_axes(axis, type_of(x).ndim, "logsumexp")
    total = p.log(reduce_sum(p.exp(p.sub(x, high)), axes=axes))
    shifted = p.add(total, reshape(high, type_of(total).shape)) if type_of(x).size else total
    return _with_axes(x, axes, keepdims, shifted)


def _ruled_out(x: Any, where: Any) -> Any:
    """``x`` with the least number in place of the elements that ``where`` leaves out: finite, as derivatives stay."""
    return x if where is None else _masked(x, where, float(ml_dtypes.finfo(type_of(x).dtype).min))


def softmax(x: Any, axis: int = -1, where: Any = None) -> Any:
    """``exp(x) / sum(exp(x))`` along an axis, without overflow.

    Args:
        x: an array of any dtype, of at least one axis.
        axis: one or several.
        where: a mask, True for the elements that count; the others' share is 0.

    Returns:
        An array of the shape of ``x``; of the dtype of ``x``, float32 of bools and integers.

    Raises:
        TypeError: for what is no array, or an axis that is no int.
        ValueError: along an axis of no elements, one out of range or named twice, or for a mask that does not
            broadcast.

    Example:
        >>> print(softmax(np.zeros(2, "float32")))
        [0.5 0.5]
    """
    (x,) = promoted(asoperand(x, "softmax"), floating=True)
    x = _ruled_out(x, where)
    weights = p.exp(p.sub(x, p.stop_gradient(max(x, axis, keepdims=True))))
    return _masked(p.div(weights, sum(weights, axis, keepdims=True)), where, 0)


def log_softmax(x: Any, axis: int = -1, where: Any = None) -> Any:
    """The logarithm of ``softmax``, exact where that underflows.

    Args:
        x: an array of any dtype, of at least one axis.
        axis: one or several.
        where: a mask, True for the elements that count; the others are ``-inf``.

    Returns:
        An array of the shape of ``x``; of the dtype of ``x``, float32 of bools and integers.

    Raises:
        TypeError: for what is no array, or an axis that is no int.
        ValueError: along an axis of no elements, one out of range or named twice, or for a mask that does not
            broadcast.

    Example:
        >>> print(log_softmax(np.array([0.0, 1000.0])))
        [-1000.     0.]
    """
    (x,) = promoted(asoperand(x, "log_softmax"), floating=True)
    x = _ruled_out(x, where)
    shifted = p.sub(x, p.stop_gradient(max(x, axis, keepdims=True)))
    return _masked(p.sub(shifted, p.log(sum(p.exp(shifted), axis, keepdims=True))), where, -math.inf)


__all__ = [
    "all", "amax", "amin", "any", "argmax", "argmin", "count_nonzero", "cummax", "cummin", "cumprod", "cumsum",
    "cumulative_prod", "cumulative_sum", "log_softmax", "logsumexp", "max", "mean", "min", "prod", "ptp", "softmax",
    "std", "sum", "var",
]  # fmt: skip
