"""Reading and writing windows of an array at computed positions: gather, the scatters, and dynamic slices.

All share one description of axis roles, ``IndexDims``, and XLA's semantics: the last axis of ``indices`` holds the
start coordinates of a window along the axes ``index_map`` of the operand; each row of coordinates is one window. A
gather is the transpose of an adding scatter with the same description.

``mode`` treats windows that are out of bounds: ``"clip"`` moves them inside, ``"fill"`` reads zeros and drops writes,
``"promise"`` asserts that there are none (otherwise behaviour is undefined).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from jax import lax

from funcgrad.core import dtypes
from funcgrad.core.ir import ArrayType
from funcgrad.core.primitive import Primitive, Rule
from funcgrad.core.tracing import type_of
from funcgrad.primitives.elementwise import add, cast, div, eq, mul, number, select, sub
from funcgrad.primitives.shape import Dims, broadcast, concatenate, full, iota, moved, reshape, zeros

MODES = {
    "clip": lax.GatherScatterMode.CLIP,
    "fill": lax.GatherScatterMode.FILL_OR_DROP,
    "promise": lax.GatherScatterMode.PROMISE_IN_BOUNDS,
}


class IndexDims(NamedTuple):
    """The axis roles of a gather or scatter.

    Attributes:
        window: the axes of the gathered result (or of the updates) inside a window; the others are those of the
            coordinate rows.
        collapsed: the operand's axes along which a window has size 1 and that the result omits.
        operand_batch: the operand's axes that are batched together with ``indices_batch``, not indexed.
        indices_batch: the matching axes of the indices.
        index_map: the operand's axis of each coordinate.
    """

    window: Dims
    collapsed: Dims
    operand_batch: Dims
    indices_batch: Dims
    index_map: Dims

    def kept(self, ndim: int) -> Dims:
        """The operand's axes that a window keeps, in the order of ``window``."""
        return tuple(d for d in range(ndim) if d not in self.collapsed and d not in self.operand_batch)

    def batched(self, operand: bool, indices: bool) -> IndexDims:
        """The description with a leading batch axis for operand and result, and optionally for the indices."""
        window, collapsed, operand_batch, index_map = (
            tuple(d + by for d in dims)
            for dims, by in (
                (self.window, 1),
                (self.collapsed, operand),
                (self.operand_batch, operand),
                (self.index_map, operand),
            )
        )
        indices_batch = tuple(d + indices for d in self.indices_batch)
        if operand and indices:
            return IndexDims(window, collapsed, (0, *operand_batch), (0, *indices_batch), index_map)
        if operand:
            return IndexDims((0, *window), collapsed, operand_batch, indices_batch, index_map)
        return IndexDims(window, collapsed, operand_batch, indices_batch, index_map)


def _check(name: str, x: ArrayType, indices: ArrayType, dims: IndexDims, sizes: Dims, mode: str) -> None:
    """Raises if a description is invalid; ``sizes`` is the window's extent along each axis of the operand."""
    where = f"for operand {x} and indices {indices}: {dims}"
    if not dtypes.is_integer(indices.dtype) or indices.ndim == 0:
        raise TypeError(f"{name}: indices must be an integer array whose last axis holds coordinates, got {indices}")
    if mode not in MODES:
        raise ValueError(f"{name}: mode {mode!r} is none of {', '.join(map(repr, MODES))}")
    if len(dims.index_map) != indices.shape[-1]:
        raise ValueError(f"{name}: {indices.shape[-1]} coordinates but {len(dims.index_map)} axes in index_map {where}")
    taken = (*dims.collapsed, *dims.operand_batch)
    if any(not 0 <= d < x.ndim for d in (*taken, *dims.index_map)) or len(set(taken)) != len(taken):
        raise ValueError(f"{name}: collapsed and operand_batch must be different axes of the operand {where}")
    if any(list(d) != sorted(d) for d in (dims.collapsed, dims.operand_batch)):
        raise ValueError(f"{name}: collapsed and operand_batch must each be increasing {where}")
    if len(set(dims.index_map)) != len(dims.index_map) or set(dims.index_map) & set(dims.operand_batch):
        raise ValueError(f"{name}: index_map must name different axes, none of them in operand_batch {where}")
    if any(not 0 <= d < indices.ndim - 1 for d in dims.indices_batch):
        raise ValueError(f"{name}: indices_batch must be axes of the indices but the last {where}")
    if [x.shape[d] for d in dims.operand_batch] != [indices.shape[d] for d in dims.indices_batch]:
        raise ValueError(f"{name}: operand_batch and indices_batch must have equal sizes {where}")
    # Along a collapsed axis a window has size 1 even if the axis is empty: every read is then out of bounds.
    if len(sizes) != x.ndim or any(
        not 0 <= s <= max(n, d in dims.collapsed) for d, (s, n) in enumerate(zip(sizes, x.shape, strict=True))
    ):
        raise ValueError(f"{name}: a window of sizes {sizes} does not fit {where}")
    if any(sizes[d] != min(1, x.shape[d]) for d in dims.operand_batch) or any(sizes[d] != 1 for d in dims.collapsed):
        raise ValueError(f"{name}: a window of sizes {sizes} must be 1 along collapsed and operand_batch {where}")


