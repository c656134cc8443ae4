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

#: The interval in seconds at which a worker checks that its loader's process is alive, in addition to the pipe.
_WATCH = 1.0


@dataclass(frozen=True)
class WorkerInfo:
    """Information about a worker.

    Attributes:
        id: the index of the worker.
        num_workers: the number of workers.
        seed: the random seed of the worker.
        dataset: the worker's copy of the dataset.
        rng: None; in PyTorch the generators of threads.
        worker_method: the kind of worker, a process.
    """

    id: int
    num_workers: int
    seed: int
    dataset: Any
    rng: None = None
    worker_method: str = "multiprocessing"


class _ProcessInfo:
    """The information about this process."""

    info: WorkerInfo | None = None


_known = _ProcessInfo()


def __getattr__(name: str) -> Any:
    if name == "_worker_info":  # PyTorch's name of what ``get_worker_info`` returns
        return _known.info
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)


def get_worker_info() -> WorkerInfo | None:
    """The information about this worker process; None in any other process."""
    return _known.info


class Resume:
    """The message that starts another epoch, and its acknowledgement."""


class Ended:
    """The result that marks the end of a worker's part of an iterable dataset."""


@dataclass(frozen=True)
class Job:
    """The arguments of a worker.

    Attributes:
        recipe: the settings for making batches.
        number: the index of the worker.
        count: the number of workers.
        base_seed: the seed that the loader drew for all workers.
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
        np.random.seed(_generate_state(self.base_seed, self.number))  # noqa: NPY002  # the global generator
        return seed


def _generate_state(base_seed: int, worker_id: int) -> list[int]:
    """The seed of NumPy's generator in a worker: four words."""
    entropy = [worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
    words: list[int] = np.random.SeedSequence(entropy).generate_state(4).tolist()
    return words


def work(job: Job, connection: Connection) -> None:
    """The main function of a worker process: runs until the loader stops it or exits."""
    channel = Channel(connection)
    try:
        set_num_threads(1)
        seed = job.seed()
        _known.info = WorkerInfo(job.number, job.count, seed, job.recipe.dataset)
        _Worker(job, channel).run()
    except KeyboardInterrupt:
        pass  # the loader's process was interrupted, too
    except (BrokenPipeError, ConnectionResetError):
        pass  # the loader's process has died


class _Worker:
    """The state of a worker process."""

    def __init__(self, job: Job, channel: Channel):
        self.job, self.channel = job, channel
        self.where = f"in DataLoader worker process {job.number}"
        self.tasks: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.gone = False
        self.fetcher: Fetcher | None = None
        self.failed: ExceptionWrapper | None = None

    def run(self) -> None:
        """Executes tasks until there are no more."""
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
                del made  # its memory is owned by the loader from here on

    def _listen(self, parent: int) -> None:
        """Reads tasks from the pipe as they arrive, so that the loader never blocks in sending."""
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
        except Exception:  # not picklable
            self.channel.send((number, ExceptionWrapper(where=self.where)))
