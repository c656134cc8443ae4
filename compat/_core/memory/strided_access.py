"""Reads and writes of strided elements, as pure functions of the buffer.

``read`` returns a tensor's elements in its own shape, ``write`` a new buffer with these elements replaced. Both consist
of reshapes, slices, transposes and broadcasts, so they can be part of any program, be differentiated, and be fused by
XLA into their consumers. The offset is a number or an array.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from compat._core.memory.strides import Layout, cells, contiguous_strides
from compat._core.types.dtype import COMPLEX, bool_
from compat._core.types.dtype import dtype as Dtype
from funcgrad import runtime
from funcgrad.core.tracing import type_of
from funcgrad.primitives import elementwise as e
from funcgrad.primitives import indexing as ix
from funcgrad.primitives import shape as s

Ints = tuple[int, ...]


def read(buffer: Any, layout: Layout, offset: Any = 0) -> Any:
    """The elements, as an array of the layout's size and dtype."""
    kind = layout.access[0]
    x = reinterpret(buffer, layout.base.dtype, layout.dtype)
    if kind == "empty":
        # A slice of the buffer, so that the buffer's gradient is zeros rather than None.
        return _reshape(_slice(_flat(x), (0,)), tuple(layout.size))
    x = _READ[kind](x, layout, offset)
    if layout.conj:
        x = e.conj(x)
    return e.neg(x) if layout.neg else x


def write(buffer: Any, layout: Layout, offset: Any, value: Any) -> Any:
    """The buffer with the layout's elements replaced by ``value``, an array of its size and dtype."""
    kind = layout.access[0]
    if kind == "empty":
        return _reshape(value, layout.base.shape) if buffer is None else buffer
    if layout.neg:
        value = e.neg(value)
    if layout.conj:
        value = e.conj(value)
    if kind == "whole":
        x = _settle(value, layout, _sorted_dims(layout))
    else:
        x = _WRITE[kind](reinterpret(buffer, layout.base.dtype, layout.dtype), layout, offset, value)
    x = _reshape(x, cells(layout.base, layout.dtype))
    made = reinterpret(x, layout.dtype, layout.base.dtype)
    left = layout.base.numel - type_of(made).size
    if left:  # trailing bytes that are less than one element of the layout's dtype
        tail = s.slice_(_flat(buffer), start=(layout.base.numel - left,), limit=(layout.base.numel,), strides=(1,))
        made = s.concatenate(_flat(made), tail, axis=0)
    return _reshape(made, layout.base.shape)