def _result_shape(x: ArrayType, indices: ArrayType, dims: IndexDims, sizes: Dims) -> Dims:
    rows, inside = iter(indices.shape[:-1]), iter(sizes[d] for d in dims.kept(x.ndim))
    ndim = indices.ndim - 1 + len(dims.window)
    return tuple(next(inside) if d in dims.window else next(rows) for d in range(ndim))


def _window_fits(name: str, ndim: int, indices: ArrayType, dims: IndexDims) -> None:
    total = indices.ndim - 1 + len(dims.window)
    inside = len(dims.kept(ndim)) == len(dims.window) and list(dims.window) == sorted(set(dims.window))
    if not inside or any(not 0 <= d < total for d in dims.window):
        raise ValueError(
            f"{name}: window {dims.window} must be increasing axes of a result with {total}, one for each axis that "
            f"a window keeps, {dims.kept(ndim)}"
        )


# ---------------------------------------------------------------- gather


def _gather_infer(
    x: ArrayType, indices: ArrayType, *, dims: IndexDims, sizes: Dims, mode: str, unique: bool
) -> ArrayType:
    _check("gather", x, indices, dims, sizes, mode)
    _window_fits("gather", x.ndim, indices, dims)
    return x.with_shape(_result_shape(x, indices, dims, sizes))


def _gather_lower(x: Any, indices: Any, *, dims: IndexDims, sizes: Dims, mode: str, unique: bool) -> Any:
    numbers = lax.GatherDimensionNumbers(
        dims.window, dims.collapsed, dims.index_map, dims.operand_batch, dims.indices_batch
    )  # fmt: skip
    zero = np.zeros((), x.dtype)[()]
    if 0 in x.shape:
        # XLA does not gather from an empty operand.
        return lax.full(_result_shape(type_of(x), type_of(indices), dims, sizes), zero)
    return lax.gather(x, indices, numbers, sizes, mode=MODES[mode], unique_indices=unique, fill_value=zero)


def _gather_transpose(
    ct: Any, x: ArrayType, indices: Any, *, dims: IndexDims, sizes: Dims, mode: str, unique: bool
) -> Any:
    return scatter_add(zeros(x), indices, ct, dims=dims, mode=mode, unique=unique)


def _gather_batch(
    size: int,
    operands: Sequence[Any],
    where: Sequence[int | None],
    *,
    dims: IndexDims,
    sizes: Dims,
    mode: str,
    unique: bool,
) -> tuple[Any, int]:
    (x, indices), (dx, di) = operands, where
    x = x if dx is None else moved(x, dx, 0)
    indices = indices if di is None else moved(indices, di, 0)
    if dx is not None:
        sizes = (size if di is None else min(1, size), *sizes)
    dims = dims.batched(dx is not None, di is not None)
    return gather(x, indices, dims=dims, sizes=sizes, mode=mode, unique=unique and dx is not None), 0


