"""Checks and conversions of index tensors and masks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from compat._core.dispatch.overrides import state
from compat._core.memory.strides import broadcast_size, contiguous_strides
from compat._core.operators.value_checks import found_within, known_within, values_of
from compat._core.tensor.tensor import Tensor, array_of, from_array
from compat._core.transforms import vmap_checks
from compat._core.types import dtype as dtypes
from compat._core.types.errors import size_text, warn, wrap_dim
from funcgrad import numpy as np
from funcgrad.core import dtypes as fdtypes
from funcgrad.core.errors import explained
from funcgrad.core.tracing import type_of
from funcgrad.primitives import elementwise as e
from funcgrad.primitives.shape import iota, reshape

#: The dtypes of indices.
INDEX_DTYPES = (dtypes.int64, dtypes.int32)
#: The dtypes of masks.
MASK_DTYPES = (dtypes.bool_, dtypes.uint8)
_UINT8_MASK = "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead."


def out_of_range(index: Tensor, low: int, high: int) -> int | None:
    """The first index that is not in ``range(low, high)``; None if there is none or the values are not known."""
    if known_within(index, low, high):
        return None
    values = values_of(index)
    if values.size == 1:
        place: int = values.item()
        return None if low <= place < high else place
    if not values.size:
        return None
    if _all_within(values, low, high):
        found_within(index, low, high)
        return None
    return int(values[(values < low) | (values >= high)].flat[0])


#: Up to so many values Python compares faster than NumPy.
_FEW = 16


def _all_within(values: numpy.ndarray, low: int, high: int) -> bool:
    if values.size <= _FEW:
        few = values.ravel().tolist()
        return min(few) >= low and max(few) < high
    if low == 0:  # as unsigned numbers, negative ones are the largest
        return bool(numpy.maximum.reduce(values.view(f"u{values.itemsize}"), None) < high)
    return bool(numpy.minimum.reduce(values, None) >= low and numpy.maximum.reduce(values, None) < high)


def extent(input: Tensor, dim: int) -> int:
    """The size along a dimension; 1 for a 0-d tensor."""
    return input.shape[wrap_dim(dim, input.dim())] if input.dim() else 1


def check_in_bounds(index: Tensor, input: Tensor, dim: int) -> None:
    """Checks that indices are in bounds of a dimension.

    Raises:
        RuntimeError: naming the first index that is out of bounds.
    """
    n = extent(input, dim)
    bad = out_of_range(index, 0, n)
    if bad is not None:
        raise RuntimeError(f"index {bad} is out of bounds for dimension {dim} with size {n}")


def nonzero_indices(mask: Tensor, function: str = "index") -> tuple[Tensor, ...]:
    """The indices where a mask is true, one tensor for each dimension; ``function`` reads the values of the mask."""
    vmap_checks.check_counted(function, mask)
    if state.modes or mask._overrides_operators_:  # which intercept ``nonzero``
        return tuple((mask if mask.dim() else mask.reshape(1)).nonzero().unbind(1))
    values = array_of(mask)
    return tuple(
        from_array(p.astype(numpy.int64)) for p in numpy.nonzero(numpy.atleast_1d(values) if not mask.dim() else values)
    )


def as_vector(x: Any) -> Any:
    """A 0-d array as a vector of one element; other arrays unchanged."""
    return x if type_of(x).shape else reshape(x, shape=(1,))


def flat(x: Any) -> Any:
    """The flattened array."""
    return reshape(x, shape=(type_of(x).size,))


def flat_indices(index: Any, shape: tuple[int, ...], dim: int) -> Any:
    """Indices along ``dim``, as of ``gather``, as indices into the flattened array of a shape."""
    strides = contiguous_strides(shape)
    size = type_of(index).shape
    flat_index = e.mul(np.astype(index, fdtypes.int64), numpy.int64(strides[dim]))
    for d in range(len(shape)):
        if d != dim and size[d] > 1:
            offsets = e.mul(iota(shape=size, axis=d, dtype=fdtypes.int64), numpy.int64(strides[d]))
            flat_index = e.add(flat_index, offsets)
    return flat_index


def from_start(index: Any, size: int) -> Any:
    """Indices with ``size`` added to negative ones, which count from the end."""
    return np.where(np.less(index, 0), np.add(index, size), index)


def check_indices(input: Tensor, indices: Sequence[Tensor | None], *_: Any) -> None:
    """Checks that tensors are valid indices of a tensor.

    Raises:
        IndexError: for too many of them, other dtypes, and sizes that do not broadcast.
    """
    if len(indices) > input.dim():
        raise explained(
            IndexError(f"too many indices for tensor of dimension {input.dim()} (got {len(indices)})"), "out-of-range"
        )
    given = [i for i in indices if i is not None]
    if any(i.dtype not in (*INDEX_DTYPES, *MASK_DTYPES) for i in given):
        raise explained(IndexError("tensors used as indices must be long, int, byte or bool tensors"), "dtype-mismatch")
    if given and not has_mask(given):
        try:
            common = broadcast_size(*[tuple(i.shape) for i in given])
            if 0 not in common and any(n == 0 and i is not None for i, n in zip(indices, input.shape)):
                raise IndexError("index is out of bounds for dimension with size 0")
        except RuntimeError:
            shapes = ", ".join(size_text(i.shape) for i in given)
            raise IndexError(
                f"shape mismatch: indexing tensors could not be broadcast together with shapes {shapes}"
            ) from None


def inspect_indices(input: Tensor, indices: Sequence[Tensor | None], *_: Any) -> None:
    """Checks that the indices are in bounds of the tensor.

    Raises:
        IndexError: naming the first index that is out of bounds.
    """
    if not input._layout_.numel:
        shape = input.shape
        if 0 in shape[len(indices) :] or any(not n for n, i in zip(shape, indices) if i is None):
            return  # no element is read
    dim = 0  # PyTorch counts only the indexed dimensions
    for index, size in zip(indices, input._layout_.size):
        if index is not None:
            bad = out_of_range(index, -size, size) if index._layout_.dtype not in MASK_DTYPES else None
            if bad is not None:
                raise IndexError(f"index {bad} is out of bounds for dimension {dim} with size {size}")
            dim += 1


def has_mask(indices: Sequence[Tensor | None]) -> bool:
    """Whether some indices are masks."""
    for i in indices:  # noqa: SIM110  # every index pays for it, and a generator costs more
        if i is not None and i._layout_.dtype in MASK_DTYPES:
            return True
    return False


def positions(input: Tensor, indices: Sequence[Tensor | None]) -> list[Tensor | None]:
    """The indices with masks replaced by the indices where they are true.

    Raises:
        IndexError: for a mask whose size does not match its dimensions.
    """
    if not has_mask(indices):
        return list(indices)
    found: list[Tensor | None] = []
    for i in indices:
        if i is None or i.dtype not in MASK_DTYPES:
            found.append(i)
            continue
        dim = len(found)
        if i.dtype is dtypes.uint8:
            warn(_UINT8_MASK)
        if i.shape != input.shape[dim : dim + i.dim()]:
            bad = next((d for d in range(i.dim()) if input.shape[dim + d : dim + d + 1] != i.shape[d : d + 1]), 0)
            message = (
                f"The shape of the mask {size_text(i.shape)} at index {bad} does not match the shape of the indexed "
                f"tensor {size_text(input.shape)} at index {dim + bad}"
            )
            raise explained(IndexError(message), "shape-mismatch")
        found.extend(nonzero_indices(i))
    return found


def index_key(indices: Sequence[Any]) -> tuple[Any, ...]:
    """Indices, one for each dimension, as a key of NumPy's indexing."""
    return tuple(slice(None) if i is None else i for i in indices)


