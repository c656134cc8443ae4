"""Sequences of different lengths as one tensor: padded, or packed (the rows of all sequences, step by step)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from compat._core.operators.composite import composite
from compat._core.operators.declaration import Gradients
from compat._core.operators.op import aten
from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor, array_of, from_array
from compat._core.transforms.grad_mode import mode
from compat._core.types import dtype as dtypes
from compat._core.types.errors import wrap_dim
from funcgrad import numpy as np
from funcgrad.core import dtypes as fdtypes
from funcgrad.core.tracing import type_of
from funcgrad.primitives import elementwise as e
from funcgrad.primitives.indexing import take as take_slices
from funcgrad.primitives.shape import iota, moved, reshape


def packed_indices(batch_sizes: Any, total: int, batch: int) -> Any:
    """The indices of packed rows among the (steps * batch) rows of a padded tensor."""
    steps = type_of(batch_sizes).size
    ends = np.cumsum(batch_sizes)
    rows = iota(shape=(total,), axis=0, dtype=fdtypes.int64)
    step = np.sum(np.greater_equal(reshape(rows, shape=(total, 1)), reshape(ends, shape=(1, steps))), 1)
    sequence = np.subtract(rows, take_slices(np.subtract(ends, batch_sizes), step, axis=0, mode="clip"))
    return np.add(np.multiply(step, batch), sequence)


def padded_rows(rows: Any, indices: Any, steps: int, batch: int) -> Any:
    """Packed rows as (steps, batch, ...), zero elsewhere."""
    width = type_of(rows).shape[1:]
    padded = np.at(np.zeros((steps * batch, *width), type_of(rows).dtype))[indices].add(rows)
    return reshape(padded, shape=(steps, batch, *width))


def gathered(padded: Any, indices: Any) -> Any:
    """The rows of (steps, batch, ...) at indices."""
    steps, batch, *width = type_of(padded).shape
    return take_slices(reshape(padded, shape=(steps * batch, *width)), indices, axis=0, mode="clip")


def active_steps(batch_sizes: Any, steps: int, batch: int) -> Any:
    """The mask of steps that belong to each sequence: booleans (steps, batch)."""
    sequences = iota(shape=(steps, batch), axis=1, dtype=fdtypes.int64)
    sizes = np.concatenate([batch_sizes, np.zeros((steps - type_of(batch_sizes).size,), fdtypes.int64)])
    return np.less(sequences, reshape(sizes, shape=(steps, 1)))


# ---------------------------------------------------------------- packing


@aten(
    "_pack(Tensor self, Tensor lengths, int steps, int total, bool batch_first) -> Tensor",
    node="PackPaddedSequenceBackward0", saves="input.sym_sizes result1 batch_first", names="",
    gradients=Gradients(without="lengths"),
)  # fmt: skip
def _pack(input, lengths, steps, total, batch_first):
    step = iota(shape=(steps, 1), axis=0, dtype=fdtypes.int64)
    batch_sizes = np.sum(np.greater(reshape(lengths, shape=(1, type_of(lengths).size)), step), 1)
    steps_first = moved(input, 1, 0) if batch_first else input
    indices = packed_indices(batch_sizes, total, type_of(steps_first).shape[1])
    return gathered(steps_first, indices), batch_sizes


@_pack.backward
def _pack_backward(ct0: Any, input: Any, total: int, batch_first: bool, result1: Any) -> Any:
    steps, batch = (type_of(input).shape[i] for i in ((1, 0) if batch_first else (0, 1)))
    padded = padded_rows(ct0, packed_indices(result1, total, batch), steps, batch)
    return moved(padded, 1, 0) if batch_first else padded


def row_tables(sizes: numpy.ndarray) -> tuple[numpy.ndarray, numpy.ndarray]:
    """The indices of packed rows among (steps * batch), and for each of these rows its packed index or -1."""
    active = numpy.arange(sizes[0]) < sizes[:, None]
    indices = numpy.flatnonzero(active)
    sources = numpy.full(active.size, -1)
    sources[indices] = numpy.arange(indices.size)
    return indices, sources


def _unpacked(rows: Any, sources: Any, steps: int, batch: int) -> Any:
    """Packed rows as (steps, batch, ...), zero elsewhere, by a gather, since a scatter compiles slowly."""
    found = take_slices(rows, sources, axis=0, mode="clip")
    valid = reshape(np.greater_equal(sources, 0), shape=(steps * batch, *(1,) * (type_of(rows).ndim - 1)))
    return reshape(np.where(valid, found, e.number(0, found)), shape=(steps, batch, *type_of(rows).shape[1:]))


@aten(
    "pack_rows(Tensor self, Tensor indices, Tensor sources) -> Tensor",
    node="PackPaddedSequenceBackward0", saves="input.sym_sizes sources", names="",
    gradients=Gradients(without="indices sources"),
)  # fmt: skip
def pack_rows(input, indices, sources):
    """The rows of (steps, batch, ...) that belong to sequences, step by step."""
    return gathered(input, indices)


@pack_rows.backward
def _pack_rows_backward(ct: Any, input: Any, sources: Any) -> Any:
    steps, batch = type_of(input).shape[:2]
    return _unpacked(ct, sources, steps, batch)


@aten(
    "spread_rows(Tensor rows, Tensor indices, Tensor sources, int steps, int batch) -> Tensor",
    node="PadPackedSequenceBackward0", saves="rows.sym_sizes indices", names="",
    gradients=Gradients(without="indices sources"),
)  # fmt: skip
def spread_rows(rows, indices, sources, steps, batch):
    """Packed rows as (steps, batch, ...), zero elsewhere."""
    return _unpacked(rows, sources, steps, batch)


@spread_rows.backward
def _spread_rows_backward(ct: Any, rows: Any, indices: Any) -> Any:
    return gathered(ct, indices)


@composite(
    "_pack_padded_sequence(Tensor input, Tensor lengths, bool batch_first) -> (Tensor, Tensor)",
    names="torch._pack_padded_sequence",
)
def _pack_padded_sequence(input: Tensor, lengths: Tensor, batch_first: bool) -> tuple[Tensor, Tensor]:
    """The rows of padded sequences, step by step, and the number of sequences at each step.

    Raises:
        RuntimeError: for an empty batch, and lengths that are not sorted, not positive, or not one per sequence.
    """
    if not input.numel():
        raise RuntimeError("Cannot pack empty tensors.")
    if lengths.dim() != 1 or lengths.dtype is not dtypes.int64:
        raise RuntimeError(
            "'lengths' argument should be a 1D CPU int64 tensor, but got "
            f"{lengths.dim()}D {lengths.device.type} {lengths.dtype.scalar_name} tensor"
        )
    batch = input.size(wrap_dim(0 if batch_first else 1, input.dim()))
    values = array_of(lengths)
    if values.size != batch:
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {values.size} (batch_size={batch})"
        )
    if (values <= 0).any():
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0"
        )
    if (values[1:] > values[:-1]).any():
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
            "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement if you "
            "do not need ONNX exportability."
        )
    return _pack.function(input, lengths, int(values[0]), int(values.sum()), batch_first)


@aten(
    "pad_rows(Tensor data, Tensor batch_sizes, float padding_value, int batch, int total_length) -> Tensor",
    node="PadPackedSequenceBackward0", saves="data.sym_sizes batch_sizes total_length", names="",
    gradients=Gradients(without="batch_sizes"),
)  # fmt: skip
def pad_rows(data, batch_sizes, padding_value, batch, total_length):
    """Packed rows as (steps, batch, ...), with ``padding_value`` elsewhere."""
    indices = packed_indices(batch_sizes, type_of(data).shape[0], batch)
    padded = padded_rows(data, indices, total_length, batch)
    active = active_steps(batch_sizes, total_length, batch)
    active = reshape(active, shape=(total_length, batch, *(1,) * (type_of(padded).ndim - 2)))
    return np.where(active, padded, e.number(padding_value, padded))


@pad_rows.backward
def _pad_rows_backward(ct: Any, data: Any, batch_sizes: Any, batch: int) -> Any:
    return gathered(ct, packed_indices(batch_sizes, type_of(data).shape[0], batch))


@composite(
    "_pad_packed_sequence(Tensor data, Tensor batch_sizes, bool batch_first, Scalar padding_value, "
    "int total_length) -> (Tensor, Tensor)",
    names="torch._pad_packed_sequence",
)
def _pad_packed_sequence(data, batch_sizes, batch_first, padding_value, total_length):
    """Packed sequences padded to one length, and their lengths."""
    sizes = array_of(batch_sizes)
    batch = int(sizes[0])
    padded = pad_rows.function(data, batch_sizes, padding_value, batch, max(int(total_length), sizes.size))
    lengths = (sizes[None, :] > numpy.arange(batch)[:, None]).sum(1).astype(numpy.int64)
    return padded.transpose(0, 1) if batch_first else padded, from_array(lengths)


# ---------------------------------------------------------------- padding


def _check_sequences(sequences: Sequence[Any], padding_side: str) -> None:
    for i, t in enumerate(sequences):
        if not isinstance(t, Tensor):
            raise TypeError(f"expected Tensor as element {i} in argument 0, but got {type(t).__name__}")
    if not sequences:
        raise RuntimeError("received an empty list of sequences")
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    if not sequences[0].dim():
        raise RuntimeError("ArrayRef: invalid slice, N = 1; size = 0")
    for t in sequences[1:]:
        _check_copied(t, (len(t), *sequences[0].shape[1:]))


def _check_copied(t: Tensor, size: tuple[int, ...]) -> None:
    """Raises the errors of copying a tensor to a part of a given size."""
    ndim = max(t.dim(), len(size))
    wide = [1] * (ndim - len(size)) + list(size)
    for d, (a, b) in enumerate(zip(reversed(wide), reversed(t.shape)), 1):
        if a != b and 1 not in (a, b):
            raise RuntimeError(
                f"The size of tensor a ({a}) must match the size of tensor b ({b}) at non-singleton dimension "
                f"{ndim - d}"
            )
        wide[-d] = max(a, b) if a and b else 0
    if wide != list(size):
        raise RuntimeError(f"output with shape {list(size)} doesn't match the broadcast shape {wide}")


def pad(sequences: Sequence[Any], batch_first: bool, padding_value: float, padding_side: str) -> Tensor:
    """Sequences of different lengths as one padded tensor; see ``torch.nn.utils.rnn``."""
    _check_sequences(sequences, padding_side)
    first, longest = sequences[0], max(len(t) for t in sequences)
    lead = (len(sequences), longest) if batch_first else (longest, len(sequences))
    size = (*lead, *first.shape[1:])
    if (mode.grad and any(t.requires_grad for t in sequences)) or any(t._layout_.base.traced for t in sequences):
        result: Any = names_of("torch")["full"](size, padding_value, dtype=first.dtype)
        for i, t in enumerate(sequences):
            begin = longest - len(t) if padding_side == "left" else 0
            result.select(0 if batch_first else 1, i).narrow(0, begin, len(t)).copy_(t)
        return result
    # Unless the graph is recorded, NumPy pads, since each combination of lengths would need a separate program.
    array = numpy.full(size, padding_value, first.dtype.numpy)
    for i, t in enumerate(sequences):
        begin = longest - len(t) if padding_side == "left" else 0
        array[(i, slice(begin, begin + len(t))) if batch_first else (slice(begin, begin + len(t)), i)] = array_of(t)
    return from_array(array, first.dtype)
