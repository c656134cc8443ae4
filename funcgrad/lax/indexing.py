"""XLA's general gather and scatters, with JAX's dimension numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jax.lax import GatherDimensionNumbers, GatherScatterMode, ScatterDimensionNumbers

from funcgrad.core import dtypes
from funcgrad.core.primitive import Primitive
from funcgrad.core.tracing import type_of, typed
from funcgrad.lax.operands import checked, same_dtype, sizes_of
from funcgrad.numpy.promotion import astype
from funcgrad.primitives import elementwise as p
from funcgrad.primitives import indexing as ix
from funcgrad.primitives.shape import full

__all__ = [
    "gather", "scatter", "scatter_add", "scatter_apply", "scatter_max", "scatter_min", "scatter_mul", "scatter_sub",
]  # fmt: skip

_MODES = {
    GatherScatterMode.CLIP: "clip",
    GatherScatterMode.FILL_OR_DROP: "fill",
    GatherScatterMode.PROMISE_IN_BOUNDS: "promise",
}


def _mode(name: str, mode: Any) -> str:
    """The mode for windows out of bounds."""
    found = None if isinstance(mode, int) else GatherScatterMode.from_any(mode)
    if found not in _MODES:
        raise ValueError(f"{name}: mode must be 'clip', 'fill', 'drop' or 'promise_in_bounds', got {mode!r}")
    return _MODES[found]


def _read_dims(numbers: GatherDimensionNumbers) -> ix.IndexDims:
    return ix.IndexDims(
        tuple(numbers.offset_dims),
        tuple(numbers.collapsed_slice_dims),
        tuple(numbers.operand_batching_dims),
        tuple(numbers.start_indices_batching_dims),
        tuple(numbers.start_index_map),
    )


def _written_dims(numbers: ScatterDimensionNumbers) -> ix.IndexDims:
    return ix.IndexDims(
        tuple(numbers.update_window_dims),
        tuple(numbers.inserted_window_dims),
        tuple(numbers.operand_batching_dims),
        tuple(numbers.scatter_indices_batching_dims),
        tuple(numbers.scatter_dims_to_operand_dims),
    )


def _fill_value(dtype: np.dtype) -> Any:
    """The default for out-of-bounds reads: NaN, or for integers the smallest (signed) or largest (unsigned) value."""
    if dtypes.is_inexact(dtype):
        return dtype.type(np.nan)
    if dtype == dtypes.bool_:
        return dtype.type(True)
    return dtype.type(np.iinfo(dtype).max if dtype in dtypes.UNSIGNED else np.iinfo(dtype).min)


def gather(
    operand: Any,
    start_indices: Any,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Sequence[int],
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: Any = None,
    fill_value: Any = None,
) -> Any:
    """Windows of an array, one for each row of indices.

    Args:
        operand: an array.
        start_indices: integers; the last axis has the coordinates of one window.
        dimension_numbers: the axis roles: ``offset_dims`` of the result run inside a window, ``collapsed_slice_dims``
            of the operand have size 1 in it and are omitted, ``start_index_map`` is the operand's axis of each
            coordinate, and the ``batching_dims`` of both are batch axes.
        slice_sizes: the size of a window along each axis of the operand.
        unique_indices: promises that no element is read twice.
        indices_are_sorted: ignored.
        mode: the treatment of windows out of bounds: ``"clip"``, the default, moves them inside, ``"fill"`` reads
            ``fill_value``, and ``"promise_in_bounds"`` asserts that all are in bounds.
        fill_value: by default NaN, or the smallest signed or largest unsigned integer.

    Returns:
        An array of the operand's dtype.

    Raises:
        TypeError: for operands that are not arrays, or indices that are not integers.
        ValueError: for invalid dimension numbers, or an unknown mode.

    Example:
        >>> numbers = GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,))
        >>> print(gather(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1], [7]]), numbers, (1, 2), mode="fill"))
        [[ 3.  4.]
         [nan nan]]
    """
    x, places = checked("gather", operand), checked("gather", start_indices)
    kind, how = type_of(x), _mode("gather", "clip" if mode is None else mode)
    params: dict[str, Any] = dict(
        dims=_read_dims(dimension_numbers), sizes=sizes_of("gather", slice_sizes), mode=how, unique=bool(unique_indices)
    )
    found = ix.gather(x, places, **params)
    if how != "fill":
        return found
    outside = _fill_value(kind.dtype) if fill_value is None else astype(typed(fill_value), kind.dtype)
    inside = ix.gather(full(np.bool_(True), kind.shape), places, **params)
    return p.select(inside, found, outside)


def _scatter(primitive: Primitive, name: str, what: str, example: str, shown: str) -> Callable[..., Any]:
    def function(
        operand: Any,
        scatter_indices: Any,
        updates: Any,
        dimension_numbers: ScatterDimensionNumbers,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
    ) -> Any:
        x, new = same_dtype(name, operand, updates)
        dims = _written_dims(dimension_numbers)
        new = p.neg(new) if name == "scatter_sub" else new
        places = checked(name, scatter_indices)
        return primitive(x, places, new, dims=dims, mode=_mode(name, mode), unique=bool(unique_indices))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = _DOCUMENT.format(what=what, name=name, example=example, shown=shown)
    return function


_DOCUMENT = """{what}

