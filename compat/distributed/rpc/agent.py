"""The agent of a worker: it calls functions in other workers, and runs the calls of others.

A call is a message with a number; its result is a message with the same number, which completes the call's ``Future``.
One thread sends all messages, in order, and ends calls that time out; the mesh's thread receives messages. Users' calls
run in a pool of threads. Results, and calls between agents, which do not wait, are processed in a second pool, so that
they make progress while all threads of the first pool wait for other workers.
"""

from __future__ import annotations

import heapq
import itertools
import pickle
import queue
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

import numpy as np

from compat._distributed.transport import algorithms
from compat._distributed.transport.call import Circle
from compat._distributed.transport.errors import DistBackendError
from compat._distributed.transport.mesh import MESSAGE, Key, Mesh
from compat._distributed.transport.stores import Store
from compat.distributed.autograd.contexts import Context, Contexts
from compat.distributed.rpc.functions import is_async
from compat.distributed.rpc.messages import pack, unpack, values
from compat.distributed.rpc.options import TensorPipeRpcBackendOptions, WorkerInfo
from compat.distributed.rpc.references import Parent, References, RRefId
from compat.distributed.rpc.thread_pool import ThreadPool
from compat.futures import Future

#: Kinds of messages: calls of users, calls between agents, calls without a result, results, exceptions.
CALL, INTERNAL, NOTICE, RESULT, FAILURE = range(5)
#: Queued to end the thread that sends messages.
_END = None
#: The timeout of messages that no call waits for, and of the end of RPC without a limit.
_FOREVER = timedelta(days=365).total_seconds()


class _Message(NamedTuple):
    """A message to be sent.

    Attributes:
        until: the time at which the call times out, or None.
        timeout: the timeout in seconds.
    """

    to: int
    kind: int
    number: int
    data: bytes
    until: float | None = None
    timeout: float = 0.0


class _Pending(NamedTuple):
    """A call that waits for its result."""

    future: Future[Any]
    to: int


