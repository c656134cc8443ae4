"""Windowed reductions."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcgrad.core import dtypes, trees
from funcgrad.core.errors import ConcretizationError
from funcgrad.core.tracing import concrete, differentiated_by, type_of, typed
from funcgrad.lax.operands import same_dtype, sizes_of
from funcgrad.lax.reductions import MONOIDS, Combine, elementwise_of, monoid
from funcgrad.primitives import shape as s
from funcgrad.primitives import windows as w
from funcgrad.primitives.geometry import Axis, check_window, dilated, sliding

__all__ = ["padtype_to_pads", "reduce_window", "reduce_window_shape_tuple"]

_KNOWN = {"add": w.window_sum, "max": w.window_max, "min": w.window_min}
Pads = list[tuple[int, int]]


def padtype_to_pads(
    in_shape: Sequence[int], window_shape: Sequence[int], window_strides: Sequence[int], padding: str
) -> Pads:
    """The padding at both ends of each axis, for a named padding scheme.

    Args:
        in_shape: the shape of the array.
        window_shape, window_strides: the size and the strides of the window.
        padding: ``"SAME"``, so that the output size is the input size over the stride, rounded up, with an odd element
            of padding at the end; ``"SAME_LOWER"``, with it at the start; or ``"VALID"``, none.

    Returns:
        A list of pairs.

    Raises:
        TypeError: for sizes that are not integers.
        ValueError: for an unknown name.

    Example:
        >>> padtype_to_pads((5, 5), (3, 2), (1, 1), "SAME")
        [(1, 1), (0, 1)]
    """
    kind = padding.upper() if isinstance(padding, str) else padding
    sizes = [sizes_of("padding", shape) for shape in (in_shape, window_shape, window_strides)]
    if kind == "VALID":
        return [(0, 0)] * len(sizes[0])
    if kind not in ("SAME", "SAME_LOWER"):
        raise ValueError(f'padding must be pairs of integers, "VALID", "SAME" or "SAME_LOWER", got {padding!r}')
    pads = []
    for size, window, stride in zip(*sizes, strict=True):
        total = builtins.max((-(-size // stride) - 1) * stride + window - size, 0)
        less, more = total // 2, total - total // 2
        pads.append((less, more) if kind == "SAME" else (more, less))
    return pads


def window_of(
    name: str,
    shape: Sequence[int],
    size: Sequence[int],
    strides: Sequence[int] | None,
    padding: str | Sequence[tuple[int, int]],
    base_dilation: Sequence[int] | None,
    window_dilation: Sequence[int] | None,
) -> w.Window:
    """The parameters of a window with their defaults.

    Raises:
        ValueError: for a number of entries that is not the number of axes, or sizes below 1.
    """
    ones = (1,) * len(shape)
    sizes = sizes_of(name, size)
    steps, base, holes = (sizes_of(name, v or ones) for v in (strides, base_dilation, window_dilation))
    check_window(name, f"an array of shape {tuple(shape)}", sizes, strides=steps, base_dilation=base, holes=holes)
    if len(sizes) != len(shape):
        raise ValueError(f"{name}: the window {sizes} must have an entry for each axis of the shape {tuple(shape)}")
    if isinstance(padding, str):
        given = [dilated(n, b) for n, b in zip(shape, base, strict=True)]
        spans = [dilated(k, h) for k, h in zip(sizes, holes, strict=True)]
        pairs = tuple(padtype_to_pads(given, spans, steps, padding))
    else:
        pairs = tuple((int(low), int(high)) for low, high in padding)
    return w.Window(sizes, steps, pairs, base, holes)


def reduce_window_shape_tuple(
    operand_shape: Sequence[int],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> tuple[int, ...]:
    """The shape of the result of ``reduce_window``.

    Args:
        operand_shape: the shape of the array.
        window_dimensions, window_strides, padding, base_dilation, window_dilation: as for ``reduce_window``.

    Returns:
        A tuple of integers.

    Raises:
        TypeError: for sizes that are not integers.
        ValueError: for a number of entries that is not the number of axes, or sizes below 1.

    Example:
        >>> reduce_window_shape_tuple((5, 5), (2, 2), (2, 2), "VALID")
        (2, 2)
    """
    window = window_of(
        "reduce_window_shape_tuple", operand_shape, window_dimensions, window_strides, padding, base_dilation,
        window_dilation,
    )  # fmt: skip
    return tuple(axis.out for axis in sliding(operand_shape, *window))


def _is_neutral(value: Any, kind: str, dtype: np.dtype) -> bool:
    """Whether a number is concrete and the neutral element."""
    if differentiated_by(value):
        return False
    try:
        return builtins.bool(np.asarray(concrete(value)) == MONOIDS[kind][1](dtype))
    except ConcretizationError:
        return False


def reduce_window(
    operand: Any,
    init_value: Any,
    computation: Callable[[Any, Any], Any],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: str | Sequence[tuple[int, int]] = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Any:
    """Reduces windows that slide over arrays with a binary function.

    The order is unspecified, so the function must be associative. ``add``, ``max`` and ``min`` with their neutral
    element are primitives.

    Args:
        operand: an array, or a pytree of arrays of one shape.
        init_value: a number for each, of its dtype: the value of padding and dilation holes, which is also combined
            with each window's result once.
        computation: combines two elements, or two pytrees of elements, to one.
        window_dimensions: the window's size along each axis.
        window_strides: the strides of the window; by default 1.
        padding: pairs, the padding before and after each axis; ``"VALID"`` for none, or ``"SAME"``.
        base_dilation, window_dilation: the dilation of the array and of the window; by default 1.

    Returns:
        An array of the same dtype, or a pytree of such.

    Raises:
        TypeError: for operands that are not arrays, other dtypes, or a function with other result types.
        ValueError: for different shapes, or a number of entries that is not the number of axes.

    Example:
        >>> x = np.array([1.0, 3.0, 2.0, 5.0])
        >>> print(reduce_window(x, -np.inf, np.maximum, (2,)), reduce_window(x, 0.0, np.add, (2,), (2,)))
        [3. 3. 5.] [4. 7.]
    """
    tree: Any
    xs, tree = trees.flatten(operand)
    initial, found = trees.flatten(init_value)
    if tree != found or not xs:
        raise TypeError(f"reduce_window: operand has the structure {tree}, but init_value {found}")
    pairs = [same_dtype("reduce_window", x, i) for x, i in zip(xs, initial, strict=True)]
    kinds = [type_of(x) for x, _ in pairs]
    if len({k.shape for k in kinds}) > 1 or builtins.any(type_of(i).shape for _, i in pairs):
        raise ValueError(f"reduce_window: operands must have one shape and init_value none, got {kinds}")
    window = window_of(
        "reduce_window", kinds[0].shape, window_dimensions, window_strides, padding, base_dilation, window_dilation
    )
    if xs[0] is operand:
        x, start = pairs[0]
        kind = monoid("reduce_window", computation, kinds[0].dtype)
        if kind in _KNOWN and not dtypes.is_complex(kinds[0].dtype) and _is_neutral(start, kind, kinds[0].dtype):
            return _KNOWN[kind](x, window=window)
        return _combined([x], [start], elementwise_of(computation, False), window)[0]

    def whole(a: Any, b: Any) -> Any:
        return computation(trees.unflatten(tree, a), trees.unflatten(tree, b))

    out = _combined([x for x, _ in pairs], [i for _, i in pairs], elementwise_of(whole, True), window)
    return trees.unflatten(tree, out)


def _combined(xs: list[Any], initial: list[Any], combine: Combine, window: w.Window) -> list[Any]:
    """Combines windows axis by axis, the last axis first, by recursive halving."""
    axes = window.axes(type_of(xs[0]).shape)
    params = dict(
        low=tuple(a.low for a in axes), high=tuple(a.high for a in axes),
        interior=tuple(a.base_dilation - 1 for a in axes),
    )  # fmt: skip
    parts = [s.pad(x, i, **params) for x, i in zip(xs, initial, strict=True)]
    for d in reversed(range(len(axes))):
        sections = [[_section(x, d, axes[d], k) for x in parts] for k in range(axes[d].window)]
        while len(sections) > 1:
            half = len(sections) // 2
            joined = [list(combine(*sections[2 * i : 2 * i + 2])) for i in range(half)]
            sections = joined + sections[2 * half :]
        parts = sections[0]
    shape = type_of(parts[0]).shape
    return list(combine([s.full(typed(i), shape) for i in initial], parts))


def _section(x: Any, d: int, axis: Axis, k: int) -> Any:
    """Element ``k`` of each window along one axis."""
    shape = type_of(x).shape
    start = k * axis.window_dilation
    low, high, steps = [0] * len(shape), list(shape), [1] * len(shape)
    low[d], steps[d] = start, axis.stride
    high[d] = start + (axis.out - 1) * axis.stride + 1 if axis.out else start
    return s.slice_(x, start=tuple(low), limit=tuple(high), strides=tuple(steps))
