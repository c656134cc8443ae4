"""``DataLoader``: batches of a data set."""

from __future__ import annotations

import itertools
import math
import multiprocessing.context
from collections.abc import Callable, Iterator
from typing import Any, Generic

from compat._core import random
from compat._core.random.generator import engine_of
from compat._core.types.errors import warn
from compat.utils.data._utils.collate import default_collate, default_convert
from compat.utils.data._utils.worker import Crew, Fetcher
from compat.utils.data.dataset import IterableDataset, T_co
from compat.utils.data.sampler import BatchSampler, RandomSampler, SequentialSampler


class _Endless:
    """The numbers for an iterable data set, which takes none."""

    def __iter__(self) -> Iterator[None]:
        return itertools.repeat(None)


_FIXED = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")


class DataLoader(Generic[T_co]):
    """Batches of a data set, in order or shuffled.

    Batches are made in this process when they are asked for, whatever ``num_workers``; see
    ``compat.utils.data._utils.worker``. The order, and what is drawn for it and in workers, are PyTorch's.

    Args:
        dataset: what has ``__getitem__`` and ``__len__``, or an ``IterableDataset``.
        batch_size: how many samples are a batch; None gives single samples, not stacked.
        shuffle: whether to go through it in random order, a new one each time.
        sampler: the order instead.
        batch_sampler: lists of numbers instead, each a batch.
        collate_fn: makes a batch of a list of samples; ``default_collate`` if left out.
        drop_last: whether a shorter last batch is left out.
        generator: where to draw from.
        num_workers: by how many workers, in turn.
        worker_init_fn: called with each worker's number before its first batch.
        persistent_workers: whether workers, with their copies of the data set and random numbers, stay for all epochs.
        pin_memory, timeout, multiprocessing_context, prefetch_factor, pin_memory_device, in_order: checked, and without
            effect.

    Raises:
        ValueError: for arguments out of range, or that exclude each other.

    Example:
        >>> import compat as torch
        >>> data = torch.utils.data.TensorDataset(torch.arange(5))
        >>> [batch for (batch,) in DataLoader(data, batch_size=2)]
        [tensor([0, 1]), tensor([2, 3]), tensor([4])]
    """

    __initialized = False

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Any = None,
        batch_sampler: Any = None,
        num_workers: int = 0,
        collate_fn: Callable[[list], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: Any = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ):
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers, multiprocessing_context)
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = 2 if num_workers > 0 and prefetch_factor is None else prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.in_order = in_order
        if isinstance(dataset, IterableDataset):
            _check_unordered(shuffle, sampler, batch_sampler)
        _check_exclusive(batch_size, shuffle, sampler, batch_sampler, drop_last)
        if batch_sampler is not None:
            batch_size, drop_last = None, False
        if sampler is None:
            if isinstance(dataset, IterableDataset):
                sampler = _Endless()
            else:
                sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.generator = generator
        if collate_fn is None:
            collate_fn = default_collate if batch_sampler is not None else default_convert
        self.collate_fn = collate_fn
        self.persistent_workers = persistent_workers
        self._reported: int | None = None
        self._crew: Crew | None = None
        self.__initialized = True

    def __setattr__(self, name: str, value: Any) -> None:
        if self.__initialized and name in _FIXED:
            raise ValueError(f"{name} attribute should not be set after {type(self).__name__} is initialized")
        super().__setattr__(name, value)

    def __iter__(self) -> Iterator[Any]:
        kind = _MultiProcessingDataLoaderIter if self.num_workers else _SingleProcessDataLoaderIter
        batches = kind(self, self._crew)
        if self.persistent_workers and isinstance(batches.source, Crew):
            self._crew = batches.source
        return batches

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Any:
        return self.sampler if self.batch_sampler is None else self.batch_sampler

    def __len__(self) -> int:
        if not isinstance(self.dataset, IterableDataset):
            return len(self._index_sampler)
        length = self._reported = len(self.dataset)  # type: ignore[arg-type]
        if self.batch_size is not None:
            length = length // self.batch_size if self.drop_last else math.ceil(length / self.batch_size)
        return length


