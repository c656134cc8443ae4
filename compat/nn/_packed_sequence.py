"""``PackedSequence``, which layers take and ``torch.nn.utils.rnn`` makes."""

from __future__ import annotations

from typing import Any, NamedTuple

from compat._core.types import dtype as dtypes


class PackedSequence_(NamedTuple):
    data: Any
    batch_sizes: Any
    sorted_indices: Any
    unsorted_indices: Any


class PackedSequence(PackedSequence_):
    """Sequences of different lengths, without padding, as an input of recurrent networks.

    Attributes:
        data: all first steps, then all second steps, and so on, longer sequences first.
        batch_sizes: the number of sequences that have each step.
        sorted_indices: the order of the sequences, None for the original one.
        unsorted_indices: the inverse permutation.

    Example:
        >>> torch.nn.utils.rnn.pack_sequence([torch.tensor([1, 2, 3]), torch.tensor([4, 5])]).data
        tensor([1, 4, 2, 5, 3])
    """

    __module__ = "compat.nn.utils.rnn"

    __slots__ = ()

    def __new__(
        cls, data: Any, batch_sizes: Any = None, sorted_indices: Any = None, unsorted_indices: Any = None
    ) -> PackedSequence:
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        if batch_sizes is None:
            if not (isinstance(data, list | tuple) and len(data) == 2):
                raise AssertionError("Expected data to be a list or tuple of length 2")
            data, batch_sizes = data
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """With its data on another device or of another dtype; itself if nothing changes."""
        data = self.data.to(*args, **kwargs)
        return self if data is self.data else type(self)(data, *self[1:])

    def cpu(self) -> PackedSequence:
        """With its data on the CPU."""
        return self.to("cpu")

    def pin_memory(self) -> PackedSequence:
        """With its data in memory that a device could copy from."""
        return type(self)(self.data.pin_memory(), *self[1:])

    def double(self) -> PackedSequence:
        """With its data in ``float64``."""
        return self.to(dtype=dtypes.float64)

    def float(self) -> PackedSequence:
        """With its data in ``float32``."""
        return self.to(dtype=dtypes.float32)

    def half(self) -> PackedSequence:
        """With its data in ``float16``."""
        return self.to(dtype=dtypes.float16)

    def long(self) -> PackedSequence:
        """With its data in ``int64``."""
        return self.to(dtype=dtypes.int64)

    def int(self) -> PackedSequence:
        """With its data in ``int32``."""
        return self.to(dtype=dtypes.int32)

    def short(self) -> PackedSequence:
        """With its data in ``int16``."""
        return self.to(dtype=dtypes.int16)

    def char(self) -> PackedSequence:
        """With its data in ``int8``."""
        return self.to(dtype=dtypes.int8)

    def byte(self) -> PackedSequence:
        """With its data in ``uint8``."""
        return self.to(dtype=dtypes.uint8)

    @property
    def is_cuda(self) -> bool:
        """Whether its data is on a CUDA device: never."""
        return bool(self.data.is_cuda)

    def is_pinned(self) -> bool:
        """Whether its data is in memory that a device could copy from."""
        return bool(self.data.is_pinned())


def invert_permutation(permutation: Any) -> Any:
    """The permutation that undoes one; None of None.

    Example:
        >>> invert_permutation(torch.tensor([2, 0, 1]))
        tensor([1, 2, 0])
    """
    return None if permutation is None else permutation.argsort()
