"""What ``num_workers`` means where no process is started: who makes which batch, with which random numbers.

XLA computes in threads of its own, which must not be forked, so all batches are made in this process, when they are
asked for. A program sees little of that: each worker has its own copy of the data set, its own random numbers with
PyTorch's seeds, an entry in ``get_worker_info``, and makes the batches that it would make in PyTorch.
"""

from __future__ import annotations

import copy
import itertools
import random
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from compat._core.random import Engine
from compat.random import default_generator, manual_seed
from compat.utils.data.dataset import IterableDataset


@dataclass(frozen=True)
class WorkerInfo:
    """What a worker knows of itself.

    Attributes:
        id: its number, from 0.
        num_workers: how many there are.
        seed: what its random numbers began with.
        dataset: its copy of the data set.
        rng: None; where PyTorch keeps the generators of threads.
        worker_method: how PyTorch would run it.
    """

    id: int
    num_workers: int
    seed: int
    dataset: Any
    rng: None = None
    worker_method: str = "multiprocessing"


_current: list[WorkerInfo] = []


def get_worker_info() -> WorkerInfo | None:
    """What the worker that is at work knows of itself; None outside workers."""
    return _current[-1] if _current else None


class Fetcher:
    """Makes batches of a data set.

    Args:
        loader: says how.
        dataset: the one that samples are taken from.
        collate_fn: what makes a batch of samples.
    """

    def __init__(self, loader: Any, dataset: Any, collate_fn: Callable[[list], Any]):
        self.loader = loader
        self.dataset = dataset
        self.collate_fn = collate_fn
        self.samples: Iterator[Any] | None = iter(dataset) if isinstance(dataset, IterableDataset) else None

    def fetch(self, index: Any) -> Any:
        """The batch of these numbers, or the next one of an iterable data set.

        Raises:
            StopIteration: if that has no more.
        """
        return self._by_number(index) if self.samples is None else self._in_turn(index)

    def _by_number(self, index: Any) -> Any:
        if self.loader.batch_sampler is None:
            return self.collate_fn(self.dataset[index])
        if callable(getattr(self.dataset, "__getitems__", None)):
            return self.collate_fn(self.dataset.__getitems__(index))
        return self.collate_fn([self.dataset[i] for i in index])

    def _in_turn(self, index: list | None) -> Any:
        assert self.samples is not None
        if index is None:
            return self.collate_fn(next(self.samples))
        batch = list(itertools.islice(self.samples, len(index)))
        if not batch or (self.loader.drop_last and len(batch) < len(index)):
            raise StopIteration
        return self.collate_fn(batch)


class Worker:
    """One that makes its share of the batches.

    Args:
        loader: whose.
        number: its own number.
        base_seed: what the loader drew for all of them.
    """

    def __init__(self, loader: Any, number: int, base_seed: int):
        self.loader = loader
        self.info = WorkerInfo(
            id=number, num_workers=loader.num_workers, seed=base_seed + number, dataset=copy.copy(loader.dataset)
        )
        self.engine = Engine(base_seed + number)
        self.states = _states()
        self.collate_fn: Callable[[list], Any] = self._own(loader.collate_fn)
        self.fetcher: Fetcher | None = None
        with self._at_work():
            random.seed(base_seed + number)
            manual_seed(base_seed + number)
            entropy = [number, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
            np.random.seed(np.random.SeedSequence(entropy).generate_state(4))  # noqa: NPY002  # the program's
        self.start: Callable[[int], None] | None = self._own(loader.worker_init_fn)

    def _own(self, function: Any) -> Any:
        """A method of the loader's data set as that of its copy; any other function."""
        if getattr(function, "__self__", None) is not self.loader.dataset or not hasattr(function, "__func__"):
            return function
        return function.__func__.__get__(self.info.dataset)

    def resume(self) -> None:
        """Begins anew with its data set."""
        self.fetcher = None

    def fetch(self, index: Any) -> Any:
        """A batch.

        Raises:
            StopIteration: if its iterable data set has no more.
            Exception: any other, which tells of the worker.
        """
        try:
            with self._at_work():
                start, self.start = self.start, None
                if start is not None:
                    start(self.info.id)
                if self.fetcher is None:
                    self.fetcher = Fetcher(self.loader, self.info.dataset, self.collate_fn)
                return self.fetcher.fetch(index)
        except StopIteration:
            raise
        except Exception as error:
            raise _of_worker(error, self.info.id) from None  # its text holds the traceback

    @contextmanager
    def _at_work(self) -> Iterator[None]:
        """With its own random numbers in the places of the program's."""
        engine, states = default_generator.engine, _states()
        default_generator.engine = self.engine
        _set_states(self.states)
        _current.append(self.info)
        try:
            yield
        finally:
            _current.pop()
            self.states = _states()
            default_generator.engine = engine
            _set_states(states)


def _states() -> tuple[Any, Any]:
    """Where the random numbers of Python and of NumPy are, which programs draw from too."""
    return random.getstate(), np.random.get_state()  # noqa: NPY002


def _set_states(states: tuple[Any, Any]) -> None:
    random.setstate(states[0])
    np.random.set_state(states[1])  # noqa: NPY002


class _Shown(str):
    """The text of a ``KeyError``, which shows texts as they are written in a program."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _of_worker(error: Exception, number: int) -> Exception:
    """An error of the same type that says which worker it comes from."""
    told = "".join(traceback.format_exception(error))
    text = f"Caught {type(error).__name__} in DataLoader worker process {number}.\nOriginal {told}"
    try:
        return type(error)(_Shown(text) if isinstance(error, KeyError) else text)
    except Exception:  # its type cannot be made of a text
        return RuntimeError(text)


class Crew:
    """All workers of a loader, taking turns."""

    def __init__(self, loader: Any, base_seed: int):
        self.workers = [Worker(loader, number, base_seed) for number in range(loader.num_workers)]
        self.turns: Iterator[Worker] = itertools.cycle(self.workers)
        self.done: set[Worker] = set()

    def resume(self) -> None:
        """Begins another epoch."""
        self.turns, self.done = itertools.cycle(self.workers), set()
        for worker in self.workers:
            worker.resume()

    def fetch(self, index: Any) -> Any:
        """The batch of the worker whose turn it is.

        Raises:
            StopIteration: if none has more.
        """
        while len(self.done) < len(self.workers):
            worker = next(self.turns)
            if worker in self.done:
                continue
            try:
                return worker.fetch(index)
            except StopIteration:
                self.done.add(worker)
        raise StopIteration
