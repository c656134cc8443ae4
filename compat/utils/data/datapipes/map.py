"""Map-style pipes."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

from compat.utils.data.datapipes._decorator import functional_datapipe
from compat.utils.data.datapipes.datapipe import DataChunk, MapDataPipe

__all__ = ["Batcher", "Concater", "Mapper", "SequenceWrapper", "Zipper"]


class SequenceWrapper(MapDataPipe):
    """The elements of a sequence or dictionary, of a deep copy unless ``deepcopy`` is False."""

    def __init__(self, sequence: Any, deepcopy: bool = True):
        self.sequence = copy.deepcopy(sequence) if deepcopy else sequence

    def __getitem__(self, index: Any) -> Any:
        return self.sequence[index]

    def __len__(self) -> int:
        return len(self.sequence)


@functional_datapipe("map")
class Mapper(MapDataPipe):
    """The results of a function for each sample."""

    def __init__(self, datapipe: Any, fn: Callable[[Any], Any] = lambda x: x):
        self.datapipe, self.fn = datapipe, fn

    def __getitem__(self, index: Any) -> Any:
        return self.fn(self.datapipe[index])

    def __len__(self) -> int:
        return len(self.datapipe)


@functional_datapipe("batch")
class Batcher(MapDataPipe):
    """Batches of samples; the last one may be incomplete, or omitted by ``drop_last``."""

    def __init__(self, datapipe: Any, batch_size: int, drop_last: bool = False, wrapper_class: Any = DataChunk):
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        self.datapipe, self.batch_size = datapipe, batch_size
        self.drop_last, self.wrapper_class = drop_last, wrapper_class

    def __getitem__(self, index: int) -> Any:
        if not 0 <= index < len(self):
            raise IndexError(f"Index {index} is out of bound.")
        first = index * self.batch_size
        return self.wrapper_class(
            [self.datapipe[n] for n in range(first, min(first + self.batch_size, len(self.datapipe)))]
        )

    def __len__(self) -> int:
        count, rest = divmod(len(self.datapipe), self.batch_size)
        return count + (bool(rest) and not self.drop_last)


@functional_datapipe("concat")
class Concater(MapDataPipe):
    """The concatenated samples of several pipes."""

    def __init__(self, *datapipes: Any):
        self.datapipes: Sequence[Any] = datapipes

    def __getitem__(self, index: int) -> Any:
        offset = 0
        for pipe in self.datapipes:
            if index - offset < len(pipe):
                return pipe[index - offset]
            offset += len(pipe)
        raise IndexError(f"Index {index} is out of range.")

    def __len__(self) -> int:
        return sum(map(len, self.datapipes))


@functional_datapipe("zip")
class Zipper(MapDataPipe):
    """Tuples of a sample of each pipe."""

    def __init__(self, *datapipes: Any):
        self.datapipes: Sequence[Any] = datapipes

    def __getitem__(self, index: Any) -> Any:
        return tuple(pipe[index] for pipe in self.datapipes)

    def __len__(self) -> int:
        return min(map(len, self.datapipes))
