"""``x[index]`` and ``x[index] = value``: basic indexing by views, advanced indexing by ``index`` and ``index_put_``."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from compat._core.dispatch.overrides import state
from compat._core.memory.numpy_storage import array_over, is_large
from compat._core.tensor.registry import function, names_of
from compat._core.tensor.tensor import Tensor, array_of, from_array
from compat._core.tensor.tracing import ARRAYS, tensor_of
from compat._core.transforms import vmap_checks
from compat._core.transforms.grad_mode import mode
from compat._core.types import dtype as dtypes
from compat._core.types.errors import type_name, warn
from compat._core.types.scalar_conversion import fitted
from compat._operators.create.copy_to_fill import fill_number
from compat._operators.create.factories import scalar_tensor
from compat._operators.create.from_data import tensor
from compat._operators.indexing.parts import cuttable, indexed, part
from compat._operators.view.shape import alias, expand, unsqueeze, view_size
from compat._operators.view.slicing import select, slice_view
from funcgrad.core.errors import explained

_END = 2**63 - 1


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
    if n <= 1 or not cuttable(x):
        return select(x, dim, index)
    return part(x, ((dim, 0, 1),), (index + n if index < 0 else index) * x._layout_.stride[dim])


def _bound(value: Any, default: int) -> int:
    if value is None:
        return default
    if not hasattr(value, "__index__"):
        raise TypeError("slice indices must be integers or None or have an __index__ method")
    bound: int = value.__index__()
    if bound <= -(2**63):
        warn(
            "Truncating the start/stop/step of slice. This is likely because of saved old models when the "
            "start/stop/step were larger."
        )
        return -_END
    return min(bound, _END)


def _slice(x: Tensor, dim: int, index: slice, only: bool) -> Tensor:
    """A slice. A trivial one returns ``x`` itself unless it is the ``only`` index."""
    step = _bound(index.step, 1)
    if step == 0:
        raise ValueError("slice step cannot be zero")
    if step < 0:
        raise ValueError("step must be greater than zero")
    start, stop = _bound(index.start, 0), _bound(index.stop, _END)
    if not x._layout_.size:
        return slice_view(x, dim, start, stop, step)  # raises PyTorch's error
    if not only and start == 0 and step == 1 and stop >= x._layout_.size[dim]:
        return x
    n = x._layout_.size[dim]
    first, last = (max(b + n, 0) if b < 0 else min(b, n) for b in (start, stop))
    length = -((first - last) // step)
    if not 0 < length < n or not cuttable(x):
        return slice_view(x, dim, start, stop, step)
    return part(x, ((dim, length, step),), first * x._layout_.stride[dim])


def _as_index(value: Any) -> Tensor:
    """An advanced index as a tensor.

    Raises:
        IndexError, TypeError: for an invalid index.
    """
    if isinstance(value, Tensor):
        found = value
    elif isinstance(value, ARRAYS):
        found = tensor_of(value)
    elif isinstance(value, (np.ndarray, np.generic)):
        found = names_of("torch")["from_numpy"](np.asarray(value))
    elif isinstance(value, (list, tuple, range)):
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
    batched_indices = False


_local = _Local()


@contextmanager
def batched_indices() -> Iterator[None]:
    """Context in which a 0-d tensor is an advanced index: ``vmap`` may batch it.

    Elsewhere its value is read, as in PyTorch, so it must be concrete.
    """
    before, _local.batched_indices = _local.batched_indices, True
    try:
        yield
    finally:
        _local.batched_indices = before


def _may_be_batched(index: Tensor) -> bool:
    """Whether a 0-d index may differ between batch elements."""
    return _local.batched_indices or (index._layout_.base.traced and bool(vmap_checks.maps(index._storage_.buffer)))


def _indexed_dimensions(index: tuple[Any, ...]) -> int:
    """The number of dimensions that an index consumes."""
    used = 0
    for i in index:
        if i is None or i is Ellipsis or isinstance(i, bool):
            continue
        used += i.dim() if isinstance(i, Tensor) and i.dtype in (dtypes.bool_, dtypes.uint8) else 1
    return used


def _apply(x: Tensor, index: tuple[Any, ...]) -> tuple[Tensor, list[Tensor | None]]:
    """Applies the basic part of an index; also returns the advanced part, a tensor or None for each dimension."""
    parts = [p if _is_basic(p) else _as_index(p) for p in index]
    ndim = x._layout_.ndim
    used = _indexed_dimensions(tuple(parts))
    if used > ndim:
        raise explained(IndexError(f"too many indices for tensor of dimension {ndim}"), "out-of-range")
    dim = 0
    advanced: dict[int, Tensor] = {}
    expanded = False  # whether an ellipsis has been expanded: later ones have no effect
    for position, p in enumerate(parts):
        if p is None:
            x = unsqueeze(x, dim)
            dim += 1
        elif p is Ellipsis:
            dim += 0 if expanded else ndim - used
            expanded = True
        elif isinstance(p, slice):
            x = _slice(x, dim, p, False)
            dim += 1
        elif isinstance(p, bool):
            x = unsqueeze(x, dim)
            advanced[dim] = tensor([p])
            dim += 1
        elif not isinstance(p, Tensor):
            x = _integer(x, dim, p.__index__(), position)
        elif p.dtype in (dtypes.bool_, dtypes.uint8):
            x = x if p._layout_.ndim else unsqueeze(x, dim)
            advanced[dim] = p if p._layout_.ndim else unsqueeze(p, 0)
            dim += advanced[dim]._layout_.ndim
        elif p._layout_.ndim or _may_be_batched(p):
            advanced[dim] = p
            dim += 1
        else:
            x = _integer(x, dim, int(p), position)
    indices = [advanced.get(d) for d in range(max(advanced, default=-1) + 1)]
    for d in sorted(advanced, reverse=True):
        # A mask consumes as many dimensions as it has.
        if advanced[d].dtype in (dtypes.bool_, dtypes.uint8):
            del indices[d + 1 : d + advanced[d].dim()]
    return x, indices


def _is_basic(p: Any) -> bool:
    if p is None or p is Ellipsis or isinstance(p, _BASIC):
        return True
    return isinstance(p, np.integer) or (hasattr(p, "__index__") and not isinstance(p, (Tensor, np.ndarray, *ARRAYS)))


_BASIC = (int, slice, bool)
_NUMBERS = (bool, int, float, complex, np.generic)
#: The maximum length of a list that is interpreted as a tuple of subscripts.
_MOST_SUBSCRIPTS = 31
_LIST_AS_TUPLE = (
    "Using a non-tuple sequence for multidimensional indexing is deprecated and will be changed in pytorch 2.9; use "
    "x[tuple(seq)] instead of x[seq]. In pytorch 2.9 this will be interpreted as tensor index, x[torch.tensor(seq)], "
    "which will result either in an error or a different result"
)


def _as_tuple(index: Any) -> tuple[Any, ...]:
    """Subscripts as a tuple. A short list that contains more than integers is interpreted as one, as PyTorch does."""
    if isinstance(index, tuple):
        return index
    if isinstance(index, list) and len(index) <= _MOST_SUBSCRIPTS and any(map(_is_subscript, index)):
        warn(_LIST_AS_TUPLE)
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
    if kind is Tensor and _takes_rows(self, index):
        return _gather(self, (index,))
    found = indexed(self, index) if kind is tuple else None
    if found is not None:
        return found
    viewed, indices = _apply(self, _as_tuple(index))
    if indices:
        return _gather(viewed, indices)
    return alias(viewed) if viewed is self else viewed


def _takes_rows(x: Tensor, index: Tensor) -> bool:
    """Whether an index alone is an advanced index of the first dimensions."""
    layout = index._layout_
    if layout.dtype is dtypes.int64 or layout.dtype is dtypes.int32:
        return layout.ndim > 0 and x._layout_.ndim > 0
    return layout.dtype is dtypes.bool_ and 0 < layout.ndim <= x._layout_.ndim


def _gather(x: Tensor, indices: Sequence[Tensor | None]) -> Tensor:
    if is_large(x._storage_) and not (mode.grad and x.requires_grad):
        gathered = _gather_by_numpy(x, indices)
        if gathered is not None:
            return gathered
    return names_of("torch")["_index"](x, list(indices))


def _gather_by_numpy(x: Tensor, indices: Sequence[Tensor | None]) -> Tensor | None:
    """Gathers from a large NumPy array, which would otherwise be copied to a buffer after every write.

    Returns:
        The elements; None for indices that NumPy interprets differently.
    """
    if any(i is not None and (i.dtype is dtypes.uint8 or i._layout_.base.traced) for i in indices):
        return None
    key = tuple([slice(None) if i is None else array_of(i) for i in indices])
    try:
        return from_array(array_over(x._storage_, x._layout_, x._offset_)[key], x.dtype)
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
        if not isinstance(value, Tensor) and not _is_unobserved(self):
            value = scalar_tensor(value, dtype=self.dtype)
    kind = type(index)
    if kind is int:
        _write(_integer(self, 0, index), value)
        return
    if kind is slice:
        _write(_slice(self, 0, index, False), value)
        return
    if index is False:
        return  # selects no element; the size of the value is not checked
    found = indexed(self, index) if kind is tuple else None
    if found is not None:
        _write(found, value)
        return
    viewed, indices = _apply(self, _as_tuple(None if index is True else index))
    if indices:
        if not isinstance(value, Tensor):
            value = scalar_tensor(value, dtype=self.dtype)
        value = _without_leading_ones(value) if value._layout_.size[:1] == (1,) else value
        if not _fill_masked(viewed, indices, value):
            names_of("torch")["_index_put_"](viewed, list(indices), value)
    else:
        _write(viewed, value)


def _fill_masked(x: Tensor, indices: Sequence[Tensor | None], value: Tensor) -> bool:
    """Writes a 0-d value by ``masked_fill_`` if the index is one mask and nothing is recorded.

    Unlike ``index_put_``, this does not read the mask to count its elements.

    Returns:
        Whether the value was written.
    """
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


def _is_unobserved(x: Tensor) -> bool:
    """Whether nobody sees by which operation a number is written: no node, mode, subclass, transform, nor a check of
    overlapping memory."""
    if mode.watched or state.modes or x._overrides_operators_ or (mode.grad and x.requires_grad):
        return False
    return x._layout_.contiguous and not x._layout_.base.traced and x._storage_.born >= mode.since


def _value(x: Tensor, value: Any) -> Any:
    """A number that is written into a tensor, as one that its dtype can represent."""
    if isinstance(value, _NUMBERS):
        if isinstance(value, int) and value >= 2**63:
            raise ValueError("Overflow when unpacking long long")
        # PyTorch checks the range of float64 for float16 and bfloat16.
        value = fitted(dtypes.float64 if x.dtype in (dtypes.float16, dtypes.bfloat16) else x.dtype, value)
        return value.item() if isinstance(value, np.generic) else value
    raise TypeError(f"can't assign a {type_name(value)} to a torch.{x.dtype.scalar_name}Tensor")


def _without_leading_ones(value: Tensor) -> Tensor:
    """A view of the value without its leading dimensions of size 1; a new view even if there are none."""
    size = value._layout_.size
    ones = next((i for i, n in enumerate(size) if n != 1), len(size))
    return view_size(value, tuple(size[ones:]))


def _write(part: Tensor, value: Any) -> None:
    if not isinstance(value, Tensor):
        fill_number.inplace(part, value)
    elif part._layout_.size == value._layout_.size:
        part.copy_(value)
    elif value._layout_.ndim == 0:
        part.fill_(value)
    else:
        value = _without_leading_ones(value)
        part.copy_(expand(value, tuple(part.shape)) if value.shape != part.shape else value)
