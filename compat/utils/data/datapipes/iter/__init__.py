"""Iterable pipes."""

from __future__ import annotations

import copy
import itertools
import random
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from compat.utils.data._utils.collate import default_collate
from compat.utils.data.datapipes._decorator import functional_datapipe
from compat.utils.data.datapipes.datapipe import DataChunk, IterDataPipe

__all__ = [
    "Batcher", "Collator", "Concater", "Filter", "IterableWrapper", "Mapper", "ShardingFilter", "Shuffler", "UnBatcher",
    "Zipper",
]  # fmt: skip


class IterableWrapper(IterDataPipe):
    """The elements of an iterable, of a deep copy unless ``deepcopy`` is False."""

    def __init__(self, iterable: Iterable[Any], deepcopy: bool = True):
        self.iterable, self.deepcopy = iterable, deepcopy

    def __iter__(self) -> Iterator[Any]:
        try:
            return iter(copy.deepcopy(self.iterable) if self.deepcopy else self.iterable)
        except TypeError:  # not copyable
            return iter(self.iterable)

    def __len__(self) -> int:
        return len(self.iterable)  # type: ignore[arg-type]


class _SameLength(IterDataPipe):
    """A pipe of the same length as another one."""

    def __init__(self, datapipe: Any):
        self.datapipe = datapipe

    def __len__(self) -> int:
        return len(self.datapipe)


@functional_datapipe("map")
class Mapper(_SameLength):
    """The results of a function for each sample, or for a part of it.

    Args:
        input_col: the parts of a sample that are passed to the function: an index or key, or several.
        output_col: the part that the result replaces; by default the input's.
    """

    def __init__(self, datapipe: Any, fn: Callable[..., Any], input_col: Any = None, output_col: Any = None):
        super().__init__(datapipe)
        if input_col is None and output_col is not None:
            raise ValueError("`output_col` must be None when `input_col` is None.")
        self.fn, self.input_col, self.output_col = fn, input_col, output_col

    def __iter__(self) -> Iterator[Any]:
        return map(self._applied, self.datapipe)

    def _applied(self, sample: Any) -> Any:
        at = self.input_col
        if at is None:
            return self.fn(sample)
        several = isinstance(at, (list, tuple))
        found = self.fn(*[sample[a] for a in at]) if several else self.fn(sample[at])
        made = list(sample) if isinstance(sample, tuple) else copy.copy(sample)
        to = self.output_col
        if to == -1 and isinstance(made, list):
            made.append(found)
        elif to is None:
            made[at[0] if several else at] = found
            for extra in sorted(at[1:], reverse=True) if several else ():
                del made[extra]
        else:
            made[to[0] if isinstance(to, (list, tuple)) else to] = found
        return tuple(made) if isinstance(sample, tuple) else made


@functional_datapipe("filter")
class Filter(IterDataPipe):
    """The samples for which a function is true."""

    def __init__(self, datapipe: Any, filter_fn: Callable[..., Any], input_col: Any = None):
        self.datapipe, self.filter_fn, self.input_col = datapipe, filter_fn, input_col

    def __iter__(self) -> Iterator[Any]:
        at = self.input_col
        return (x for x in self.datapipe if self.filter_fn(x if at is None else x[at]))