def _check_workers(num_workers: int, timeout: float, prefetch_factor: Any, persistent: bool, context: Any) -> None:
    if num_workers < 0:
        raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing.let num_workers > 0 to enable "
            "multiprocessing, otherwise set prefetch_factor to None."
        )
    if prefetch_factor is not None and prefetch_factor < 0:
        raise ValueError("prefetch_factor option should be non-negative")
    if persistent and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")
    if context is not None and num_workers == 0:
        raise ValueError(
            "multiprocessing_context can only be used with multi-process loading (num_workers > 0), but got "
            f"num_workers={num_workers}"
        )
    if context is not None:
        _check_context(context)


def _check_context(context: Any) -> None:
    """A way to start processes, though none is started."""
    methods = multiprocessing.get_all_start_methods()
    if isinstance(context, str) and context not in methods:
        raise ValueError(
            f"multiprocessing_context option should specify a valid start method in {methods!r}, but got "
            f"multiprocessing_context={context!r}"
        )
    if not isinstance(context, str | multiprocessing.context.BaseContext):
        raise TypeError(
            "multiprocessing_context option should be a valid context object or a string specifying the start method, "
            f"but got multiprocessing_context={context}"
        )


def _check_unordered(shuffle: Any, sampler: Any, batch_sampler: Any) -> None:
    """An iterable data set has its own order."""
    if shuffle not in (False, None):
        raise ValueError(
            f"DataLoader with IterableDataset: expected unspecified shuffle option, but got shuffle={shuffle}"
        )
    for name, value in (("sampler", sampler), ("batch_sampler", batch_sampler)):
        if value is not None:
            raise ValueError(
                f"DataLoader with IterableDataset: expected unspecified {name} option, but got {name}={value}"
            )


def _check_exclusive(batch_size: Any, shuffle: Any, sampler: Any, batch_sampler: Any, drop_last: bool) -> None:
    if sampler is not None and shuffle:
        raise ValueError("sampler option is mutually exclusive with shuffle")
    if batch_sampler is not None:
        if batch_size != 1 or shuffle or sampler is not None or drop_last:
            raise ValueError(
                "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
            )
    elif batch_size is None and drop_last:
        raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")


class _BaseDataLoaderIter:
    """One going through a loader's batches."""

    def __init__(self, loader: DataLoader, crew: Crew | None = None):
        self.loader = loader
        self.count = 0
        if loader.pin_memory:
            warn(
                "'pin_memory' argument is set as true but no accelerator is found, then device pinned memory won't be "
                "used."
            )
        self.source: Crew | Fetcher
        if crew is None:
            base_seed = random.base_seed(engine_of("DataLoader", loader.generator))
            self.source = (
                Crew(loader, base_seed) if loader.num_workers else Fetcher(loader, loader.dataset, loader.collate_fn)
            )
        else:
            crew.resume()
            self.source = crew
        self.indices = iter(loader._index_sampler)
        whole = loader._auto_collation and loader.collate_fn is default_collate and not loader.worker_init_fn
        #: How a data set makes a whole batch at once, which is what making it of samples would give.
        self.stacked = getattr(loader.dataset, "stacked", None) if whole else None

    def __iter__(self) -> _BaseDataLoaderIter:
        return self

    def __len__(self) -> int:
        return len(self.loader._index_sampler)

    def __next__(self) -> Any:
        index = next(self.indices)
        batch = self.stacked(index) if self.stacked is not None else None
        if batch is None:
            batch = self.source.fetch(index)
        self.count += 1
        loader = self.loader
        reported = loader._reported
        if isinstance(loader.dataset, IterableDataset) and reported is not None and self.count > reported:
            self._warn_of_more(reported)
        return batch

    def _warn_of_more(self, reported: int) -> None:
        text = (
            f"Length of IterableDataset {self.loader.dataset} was reported to be {reported} (when accessing "
            f"len(dataloader)), but {self.count} samples have been fetched. "
        )
        if self.loader.num_workers:
            text += (
                "For multiprocessing data-loading, this could be caused by not properly configuring the "
                "IterableDataset replica at each worker. Please see https://pytorch.org/docs/stable/data.html#torch.utils.data."
                "IterableDataset for examples."
            )
        warn(text)


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """One going through the batches of a loader without workers."""


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """One going through the batches of a loader that was asked for workers."""