def elements_of(memory: np.ndarray, dtype: Any) -> np.ndarray:
    """Contiguous memory as elements of a dtype, without trailing bytes that are less than one element."""
    flat, size = memory.reshape(-1), np.dtype(dtype).itemsize
    if flat.nbytes % size:
        flat = flat[: flat.nbytes // size * size // flat.itemsize]
    return flat.view(dtype)


def viewed(memory: np.ndarray, layout: Layout, offset: int) -> np.ndarray:
    """The elements in contiguous memory, as a view of it."""
    step = layout.dtype.itemsize
    strides = [n * step for n in layout.stride]
    # As bytes: some dtypes cannot be in a buffer.
    return np.ndarray(layout.size, layout.dtype.numpy, elements_of(memory, np.uint8), offset * step, strides)


def to_numpy(buffer: Any, layout: Layout, offset: int = 0) -> np.ndarray:
    """The elements as a NumPy array: a read-only view of the buffer, unless they must be conjugated or negated."""
    whole = runtime.to_numpy(buffer)
    if layout.contiguous and layout.access[0] == "whole" and layout.dtype is layout.base.dtype:
        array = whole.reshape(layout.size)
    elif layout.numel == 0:
        array = np.zeros(layout.size, layout.dtype.numpy)
    else:
        array = viewed(np.ascontiguousarray(whole), layout, offset)
        array.flags.writeable = False
    if layout.conj:
        array = np.conj(array)
    return np.negative(array) if layout.neg else array


def number(buffer: Any, layout: Layout, offset: int = 0) -> Any:
    """The one element of a layout, as a Python number.

    Raises:
        ValueError: if it has not one element.
    """
    if layout.numel == 1 and layout.dtype is layout.base.dtype and not (layout.conj or layout.neg):
        return runtime.to_numpy(buffer).item(offset)
    return to_numpy(buffer, layout, offset).item()


def buffer_from_numpy(array: np.ndarray) -> Any:
    """A buffer of the array's shape with a copy of its contents."""
    return runtime.on_host(array)


# ---------------------------------------------------------------- pieces


def _reshape(x: Any, shape: Ints) -> Any:
    return x if type_of(x).shape == tuple(shape) else s.reshape(x, shape=tuple(shape))


def _transpose(x: Any, order: Sequence[int]) -> Any:
    return x if list(order) == list(range(len(order))) else s.transpose(x, permutation=tuple(order))


def _slice(x: Any, limit: Ints, strides: Ints | None = None) -> Any:
    shape = type_of(x).shape
    strides = strides or (1,) * len(shape)
    if limit == shape and max(strides, default=1) == 1:
        return x
    return s.slice_(x, start=(0,) * len(shape), limit=limit, strides=strides)


def _sorted_dims(layout: Layout) -> list[int]:
    """The dimensions with more than one element and a stride, from the outermost to the innermost in memory."""
    moving = [(st, n, d) for d, (n, st) in enumerate(zip(layout.size, layout.stride)) if n > 1 and st > 0]
    return [d for _, _, d in sorted(moving, reverse=True)]


def _arrange(x: Any, layout: Layout, dims: Sequence[int]) -> Any:
    """The tensor, from an array whose axes are its dimensions ``dims``; broadcasts along the others."""
    order = sorted(range(len(dims)), key=dims.__getitem__)
    x = _transpose(x, order)
    size = tuple(layout.size)
    if type_of(x).shape == size:
        return x
    if all(n == 1 for d, n in enumerate(size) if d not in dims):
        return s.reshape(x, shape=size)
    return s.broadcast(x, shape=size, dims=tuple(sorted(dims)))


def _settle(value: Any, layout: Layout, dims: Sequence[int]) -> Any:
    """The inverse: the array whose axes are ``dims``, from the tensor."""
    value = _slice(value, tuple(n if d in dims else 1 for d, n in enumerate(layout.size)))
    value = _reshape(value, tuple(layout.size[d] for d in sorted(dims)))
    return _transpose(value, [sorted(dims).index(d) for d in dims])


# ---------------------------------------------------------------- whole


def _read_whole(x: Any, layout: Layout, offset: Any) -> Any:
    dims = _sorted_dims(layout)
    if dims == sorted(dims) and type_of(x).shape == layout.size:
        return x
    return _arrange(_reshape(x, tuple(layout.size[d] for d in dims)), layout, dims)


# ---------------------------------------------------------------- grid


class _Grid:
    """The slices of a grid: per axis the number of elements, the step, and the start."""

    def __init__(self, layout: Layout, offset: Any):
        _, self.shape, axes = layout.access
        self.dims = [axis[0] for axis in axes if axis is not None]
        self.counts = tuple(1 if axis is None else layout.size[axis[0]] for axis in axes)
        self.steps = tuple(1 if axis is None else axis[1] for axis in axes)
        self.spans = tuple((n - 1) * step + 1 for n, step in zip(self.counts, self.steps))
        self.starts = _vector(_digits(offset, self.shape, self.spans))

    def window(self, x: Any) -> Any:
        return ix.dynamic_slice(x, self.starts, sizes=self.spans) if self.shape else x

    def put(self, x: Any, window: Any) -> Any:
        return ix.dynamic_update_slice(x, self.starts, window) if self.shape else window


def _vector(numbers: Sequence[Any]) -> Any:
    """Scalars, constant or traced, as a vector."""
    pieces = [np.array([n]) if isinstance(n, np.integer) else s.full(n, (1,)) for n in numbers]
    return s.concatenate(*pieces, axis=0) if len(pieces) > 1 else pieces[0] if pieces else None


def _digits(offset: Any, shape: Ints, spans: Ints) -> list[Any]:
    """The starts along each axis of windows of sizes ``spans`` that begin at a flat offset."""
    digits: list[Any] = []
    slower = False  # whether the offset moves along an outer axis, too
    for n, span, unit in zip(shape, spans, contiguous_strides(shape)):
        if span == n:
            digits.append(np.int64(0))
        elif isinstance(offset, int):
            digits.append(np.int64(offset // unit % n))
        else:
            quotient = e.div(offset, np.int64(unit)) if unit > 1 else offset
            digits.append(e.rem(quotient, np.int64(n)) if slower else quotient)
        slower = slower or span != n
    return digits


def _read_grid(x: Any, layout: Layout, offset: Any) -> Any:
    grid = _Grid(layout, offset)
    x = _slice(grid.window(_reshape(x, grid.shape)), grid.spans, grid.steps)
    return _arrange(_reshape(x, tuple(layout.size[d] for d in grid.dims)), layout, grid.dims)


def _write_grid(x: Any, layout: Layout, offset: Any, value: Any) -> Any:
    grid = _Grid(layout, offset)
    x = _reshape(x, grid.shape)
    value = _reshape(_settle(value, layout, grid.dims), grid.counts)
    if grid.spans != grid.counts:
        zero = (0,) * len(grid.shape)
        spread = dict(low=zero, high=zero, interior=tuple(step - 1 for step in grid.steps))
        value = _over(grid.window(x), value, spread)
    return grid.put(x, value)


def _over(window: Any, value: Any, padding: dict[str, Ints]) -> Any:
    """``window`` with ``value`` written into it, except where ``padding`` has interior padding."""
    zero = type_of(value).dtype.type(0)
    mask = s.pad(s.full(np.bool_(True), type_of(value).shape), np.bool_(False), **padding)
    return e.select(mask, s.pad(value, zero, **padding), window)


# ---------------------------------------------------------------- shifted


class _Shifted:
    """A flat window, and the shape in which its elements are the leading corner."""

    def __init__(self, layout: Layout, offset: Any):
        self.strides = layout.access[1]
        self.dims = _sorted_dims(layout)
        self.counts = tuple(layout.size[d] for d in self.dims) + (1,)
        self.shape = (self.counts[0], *[a // b for a, b in zip(self.strides, self.strides[1:])], self.strides[-1])
        self.span = 1 + sum((n - 1) * st for n, st in zip(self.counts, self.strides))
        self.total = self.counts[0] * self.strides[0]
        self.start = _vector([np.int64(offset) if isinstance(offset, int) else offset])

    def window(self, flat: Any) -> Any:
        return ix.dynamic_slice(flat, self.start, sizes=(self.span,))

    @property
    def corner(self) -> dict[str, Ints]:
        zero = (0,) * len(self.shape)
        return dict(low=zero, high=tuple(n - c for n, c in zip(self.shape, self.counts)), interior=zero)


def _flat(x: Any) -> Any:
    return _reshape(x, (type_of(x).size,))


def _read_shifted(x: Any, layout: Layout, offset: Any) -> Any:
    at = _Shifted(layout, offset)
    window = at.window(_flat(x))
    zero = type_of(x).dtype.type(0)
    padded = s.pad(window, zero, low=(0,), high=(at.total - at.span,), interior=(0,)) if at.total > at.span else window
    corner = _slice(_reshape(padded, at.shape), at.counts)
    return _arrange(_reshape(corner, at.counts[:-1]), layout, at.dims)


def _write_shifted(x: Any, layout: Layout, offset: Any, value: Any) -> Any:
    at = _Shifted(layout, offset)
    flat = _flat(x)
    value = _reshape(_settle(value, layout, at.dims), at.counts)
    zero = type_of(value).dtype.type(0)
    mask = s.pad(s.full(np.bool_(True), at.counts), np.bool_(False), **at.corner)
    mask = _slice(_flat(mask), (at.span,))
    spread = _slice(_flat(s.pad(value, zero, **at.corner)), (at.span,))
    return ix.dynamic_update_slice(flat, at.start, e.select(mask, spread, at.window(flat)))


# ---------------------------------------------------------------- gather


def _indices(layout: Layout, offset: Any, dims: Sequence[int]) -> Any:
    """The flat indices of the elements along ``dims``, computed by the program so that they need no memory."""
    shape = tuple(layout.size[d] for d in dims)
    total: Any = np.int64(offset) if isinstance(offset, int) else offset
    for axis, d in enumerate(dims):
        step = e.mul(s.iota(shape=shape, axis=axis, dtype=np.dtype(np.int64)), np.int64(layout.stride[d]))
        total = e.add(step, total)
    return total


def _read_gather(x: Any, layout: Layout, offset: Any) -> Any:
    dims = _sorted_dims(layout)
    taken = ix.take(_flat(x), _indices(layout, offset, dims), axis=0, mode="promise")
    return _arrange(taken, layout, dims)


def _write_gather(x: Any, layout: Layout, offset: Any, value: Any) -> Any:
    dims = _sorted_dims(layout)
    indices = _indices(layout, offset, dims)
    rows = s.reshape(indices, shape=(type_of(indices).size, 1))
    where = ix.take_dims(1, 0, 1)
    return ix.scatter(_flat(x), rows, _flat(_settle(value, layout, dims)), dims=where, mode="promise", unique=False)


_READ = {"whole": _read_whole, "grid": _read_grid, "shifted": _read_shifted, "gather": _read_gather}
_WRITE = {"grid": _write_grid, "shifted": _write_shifted, "gather": _write_gather}

# ---------------------------------------------------------------- bytes read as another dtype


def reinterpret(x: Any, have: Dtype, want: Dtype) -> Any:
    """The bytes of an array of one dtype as an array of another; the last dimension grows or shrinks with the item
    size."""
    if have is want:
        return x
    if have.category == COMPLEX:
        return reinterpret(_parts(x), have.to_real(), want)
    if want.category == COMPLEX:
        return _complex(reinterpret(x, have, want.to_real()))
    if have is bool_:
        x = e.cast(x, dtype=np.dtype(np.uint8))
    if have.itemsize != want.itemsize:
        x = e.bitcast(x, dtype=_unsigned(have.itemsize))
        x = _split(x, want.itemsize) if have.itemsize > want.itemsize else _join(x, want.itemsize)
    if want is bool_:
        return e.ne(e.bitcast(x, dtype=np.dtype(np.uint8)), np.uint8(0))
    return x if type_of(x).dtype == want.numpy else e.bitcast(x, dtype=want.numpy)


def _unsigned(itemsize: int) -> np.dtype:
    return np.dtype(f"uint{8 * itemsize}")


def _parts(z: Any) -> Any:
    shape = type_of(z).shape
    return s.concatenate(*[s.reshape(p, shape=(*shape, 1)) for p in (e.real(z), e.imag(z))], axis=len(shape))


def _complex(x: Any) -> Any:
    real, imag = _lanes(x, 2)
    return e.make_complex(real, imag)


def _lanes(x: Any, k: int) -> list[Any]:
    """Every k-th element along the last dimension (of the flat array, if k does not divide it), from 0, from 1, ..."""
    if type_of(x).shape[-1] % k:
        x = _flat(x)
        x = _slice(x, (type_of(x).size // k * k,))
    shape = type_of(x).shape
    grouped = (*shape[:-1], shape[-1] // k, k)
    x = s.reshape(x, shape=grouped)
    ones = (1,) * len(grouped)
    result = []
    for i in range(k):
        start, limit = (0,) * (len(grouped) - 1) + (i,), (*grouped[:-1], i + 1)
        result.append(s.reshape(s.slice_(x, start=start, limit=limit, strides=ones), shape=grouped[:-1]))
    return result


def _split(x: Any, itemsize: int) -> Any:
    """Each unsigned integer as smaller ones, low bytes first."""
    wide = type_of(x)
    k, shape = wide.dtype.itemsize // itemsize, wide.shape or (1,)
    pieces = []
    for i in range(k):
        part = e.shift_right_logical(x, wide.dtype.type(8 * itemsize * i)) if i else x
        pieces.append(s.reshape(e.cast(part, dtype=_unsigned(itemsize)), shape=(*shape, 1)))
    return s.reshape(s.concatenate(*pieces, axis=len(shape)), shape=(*shape[:-1], shape[-1] * k))


def _join(x: Any, itemsize: int) -> Any:
    """Small unsigned integers joined to larger ones, low bytes first."""
    narrow = type_of(x)
    k, target = itemsize // narrow.dtype.itemsize, _unsigned(itemsize)
    total = None
    for i, lane in enumerate(_lanes(x, k)):
        part = e.cast(lane, dtype=target)
        part = e.shift_left(part, target.type(8 * narrow.dtype.itemsize * i)) if i else part
        total = part if total is None else e.bitwise_or(total, part)
    return total


__all__ = ["buffer_from_numpy", "read", "reinterpret", "to_numpy", "write"]