class Agent:
    """The agent of a worker.

    Args:
        name: the worker's name.
        rank: the worker's rank.
        size: the number of workers.
        store: the rendezvous store.
        options: the options.

    Attributes:
        info: the worker.
        contexts: the contexts of distributed autograd.
        references: the references to remote values.

    Raises:
        RuntimeError: if two workers have the same name.
    """

    def __init__(self, name: str, rank: int, size: int, store: Store, options: TensorPipeRpcBackendOptions):
        self.info, self.timeout = WorkerInfo(name, rank), options.rpc_timeout
        self.contexts = Contexts(rank, self._call_without_limit, self.notify)
        self.references = References(rank, self._release)
        self._pending: dict[int, _Pending] = {}
        self._lost: dict[int, str] = {}
        self._numbers = itertools.count()
        self._changed = threading.Condition()
        self._sent = self._served = self._serving = 0
        self._outbox: queue.SimpleQueue[_Message | RRefId | None] = queue.SimpleQueue()
        self._callers = ThreadPool(options.num_worker_threads, "rpc calls")
        self._agents = ThreadPool(options.num_worker_threads, "rpc results")
        store.set(f"name/{rank}", name)
        self._mesh = Mesh(store, rank, size, _FOREVER, dict, self)
        self._circle = Circle(self._mesh, range(size), 0, "rpc")
        self.workers = [WorkerInfo(store.get(f"name/{r}").decode(), r) for r in range(size)]
        self._by_name = {worker.name: worker for worker in self.workers}
        if len(self._by_name) < size:
            names = [worker.name for worker in self.workers]
            raise RuntimeError(f"RPC worker names must be unique, but the names of ranks 0 to {size - 1} are {names}")
        self._sender = threading.Thread(target=self._send_all, name="rpc sender", daemon=True)
        self._sender.start()

    def worker(self, to: Any) -> WorkerInfo:
        """The worker of a name, a rank, or a ``WorkerInfo``.

        Raises:
            RuntimeError: for an unknown worker.
            ValueError: for an argument of another type.
        """
        me = f"name:{self.info.name},rank:{self.info.id} could not find destination"
        if isinstance(to, WorkerInfo):
            return to
        if isinstance(to, str):
            if to not in self._by_name:
                raise RuntimeError(f"{me} name {to}")
            return self._by_name[to]
        if isinstance(to, int):
            if not 0 <= to < len(self.workers):
                raise RuntimeError(f"{me} id {to}")
            return self.workers[to]
        raise ValueError(f"Cannot get WorkerInfo from name {to}")

    # ---------------------------------------------------------------- calls

    def call(
        self, to: int, function: Callable[..., Any], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None,
        timeout: float = -1.0, kind: int = CALL,
    ) -> Future[Any]:  # fmt: skip
        """Calls a function in a worker.

        Args:
            to: the rank of the worker.
            function: the function, which the worker looks up by its name.
            timeout: the timeout in seconds; 0 for none, a negative number for that of the options.
        """
        timeout = self.timeout if timeout < 0 else timeout
        until = time.monotonic() + timeout if timeout else None
        number, future = next(self._numbers), Future[Any]()
        data = self._packed((function, tuple(args), dict(kwargs or {})), to, self.contexts.current())
        with self._changed:
            self._pending[number] = _Pending(future, to)
            self._sent += 1
            gone = self._lost.get(to)
        if gone is not None:
            self._fail(number, gone)
        else:
            self._outbox.put(_Message(to, kind, number, data, until, timeout))
        return future

    def _call_without_limit(self, to: int, function: Callable[..., Any], *args: Any) -> Future[Any]:
        return self.call(to, function, args, timeout=0, kind=INTERNAL)

    def notify(self, to: int, function: Callable[..., Any], *args: Any) -> None:
        """Calls a function in a worker, without a result."""
        self._outbox.put(_Message(to, NOTICE, 0, self._packed((function, args, {}), to, None)))

    def _release(self, parent: Parent) -> None:
        self.notify(parent[0], release, parent[1])

    def forget(self, key: RRefId) -> None:
        """Drops a deleted ``RRef``; finalizers call it in any thread at any time, so another thread does the work."""
        self._outbox.put(key)

    def _packed(self, obj: Any, to: int, context: Context | None) -> bytes:
        data, tensors = pack(obj)
        record = None if context is None else context.send(tensors, to)
        wanted = [t.requires_grad for t in tensors]
        return pickle.dumps((record, wanted, [values(t) for t in tensors], data), pickle.HIGHEST_PROTOCOL)

    def _unpacked(self, body: memoryview, source: int) -> tuple[Context | None, bytes, list[Any]]:
        record, wanted, tensors, data = pickle.loads(body)
        for t, wants in zip(tensors, wanted):
            t.requires_grad_(wants)
        if record is None:
            return None, data, tensors
        context = self.contexts.obtain(record.context)
        context.receive(record, tensors, source)
        return context, data, tensors

    # ---------------------------------------------------------------- messages

    def _send_all(self) -> None:
        """The main function of the thread that sends messages in order, and ends calls that time out."""
        ends: list[tuple[float, int, float]] = []
        while True:
            try:
                message = self._outbox.get(timeout=max(ends[0][0] - time.monotonic(), 0) if ends else None)
            except queue.Empty:
                pass
            else:
                if message is _END:
                    return
                if isinstance(message, RRefId):
                    self.references.drop(message)
                    continue
                if message.until is not None:
                    heapq.heappush(ends, (message.until, message.number, message.timeout))
                self._send(message)
            while ends and ends[0][0] <= time.monotonic():
                _, number, timeout = heapq.heappop(ends)
                self._fail(
                    number,
                    f"RPCErr:1:RPC ran for more than set timeout ({round(timeout * 1000)} ms) and will now be marked "
                    "with an error",
                )

    def _send(self, message: _Message) -> None:
        key = Key(message.kind, message.number, 0)
        if message.to == self.info.id:
            self.received(message.to, key, memoryview(message.data))
            return
        try:
            self._mesh.send(message.to, key, message.data, self.timeout or _FOREVER, MESSAGE)
        except DistBackendError as error:
            self.lost(message.to, str(error))

    def received(self, source: int, key: Key, body: memoryview) -> None:
        """Passes a message from a worker to a pool; called by the thread that reads messages."""
        kind, number, _ = key
        if kind in (RESULT, FAILURE):
            self._agents.submit(self._finish, kind, number, body, source)
            return
        with self._changed:
            self._serving += 1
        (self._callers if kind == CALL else self._agents).submit(self._serve, kind, number, body, source)

    def lost(self, rank: int, why: str) -> None:
        """Fails the calls that wait for a worker that has become unreachable."""
        with self._changed:
            self._lost[rank] = why
            lost = [number for number, call in self._pending.items() if call.to == rank]
        for number in lost:
            self._agents.submit(self._fail, number, why)

    # ---------------------------------------------------------------- running calls of others

    def _serve(self, kind: int, number: int, body: memoryview, source: int) -> None:
        context: Context | None = None
        try:
            context, data, tensors = self._unpacked(body, source)
            function, args, kwargs = unpack(data, tensors)
            with self.contexts.entered(context):
                found = function(*args, **kwargs)
            later = isinstance(found, Future) if kind == INTERNAL else is_async(function)
            if later and not isinstance(found, Future):
                raise RuntimeError(
                    "Functions decorated with @rpc.async_function must return a torch.futures.Future object, but got "
                    f"{type(found)}"
                )
        except BaseException as error:
            self._answer(kind, number, source, context, error=error)
            return
        if later:
            found.add_done_callback(lambda done: self._answer_later(kind, number, source, context, done))
        else:
            self._answer(kind, number, source, context, found)

    def _answer_later(self, kind: int, number: int, source: int, context: Context | None, done: Future[Any]) -> None:
        try:
            found = done.wait()
        except Exception as error:
            self._answer(kind, number, source, context, error=error)
        else:
            self._answer(kind, number, source, context, found)

    def _answer(
        self, kind: int, number: int, source: int, context: Context | None, found: Any = None,
        error: BaseException | None = None,
    ) -> None:  # fmt: skip
        """Sends the result of a call, or its exception."""
        result, body = RESULT, b""
        if error is None and kind != NOTICE:
            try:
                body = self._packed(found, source, context)
            except Exception as failure:
                error = failure
        if error is not None:
            result, body = FAILURE, self._failure(error)
        if kind != NOTICE:
            self._outbox.put(_Message(source, result, number, body))
        with self._changed:
            self._serving -= 1
            self._served += kind != NOTICE
            self._changed.notify_all()

    def _failure(self, error: BaseException) -> bytes:
        """The type and the text of an exception, which is also printed, as the caller may ignore it."""
        trace = "".join(traceback.format_exception(error))
        text = f"On {self.info}:\n{error!r}\n{trace}"
        sys.stderr.write(f"{text}\n")
        try:
            return pickle.dumps((type(error), text))
        except Exception:  # its class cannot be found by name
            return pickle.dumps((RuntimeError, text))

    # ---------------------------------------------------------------- results

    def _finish(self, kind: int, number: int, body: memoryview, source: int) -> None:
        """Completes the future of a call."""
        try:
            if kind == FAILURE:
                self._complete(number, None, _exception(*pickle.loads(body)))
                return
            _, data, tensors = self._unpacked(body, source)
            found = unpack(data, tensors)
        except Exception as error:
            self._complete(number, None, error)
        else:
            self._complete(number, found, None)

    def _fail(self, number: int, why: str) -> None:
        self._complete(number, None, RuntimeError(why))

    def _complete(self, number: int, found: Any, error: Exception | None) -> None:
        with self._changed:
            call = self._pending.pop(number, None)
        if call is None:
            return  # it has timed out, or has a result
        if error is not None:
            call.future.set_exception(error)
        else:
            call.future.set_result(found)
        with self._changed:
            self._changed.notify_all()

    # ---------------------------------------------------------------- the beginning and the end

    def barrier(self, timeout: float = 0.0) -> None:
        """Waits until all workers have called ``barrier``."""
        with self._circle.begin("barrier", timeout or _FOREVER) as call:
            algorithms.barrier(call)

    def join(self, timeout: float = 0.0) -> None:
        """Waits until all workers have called ``join`` and no worker has outstanding calls.

        Calls may make other calls while workers are asked for their counts, so the counts must be equal twice.

        Raises:
            RuntimeError: after a timeout in seconds; 0 for none.
        """
        until = time.monotonic() + (timeout or _FOREVER)
        before: tuple[int, int] | None = None
        while True:
            with self._changed:
                idle = lambda: not self._pending and not self._serving
                if not self._changed.wait_for(idle, until - time.monotonic()):
                    raise RuntimeError(f"RPC shutdown timed out after {timeout:g} seconds: calls are still running")
                mine = np.array([self._sent, self._served])
            with self._circle.begin("shutdown", max(until - time.monotonic(), 0.001)) as call:
                sent, served = np.sum(algorithms.all_gather(call, mine), axis=0).tolist()
            if before == (sent, served) and sent == served:
                return
            before = sent, served

    def close(self) -> None:
        """Sends the remaining messages, and closes the connections."""
        self._outbox.put(_END)
        if threading.current_thread() is not self._sender:
            self._sender.join(5.0)
        self._mesh.close()
        for pool in (self._callers, self._agents):
            pool.close()
        for number in list(self._pending):
            self._fail(number, "RPC was shut down before this call had a result")


def _exception(kind: type[Exception], text: str) -> Exception:
    """An exception of another worker."""
    if not issubclass(kind, Exception):
        return RuntimeError(text)
    try:
        return kind(text)
    except Exception as error:
        return RuntimeError(
            f"Failed to create original exception type. Error msg was {error} Original exception on remote side was "
            f"{text}"
        )


class _State:
    agent: Agent | None = None


def install(agent: Agent | None) -> None:
    """Sets the agent of the process; None removes it."""
    _State.agent = agent


def is_current() -> bool:
    """Whether the process has an agent."""
    return _State.agent is not None


def current() -> Agent:
    """The agent of the process.

    Raises:
        RuntimeError: before ``init_rpc``.
    """
    if _State.agent is None:
        raise RuntimeError("RPC has not been initialized. Call torch.distributed.rpc.init_rpc first.")
    return _State.agent


def release(key: RRefId) -> None:
    """Called by another worker that has released a child of a reference."""
    current().references.drop(key)
