"""Contexts of distributed autograd: the records of each worker about one forward pass over several workers."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from compat._core.tensor.tensor import Tensor
from compat._core.transforms.grad_mode import mode
from compat.distributed.autograd.nodes import RecvRpcBackward, SendRpcBackward


class Record(NamedTuple):
    """The part of a message about the graph of its tensors.

    Attributes:
        context: the id of the context.
        number: the number of the sender's node; None if no tensor requires gradients.
        places: the indices of the tensors that require gradients.
    """

    context: int
    number: int | None
    places: tuple[int, ...]


class Context:
    """A process's part of a context.

    Attributes:
        id: its number, the same in all workers.
        gradients: the accumulated gradients, by leaf.
        sent: the nodes of messages that were sent, by their numbers.
        workers: the ranks that messages of the context were exchanged with.
        passes: the backward passes, by their keys.
        running: the backward pass that is running.
        lock: held while a backward pass runs.
    """

    def __init__(self, id: int):
        self.id = id
        self.gradients: dict[Tensor, Tensor] = {}
        self.sent: dict[int, SendRpcBackward] = {}
        self.workers: set[int] = set()
        self.passes: dict[tuple[int, int], Any] = {}
        self.running: Any = None
        self.lock = threading.RLock()
        self._numbers = itertools.count()

    def send(self, tensors: Sequence[Tensor], to: int) -> Record:
        """Creates a node for the tensors of a message that require gradients."""
        self.workers.add(to)
        places = tuple(i for i, t in enumerate(tensors) if mode.grad and t.requires_grad)
        if not places:
            return Record(self.id, None, ())
        number = next(self._numbers)
        self.sent[number] = SendRpcBackward([tensors[i] for i in places])
        return Record(self.id, number, places)

    def receive(self, record: Record, tensors: Sequence[Tensor], source: int) -> None:
        """Creates a node for the tensors of a message that require gradients at the sender."""
        self.workers.add(source)
        if record.number is not None:
            RecvRpcBackward([tensors[i] for i in record.places], self, source, record.number)

    def get(self, leaf: Tensor) -> Tensor | None:
        """The gradient of a leaf."""
        return self.gradients.get(leaf)

    def put(self, leaf: Tensor, grad: Tensor) -> None:
        """Replaces the gradient of a leaf."""
        self.gradients[leaf] = grad


class Contexts:
    """The contexts of a process.

    Args:
        rank: the process's rank.
        call: calls a function in another process, and returns a ``Future``.
        notify: calls a function in another process, without a result.
    """

    def __init__(self, rank: int, call: Callable[..., Any], notify: Callable[..., Any]):
        self.rank, self.call, self.notify = rank, call, notify
        self._table: dict[int, Context] = {}
        self._lock = threading.Lock()
        self._local = threading.local()
        self._numbers = itertools.count(rank << 48)
        self.passes = itertools.count()

    def begin(self) -> Context:
        """Creates a context, and enters it in this thread.

        Raises:
            RuntimeError: in a thread that has entered a context.
        """
        if self.current() is not None:
            raise RuntimeError("Already have an autograd context id for this thread.")
        context = self._local.context = self.obtain(next(self._numbers))
        return context

    def end(self, context: Context) -> None:
        """Exits a context, and releases it in all workers."""
        self._local.context = None
        self.release(context.id)

    def release(self, id: int) -> None:
        """Deletes a context, here and in the workers that messages of it were exchanged with."""
        with self._lock:
            context = self._table.pop(id, None)
        if context is not None:
            for worker in context.workers - {self.rank}:
                self.notify(worker, release, id)

    def current(self) -> Context | None:
        """The context of this thread."""
        return getattr(self._local, "context", None)

    @contextmanager
    def entered(self, context: Context | None) -> Iterator[None]:
        """Enters a context in this thread."""
        before, self._local.context = self.current(), context
        try:
            yield
        finally:
            self._local.context = before

    def find(self, id: int) -> Context:
        """The context of an id.

        Raises:
            RuntimeError: if it does not exist.
        """
        context = self._table.get(id)
        if context is None:
            raise RuntimeError(f"Could not find autograd context with id: {id}")
        return context

    def obtain(self, id: int) -> Context:
        """The context of an id, which is created if it does not exist."""
        with self._lock:
            return self._table.setdefault(id, Context(id))


class _State:
    contexts: Contexts | None = None


def install(contexts: Contexts | None) -> None:
    """Sets the contexts of this process; None removes them."""
    _State.contexts = contexts


def of_process() -> Contexts:
    """The contexts of this process.

    Raises:
        RuntimeError: before ``init_rpc``.
    """
    if _State.contexts is None:
        raise RuntimeError(
            "Need to initialize distributed autograd using torch.distributed.autograd.init(), which "
            "torch.distributed.rpc.init_rpc does"
        )
    return _State.contexts


def release(id: int) -> None:
    """Called by another worker that has released a context."""
    of_process().release(id)
