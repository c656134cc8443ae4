"""``DataLoader``: batches of a dataset."""

from __future__ import annotations

import itertools
import math
import multiprocessing
import multiprocessing.context
import os
from collections.abc import Callable, Iterator
from typing import Any, Generic

from compat import accelerator
from compat._core.random.generator import engine_of
from compat._core.types.errors import warn
from compat._operators import samplers
from compat._utils import ExceptionWrapper
from compat.utils.data._utils.collate import default_collate, default_convert
from compat.utils.data._utils.fetch import Recipe
from compat.utils.data._utils.worker import Ended
from compat.utils.data._utils.worker_pool import WorkerPool
from compat.utils.data.dataset import IterableDataset, T_co
from compat.utils.data.sampler import BatchSampler, RandomSampler, SequentialSampler

_collate_fn_t = Callable[[list[Any]], Any]  # the type of ``collate_fn``; packages import it by this name

__all__ = ["DataLoader", "default_collate", "default_convert"]


class _DatasetKind:
    """The kinds of datasets: with indices, and iterable ones."""

    Map, Iterable = 0, 1


class _InfiniteSampler:
    """The sampler of an iterable dataset, which takes no indices."""

    def __iter__(self) -> Iterator[None]:
        return itertools.repeat(None)


_FIXED = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")