gather = Primitive(
    "gather", infer=_gather_infer, lower=_gather_lower, transpose=(_gather_transpose, None), batch=_gather_batch
)


# ---------------------------------------------------------------- scatters


def _update_sizes(x: ArrayType, updates: ArrayType, dims: IndexDims) -> Dims:
    """The window's extent along each axis of the operand."""
    inside = dict(zip(dims.kept(x.ndim), (updates.shape[d] for d in dims.window), strict=True))
    return tuple(inside.get(d, 1 if d in dims.collapsed else min(1, n)) for d, n in enumerate(x.shape))


def _scatter_infer(name: str, refuses: tuple[np.dtype, ...] = ()) -> Rule:
    def infer(
        x: ArrayType, indices: ArrayType, updates: ArrayType, *, dims: IndexDims, mode: str, unique: bool
    ) -> ArrayType:
        if x.dtype != updates.dtype:
            raise TypeError(f"{name}: operand and updates must have one dtype, got {x} and {updates}")
        if x.dtype in refuses:
            raise TypeError(f"{name}: is not defined for arrays of {x.dtype}, got {x}")
        _window_fits(name, x.ndim, indices, dims)
        if updates.ndim != indices.ndim - 1 + len(dims.window):
            raise ValueError(
                f"{name}: updates {updates} must have {indices.ndim - 1 + len(dims.window)} axes: those of indices "
                f"{indices} but the last, and the {len(dims.window)} of a window of operand {x}"
            )
        sizes = _update_sizes(x, updates, dims)
        _check(name, x, indices, dims, sizes, mode)
        wanted = _result_shape(x, indices, dims, sizes)
        if updates.shape != wanted:
            raise ValueError(
                f"{name}: updates {updates} must have the shape {wanted} for operand {x} and indices {indices}: {dims}"
            )
        return ArrayType(x.shape, x.dtype, x.weak and updates.weak)

    return infer


def _scatter_lower(scatter: Callable[..., Any]) -> Rule:
    def lower(x: Any, indices: Any, updates: Any, *, dims: IndexDims, mode: str, unique: bool) -> Any:
        if 0 in x.shape or 0 in updates.shape:
            return x
        numbers = lax.ScatterDimensionNumbers(
            dims.window, dims.collapsed, dims.index_map, dims.operand_batch, dims.indices_batch
        )  # fmt: skip
        return scatter(x, indices, updates, numbers, unique_indices=unique, mode=MODES[mode])

    return lower


def _scatter_batch(primitive: Callable[[], Primitive]) -> Rule:
    def batch(
        size: int, operands: Sequence[Any], where: Sequence[int | None], *, dims: IndexDims, mode: str, unique: bool
    ) -> tuple[Any, int]:
        (x, indices, updates), (dx, di, du) = operands, where
        indices = indices if di is None else moved(indices, di, 0)
        x, updates = _in_front(x, dx, size), _in_front(updates, du, size)
        return primitive()(x, indices, updates, dims=dims.batched(True, di is not None), mode=mode, unique=unique), 0

    return batch


def _in_front(x: Any, dim: int | None, size: int) -> Any:
    """``x`` with its batch axis first; broadcast if it has none."""
    if dim is not None:
        return moved(x, dim, 0)
    shape = type_of(x).shape
    return broadcast(x, shape=(size, *shape), dims=tuple(range(1, len(shape) + 1)))


def _read(x: Any, indices: Any, updates: ArrayType, dims: IndexDims, mode: str, unique: bool) -> Any:
    """The elements of ``x`` in a scatter's windows: the gather with the same description."""
    return gather(x, indices, dims=dims, sizes=_update_sizes(type_of(x), updates, dims), mode=mode, unique=unique)


scatter_add = Primitive(
    "scatter_add",
    infer=_scatter_infer("scatter_add", (dtypes.bool_,)),
    lower=_scatter_lower(lax.scatter_add),
    transpose=(
        lambda ct, x, indices, updates, *, dims, mode, unique: ct,
        None,
        lambda ct, x, indices, updates, *, dims, mode, unique: _read(ct, indices, updates, dims, mode, unique),
    ),
    batch=_scatter_batch(lambda: scatter_add),
)


