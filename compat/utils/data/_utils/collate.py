"""Collating samples into batches."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from compat._core.tensor.tensor import Tensor
from compat._core.types import dtype as dtypes
from compat._operators.create.from_buffer import as_tensor
from compat._operators.create.from_data import tensor

_WRONG = "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"

#: The kinds of NumPy dtypes that tensors do not support; packages import it by this name.
np_str_obj_array_pattern = re.compile("[SaUO]")
#: A function that collates samples of a type, called with the samples and the map that contains the function.
Collating = Mapping[Any, Callable[..., Any]]


def collate(batch: Sequence[Any], *, collate_fn_map: Collating | None = None) -> Any:
    """Collates samples into a batch, recursively in tuples, lists and mappings, by functions for their types.

    Args:
        batch: the samples.
        collate_fn_map: a function for each type, or tuple of types, such as ``default_collate_fn_map``.

    Raises:
        TypeError: for a type without a function.
        RuntimeError: for sequences of different sizes.

    Example:
        >>> longest = lambda batch, *, collate_fn_map: max(batch, key=len)
        >>> collate([(1, "a"), (2, "bc")], collate_fn_map={**default_collate_fn_map, str: longest})
        [tensor([1, 2]), 'bc']
    """
    first = batch[0]
    kind, functions = type(first), collate_fn_map or {}
    function = functions.get(kind) or next((f for of, f in functions.items() if isinstance(first, of)), None)
    if function is not None:
        return function(batch, collate_fn_map=collate_fn_map)
    inner = partial(collate, collate_fn_map=collate_fn_map)
    if isinstance(first, Mapping):
        return _like_mapping(first, {key: inner([sample[key] for sample in batch]) for key in first})
    if hasattr(first, "_fields") and isinstance(first, tuple):  # a named tuple
        return kind(*(inner(samples) for samples in zip(*batch)))
    if not isinstance(first, Sequence):
        raise TypeError(_WRONG.format(kind))
    if any(len(sample) != len(first) for sample in batch):
        raise RuntimeError("each element in list of batch should be of equal size")
    columns = [inner(samples) for samples in zip(*batch)]
    return columns if isinstance(first, tuple) else _like_sequence(first, columns)


def collate_tensor_fn(batch: Sequence[Any], *, collate_fn_map: Collating | None = None) -> Any:
    """Stacks tensors."""
    # The public function, since types with __torch_function__ can override it.
    return import_module("compat").stack(list(batch), 0)


def collate_numpy_array_fn(batch: Sequence[Any], *, collate_fn_map: Collating | None = None) -> Any:
    """Stacks arrays; raises for text and objects."""
    if batch[0].dtype.kind not in "biufc":
        raise TypeError(_WRONG.format(batch[0].dtype))
    return collate([as_tensor(array) for array in batch], collate_fn_map=collate_fn_map)


def collate_numpy_scalar_fn(batch: Sequence[Any], *, collate_fn_map: Collating | None = None) -> Any:
    """Converts NumPy scalars to a tensor."""
    return as_tensor(np.asarray(batch))


def collate_float_fn(batch: Sequence[Any], *, collate_fn_map: Collating | None = None) -> Any:
    """Converts floats to a float64 tensor."""
    return tensor(list(batch), dtype=dtypes.float64)


def collate_int_fn(batch: Sequence[Any], *, collate_fn_map: Collating | None = None) -> Any:
    """Converts integers to a tensor."""
    return tensor(list(batch))


def collate_str_fn(batch: Sequence[Any], *, collate_fn_map: Collating | None = None) -> Any:
    """Leaves strings unchanged."""
    return batch


#: The functions of ``default_collate``; a program may add types.
default_collate_fn_map: dict[Any, Callable[..., Any]] = {
    Tensor: collate_tensor_fn,
    np.ndarray: collate_numpy_array_fn,
    (np.bool_, np.number, np.object_): collate_numpy_scalar_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}


def default_collate(batch: Sequence[Any]) -> Any:
    """Stacks samples: tensors, arrays and numbers along a new first dimension, recursively in tuples, lists and
    mappings.

    Raises:
        TypeError: for an unsupported type of sample.
        RuntimeError: for samples of different sizes.

    Example:
        >>> default_collate([(1, "a"), (2, "b")])
        [tensor([1, 2]), ('a', 'b')]
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)


def default_convert(data: Any) -> Any:
    """Converts arrays to tensors, recursively in tuples, lists and mappings; other values are unchanged.

    Example:
        >>> import numpy as np
        >>> default_convert({"x": np.array([1, 2])})
        {'x': tensor([1, 2])}
    """
    return _map(default_convert_one, data)


def default_convert_one(data: Any) -> Any:
    """Converts an array to a tensor, unless it contains text or objects; other values are unchanged."""
    if isinstance(data, (np.ndarray, np.generic)) and data.dtype.kind in "biufc":
        return as_tensor(data)
    return data


def _map(convert: Callable[[Any], Any], data: Any) -> Any:
    if isinstance(data, Mapping):
        return _like_mapping(data, {key: _map(convert, value) for key, value in data.items()})
    if isinstance(data, tuple):
        items = [_map(convert, value) for value in data]
        return type(data)(*items) if hasattr(data, "_fields") else items
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _like_sequence(data, [_map(convert, value) for value in data])
    return convert(data)


def _like_mapping(like: Any, entries: dict) -> Any:
    """The entries in a mapping of the same type, if one can be constructed."""
    try:
        if isinstance(like, MutableMapping):
            made = copy.copy(like)
            made.update(entries)
            return made
        return type(like)(entries)
    except TypeError:
        return entries


def _like_sequence(like: Any, items: list) -> Any:
    """The items in a sequence of the same type, if one can be constructed."""
    try:
        if isinstance(like, MutableSequence):
            made = copy.copy(like)
            made[:] = items
            return made
        return type(like)(items)
    except TypeError:
        return items
