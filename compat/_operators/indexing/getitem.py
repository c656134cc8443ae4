"""``x[...]`` and ``x[...] = value``: integers, slices, ``None`` and ``...`` as views, tensors and lists as gathers."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from compat._core.memory.numpy_storage import array_over, is_large
from compat._core.memory.strides import Layout, layout_of
from compat._core.operators.view import unrecorded
from compat._core.tensor.registry import function, names_of
from compat._core.tensor.tensor import Tensor, array_of, from_array, sync
from compat._core.tensor.tracing import ARRAYS, tensor_of
from compat._core.transforms import vmap_checks
from compat._core.transforms.grad_mode import mode
from compat._core.types import dtype as dtypes
from compat._core.types.errors import type_name, warn
from compat._core.types.scalar_conversion import fitted
from compat._operators.create.factories import scalar_tensor
from compat._operators.create.from_data import tensor
from compat._operators.view.shape import alias, expand, unsqueeze, view_size
from compat._operators.view.slicing import select, slice_view
from funcgrad.core.caching import Cache, Group
from funcgrad.core.errors import explained

_END = 2**63 - 1
#: The maximum number of cached layouts.


def _integer(x: Tensor, dim: int, index: int, position: int = 0) -> Tensor:
    """A single index along a dimension; an error names its ``position`` among the subscripts, as in PyTorch."""
    size = x._layout_.size
    if not size and index == 0 and position == 0:
        raise IndexError(
            "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to "
            "convert a 0-dim tensor to a number"
        )
    n = size[dim] if size else 0
    if not -n <= index < n:
        dtypes.index_number(index)
        error = IndexError(f"index {index} is out of bounds for dimension {position} with size {n}")
        raise explained(error, "out-of-range")
    made = _cut(x, dim, index + n if index < 0 else index, 0, 1) if n > 1 else None
    return select(x, dim, index) if made is None else made


#: The layouts of basic indexing of whole buffers: independent of the offset.
_cuts: Cache[tuple, Layout] = Cache(Group("layouts of parts", 8192))


def _cut(x: Tensor, dim: int, start: int, length: int, step: int) -> Tensor | None:
    """Basic indexing of a tensor that is all of its storage: a view without a plan, since each index would need its
    own. None if the view is recorded, or must be made from its base in steps.

    Args:
        length: the number of elements, ``step`` apart; 0 to remove the dimension.
    """
    if mode.watched or (mode.grad and x.requires_grad):
        return None
    if x._view_ is not None:
        sync(x)
        if x._view_.steps:
            return None
    layout = x._layout_
    if not layout.whole or not layout.numel:
        return None
    key = (layout, dim, length, step)
    found = _cuts.get(key)
    offset = start * layout.stride[dim]
    if found is None:
        found = _cuts.again(key)
    if found is None:
        size, stride = list(layout.size), list(layout.stride)
        size[dim : dim + 1], stride[dim : dim + 1] = ([length], [stride[dim] * step]) if length else ([], [])
        found = _cuts[key] = layout_of(
            layout.base, tuple(size), tuple(stride), offset, layout.dtype, layout.conj, layout.neg
        )
    return unrecorded(x, found, offset)


def _bound(value: Any, default: int) -> int:
    if value is None:
        return default
    if not hasattr(value, "__index__"):
        raise TypeError("slice indices must be integers or None or have an __index__ method")
    found: int = value.__index__()
    if found <= -(2**63):
        warn(
            "Truncating the start/stop/step of slice. This is likely because of saved old models when the "
            "start/stop/step were larger."
        )
        return -_END
    return found if found <= _END else _END


def _slice(x: Tensor, dim: int, index: slice, whole: bool) -> Tensor:
    """A slice; a trivial one is no operation unless it is the only index (``whole``)."""
    step = _bound(index.step, 1)
    if step == 0:
        raise ValueError("slice step cannot be zero")
    if step < 0:
        raise ValueError("step must be greater than zero")
    start, stop = _bound(index.start, 0), _bound(index.stop, _END)
    if not x._layout_.size:
        return slice_view(x, dim, start, stop, step)  # which raises errors, in PyTorch's order
    if not whole and start == 0 and step == 1 and stop >= x._layout_.size[dim]:
        return x
    n = x._layout_.size[dim]
    first, last = (max(b + n, 0) if b < 0 else min(b, n) for b in (start, stop))
    length = -((first - last) // step)
    made = _cut(x, dim, first, length, step) if 0 < length < n else None
    return slice_view(x, dim, start, stop, step) if made is None else made


def _as_index(value: Any) -> Tensor:
    """An advanced index as a tensor.

    Raises:
        IndexError, TypeError: for an invalid index.
    """
    if isinstance(value, Tensor):
        found = value
    elif isinstance(value, ARRAYS):
        found = tensor_of(value)
    elif isinstance(value, np.ndarray | np.generic):
        found = names_of("torch")["from_numpy"](np.asarray(value))
    elif isinstance(value, list | tuple | range):
        found = tensor(list(value)) if len(value) else tensor([], dtype=dtypes.int64)
    elif isinstance(value, str):
        raise TypeError("new(): invalid data type 'str'")
    else:
        raise IndexError(
            "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices "
            f"(got {type(value).__name__})"
        )
    if found.dtype.category > dtypes.INTEGER:
        raise explained(IndexError("tensors used as indices must be long, int, byte or bool tensors"), "dtype-mismatch")
    return found


class _Local(threading.local):
    by_tensors = False


_local = _Local()


@contextmanager
def by_tensors() -> Iterator[None]:
    """Context in which a 0-d tensor index is kept as a tensor: ``vmap`` may batch it.

    Elsewhere its value is read, as in PyTorch, so it must be concrete.
    """
    before, _local.by_tensors = _local.by_tensors, True
    try:
        yield
    finally:
        _local.by_tensors = before


def _differs(place: Tensor) -> bool:
    """Whether a 0-d index is kept as a tensor: it may differ between batch elements."""
    return _local.by_tensors or (place._layout_.base.traced and bool(vmap_checks.maps(place._storage_.buffer)))


def _places(index: tuple[Any, ...]) -> int:
    """The number of dimensions that an index consumes."""
    used = 0
    for i in index:
        if i is None or i is Ellipsis or isinstance(i, bool):
            continue
        used += i.dim() if isinstance(i, Tensor) and i.dtype in (dtypes.bool_, dtypes.uint8) else 1
    return used


def _apply(x: Tensor, index: tuple[Any, ...]) -> tuple[Tensor, list[Tensor | None]]:
    """Applies the basic part of an index by views; returns the rest for a gather: a tensor or None per dimension."""
    parts = [p if _is_basic(p) else _as_index(p) for p in index]
    ndim = x._layout_.ndim
    used = _places(tuple(parts))
    if used > ndim:
        raise explained(IndexError(f"too many indices for tensor of dimension {ndim}"), "out-of-range")
    dim, left = 0, []
    gathers: dict[int, Tensor] = {}
    seen = False
    for position, p in enumerate(parts):
        if p is None:
            x = unsqueeze(x, dim)
            dim += 1
        elif p is Ellipsis:
            dim += 0 if seen else ndim - used
            seen = True
        elif isinstance(p, slice):
            x = _slice(x, dim, p, False)
            dim += 1
        elif isinstance(p, bool):
            x = unsqueeze(x, dim)
            gathers[dim] = tensor([p])
            dim += 1
        elif not isinstance(p, Tensor):
            x = _integer(x, dim, p.__index__(), position)
        elif p.dtype in (dtypes.bool_, dtypes.uint8):
            x = x if p._layout_.ndim else unsqueeze(x, dim)
            gathers[dim] = p if p._layout_.ndim else unsqueeze(p, 0)
            dim += gathers[dim]._layout_.ndim
        elif p._layout_.ndim or _differs(p):
            gathers[dim] = p
            dim += 1
        else:
            x = _integer(x, dim, int(p), position)
    if gathers:
        last = max(gathers)
        left = [gathers.get(d) for d in range(last + 1)]
        for d in sorted(gathers, reverse=True):
            # A mask consumes as many dimensions as it has.
            if gathers[d].dtype in (dtypes.bool_, dtypes.uint8):
                del left[d + 1 : d + gathers[d].dim()]
    return x, left


def _is_basic(p: Any) -> bool:
    if p is None or p is Ellipsis or isinstance(p, slice | bool | int):
        return True
    return isinstance(p, np.integer) or (hasattr(p, "__index__") and not isinstance(p, (Tensor, np.ndarray, *ARRAYS)))


# The maximum length of a non-tuple sequence of subscripts.
_LONGEST = 31
_SEQUENCE = (
    "Using a non-tuple sequence for multidimensional indexing is deprecated and will be changed in pytorch 2.9; use "
    "x[tuple(seq)] instead of x[seq]. In pytorch 2.9 this will be interpreted as tensor index, x[torch.tensor(seq)], "
    "which will result either in an error or a different result"
)


def _as_tuple(index: Any) -> tuple[Any, ...]:
    """Subscripts as a tuple; a list of more than integers is taken as one, as formerly in NumPy."""
    if isinstance(index, tuple):
        return index
    if isinstance(index, list) and len(index) <= _LONGEST and any(map(_is_subscript, index)):
        warn(_SEQUENCE)
        return tuple(index)
    return (index,)


def _is_subscript(p: Any) -> bool:
    return p is None or p is Ellipsis or isinstance(p, _SUBSCRIPTS)


_SUBSCRIPTS = (Tensor, slice, list, tuple, range, str, np.ndarray, *ARRAYS)


@function("Tensor.__getitem__")
def getitem(self: Tensor, index: Any) -> Tensor:
    """Indexes a tensor.

    Integers, slices, ``None`` and ``...`` give views; tensors, lists and arrays of integers or bools gather copies.

    Raises:
        IndexError: for an index out of bounds, too many of them, or an invalid one.

    Example:
        >>> x = torch.arange(6).view(2, 3)
        >>> x[1, ::2], x[..., -1]
        (tensor([3, 5]), tensor([2, 5]))
    """
    kind = type(index)
    if kind is int:
        return _integer(self, 0, index)
    if kind is slice:
        return _slice(self, 0, index, True)
    if index is None:
        return unsqueeze(self, 0)
    if index is Ellipsis:
        return alias(self)
    found, left = _apply(self, _as_tuple(index))
    if left:
        return _gather(found, left)
    return alias(found) if found is self else found


def _gather(x: Tensor, indices: Sequence[Tensor | None]) -> Tensor:
    if is_large(x._storage_) and not (mode.grad and x.requires_grad):
        found = _gathered_there(x, indices)
        if found is not None:
            return found
    return names_of("torch")["_index"](x, list(indices))


def _gathered_there(x: Tensor, indices: Sequence[Tensor | None]) -> Tensor | None:
    """Gathers from a large NumPy array by NumPy: a buffer of all of it would be copied after every write. None for
    indices that NumPy treats differently."""
    if any(i is not None and (i.dtype is dtypes.uint8 or i._layout_.base.traced) for i in indices):
        return None
    places = tuple([slice(None) if i is None else array_of(i) for i in indices])
    try:
        return from_array(array_over(x._storage_, x._layout_, x._offset_)[places], x.dtype)
    except IndexError:
        return None


@function("Tensor.__setitem__")
def setitem(self: Tensor, index: Any, value: Any) -> None:
    """Writes ``value``, broadcast and cast, to the indexed elements of a tensor.

    Raises:
        IndexError: as for reading.
        RuntimeError: if the value does not broadcast.

    Example:
        >>> x = torch.zeros(2, 2)
        >>> x[0] = torch.tensor([1.0, 2.0])
        >>> x
        tensor([[1., 2.],
                [0., 0.]])
    """
    if not isinstance(value, Tensor):
        value = tensor_of(value) if isinstance(value, ARRAYS) else _value(self, value)
    kind = type(index)
    if kind is int:
        _write(_integer(self, 0, index), value)
        return
    if kind is slice:
        _write(_slice(self, 0, index, False), value)
        return
    if index is False:
        return  # empty, whatever the value's size
    found, left = _apply(self, _as_tuple(None if index is True else index))
    if left:
        value = _without_leading_ones(value) if value._layout_.size[:1] == (1,) else value
        if not _filled(found, left, value):
            names_of("torch")["_index_put_"](found, list(left), value)
    else:
        _write(found, value)


def _filled(x: Tensor, indices: Sequence[Tensor | None], value: Tensor) -> bool:
    """Fills where a mask is true, if the index is a mask and nothing is recorded: the number of elements need not be
    known."""
    mask = indices[0]
    if len(indices) != 1 or mask is None or mask.dtype is not dtypes.bool_ or value._layout_.ndim:
        return False
    if value.dtype is not x.dtype or (mode.grad and (x._rg_ or value._rg_)):
        return False
    ndim = mask._layout_.ndim
    if mask._layout_.size != x._layout_.size[:ndim]:
        return False
    if ndim < x._layout_.ndim:
        mask = view_size(mask.contiguous(), (*mask.shape, *[1] * (x._layout_.ndim - ndim)))
    x.masked_fill_(mask, value)
    return True


def _value(x: Tensor, value: Any) -> Tensor:
    if isinstance(value, bool | int | float | complex | np.generic):
        if isinstance(value, int) and value >= 2**63:
            raise ValueError("Overflow when unpacking long long")
        # The parts are float64, which has room for more.
        value = fitted(dtypes.float64 if x.dtype in (dtypes.float16, dtypes.bfloat16) else x.dtype, value)
        return scalar_tensor(value.item() if isinstance(value, np.generic) else value, dtype=x.dtype)
    raise TypeError(f"can't assign a {type_name(value)} to a torch.{x.dtype.scalar_name}Tensor")


def _without_leading_ones(value: Tensor) -> Tensor:
    """The value as a view without leading dimensions of size 1, always a view."""
    size = value._layout_.size
    ones = next((i for i, n in enumerate(size) if n != 1), len(size))
    return view_size(value, tuple(size[ones:]))


def _write(part: Tensor, value: Tensor) -> None:
    if part._layout_.size == value._layout_.size:
        part.copy_(value)
    elif value._layout_.ndim == 0:
        part.fill_(value)
    else:
        value = _without_leading_ones(value)
        part.copy_(expand(value, tuple(part.shape)) if value.shape != part.shape else value)