Args:
    operand: an array.
    scatter_indices: integers; the last axis has the coordinates of one window.
    updates: of the operand's dtype, a window for each row of indices.
    dimension_numbers: the axis roles: ``update_window_dims`` of the updates run inside a window,
        ``inserted_window_dims`` of the operand have size 1 in it and are omitted, ``scatter_dims_to_operand_dims`` is
        the operand's axis of each coordinate, and the ``batching_dims`` of both are batch axes.
    indices_are_sorted: ignored.
    unique_indices: promises that no element is written twice.
    mode: the treatment of windows out of bounds: ``"drop"``, the default, ``"clip"``, which moves them inside, or
        ``"promise_in_bounds"``, which asserts that there are none.

Returns:
    An array of the operand's shape and dtype.

Raises:
    TypeError: for operands that are not arrays, different dtypes, or indices that are not integers.
    ValueError: for invalid dimension numbers or updates, or an unknown mode.

Example:
    >>> numbers = ScatterDimensionNumbers((), (0,), (0,))
    >>> print({name}(np.array([2, 3, 4]), np.array([[0], [2]]), np.array({example}), numbers))
    {shown}
"""

scatter = _scatter(
    ix.scatter, "scatter", "An array with windows replaced; of several updates of one element, one stays.",
    "[7, 8]", "[7 3 8]",
)  # fmt: skip
scatter_add = _scatter(
    ix.scatter_add, "scatter_add", "An array with updates added to windows of it.", "[7, 8]", "[ 9  3 12]"
)
scatter_sub = _scatter(
    ix.scatter_add, "scatter_sub", "An array with updates taken from windows of it.", "[1, 1]", "[1 3 3]"
)
scatter_mul = _scatter(
    ix.scatter_mul, "scatter_mul", "An array with windows of it multiplied by updates.", "[7, 8]", "[14  3 32]"
)
scatter_min = _scatter(
    ix.scatter_min, "scatter_min", "The smaller of windows of an array and updates.", "[1, 8]", "[1 3 4]"
)
scatter_max = _scatter(
    ix.scatter_max, "scatter_max", "The larger of windows of an array and updates.", "[1, 8]", "[2 3 8]"
)


def scatter_apply(
    operand: Any,
    scatter_indices: Any,
    func: Callable[[Any], Any],
    dimension_numbers: ScatterDimensionNumbers,
    *,
    update_shape: Sequence[int] = (),
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Any = None,
) -> Any:
    """An array with a function applied to windows of it; once for elements in several windows.

    Args:
        operand: an array.
        scatter_indices: integers; the last axis has the coordinates of one window.
        func: an elementwise function that preserves the dtype.
        dimension_numbers: as for ``scatter``.
        update_shape: the shape of updates.
        indices_are_sorted: ignored.
        unique_indices: promises that no element is read twice.
        mode: as for ``scatter``.

    Returns:
        An array of the operand's shape and dtype.

    Raises:
        TypeError: for operands that are not arrays, indices that are not integers, or a function that changes the
            dtype.
        ValueError: for invalid dimension numbers, or an unknown mode.

    Example:
        >>> numbers = ScatterDimensionNumbers((), (0,), (0,))
        >>> print(scatter_apply(np.array([2, 3, 4]), np.array([[0], [2]]), lambda x: -x, numbers, update_shape=(2,)))
        [-2  3 -4]
    """
    x, places = checked("scatter_apply", operand), checked("scatter_apply", scatter_indices)
    dims, kind = _written_dims(dimension_numbers), type_of(x)
    inside = dict(zip(dims.kept(kind.ndim), (update_shape[d] for d in dims.window), strict=True))
    sizes = tuple(inside.get(d, min(1, n)) for d, n in enumerate(kind.shape))
    how, unique = _mode("scatter_apply", mode), bool(unique_indices)
    read = ix.gather(x, places, dims=dims, sizes=sizes, mode=how, unique=unique)
    _, new = same_dtype("scatter_apply", x, func(read))
    return ix.scatter(x, places, new, dims=dims, mode=how, unique=unique)
