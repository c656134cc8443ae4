"""Worker processes: seeding, making requested batches, and sending them."""

from __future__ import annotations

import os
import queue
import random
import threading
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from compat._threads import set_num_threads
from compat._utils import ExceptionWrapper
from compat.random import manual_seed
from compat.utils.data._utils.channel import Channel
from compat.utils.data._utils.fetch import Fetcher, Recipe
from compat.utils.data.dataset import IterableDataset

#: How often a worker looks whether its loader's process is still there, in seconds, should its pipe not say so.
_WATCH = 1.0


@dataclass(frozen=True)
class WorkerInfo:
    """Facts about a worker.

    Attributes:
        id: its number, from 0.
        num_workers: how many there are.
        seed: its random seed.
        dataset: its copy of the data set.
        rng: None; where PyTorch keeps the generators of threads.
        worker_method: how it runs.
    """

    id: int
    num_workers: int
    seed: int
    dataset: Any
    rng: None = None
    worker_method: str = "multiprocessing"


class _Known:
    """Facts about this process."""

    info: WorkerInfo | None = None


_known = _Known()


def get_worker_info() -> WorkerInfo | None:
    """Facts about this worker process; None in any other process."""
    return _known.info


class Resume:
    """Tells a worker, and is its answer, that another epoch begins."""


class Ended:
    """Marks the end of the worker's part of an iterable data set, in place of a batch."""


@dataclass(frozen=True)
class Job:
    """The task of a worker.

    Attributes:
        recipe: how it makes batches.
        number: its own.
        count: how many workers there are.
        base_seed: the seed that the loader drew for all of them.
    """

    recipe: Recipe
    number: int
    count: int
    base_seed: int

    def seed(self) -> int:
        """Seeds Python's, NumPy's and the default generator, as PyTorch's workers do; returns the seed."""
        seed = self.base_seed + self.number
        random.seed(seed)
        manual_seed(seed)
        np.random.seed(_generate_state(self.base_seed, self.number))  # noqa: NPY002  # what programs draw from
        return seed


def _generate_state(base_seed: int, worker_id: int) -> list[int]:
    """What a worker seeds NumPy's numbers with: four words."""
    entropy = [worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
    words: list[int] = np.random.SeedSequence(entropy).generate_state(4).tolist()
    return words


def work(job: Job, connection: Connection) -> None:
    """Runs in the worker's process until its loader needs it no more, or is not there."""
    channel = Channel(connection)
    try:
        set_num_threads(1)
        seed = job.seed()
        _known.info = WorkerInfo(job.number, job.count, seed, job.recipe.dataset)
        _Worker(job, channel).run()
    except KeyboardInterrupt:
        pass  # the loader's process was interrupted, too
    except (BrokenPipeError, ConnectionResetError):
        pass  # the loader is gone


class _Worker:
    """A worker at work."""

    def __init__(self, job: Job, channel: Channel):
        self.job, self.channel = job, channel
        self.where = f"in DataLoader worker process {job.number}"
        self.tasks: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.gone = False
        self.fetcher: Fetcher | None = None
        self.failed: ExceptionWrapper | None = None

    def run(self) -> None:
        """Does the tasks that come, until there are no more."""
        threading.Thread(target=self._listen, args=(os.getppid(),), daemon=True).start()
        try:
            if self.job.recipe.worker_init_fn is not None:
                self.job.recipe.worker_init_fn(self.job.number)
            self.fetcher = self.job.recipe.fetcher()
        except Exception:
            self.failed = ExceptionWrapper(where=self.where)
        ended = False
        while (task := self.tasks.get()) is not None and not self.gone:
            if isinstance(task, Resume):
                self.channel.send((task, None))
                ended, self.fetcher = False, self.job.recipe.fetcher()
            elif not ended:
                number, index = task
                made = self._make(index)
                ended = isinstance(made, Ended)
                self._send(number, made)
                del made  # its memory is the loader's from here on

    def _listen(self, parent: int) -> None:
        """Takes the tasks out of the pipe as they come, so that the loader never waits to send one."""
        connection = self.channel.connection
        try:
            while True:
                while not connection.poll(_WATCH):
                    if os.getppid() != parent:
                        raise EOFError
                self.tasks.put(self.channel.receive())
        except (EOFError, OSError):
            self.gone = True
            self.tasks.put(None)

    def _make(self, index: Any) -> Any:
        if self.failed is not None:
            failed, self.failed = self.failed, None
            return failed
        try:
            assert self.fetcher is not None
            return self.fetcher.fetch(index)
        except StopIteration:
            if isinstance(self.job.recipe.dataset, IterableDataset):
                return Ended()
            return ExceptionWrapper(where=self.where)
        except Exception:
            return ExceptionWrapper(where=self.where)

    def _send(self, number: int, made: Any) -> None:
        try:
            self.channel.send((number, made))
        except OSError:
            raise
        except Exception:  # it cannot be pickled
            self.channel.send((number, ExceptionWrapper(where=self.where)))
