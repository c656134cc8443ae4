"""Cumulative sums, products and extrema."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from funcgrad.arguments import validate
from funcgrad.core import dtypes
from funcgrad.core.primitive import Primitive
from funcgrad.core.tracing import type_of
from funcgrad.numpy.elementwise.declared import named
from funcgrad.numpy.promotion import asoperand, astype, promoted
from funcgrad.numpy.reductions.reducing import summable
from funcgrad.numpy.shape import broadcast_to, concatenate
from funcgrad.numpy.shape.reshaping import along_axis
from funcgrad.primitives import elementwise as p
from funcgrad.primitives import reductions as r
from funcgrad.runtime.call_cache import composite


def _running(primitive: Primitive, name: str, what: str, shown: str, summing: bool) -> Callable[..., Any]:
    def function(x: Any, axis: int | None = None, dtype: Any = None) -> Any:
        x = summable(x, dtype, name) if summing else _as_given(x, dtype, name)
        x, along = along_axis(x, axis, name)
        return primitive(x, axis=along, reverse=False)

    kind = "int64 of bools and signed integers, uint64 of unsigned ones, else " if summing else ""
    document = (
        f"The running {what} along an axis.\n\n"
        "Args:\n    x: an array or number of any dtype.\n"
        "    axis: an int; by default the array is flattened.\n    dtype: the dtype of the computation.\n\n"
        "Returns:\n    An array of the shape of ``x``, or without ``axis`` a vector;\n"
        f"    {kind}of the dtype of ``x``, or of ``dtype``.\n\n"
        "Raises:\n    TypeError: for operands that are not arrays, an axis that is not an int, or an unknown dtype.\n"
        "    ValueError: for an axis out of range.\n\n"
        f"Example:\n    >>> print({name}([3, 1, 2]))\n    {shown}\n"
    )
    return named(function, name, document)


def _as_given(x: Any, dtype: Any, name: str) -> Any:
    (x,) = promoted(asoperand(x, name))
    return x if dtype is None else astype(x, dtypes.canonical(dtype))


cumsum = _running(r.cumulative_sum, "cumsum", "sum", "[3 4 6]", True)
cumprod = _running(r.cumulative_prod, "cumprod", "product", "[3 3 6]", True)
cummax = _running(r.cumulative_max, "cummax", "maximum", "[3 3 3]", False)
cummin = _running(r.cumulative_min, "cummin", "minimum", "[3 1 1]", False)


@composite
def cumulative_sum(x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Any:
    """As ``cumsum``, with an optional axis for vectors; with ``include_initial`` the result starts with 0.

    Args:
        x: an array of any dtype, of at least one axis.
        axis: an int; optional for vectors.
        dtype: of the computation.
        include_initial: whether the result starts with 0.

    Returns:
        An array of the shape of ``x``, one longer along the axis with ``include_initial``; int64 of bools and signed
        integers, uint64 of unsigned ones, else of the dtype of ``x``, or of ``dtype``.

    Raises:
        TypeError: for operands that are not arrays, an axis that is not an int, or an unknown dtype.
        ValueError: for an axis out of range, or a missing one if ``x`` is not a vector.

    Example:
        >>> print(cumulative_sum([1, 2], include_initial=True))
        [0 1 3]
    """
    return _cumulative(cumsum, 0, x, axis, dtype, include_initial)


@composite
def cumulative_prod(x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Any:
    """As ``cumprod``, with an optional axis for vectors; with ``include_initial`` the result starts with 1.

    Args:
        x: an array of any dtype, of at least one axis.
        axis: an int; optional for vectors.
        dtype: of the computation.
        include_initial: whether the result starts with 1.

    Returns:
        An array of the shape of ``x``, one longer along the axis with ``include_initial``; int64 of bools and signed
        integers, uint64 of unsigned ones, else of the dtype of ``x``, or of ``dtype``.

    Raises:
        TypeError: for operands that are not arrays, an axis that is not an int, or an unknown dtype.
        ValueError: for an axis out of range, or a missing one if ``x`` is not a vector.

    Example:
        >>> print(cumulative_prod([2, 3], include_initial=True))
        [1 2 6]
    """
    return _cumulative(cumprod, 1, x, axis, dtype, include_initial)


def _cumulative(running: Callable[..., Any], first: int, x: Any, axis: int | None, dtype: Any, initial: bool) -> Any:
    x = asoperand(x, running.__name__)
    t = type_of(x)
    if axis is None and t.ndim != 1:
        raise ValueError(f"cumulative_sum and cumulative_prod: axis must be given for {t}, which has {t.ndim} axes")
    out = running(x, 0 if axis is None else axis, dtype)
    if not initial:
        return out
    along = validate.axis(running.__name__, axis or 0, t.ndim)
    lead = tuple(1 if i == along else n for i, n in enumerate(t.shape))
    return concatenate([broadcast_to(p.number(first, out), lead), out], along)


__all__ = ["cummax", "cummin", "cumprod", "cumsum", "cumulative_prod", "cumulative_sum"]
