"""``PackedSequence``, the packed input of recurrent layers."""

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
            if not (isinstance(data, (list, tuple)) and len(data) == 2):
                raise AssertionError("Expected data to be a list or tuple of length 2")
            data, batch_sizes = data
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """The sequences with their data moved to a device or cast to a dtype; itself if nothing changes."""
        data = self.data.to(*args, **kwargs)
        return self if data is self.data else type(self)(data, *self[1:])

    def cpu(self) -> PackedSequence:
        """The sequences with their data on the CPU."""
        return self.to("cpu")

    def pin_memory(self) -> PackedSequence:
        """The sequences with their data in pinned memory."""
        return type(self)(self.data.pin_memory(), *self[1:])

    def double(self) -> PackedSequence:
        """The sequences with their data cast to ``float64``."""
        return self.to(dtype=dtypes.float64)

    def float(self) -> PackedSequence:
        """The sequences with their data cast to ``float32``."""
        return self.to(dtype=dtypes.float32)

    def half(self) -> PackedSequence:
        """The sequences with their data cast to ``float16``."""
        return self.to(dtype=dtypes.float16)

    def long(self) -> PackedSequence:
        """The sequences with their data cast to ``int64``."""
        return self.to(dtype=dtypes.int64)

    def int(self) -> PackedSequence:
        """The sequences with their data cast to ``int32``."""
        return self.to(dtype=dtypes.int32)

    def short(self) -> PackedSequence:
        """The sequences with their data cast to ``int16``."""
        return self.to(dtype=dtypes.int16)

    def char(self) -> PackedSequence:
        """The sequences with their data cast to ``int8``."""
        return self.to(dtype=dtypes.int8)

    def byte(self) -> PackedSequence:
        """The sequences with their data cast to ``uint8``."""
        return self.to(dtype=dtypes.uint8)

    @property
    def is_cuda(self) -> bool:
        """Whether the data is on a CUDA device."""
        return bool(self.data.is_cuda)

    def is_pinned(self) -> bool:
        """Whether the data is in pinned memory."""
        return bool(self.data.is_pinned())


def invert_permutation(permutation: Any) -> Any:
    """The inverse of a permutation; None for None.

    Example:
        >>> invert_permutation(torch.tensor([2, 0, 1]))
        tensor([1, 2, 0])
    """
    return None if permutation is None else permutation.argsort()
