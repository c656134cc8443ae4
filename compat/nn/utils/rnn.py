"""``torch.nn.utils.rnn``: padded and packed sequences."""

from __future__ import annotations

import builtins
from collections.abc import Iterable
from typing import Any

from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor
from compat._core.types import dtype as dtypes
from compat._operators.nn.packed_sequence import pad
from compat.nn._packed_sequence import PackedSequence, invert_permutation

__all__ = [
    "PackedSequence", "invert_permutation", "pack_padded_sequence", "pack_sequence", "pad_packed_sequence",
    "pad_sequence", "unpack_sequence", "unpad_sequence",
]  # fmt: skip


def pack_padded_sequence(
    input: Any, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Packs padded sequences.

    Args:
        input: (steps, batch, ...), with ``batch_first`` (batch, steps, ...).
        lengths: the lengths of the sequences; a tensor or a list.
        enforce_sorted: whether they must be sorted by decreasing length; otherwise they are sorted here.

    Raises:
        RuntimeError: for lengths that are not sorted, not positive, or not one for each sequence.

    Example:
        >>> pack_padded_sequence(torch.tensor([[1, 4], [2, 5], [3, 0]]), [3, 2]).batch_sizes
        tensor([2, 2, 1])
    """
    torch = names_of("torch")
    if isinstance(lengths, Tensor):
        lengths = lengths.to(dtype=dtypes.int64)
    else:
        lengths = torch["as_tensor"](lengths, dtype=dtypes.int64)
    order = None
    if not enforce_sorted:
        lengths, order = torch["sort"](lengths, descending=True)
        input = input.index_select(0 if batch_first else 1, order)
    data, batch_sizes = torch["_pack_padded_sequence"](input, lengths, batch_first)
    return PackedSequence(data, batch_sizes, order)


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Any, Any]:
    """Pads packed sequences.

    Args:
        batch_first: as for ``pack_padded_sequence``.
        padding_value: the padding value.
        total_length: the number of steps; by default that of the longest sequence.

    Returns:
        The padded sequences, and their lengths.

    Raises:
        ValueError: if the longest is longer than ``total_length``.

    Example:
        >>> pad_packed_sequence(pack_sequence([torch.tensor([1, 2, 3]), torch.tensor([4, 5])]), batch_first=True)
        (tensor([[1, 2, 3],
                [4, 5, 0]]), tensor([3, 2]))
    """
    longest = sequence.batch_sizes.size(0)
    if total_length is not None and total_length < longest:
        raise ValueError(
            "Expected total_length to be at least the length of the longest sequence in input, but got "
            f"total_length={total_length} and max sequence length being {longest}"
        )
    padded, lengths = names_of("torch")["_pad_packed_sequence"](
        sequence.data,
        sequence.batch_sizes,
        batch_first,
        padding_value,
        longest if total_length is None else total_length,
    )
    order = sequence.unsorted_indices
    if order is None:
        return padded, lengths
    return padded.index_select(0 if batch_first else 1, order), lengths[order]


def pad_sequence(
    sequences: Any, batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Tensor:
    """Pads sequences of different lengths into one tensor.

    Args:
        sequences: tensors of sizes (length, ...).
        batch_first: the result is (batch, steps, ...) rather than (steps, batch, ...).
        padding_value: the padding value.
        padding_side: ``"right"``, after the end, or ``"left"``, before the beginning.

    Raises:
        RuntimeError: for an argument that is not a sequence of tensors, and sizes that do not match.

    Example:
        >>> pad_sequence([torch.tensor([1, 2, 3]), torch.tensor([4])], batch_first=True)
        tensor([[1, 2, 3],
                [4, 0, 0]])
    """
    if not isinstance(sequences, Iterable):
        raise RuntimeError(
            f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}"
        )
    return pad(tuple(sequences), batch_first, padding_value, padding_side)


def unpad_sequence(padded_sequences: Any, lengths: Any, batch_first: bool = False) -> list[Any]:
    """Splits padded sequences into a list of tensors.

    Example:
        >>> unpad_sequence(torch.tensor([[1, 2], [3, 0]]), torch.tensor([2, 1]), batch_first=True)
        [tensor([1, 2]), tensor([3])]
    """
    if not batch_first:
        padded_sequences.transpose_(0, 1)
    places = names_of("torch")["arange"](padded_sequences.shape[1])
    return [sequence[places < length] for sequence, length in zip(padded_sequences, lengths, strict=True)]


def pack_sequence(sequences: Any, enforce_sorted: bool = True) -> PackedSequence:
    """Packs sequences of different lengths.

    Args:
        sequences: tensors of sizes (length, ...).
        enforce_sorted: as for ``pack_padded_sequence``.

    Example:
        >>> pack_sequence([torch.tensor([1, 2, 3]), torch.tensor([4, 5])]).batch_sizes
        tensor([2, 2, 1])
    """
    lengths: list[builtins.int] = [s.size(0) for s in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Any]:
    """Splits packed sequences into a list of tensors.

    Example:
        >>> unpack_sequence(pack_sequence([torch.tensor([1, 2, 3]), torch.tensor([4, 5])]))
        [tensor([1, 2, 3]), tensor([4, 5])]
    """
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