def _set_transpose_x(
    ct: Any, x: ArrayType, indices: Any, updates: Any, *, dims: IndexDims, mode: str, unique: bool
) -> Any:
    nothing = zeros(updates if isinstance(updates, ArrayType) else type_of(updates))
    return scatter(ct, indices, nothing, dims=dims, mode=mode, unique=unique)


def _set_transpose_updates(
    ct: Any, x: Any, indices: Any, updates: ArrayType, *, dims: IndexDims, mode: str, unique: bool
) -> Any:
    read = _read(ct, indices, updates, dims, mode, unique)
    if unique:
        return read
    # One of several updates to a position is kept. To find out which, scatter their indices in the same way.
    wide = ArrayType(type_of(ct).shape, dtypes.int64)
    numbers = reshape(iota(shape=(updates.size,), axis=0, dtype=dtypes.int64), shape=updates.shape)
    written = scatter(full(np.int64(-1), wide.shape), indices, numbers, dims=dims, mode=mode, unique=unique)
    stayed = eq(_read(written, indices, updates, dims, mode, unique), numbers)
    return select(stayed, read, number(0, read))


# XLA chooses which of several updates to a position is kept (the last, on the CPU); its derivative is 1, the others' 0.
# unique=True promises that there are no duplicates.
scatter = Primitive(
    "scatter",
    infer=_scatter_infer("scatter"),
    lower=_scatter_lower(lax.scatter),
    transpose=(_set_transpose_x, None, _set_transpose_updates),
    batch=_scatter_batch(lambda: scatter),
)

# The same with PyTorch's backward formula, a single gather: every update gets its element's cotangent, kept or not.
put = Primitive(
    "put",
    infer=_scatter_infer("put"),
    lower=_scatter_lower(lax.scatter),
    transpose=(
        _set_transpose_x,
        None,
        lambda ct, x, indices, updates, *, dims, mode, unique: _read(ct, indices, updates, dims, mode, unique),
    ),
    batch=_scatter_batch(lambda: put),
)


# ---------------------------------------------------------------- nonlinear scatters


def _or_zero(tangent: Any, primal: Any) -> Any:
    return zeros(type_of(primal)) if tangent is None else tangent


def _mul_jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, dims: IndexDims, mode: str, unique: bool
) -> tuple[Any, Any]:
    """The derivative of a product of x and its updates, by counting the zero factors.

    No zero: product * sum of t / factor. One: the product of the others times its t. More: 0. Multiplication by a zero
    factor is kept for the second derivative. (With unique indices there are at most two factors, and the rule is exact
    to all orders; otherwise up to the second order where there are zeros.)
    """
    x, indices, u = primals
    tx, tu = _or_zero(tangents[0], x), _or_zero(tangents[2], u)
    params: dict[str, Any] = dict(dims=dims, mode=mode, unique=unique)
    out = scatter_mul(x, indices, u, **params)
    if unique:
        here, moving = (_read(v, indices, type_of(u), dims, mode, unique) for v in (x, tx))
        return out, scatter(tx, indices, add(mul(moving, u), mul(here, tu)), **params)
    zx, zu = eq(x, number(0, x)), eq(u, number(0, u))
    one, zero = number(1, x), number(0, x)
    fx, fu = select(zx, one, x), select(zu, one, u)
    count = scatter_add(cast(zx, dtype=dtypes.int32), indices, cast(zu, dtype=dtypes.int32), **params)
    others = scatter_mul(fx, indices, fu, **params)
    nonzero = scatter_add(div(select(zx, zero, tx), fx), indices, div(select(zu, zero, tu), fu), **params)
    zeros_of = lambda vx, vu: scatter_add(select(zx, vx, zero), indices, select(zu, vu, zero), **params)
    at_zero, nothing = zeros_of(tx, tu), zeros_of(x, u)
    at_two = sub(mul(nothing, at_zero), zeros_of(mul(x, tx), mul(u, tu)))
    cases = ((1, add(at_zero, mul(nothing, nonzero))), (2, at_two))
    total = select(eq(count, np.int32(0)), nonzero, zero)
    for number_of_zeros, change in cases:
        total = select(eq(count, np.int32(number_of_zeros)), change, total)
    return out, mul(others, total)