def check_index_size(input: Tensor, dim: int, index: Tensor, name: str, source: Any = None) -> None:
    """Checks the dtype and number of dimensions of an index along a dimension, and the dtype of a source.

    Raises:
        RuntimeError: for an index of another dtype than int32 and int64 or with another number of dimensions than
            ``input``, and for a source of another dtype.
    """
    wrap_dim(dim, input.dim())
    if index.numel() and index.dtype not in INDEX_DTYPES:
        raise RuntimeError(f"{name}(): Expected dtype int32/int64 for index")
    if isinstance(source, Tensor) and input.dtype is not source.dtype:
        raise RuntimeError(f"{name}(): Expected self.dtype to be equal to src.dtype")
    if index.numel() and max(index.dim(), 1) != max(input.dim(), 1):
        indexed = "input" if name == "gather" else "self"
        raise RuntimeError(f"Index tensor must have the same number of dimensions as {indexed} tensor")


def check_take(input: Tensor, index: Tensor, name: str = "take") -> None:
    """Checks a flat index.

    Raises:
        RuntimeError: for another dtype than int64.
        IndexError: if there are no elements.
    """
    if index.dtype is not dtypes.int64:
        raise RuntimeError(f"{name}(): Expected a long tensor for index, but got {index.dtype.scalar_name}")
    if not input.numel() and index.numel():
        tried = "tried to take from" if name == "take" else "Tried to put elements into"
        raise IndexError(f"{name}(): {tried} an empty tensor")


def inspect_take(input: Tensor, index: Tensor, *_: Any) -> None:
    """Checks that a flat index is in bounds.

    Raises:
        IndexError: naming the first index that is out of bounds.
    """
    n = input.numel()
    bad = out_of_range(index, -n, n)
    if bad is not None:
        raise IndexError(f"out of range: tried to access index {bad} on a tensor of {n} elements.")


def put_at(x: Any, key: Any, how: str, value: Any) -> Any:
    """``x`` with values set, added or multiplied (``how``) at a key; for bools, added by "or", multiplied by "and".

    If several values are set at one element, each of them gets the element's whole gradient, as in PyTorch.
    """
    if how == "set":
        return np.at(x)[key].set(value, every=True)
    if type_of(x).dtype == fdtypes.bool_:
        counts = getattr(np.at(np.astype(x, fdtypes.int32))[key], how)(np.astype(value, fdtypes.int32))
        return np.not_equal(counts, 0)
    return getattr(np.at(x)[key], how)(value)
