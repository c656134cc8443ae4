"""Samples into a batch."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

import numpy as np

from compat import dtypes
from compat.ops.from_data import tensor
from compat.ops.from_memory import as_tensor
from compat.registry import names_of
from compat.tensor import Tensor

_WRONG = "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"


def default_collate(batch: Sequence[Any]) -> Any:
    """Stacks samples: tensors, arrays and numbers along a new first dimension, within tuples, lists and mappings.

    Raises:
        TypeError: for a kind of sample that cannot be stacked.
        RuntimeError: for samples of different sizes.

    Example:
        >>> default_collate([(1, "a"), (2, "b")])
        [tensor([1, 2]), ('a', 'b')]
    """
    first = batch[0]
    if isinstance(first, Tensor):
        return names_of("torch")["stack"](list(batch), 0)
    if isinstance(first, np.ndarray | np.generic) and not isinstance(first, np.str_ | np.bytes_):
        if first.dtype.kind not in "biufc":
            raise TypeError(_WRONG.format(first.dtype))
        if isinstance(first, np.generic) or first.ndim == 0:
            return as_tensor(np.asarray(batch))
        return default_collate([as_tensor(array) for array in batch])
    if isinstance(first, float):
        return tensor(list(batch), dtype=dtypes.float64)
    if isinstance(first, int):
        return tensor(list(batch))
    if isinstance(first, str | bytes):
        return batch
    if isinstance(first, Mapping):
        return _like_mapping(first, {key: default_collate([sample[key] for sample in batch]) for key in first})
    if isinstance(first, Sequence):
        return _collate_sequences(batch, first)
    raise TypeError(_WRONG.format(type(first)))


def _collate_sequences(batch: Sequence[Any], first: Sequence[Any]) -> Any:
    if hasattr(first, "_fields"):  # a named tuple
        return type(first)(*(default_collate(samples) for samples in zip(*batch)))
    if any(len(sample) != len(first) for sample in batch):
        raise RuntimeError("each element in list of batch should be of equal size")
    columns = [default_collate(samples) for samples in zip(*batch)]
    return columns if isinstance(first, tuple) else _like_sequence(first, columns)


def default_convert(data: Any) -> Any:
    """Arrays as tensors, within tuples, lists and mappings; anything else as it is.

    Example:
        >>> import numpy as np
        >>> default_convert({"x": np.array([1, 2])})
        {'x': tensor([1, 2])}
    """
    return _map(default_convert_one, data)


def default_convert_one(data: Any) -> Any:
    """One array as a tensor, unless it holds text or objects; anything else as it is."""
    if isinstance(data, np.ndarray | np.generic) and data.dtype.kind in "biufc":
        return as_tensor(data)
    return data


def _map(convert: Callable[[Any], Any], data: Any) -> Any:
    if isinstance(data, Mapping):
        return _like_mapping(data, {key: _map(convert, value) for key, value in data.items()})
    if isinstance(data, tuple):
        items = [_map(convert, value) for value in data]
        return type(data)(*items) if hasattr(data, "_fields") else items
    if isinstance(data, Sequence) and not isinstance(data, str | bytes):
        return _like_sequence(data, [_map(convert, value) for value in data])
    return convert(data)


def _like_mapping(like: Any, entries: dict) -> Any:
    """The entries in a mapping of the same kind, where one can be made."""
    try:
        if isinstance(like, MutableMapping):
            made = copy.copy(like)
            made.update(entries)
            return made
        return type(like)(entries)
    except TypeError:
        return entries


def _like_sequence(like: Any, items: list) -> Any:
    """The items in a sequence of the same kind, where one can be made."""
    try:
        if isinstance(like, MutableSequence):
            made = copy.copy(like)
            made[:] = items
            return made
        return type(like)(items)
    except TypeError:
        return items