scatter_mul = Primitive(
    "scatter_mul",
    infer=_scatter_infer("scatter_mul", (dtypes.bool_,)),
    lower=_scatter_lower(lax.scatter_mul),
    jvp=_mul_jvp,
    batch=_scatter_batch(lambda: scatter_mul),
)


def _scatter_extreme(name: str, lower: Callable[..., Any]) -> Primitive:
    def jvp(
        primals: Sequence[Any], tangents: Sequence[Any], *, dims: IndexDims, mode: str, unique: bool
    ) -> tuple[Any, Any]:
        # Tied elements share the derivative evenly, as in a reduction.
        x, indices, u = primals
        params: dict[str, Any] = dict(dims=dims, mode=mode, unique=unique)
        out = primitive(x, indices, u, **params)
        mine = cast(eq(x, out), dtype=type_of(x).dtype)
        theirs = cast(eq(u, _read(out, indices, type_of(u), dims, mode, unique)), dtype=type_of(x).dtype)
        share = scatter_add(mine, indices, theirs, **params)
        tx, tu = mul(mine, _or_zero(tangents[0], x)), mul(theirs, _or_zero(tangents[2], u))
        return out, div(scatter_add(tx, indices, tu, **params), share)

    primitive = Primitive(
        name,
        infer=_scatter_infer(name, (dtypes.bool_, *dtypes.COMPLEX)),
        lower=_scatter_lower(lower),
        jvp=jvp,
        batch=_scatter_batch(lambda: primitive),
    )
    return primitive


scatter_max = _scatter_extreme("scatter_max", lax.scatter_max)
scatter_min = _scatter_extreme("scatter_min", lax.scatter_min)


# ---------------------------------------------------------------- dynamic slices


def _one_window(ndim: int) -> IndexDims:
    every = tuple(range(ndim))
    return IndexDims(window=every, collapsed=(), operand_batch=(), indices_batch=(), index_map=every)


def _check_starts(name: str, x: ArrayType, starts: ArrayType, sizes: Dims) -> None:
    if not dtypes.is_integer(starts.dtype) or starts.shape != (x.ndim,):
        raise TypeError(f"{name}: starts must be {x.ndim} integers for {x}, got {starts}")
    if len(sizes) != x.ndim or any(not 0 <= s <= n for s, n in zip(sizes, x.shape, strict=True)):
        raise ValueError(f"{name}: a window of sizes {sizes} does not fit {x}")


def _slice_infer(x: ArrayType, starts: ArrayType, *, sizes: Dims) -> ArrayType:
    _check_starts("dynamic_slice", x, starts, sizes)
    return x.with_shape(sizes)


def _scalars(starts: Any) -> list[Any]:
    return [lax.index_in_dim(starts, i, keepdims=False) for i in range(starts.shape[0])]


def _shifted(starts: Any) -> Any:
    """``starts`` with a leading 0, for a batch axis that is taken whole."""
    return concatenate(full(number(0, starts), (1,)), starts, axis=0)


def _slice_batch(size: int, operands: Sequence[Any], where: Sequence[int | None], *, sizes: Dims) -> tuple[Any, int]:
    (x, starts), (dx, ds) = operands, where
    if ds is None:
        assert dx is not None
        return dynamic_slice(moved(x, dx, 0), _shifted(starts), sizes=(size, *sizes)), 0
    return _gather_batch(size, operands, where, dims=_one_window(len(sizes)), sizes=sizes, mode="clip", unique=True)


# Starts are clamped so that the window is in bounds.
dynamic_slice = Primitive(
    "dynamic_slice",
    infer=_slice_infer,
    lower=lambda x, starts, *, sizes: lax.dynamic_slice(x, _scalars(starts), sizes, allow_negative_indices=False),
    transpose=(lambda ct, x, starts, *, sizes: dynamic_update_slice(zeros(x), starts, ct), None),
    batch=_slice_batch,
)