@functional_datapipe("batch")
class Batcher(IterDataPipe):
    """Batches of samples.

    Args:
        batch_size: the number of samples.
        drop_last: whether to omit a last batch that is incomplete.
        wrapper_class: the type of a batch.
    """

    def __init__(self, datapipe: Any, batch_size: int, drop_last: bool = False, wrapper_class: Any = DataChunk):
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        self.datapipe, self.batch_size = datapipe, batch_size
        self.drop_last, self.wrapper_class = drop_last, wrapper_class

    def __iter__(self) -> Iterator[Any]:
        samples = iter(self.datapipe)
        while batch := list(itertools.islice(samples, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield self.wrapper_class(batch)

    def __len__(self) -> int:
        count, rest = divmod(len(self.datapipe), self.batch_size)
        return count + (bool(rest) and not self.drop_last)


@functional_datapipe("unbatch")
class UnBatcher(IterDataPipe):
    """The samples of batches, unbatched by ``unbatch_level`` levels, all for -1."""

    def __init__(self, datapipe: Any, unbatch_level: int = 1):
        self.datapipe, self.unbatch_level = datapipe, unbatch_level

    def __iter__(self) -> Iterator[Any]:
        for batch in self.datapipe:
            yield from self._parts(batch, self.unbatch_level)

    def _parts(self, batch: Any, level: int) -> Iterator[Any]:
        if level == 0 or not isinstance(batch, list):
            if level > 0:
                raise IndexError(f"unbatch_level {self.unbatch_level} exceeds the depth of the DataPipe")
            yield batch
            return
        for part in batch:
            yield from self._parts(part, level - 1)


@functional_datapipe("collate")
class Collator(_SameLength):
    """Batches collated into tensors."""

    def __init__(self, datapipe: Any, conversion: Any = None, collate_fn: Callable[[Any], Any] | None = None):
        super().__init__(datapipe)
        self.collate_fn = collate_fn or (conversion if callable(conversion) else default_collate)

    def __iter__(self) -> Iterator[Any]:
        return map(self.collate_fn, self.datapipe)


@functional_datapipe("concat")
class Concater(IterDataPipe):
    """The concatenated samples of several pipes."""

    def __init__(self, *datapipes: Any):
        if not datapipes:
            raise ValueError("Expected at least one DataPipe, but got nothing")
        self.datapipes = datapipes

    def __iter__(self) -> Iterator[Any]:
        return itertools.chain(*self.datapipes)

    def __len__(self) -> int:
        return sum(map(len, self.datapipes))


@functional_datapipe("zip")
class Zipper(IterDataPipe):
    """Tuples of a sample of each pipe, up to the length of the shortest."""

    def __init__(self, *datapipes: Any):
        self.datapipes = datapipes

    def __iter__(self) -> Iterator[Any]:
        return zip(*self.datapipes)

    def __len__(self) -> int:
        return min(map(len, self.datapipes))


@functional_datapipe("shuffle")
class Shuffler(_SameLength):
    """Samples shuffled with a buffer.

    Args:
        buffer_size: the number of samples in the buffer, from which one is drawn.
        unbatch_level: the levels of batches to unbatch first.
    """

    def __init__(self, datapipe: Any, *, buffer_size: int = 10000, unbatch_level: int = 0):
        if buffer_size <= 0:
            raise AssertionError("buffer_size should be larger than 0")
        super().__init__(UnBatcher(datapipe, unbatch_level) if unbatch_level else datapipe)
        self.buffer_size, self._enabled, self._seed = buffer_size, True, None

    def set_shuffle(self, shuffle: bool = True) -> Shuffler:
        """Sets whether to shuffle; returns the pipe."""
        self._enabled = shuffle
        return self

    def set_seed(self, seed: int) -> Shuffler:
        """Sets the seed of the next order; returns the pipe."""
        self._seed = seed  # type: ignore[assignment]
        return self

    def __iter__(self) -> Iterator[Any]:
        if not self._enabled:
            yield from self.datapipe
            return
        chance = random.Random(self._first())
        waiting: list[Any] = []
        for x in self.datapipe:
            if len(waiting) == self.buffer_size:
                n = chance.randint(0, len(waiting) - 1)
                waiting[n], x = x, waiting[n]
                yield x
            else:
                waiting.append(x)
        while waiting:
            yield waiting.pop(chance.randint(0, len(waiting) - 1))

    def _first(self) -> int:
        from compat import randint

        seed, self._seed = self._seed, None
        return int(randint(2**63 - 1, ()).item()) if seed is None else seed


@functional_datapipe("sharding_filter")
class ShardingFilter(_SameLength):
    """The samples of one worker: every n-th, starting at its index."""

    def __init__(self, datapipe: Any):
        super().__init__(datapipe)
        self.num_of_instances, self.instance_id = 1, 0

    def apply_sharding(self, num_of_instances: int, instance_id: int, sharding_group: Any = None) -> None:
        """Sets the number of workers and the index of this one."""
        self.num_of_instances, self.instance_id = num_of_instances, instance_id

    def __iter__(self) -> Iterator[Any]:
        return itertools.islice(iter(self.datapipe), self.instance_id, None, self.num_of_instances)

    def __len__(self) -> int:
        count, rest = divmod(len(self.datapipe), self.num_of_instances)
        return count + (self.instance_id < rest)