class DataLoader(Generic[T_co]):
    """Batches of a dataset, in order or shuffled.

    Without workers, this process makes batches when they are requested; worker processes make them ahead of time, and
    send their tensors through shared memory. The order, and the random numbers of sampler and workers, are the same as
    in PyTorch. Workers end with the epoch, or with the loader if they are persistent, and always with this process.

    Args:
        dataset: an object with ``__getitem__`` and ``__len__``, or an ``IterableDataset``.
        batch_size: the number of samples in a batch; None for single samples, not stacked.
        shuffle: whether to use a new random order in each epoch.
        sampler: the order of indices, instead of ``shuffle``.
        batch_sampler: an iterable of lists of indices, one per batch, instead of ``batch_size`` and ``sampler``.
        collate_fn: makes a batch of a list of samples; by default ``default_collate``.
        drop_last: whether to omit a last batch that is incomplete.
        generator: the random number generator.
        num_workers: the number of worker processes; 0 to make batches in this process.
        worker_init_fn: called in each worker with its index, before its first batch.
        prefetch_factor: the number of batches that each worker prefetches; by default 2.
        persistent_workers: whether to keep workers, with their datasets and random states, for all epochs.
        timeout: the seconds to wait for a worker's batch; 0 for no limit.
        multiprocessing_context: the start method of workers, a context of ``multiprocessing`` or a name; by default
            that of ``multiprocessing``. Forked workers compute by NumPy if this process has used XLA.
        in_order: whether batches are returned in the sampler's order, rather than in the order of completion.
        pin_memory, pin_memory_device: ignored.

    Raises:
        ValueError: for arguments out of range, and for mutually exclusive arguments.
        RuntimeError: from an iteration, if a worker has ended or takes longer than ``timeout``. Exceptions of workers
            are raised with the worker's traceback in the message.

    Example:
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
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
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
                sampler = _InfiniteSampler()
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
        self._iterator: _BaseDataLoaderIter | None = None
        self.__initialized = True
        self.check_worker_number_rationality()

    def __setattr__(self, name: str, value: Any) -> None:
        if self.__initialized and name in _FIXED:
            raise ValueError(f"{name} attribute should not be set after {type(self).__name__} is initialized")
        super().__setattr__(name, value)

    @property
    def multiprocessing_context(self) -> Any:
        """The context of the worker processes; None for the default."""
        return self._context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context: Any) -> None:
        self._context = None if context is None else _context_of(context, self.num_workers)

    def check_worker_number_rationality(self) -> None:
        """Warns of more workers than processors."""
        known = hasattr(os, "sched_getaffinity")
        most = len(os.sched_getaffinity(0)) if known else os.cpu_count() or 1
        if self.num_workers > most:
            warn(
                f"This DataLoader will create {self.num_workers} worker processes in total. Our suggested max number "
                f"of worker in current system is {most}{'' if known else ' (`cpuset` is not taken into account)'}, "
                "which is smaller than what this DataLoader is going to create. Please be aware that excessive worker "
                "creation might get DataLoader running slow or even freeze, lower the worker number to avoid potential "
                "slowness/freeze if necessary."
            )

    def _get_iterator(self) -> _BaseDataLoaderIter:
        if self.num_workers == 0:
            return _SingleProcessDataLoaderIter(self)
        self.check_worker_number_rationality()
        return _MultiProcessingDataLoaderIter(self)

    def __iter__(self) -> Iterator[Any]:
        if not (self.persistent_workers and self.num_workers > 0):
            return self._get_iterator()
        if self._iterator is None:
            self._iterator = self._get_iterator()
        else:
            self._iterator._reset()
        return self._iterator

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


def _check_workers(num_workers: int, timeout: float, prefetch_factor: Any, persistent: bool) -> None:
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


def _context_of(context: Any, num_workers: int) -> Any:
    """A multiprocessing context, given itself or by name."""
    if num_workers == 0:
        raise ValueError(
            "multiprocessing_context can only be used with multi-process loading (num_workers > 0), but got "
            f"num_workers={num_workers}"
        )
    methods = multiprocessing.get_all_start_methods()
    if isinstance(context, str) and context not in methods:
        raise ValueError(
            f"multiprocessing_context option should specify a valid start method in {methods!r}, but got "
            f"multiprocessing_context={context!r}"
        )
    found = multiprocessing.get_context(context) if isinstance(context, str) else context
    if not isinstance(found, multiprocessing.context.BaseContext):
        raise TypeError(
            "multiprocessing_context option should be a valid context object or a string specifying the start method, "
            f"but got multiprocessing_context={context}"
        )
    return found


def _check_unordered(shuffle: Any, sampler: Any, batch_sampler: Any) -> None:
    """Raises ``ValueError`` for ``shuffle`` or a sampler with an iterable dataset, which defines its order."""
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
    """An iterator over a loader's batches."""

    def __init__(self, loader: DataLoader):
        self._loader = loader
        self._recipe = Recipe(
            loader.dataset, loader.collate_fn, loader._auto_collation, loader.drop_last, loader.worker_init_fn
        )
        if loader.pin_memory and not accelerator.is_available():
            warn(
                "'pin_memory' argument is set as true but no accelerator is found, then device pinned memory won't be "
                "used."
            )
        self._sampler_iter = iter(loader._index_sampler)
        self._base_seed = samplers.base_seed(engine_of("DataLoader", loader.generator))
        self._num_yielded = 0

    def __iter__(self) -> _BaseDataLoaderIter:
        return self

    def __len__(self) -> int:
        return len(self._loader._index_sampler)

    def __getstate__(self) -> Any:
        raise NotImplementedError("{} cannot be pickled", type(self).__name__)

    def _reset(self) -> None:
        """Starts an epoch."""
        self._sampler_iter = iter(self._loader._index_sampler)
        self._num_yielded = 0

    def _next_data(self) -> Any:
        raise NotImplementedError

    def __next__(self) -> Any:
        batch = self._next_data()
        self._num_yielded += 1
        loader = self._loader
        reported = loader._reported
        if isinstance(loader.dataset, IterableDataset) and reported is not None and self._num_yielded > reported:
            self._warn_length(reported)
        return batch

    def _warn_length(self, reported: int) -> None:
        text = (
            f"Length of IterableDataset {self._loader.dataset} was reported to be {reported} (when accessing "
            f"len(dataloader)), but {self._num_yielded} samples have been fetched. "
        )
        if self._loader.num_workers:
            text += (
                "For multiprocessing data-loading, this could be caused by not properly configuring the "
                "IterableDataset replica at each worker. Please see https://pytorch.org/docs/stable/data.html#torch.utils.data."
                "IterableDataset for examples."
            )
        warn(text)


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """The iterator of a loader without workers."""

    def __init__(self, loader: DataLoader):
        super().__init__(loader)
        if loader.timeout != 0:
            raise AssertionError("_SingleProcessDataLoaderIter requires timeout == 0")
        self._fetcher = self._recipe.fetcher()

    def _next_data(self) -> Any:
        return self._fetcher.fetch(next(self._sampler_iter))


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """The iterator of a loader with workers.

    Tasks are numbered in the order of their batches. At most ``prefetch_factor`` tasks per worker are outstanding; each
    returned batch is followed by sending another task.
    """

    def __init__(self, loader: DataLoader):
        super().__init__(loader)
        if not loader.prefetch_factor or loader.prefetch_factor <= 0:
            raise AssertionError("prefetch_factor must be greater than 0 for MultiProcessingDataLoaderIter")
        count = self._num_workers = loader.num_workers
        self._most = loader.prefetch_factor * count
        context = loader.multiprocessing_context or multiprocessing.get_context()
        self._pool = WorkerPool(self._recipe, count, self._base_seed, context, loader.timeout)
        self._workers = self._pool.processes
        self._reset(True)

    def _reset(self, first: bool = False) -> None:
        super()._reset()
        if not first:
            self._pool.resume()
        self._next_task = 0
        self._given = 0
        #: The worker of each outstanding task, and batches that arrived before their turn.
        self._tasks: dict[int, int] = {}
        self._early: dict[int, Any] = {}
        self._busy = [0] * self._num_workers
        self._active = [True] * self._num_workers
        self._turns = itertools.cycle(range(self._num_workers))
        for _ in range(self._most):
            self._send_next()

    def _send_next(self) -> None:
        """Sends the next task to the next worker in turn, if there is a task."""
        try:
            index = next(self._sampler_iter)
        except StopIteration:
            return
        for worker in itertools.islice(self._turns, self._num_workers):
            if self._active[worker] and (self._loader.in_order or self._busy[worker] < self._most // sum(self._active)):
                break
        else:
            return
        self._pool.send_task(worker, (self._next_task, index))
        self._tasks[self._next_task] = worker
        self._busy[worker] += 1
        self._next_task += 1

    def _next_data(self) -> Any:
        while True:
            while self._given < self._next_task and self._given not in self._tasks:
                self._given += 1  # returned already, or of a worker whose part is exhausted
            if self._given == self._next_task:
                if not self._loader.persistent_workers:
                    self._shutdown_workers()
                raise StopIteration
            if self._given in self._early:
                return self._return_batch(self._given, self._early.pop(self._given))
            worker, number, made = self._pool.receive_result([w for w in range(self._num_workers) if self._active[w]])
            if isinstance(made, Ended):
                self._mark_exhausted(worker)
            elif number == self._given or not self._loader.in_order:
                return self._return_batch(number, made)
            else:
                self._early[number] = made

    def _mark_exhausted(self, worker: int) -> None:
        """Marks a worker whose part of the dataset is exhausted."""
        self._active[worker] = False
        ended = [number for number, of in self._tasks.items() if of == worker and number not in self._early]
        for number in ended:
            del self._tasks[number]
        for _ in ended:
            self._send_next()

    def _return_batch(self, number: int, made: Any) -> Any:
        self._busy[self._tasks.pop(number)] -= 1
        self._send_next()
        if isinstance(made, ExceptionWrapper):
            made.reraise()
        return made

    def _shutdown_workers(self) -> None:
        """Ends the workers."""
        self._pool.stop()

    def __del__(self) -> None:
        pool = getattr(self, "_pool", None)
        if pool is not None:
            pool.stop()
