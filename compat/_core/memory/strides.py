"""Layouts: sizes, strides and dtypes of tensors, relative to the buffers of their storages.

A storage's buffer is an array that keeps the shape in which it was made; flattened in row-major order, it is the memory
to which strides and offsets refer. A ``Layout`` describes which of its elements a tensor has, and in which order.
Layouts are interned, so that they serve as dictionary keys by identity, and do not include the offset: ``x[0]`` and
``x[1]`` have the same layout, and a program compiled for one takes the other's offset as an argument.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import prod

from compat._core.types.device import CPU, META
from compat._core.types.device import device as Device
from compat._core.types.dtype import array_dtype
from compat._core.types.dtype import dtype as Dtype
from compat._core.types.errors import size_text
from compat._core.types.size import Size
from funcgrad.core.caching import Cache, Group, Interned, memoized

Ints = tuple[int, ...]


class Base:
    """The shape and dtype of a storage's buffer.

    Attributes:
        shape, dtype: the buffer's.
        traced: whether the buffer is a tracer, or a meta tensor's type, rather than an array.
        device: its device.
        numel: the number of elements.
    """

    __slots__ = ("shape", "dtype", "traced", "device", "numel", "__weakref__")
    shape: Ints
    dtype: Dtype
    traced: bool
    device: Device
    numel: int

    def __new__(cls, shape: Ints, dtype: Dtype, traced: bool = False, device: Device = CPU) -> Base:
        traced = traced or device is META
        key = (shape, dtype, traced, device._name)
        self = _known_bases.get(key)
        if self is None:
            self = _bases.find(key)
        if self is None:
            self = super().__new__(cls)
            self.shape, self.dtype, self.traced, self.device = tuple(shape), dtype, traced, device
            self.numel = prod(shape)
            self = _bases.add((self.shape, dtype, traced, device._name), self)
        return self

    def __reduce__(self) -> tuple:
        return Base, (self.shape, self.dtype, self.traced, self.device)

    def __repr__(self) -> str:
        return f"Base({self.shape}, {self.dtype}{', traced' if self.traced else ''})"


_bases: Interned[tuple, Base] = Interned("buffers' shapes", 8192)
_known_bases = _bases.known


class Layout:
    """Which elements of a buffer a tensor has.

    Attributes:
        base: the shape and dtype of the buffer.
        size, stride, dtype: the tensor's, strides counted in its own elements.
        conj, neg: whether the elements are read conjugated, or negated (the views that ``Tensor.conj`` and the
            imaginary part of one make).
        access: the access method, see ``access_of``.
        whole: whether they are all elements of the buffer, each once, so that the offset is zero.
        contiguous: whether they are in row-major order without gaps.
        dense: whether they have no gaps and overlaps, in any order of dimensions.
    """

    __slots__ = (
        "base", "size", "stride", "dtype", "conj", "neg", "access",
        "ndim", "numel", "whole", "contiguous", "dense", "__weakref__",
    )  # fmt: skip
    #: Whether its tensor is of a class that overrides operators: then there is no plan for it.
    overridden = False
    base: Base
    size: Size
    stride: Ints
    dtype: Dtype
    conj: bool
    neg: bool
    access: tuple
    ndim: int
    numel: int
    whole: bool
    contiguous: bool
    dense: bool

    def __repr__(self) -> str:
        return f"Layout({tuple(self.size)}, stride={self.stride}, {self.dtype}, {self.access[0]} of {self.base})"


_layouts: Interned[tuple, Layout] = Interned("layouts", 16384)


def layout_of(
    base: Base, size: Ints, stride: Ints, offset: int, dtype: Dtype | None = None, conj: bool = False, neg: bool = False
) -> Layout:
    """The layout of a tensor of ``size`` and ``stride`` that starts at element ``offset`` of a buffer.

    The offset affects only the access method; it is not part of the layout.
    """
    place = (base, size, stride, offset, dtype, conj, neg)
    found = _places.get(place)
    if found is None:
        found = _places.again(place)
    if found is None:
        found = _places[place] = _intern(base, tuple(size), tuple(stride), offset, dtype or base.dtype, conj, neg)
    return found


# A cache by arguments, the offset included: computing the access method takes longer than a look-up.
_places: Cache[tuple, Layout] = Cache(Group("layouts by offset", 16384))


def _intern(base: Base, size: Ints, stride: Ints, offset: int, dtype: Dtype, conj: bool, neg: bool) -> Layout:
    access = access_of(cells(base, dtype), size, stride, offset)
    key = (base, size, stride, dtype, conj, neg, access)
    found = _layouts.known.get(key)
    if found is None:
        found = _layouts.find(key)
    if found is None:
        array_dtype(dtype)  # raises for a dtype without arrays
        layout = Layout()
        layout.base, layout.size, layout.stride, layout.dtype = base, Size(size), tuple(stride), dtype
        layout.conj, layout.neg, layout.access = conj, neg, access
        layout.ndim, layout.numel = len(layout.size), prod(size)
        layout.whole = access[0] in ("whole", "empty")
        layout.contiguous = is_contiguous(size, stride)
        layout.dense = is_dense(size, stride)
        found = _layouts.add((base, layout.size, layout.stride, dtype, conj, neg, access), layout)
    return found


def contiguous_layout(size: Ints, dtype: Dtype, traced: bool = False, device: Device = CPU) -> Layout:
    """The layout of a new row-major tensor over a new buffer."""
    size = tuple(size)
    key = (size, dtype, traced, device._name)
    found = _contiguous.get(key)
    if found is None:
        found = _contiguous.again(key)
    if found is None:
        found = layout_of(Base(size, dtype, traced, device), size, contiguous_strides(size), 0)
        _contiguous[key] = found
    return found


_NEW = Group("layouts of new tensors", 16384)
_contiguous: Cache[tuple, Layout] = Cache(_NEW)


def dense_layout(size: Ints, stride: Ints, dtype: Dtype, traced: bool = False, device: Device = CPU) -> Layout:
    """The layout of a new tensor with gapless strides; its buffer has the dimensions in memory order."""
    key = (size, stride, dtype, traced, device._name)
    found = _dense.get(key)
    if found is None:
        found = _dense.again(key)
    if found is None:
        order = [d for d in range(len(size)) if size[d] != 1]
        if prod(size):
            order.sort(key=lambda d: -stride[d])
        shape = tuple(size) if order == sorted(order) else tuple(size[d] for d in order)
        found = _dense[key] = layout_of(Base(shape, dtype, traced, device), tuple(size), tuple(stride), 0)
    return found


_dense: Cache[tuple, Layout] = Cache(_NEW)


def cells(base: Base, dtype: Dtype) -> Ints:
    """The shape of a buffer when its bytes are read as elements of ``dtype``: only the last dimension changes."""
    have, want = base.dtype.itemsize, dtype.itemsize
    if have == want:
        return base.shape
    if have > want:
        return (*base.shape, have // want)
    flat = base.numel * have // want
    last = base.shape[-1] * have if base.shape else have
    return (*base.shape[:-1], last // want) if base.shape and last % want == 0 else (flat,)


# ---------------------------------------------------------------- access methods


def access_of(base: Ints, size: Ints, stride: Ints, offset: int) -> tuple:
    """The method by which programs read and write a layout's elements, the first of these that applies:

    ``("empty",)``
        no elements;
    ``("whole",)``
        reshape and transpose: all elements of the buffer, each once;
    ``("grid", shape, axes)``
        reshape to ``shape``, then slice; ``axes`` has for each axis the dimension of the tensor along it and its step
        (None: the slice has one element along the axis). The start of the slices depends on the offset;
    ``("shifted", extents)``
        slice the flat buffer from the offset on, pad, reshape to ``extents``, and slice from zero;
    ``("gather",)``
        gather each element.
    """
    if 0 in size:
        return ("empty",)
    dims = sorted(((s, n, d) for d, (n, s) in enumerate(zip(size, stride)) if n > 1 and s > 0), reverse=True)
    used = prod(n for _, n, _ in dims)
    total = prod(base)
    if used == total and offset == 0 and _gapless((n, s) for s, n, _ in reversed(dims)):
        return ("whole",)
    for shape in _radices(base, dims, total):
        axes = _assign(shape, dims, offset)
        if axes is not None:
            return ("grid", shape, axes)
    if all(a % b == 0 and b * n <= a for (a, _, _), (b, n, _) in pairwise(dims)):
        return ("shifted", tuple(s for s, _, _ in dims))
    return ("gather",)


def _gapless(dims: Iterable[tuple[int, int]]) -> bool:
    """Whether dimensions, each a size and a stride, lie in memory in this order, innermost first, without gaps."""
    expected = 1
    for n, s in dims:
        if n != 1 and s != expected:
            return False
        expected *= n
    return True


def _radices(base: Ints, dims: Sequence[tuple[int, int, int]], total: int) -> list[Ints]:
    """Candidate shapes for a grid: the buffer's own, and the same with axes split at the tensor's strides."""
    shape = tuple(n for n in base if n != 1)
    places = {*contiguous_strides(shape), 1}
    split = sorted(places | {s for s, _, _ in dims}, reverse=True)
    result = [shape]
    if len(split) > len(places) and all(a % b == 0 for a, b in zip([total, *split], split)):
        result.append(tuple(a // b for a, b in zip([total, *split], split)))
    return result


def _assign(shape: Ints, dims: Sequence[tuple[int, int, int]], offset: int) -> tuple | None:
    """For each axis its dimension and step; None if two dimensions share an axis or one exceeds it."""
    axes: list[tuple[int, int] | None] = [None] * len(shape)
    strides = contiguous_strides(shape)
    for s, n, d in dims:
        for axis, unit in enumerate(strides):
            if unit <= s and s % unit == 0 and axes[axis] is None:
                step = s // unit
                start = offset // unit % shape[axis]
                if start + (n - 1) * step < shape[axis]:
                    axes[axis] = (d, step)
                    break
        else:
            return None
    return tuple(axes)


# ---------------------------------------------------------------- strides


def contiguous_strides(size: Ints) -> Ints:
    """Row-major strides; a dimension of size zero counts as size one."""
    result = [1] * len(size)
    for d in range(len(size) - 2, -1, -1):
        result[d] = result[d + 1] * max(size[d + 1], 1)
    return tuple(result)


def room(size: Sequence[int], stride: Sequence[int], offset: int = 0) -> int:
    """The number of elements that memory needs for a size, strides and an offset; 0 for no elements."""
    return 0 if 0 in size else offset + 1 + sum((n - 1) * s for n, s in zip(size, stride))


def check_reach(size: Sequence[int], stride: Sequence[int], offset: int, itemsize: int, nbytes: int) -> None:
    """Checks that elements of ``itemsize`` bytes are inside memory of ``nbytes`` bytes.

    Args:
        stride: the strides; empty for row-major ones, as in PyTorch's message.

    Raises:
        RuntimeError: if one is outside.
    """
    need = room(size, stride or contiguous_strides(tuple(size)), offset) * itemsize
    if need > nbytes:
        raise RuntimeError(
            f"setStorage: sizes {size_text(size)}, strides {size_text(stride)}, storage offset {offset}, and "
            f"itemsize {itemsize} requiring "
            f"a storage size of {need} are out of bounds for storage of size {nbytes}"
        )


def channels_last_strides(size: Ints) -> Ints:
    """The strides of a tensor (N, C, *spatial) in ``channels_last`` order; a size of zero makes outer strides zero."""
    return _strides_in((1, *range(len(size) - 1, 1, -1), 0), size)


def _strides_in(order: Sequence[int], size: Ints) -> Ints:
    """Strides without gaps, given the dimensions from the innermost to the outermost."""
    result = [0] * len(size)
    step = 1
    for d in order:
        result[d] = step
        step *= size[d]
    return tuple(result)


def is_contiguous(size: Ints, stride: Ints) -> bool:
    return 0 in size or _gapless(zip(reversed(size), reversed(stride)))


def is_channels_last(size: Ints, stride: Ints, ndim: int = 4) -> bool:
    """Whether the strides are those of ``channels_last`` (``channels_last_3d`` for ``ndim=5``)."""
    return len(size) == ndim and _gapless((size[d], stride[d]) for d in (1, *range(ndim - 1, 1, -1), 0))


def is_dense(size: Ints, stride: Ints) -> bool:
    """Whether the elements have no gaps and overlaps, in any order of dimensions."""
    expected = 1
    for n, s in zip(reversed(size), reversed(stride)):
        if n != 1 and s != expected:
            break
        expected *= n
    else:
        return True  # row-major
    return 0 in size or _gapless((n, s) for s, n in sorted((s, n) for n, s in zip(size, stride) if n != 1))


@memoized("strides of views", 4096)
def view_strides(size: Ints, stride: Ints, new: Ints) -> Ints | None:
    """The strides of a view in another shape, or None if a copy is needed.

    Dimensions that are evenly spaced in memory form runs; each run must consist of whole new dimensions.
    """
    if prod(size) == 0:
        return tuple(stride) if tuple(size) == tuple(new) else contiguous_strides(new)
    if not size:
        return (1,) * len(new)
    result = [0] * len(new)
    at = len(new) - 1
    for length, step in reversed(_runs(size, stride)):
        covered = 1
        while at >= 0 and (covered < length or new[at] == 1):
            result[at] = covered * step
            covered *= new[at]
            at -= 1
        if covered != length:
            return None
    return tuple(result) if at < 0 else None


def _runs(size: Ints, stride: Ints) -> list[tuple[int, int]]:
    """Runs of dimensions that are evenly spaced in memory: (number of elements, step), from left to right."""
    runs: list[tuple[int, int]] = []
    length, step = 1, stride[-1]
    for d in range(len(size) - 1, -1, -1):
        length *= size[d]
        if d == 0 or (size[d - 1] != 1 and stride[d - 1] != length * step):
            runs.append((length, step))
            length, step = 1, stride[d - 1]
    return runs[::-1]


def broadcast_size(*sizes: Ints) -> Ints:
    """The common size of operands that broadcast against each other.

    Raises:
        RuntimeError: if two sizes do not match.
    """
    result: list[int] = list(sizes[0]) if sizes else []
    for size in sizes[1:]:
        if len(size) > len(result):
            result = [1] * (len(size) - len(result)) + result
        shift = len(result) - len(size)
        for d in range(len(size) - 1, -1, -1):
            have = result[d + shift]
            if have == 1:
                result[d + shift] = size[d]
            elif size[d] not in (1, have):
                raise RuntimeError(
                    f"The size of tensor a ({have}) must match the size of tensor b ({size[d]}) at non-singleton "
                    f"dimension {d + shift}"
                )
    return tuple(result)


# ---------------------------------------------------------------- strides of new tensors


def elementwise_strides(operands: Sequence[tuple[Ints, Ints]], size: Ints) -> Ints:
    """The strides of the result of an elementwise operation, as in PyTorch's ``TensorIterator``.

    Args:
        operands: size and stride of each tensor operand, zero-dimensional ones and numbers included.
        size: the size of the result.

    The result has the operands' strides if these are equal and dense. Otherwise the first operand whose strides are not
    ambiguous determines the order of dimensions.
    """
    if all(s == size for s, _ in operands):
        if all(is_contiguous(*o) for o in operands):
            return contiguous_strides(size)
        if all(is_channels_last(*o) for o in operands):
            return channels_last_strides(size)
        first = operands[0][1]
        if all(st == first and is_dense(s, st) for s, st in operands):
            return first
    ndim = len(size)
    strides = [_broadcast_strides(s, st, size) for s, st in operands]
    order = memory_order(strides, size)
    return contiguous_strides(size) if order == list(range(ndim - 1, -1, -1)) else _strides_in(order, size)


def _broadcast_strides(size: Ints, stride: Ints, to: Ints) -> Ints:
    shift = len(to) - len(size)
    return (0,) * shift + tuple(0 if n == 1 and to[d + shift] != 1 else s for d, (n, s) in enumerate(zip(size, stride)))


def memory_order(strides: Sequence[Ints], size: Ints) -> list[int]:
    """Dimensions from the innermost to the outermost in memory. An insertion sort, since the order of some pairs is
    ambiguous (stride zero)."""

    def after(a: int, b: int) -> int:
        """Positive if dimension ``a`` is outside ``b``, negative if inside, 0 if no operand determines it."""
        for stride in strides:
            if stride[a] == 0 or stride[b] == 0:
                continue
            if stride[a] != stride[b]:
                return 1 if stride[a] > stride[b] else -1
            if size[a] > size[b]:
                return 1
        return 0

    order = list(range(len(size) - 1, -1, -1))
    for i in range(1, len(order)):
        here = i
        for j in range(i - 1, -1, -1):
            verdict = after(order[j], order[here])
            if verdict > 0:
                order[j], order[here] = order[here], order[j]
                here = j
            elif verdict < 0:
                break
    return order


def preserved_strides(size: Ints, stride: Ints) -> Ints:
    """The strides of a copy that keeps the memory order (``torch.preserve_format``)."""
    return tuple(stride) if is_dense(size, stride) else elementwise_strides([(size, stride), ((), ())], size)


# ---------------------------------------------------------------- overlap


def overlaps_itself(size: Ints, stride: Ints) -> bool:
    """Whether a dimension has stride zero, so that elements share memory."""
    return 0 in stride and 0 not in size and any(s == 0 and n > 1 for n, s in zip(size, stride))


def overlap(a: Layout, a_offset: int, b: Layout, b_offset: int) -> str:
    """The overlap of two tensors of one storage, as PyTorch classifies it: ``"none"``, ``"full"``, ``"partial"`` or
    ``"unknown"``."""
    if a_offset == b_offset and a.size == b.size and a.stride == b.stride:
        return "full"
    if not a.numel or not b.numel:
        return "none"
    if not (a.dense and b.dense):
        return "unknown"
    a_start, a_end = a_offset * a.dtype.itemsize, (a_offset + a.numel) * a.dtype.itemsize
    b_start, b_end = b_offset * b.dtype.itemsize, (b_offset + b.numel) * b.dtype.itemsize
    if a_start == b_start and a_end == b_end:
        return "full" if a.stride == b.stride else "partial"
    return "partial" if a_start < b_end and b_start < a_end else "none"