def _update_infer(x: ArrayType, starts: ArrayType, update: ArrayType) -> ArrayType:
    if x.dtype != update.dtype:
        raise TypeError(f"dynamic_update_slice: operand and update must have one dtype, got {x} and {update}")
    _check_starts("dynamic_update_slice", x, starts, update.shape)
    return ArrayType(x.shape, x.dtype, x.weak and update.weak)


def _update_transpose_x(ct: Any, x: ArrayType, starts: Any, update: Any) -> Any:
    nothing = zeros(update if isinstance(update, ArrayType) else type_of(update))
    return dynamic_update_slice(ct, starts, nothing)


def _update_batch(size: int, operands: Sequence[Any], where: Sequence[int | None]) -> tuple[Any, int]:
    (x, starts, update), (dx, ds, du) = operands, where
    if ds is None:
        return dynamic_update_slice(_in_front(x, dx, size), _shifted(starts), _in_front(update, du, size)), 0
    dims = _one_window(type_of(x).ndim - (dx is not None))
    return scatter.batch(size, operands, where, dims=dims, mode="clip", unique=True)  # type: ignore[misc]


dynamic_update_slice = Primitive(
    "dynamic_update_slice",
    infer=_update_infer,
    lower=lambda x, starts, update: lax.dynamic_update_slice(x, update, _scalars(starts), allow_negative_indices=False),
    transpose=(
        _update_transpose_x,
        None,
        lambda ct, x, starts, update: dynamic_slice(ct, starts, sizes=update.shape),
    ),
    batch=_update_batch,
)


# ---------------------------------------------------------------- common descriptions


def take_along_dims(ndim: int, axis: int) -> IndexDims:
    """The description of ``take_along``, for the matching scatter."""
    others = tuple(d for d in range(ndim) if d != axis)
    return IndexDims(window=(), collapsed=(axis,), operand_batch=others, indices_batch=others, index_map=(axis,))


def take_along(x: Any, indices: Any, *, axis: int, mode: str = "fill", unique: bool = False) -> Any:
    """``out[.., i, ..] = x[.., indices[.., i, ..], ..]`` along one axis; the other axes of ``x`` and ``indices`` agree.

    Args:
        indices: non-negative.
        unique: promises that no position is read twice, so that the transpose writes none twice.

    Example:
        >>> import numpy as np
        >>> take_along(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1], [0]]), axis=1).tolist()
        [[2.0], [3.0]]
    """
    ndim = type_of(x).ndim
    coordinates = reshape(indices, shape=(*type_of(indices).shape, 1))
    sizes = tuple(min(1, n) if d != axis else 1 for d, n in enumerate(type_of(x).shape))
    return gather(x, coordinates, dims=take_along_dims(ndim, axis), sizes=sizes, mode=mode, unique=unique)


def take_dims(ndim: int, axis: int, index_ndim: int) -> IndexDims:
    """The description of ``take``, for the matching scatter."""
    window = tuple(d if d < axis else d - 1 + index_ndim for d in range(ndim) if d != axis)
    return IndexDims(window=window, collapsed=(axis,), operand_batch=(), indices_batch=(), index_map=(axis,))


def take(x: Any, indices: Any, *, axis: int, mode: str = "fill", unique: bool = False) -> Any:
    """The slices of ``x`` at ``indices`` along an axis, which is replaced by the axes of ``indices``.

    Args:
        indices: non-negative.
        unique: promises that indices are distinct.

    Example:
        >>> import numpy as np
        >>> take(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1, 1, 0]), axis=0).tolist()
        [[3.0, 4.0], [3.0, 4.0], [1.0, 2.0]]
    """
    t, i = type_of(x), type_of(indices)
    coordinates = reshape(indices, shape=(*i.shape, 1))
    sizes = tuple(1 if d == axis else n for d, n in enumerate(t.shape))
    return gather(x, coordinates, dims=take_dims(t.ndim, axis, i.ndim), sizes=sizes, mode=mode, unique=unique)
