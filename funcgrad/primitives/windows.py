"""Windowed reductions: sums and extrema over a window that slides along every axis.

An axis without sliding has window 1, stride 1, no padding and no dilation. Padding and dilation holes hold the
reduction's neutral element and are never chosen as an extremum.

They are lowered to slices, combined axis by axis, which XLA fuses into one loop: several times faster on the CPU than
reduce-window, and select-and-scatter is slower still (measured).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from jax import lax

from funcgrad.core import dtypes
from funcgrad.core.ir import ArrayType
from funcgrad.core.primitive import Primitive, Rule
from funcgrad.core.tracing import type_of
from funcgrad.primitives.elementwise import add, cast, div, lt, mul, number, rem, select, sub
from funcgrad.primitives.geometry import Axis, Pairs, check_window, dilated, sliding
from funcgrad.primitives.indexing import IndexDims, gather
from funcgrad.primitives.shape import Dims, concatenate, expanded, full, iota, reshape

# Up to so many slices are combined directly; more by doubling.
_DIRECT = 16


class Window(NamedTuple):
    """The parameters of a sliding window, one entry per axis."""

    size: Dims
    strides: Dims
    padding: Pairs
    base_dilation: Dims
    window_dilation: Dims

    def axes(self, shape: Dims) -> list[Axis]:
        return sliding(shape, *self)

    def slides(self) -> Dims:
        """The axes along which the window is not trivial."""
        entries = zip(*self, strict=True)
        return tuple(d for d, (k, s, p, b, _) in enumerate(entries) if (k, s, b) != (1, 1, 1) or tuple(p) != (0, 0))

    def with_axis(self, dim: int) -> Window:
        """The window with an additional axis along which it does not slide."""
        idle: tuple[Any, ...] = (1, 1, (0, 0), 1, 1)
        entries: list[Any] = [(*v[:dim], i, *v[dim:]) for v, i in zip(self, idle, strict=True)]
        return Window(*entries)


def window_over(
    ndim: int,
    axes: Sequence[int],
    size: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Sequence[tuple[int, int]] | None = None,
    dilation: Sequence[int] | None = None,
) -> Window:
    """A window that slides along ``axes`` of an array with ``ndim`` axes, as in pooling.

    Args:
        strides: the window's size by default.
        padding: pairs (low, high); none by default.
        dilation: the dilation of the window.

    Example:
        >>> window_over(3, (2,), (4,)).strides
        (1, 1, 4)
    """

    def spread(values: Sequence[Any], idle: Any) -> tuple:
        at = dict(zip(axes, values, strict=True))
        return tuple(at.get(d, idle) for d in range(ndim))

    ones = [1] * len(axes)
    return Window(
        spread(size, 1),
        spread(strides or size, 1),
        spread(padding or [(0, 0)] * len(axes), (0, 0)),
        spread(ones, 1),
        spread(dilation or ones, 1),
    )


def _check(name: str, x: ArrayType, window: Window) -> ArrayType:
    if len(window.size) != x.ndim:
        raise ValueError(f"{name}: the window {window.size} must have an entry for each axis of {x}")
    size, *rest = window
    check_window(name, x, size, **dict(zip(Window._fields[1:], rest, strict=True)))
    return x.with_shape(tuple(a.out for a in window.axes(x.shape)))


def _batch(primitive: Callable[[], Primitive]) -> Rule:
    def batch(size: int, operands: Sequence[Any], dims: Sequence[int], *, window: Window) -> tuple[Any, Any]:
        out = primitive()(operands[0], window=window.with_axis(dims[0]))
        return out, [dims[0]] * 2 if primitive().multiple else dims[0]

    return batch


# ---------------------------------------------------------------- lowering

State = tuple[Any, ...]
Combine = Callable[[State, State], State]


def _slide(state: State, window: Window, axes: list[Axis], combine: Callable[[int], Combine]) -> State:
    """Combines each window of padded arrays, axis by axis, the last axis first.

    Args:
        combine: given the row-major offset between two states within the window, the function that combines them. The
            values are the first array of a state.
    """
    for d in reversed(range(len(axes))):
        a = axes[d]
        if a.window > 1 or a.stride > 1:
            state = _slide_axis(state, d, a, math.prod(window.size[d + 1 :]), combine)
    return state


def _slide_axis(state: State, d: int, a: Axis, weight: int, combine: Callable[[int], Combine]) -> State:
    """Combines along one axis, where a step skips ``weight`` elements of the window."""

    def at(parts: State, k: int, count: int, stride: int) -> State:
        start = k * a.window_dilation
        return tuple(lax.slice_in_dim(v, start, start + (count - 1) * stride + 1, stride, d) for v in parts)

    if a.window <= _DIRECT:
        out = at(state, 0, a.out, a.stride)
        for k in range(1, a.window):
            out = combine(k * weight)(out, at(state, k, a.out, a.stride))
        return out
    # By doubling: ``power`` covers 2**b elements, ``done`` those of the processed bits of the window's size.
    count = (a.out - 1) * a.stride + 1
    power, covered, done = state, 1, 0
    total: State | None = None
    while True:
        if a.window & covered:
            part = at(power, done, count, 1)
            total = part if total is None else combine(done * weight)(total, part)
            done += covered
        if done == a.window:
            assert total is not None
            return tuple(lax.slice_in_dim(v, 0, count, a.stride, d) for v in total)
        length = power[0].shape[d] - covered * a.window_dilation
        power = combine(covered * weight)(at(power, 0, length, 1), at(power, covered, length, 1))
        covered *= 2


def _padded(x: Any, value: Any, axes: list[Axis]) -> Any:
    return lax.pad(x, np.asarray(value, x.dtype), [(a.low, a.high, a.base_dilation - 1) for a in axes])


def _empty(x: Any, axes: list[Axis]) -> Any:
    return lax.full([a.out for a in axes], np.zeros((), x.dtype))


def _reduced(x: Any, window: Window, neutral: Any, combine: Callable[[Any, Any], Any]) -> Any:
    axes = window.axes(x.shape)
    if any(a.out == 0 for a in axes):
        return _empty(x, axes)
    return _slide((_padded(x, neutral, axes),), window, axes, lambda _: lambda a, b: (combine(a[0], b[0]),))[0]


# ---------------------------------------------------------------- sums


def _sum_infer(x: ArrayType, *, window: Window) -> ArrayType:
    if x.dtype == dtypes.bool_:
        raise TypeError(f"window_sum: takes numeric arrays, got {x}")
    return _check("window_sum", x, window)


def _sum_lower(x: Any, *, window: Window) -> Any:
    # float16 and bfloat16 are summed in float32, as in a reduction.
    wide = lax.convert_element_type(x, np.float32) if x.dtype in (dtypes.float16, dtypes.bfloat16) else x
    return lax.convert_element_type(_reduced(wide, window, 0, lax.add), x.dtype)


def _sum_transpose(ct: Any, x: ArrayType, *, window: Window) -> Any:
    axes = window.axes(x.shape)
    if any(a.out == 0 for a in axes):
        return full(number(0, ct), x.shape)
    padding = tuple(a.back_to_input() for a in axes)
    return window_sum(
        ct, window=Window(window.size, window.base_dilation, padding, window.strides, window.window_dilation)
    )


window_sum = Primitive(
    "window_sum", infer=_sum_infer, lower=_sum_lower, transpose=(_sum_transpose,), batch=_batch(lambda: window_sum)
)


# ---------------------------------------------------------------- extremes


def _extreme_infer(name: str) -> Rule:
    def infer(x: ArrayType, *, window: Window) -> ArrayType:
        if dtypes.is_complex(x.dtype):
            raise TypeError(f"{name}: takes real or bool arrays, got {x}")
        return _check(name, x, window)

    return infer


def _lowest(dtype: np.dtype) -> Any:
    return False if dtype == dtypes.bool_ else -np.inf if dtypes.is_floating(dtype) else np.iinfo(dtype).min


def _highest(dtype: np.dtype) -> Any:
    return True if dtype == dtypes.bool_ else np.inf if dtypes.is_floating(dtype) else np.iinfo(dtype).max


def _extreme(
    name: str,
    neutral: Callable[[np.dtype], Any],
    combine: Callable[[Any, Any], Any],
    with_offset: Callable[[], Primitive],
) -> Primitive:
    def jvp(primals: Sequence[Any], tangents: Sequence[Any], *, window: Window) -> tuple[Any, Any]:
        out, offset = with_offset()(primals[0], window=window)
        return out, window_take(tangents[0], offset, window=window)

    primitive = Primitive(
        name,
        infer=_extreme_infer(name),
        lower=lambda x, *, window: _reduced(x, window, neutral(x.dtype), combine),
        jvp=jvp,
        batch=_batch(lambda: primitive),
    )
    return primitive


window_max = _extreme("window_max", _lowest, lax.max, lambda: window_argmax)
window_min = _extreme("window_min", _highest, lax.min, lambda: window_argmin)


def _arg_extreme(
    name: str, neutral: Callable[[np.dtype], Any], combine: Callable[[Any, Any], Any], better: Callable[[Any, Any], Any]
) -> Primitive:
    """The extremum, and its row-major index within the window.

    The first of equal elements; NaN is preferred to any number, the last NaN first, as in PyTorch. The index is -1 for
    a window of padding only.
    """
    infer_value = _extreme_infer(name)

    def infer(x: ArrayType, *, window: Window) -> list[ArrayType]:
        out = infer_value(x, window=window)
        return [out, ArrayType(out.shape, dtypes.int32)]

    def lower(x: Any, *, window: Window) -> list[Any]:
        axes = window.axes(x.shape)
        if any(a.out == 0 for a in axes):
            return [_empty(x, axes), lax.full([a.out for a in axes], np.int32(0))]
        padded = _padded(x, neutral(x.dtype), axes)
        _, number_ = _slide((padded, lax.full(padded.shape, np.int32(0))), window, axes, step)
        # The values separately: another loop, which XLA would not share anyway, but vectorized.
        return [_reduced(x, window, neutral(x.dtype), combine), _in_bounds(number_, window, axes)]

    def step(skipped: int) -> Combine:
        def choose(a: State, b: State) -> State:
            take = better(b[0], a[0])
            if dtypes.is_floating(b[0].dtype):
                take = lax.bitwise_or(take, lax.ne(b[0], b[0]))
            moved = lax.add(b[1], lax.full_like(b[1], skipped))
            return lax.select(take, b[0], a[0]), lax.select(take, moved, a[1])

        return choose

    def jvp(primals: Sequence[Any], tangents: Sequence[Any], *, window: Window) -> tuple[list[Any], list[Any]]:
        out, offset = primitive(primals[0], window=window)
        return [out, offset], [window_take(tangents[0], offset, window=window), None]

    primitive = Primitive(name, infer=infer, lower=lower, jvp=jvp, batch=_batch(lambda: primitive), multiple=True)
    return primitive


def _in_bounds(chosen: Any, window: Window, axes: list[Axis]) -> Any:
    """``chosen``, but for padding or a hole the first valid element of the window, or else -1.

    Padding is chosen only if no element beats the neutral element; then all elements are equal.
    """
    valid: Any = None
    first: Any = None
    for d, a in enumerate(axes):
        if a.low <= 0 and a.high <= 0 and a.base_dilation == 1:
            continue
        element = np.arange(a.out)[:, None] * a.stride + np.arange(a.window) * a.window_dilation - a.low
        exists = (element >= 0) & (element % a.base_dilation == 0) & (element < dilated(a.size, a.base_dilation))
        weight = math.prod(window.size[d + 1 :])

        def along(values: np.ndarray, d: int = d) -> Any:
            return lax.broadcast_in_dim(values, chosen.shape, (d,))

        k = lax.rem(lax.div(chosen, np.int32(weight)), np.int32(a.window))
        here = along(exists[:, 0])
        for n in range(1, a.window):
            here = lax.select(lax.eq(k, lax.full_like(k, n)), along(exists[:, n]), here)
        start = np.where(exists.any(1), exists.argmax(1) * weight, -np.prod(window.size)).astype(np.int32)
        valid = here if valid is None else lax.bitwise_and(valid, here)
        first = along(start) if first is None else lax.add(first, along(start))
    if valid is None:
        return chosen
    return lax.select(valid, chosen, lax.max(first, lax.full_like(first, -1)))


window_argmax = _arg_extreme("window_argmax", _lowest, lax.max, lax.gt)
window_argmin = _arg_extreme("window_argmin", _highest, lax.min, lax.lt)


# ---------------------------------------------------------------- positions of extrema


def window_coordinates(offset: Any, *, window: Window) -> dict[int, Any]:
    """The input coordinates of the elements at ``offset``, for each axis along which the window slides.

    Args:
        offset: indices from ``window_argmax``, of the output's shape; -1 gives coordinates of -1.

    Returns:
        ``{axis: coordinates}``, int32 arrays of the output's shape.
    """
    shape = type_of(offset).shape
    none = lt(offset, number(0, offset))
    found = {}
    for d in window.slides():
        k = rem(div(offset, np.int32(math.prod(window.size[d + 1 :]))), np.int32(window.size[d]))
        start = iota(shape=shape, axis=d, dtype=dtypes.int32)
        j = add(mul(start, np.int32(window.strides[d])), mul(k, np.int32(window.window_dilation[d])))
        j = div(sub(j, np.int32(window.padding[d][0])), np.int32(window.base_dilation[d]))
        found[d] = select(none, np.int32(-1), j)
    return found


def window_index(offset: Any, shape: Dims, axes: Dims, *, window: Window) -> Any:
    """The row-major index over ``axes`` of the input (of ``shape``) of the elements at ``offset``, or -1.

    Over the spatial axes these are PyTorch's pooling indices.

    Example:
        >>> import numpy as np
        >>> window = window_over(2, (0, 1), (2, 2))
        >>> x = np.array([[1, 5, 0, 0], [2, 3, 0, 7]], np.float32)
        >>> values, offset = window_argmax(x, window=window)
        >>> values.tolist(), window_index(offset, x.shape, (0, 1), window=window).tolist()
        ([[5.0, 7.0]], [[1, 7]])
    """
    coordinates = window_coordinates(offset, window=window)
    every = [
        coordinates[d] if d in coordinates else iota(shape=type_of(offset).shape, axis=d, dtype=dtypes.int32)
        for d in axes
    ]
    total = _row_major([cast(c, dtype=dtypes.int64) for c in every], [shape[d] for d in axes])
    return select(lt(offset, number(0, offset)), np.int64(-1), total)


def window_take(x: Any, offset: Any, *, window: Window) -> Any:
    """The element of each window of ``x`` at ``offset``; 0 where that is -1."""
    axes = window.slides()
    if not axes:
        return x
    shape, source = type_of(offset).shape, type_of(x).shape
    coordinates = window_coordinates(offset, window=window)
    # Adjacent axes are indexed as one: fewer coordinates to compute.
    runs: list[list[int]] = []
    for d in range(len(source)):
        if d in axes and d - 1 in axes:
            runs[-1].append(d)
        else:
            runs.append([d])
    indexed = [i for i, run in enumerate(runs) if run[0] in axes]
    idle = tuple(i for i in range(len(runs)) if i not in indexed)
    flat = [_row_major([coordinates[d] for d in runs[i]], [source[d] for d in runs[i]]) for i in indexed]
    indices = concatenate(*[expanded(c, len(shape)) for c in flat], axis=len(shape))
    dims = IndexDims(
        window=(),
        collapsed=tuple(indexed),
        operand_batch=idle,
        indices_batch=tuple(runs[i][0] for i in idle),
        index_map=tuple(indexed),
    )
    merged = reshape(x, shape=tuple(math.prod(source[d] for d in run) for run in runs))
    sizes = tuple(1 if i in indexed else min(1, n) for i, n in enumerate(type_of(merged).shape))
    return gather(merged, indices, dims=dims, sizes=sizes, mode="fill", unique=False)


def _row_major(coordinates: Sequence[Any], sizes: Sequence[int]) -> Any:
    total = coordinates[0]
    for c, n in zip(coordinates[1:], sizes[1:], strict=True):
        total = add(mul(total, number(n, total)), c)
    return total
