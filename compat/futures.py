"""``torch.futures``: results of asynchronous work."""

from __future__ import annotations

import logging
import threading
import traceback
from collections.abc import Callable, Sequence
from typing import Any, Generic, NoReturn, TypeVar

from compat._core.types.device import device

__all__ = ["Future", "collect_all", "wait_all"]

T = TypeVar("T")
_log = logging.getLogger(__name__)


class Future(Generic[T]):
    """The result of work that may not be done yet.

    Args:
        devices: the devices of the result; must be empty, as only the CPU is supported.

    Raises:
        ValueError: for a device without an index.
        RuntimeError: for any other device: only the CPU is supported, which has no index.

    Example:
        >>> later = Future()
        >>> doubled = later.then(lambda done: done.wait() * 2)
        >>> later.set_result(21)
        >>> doubled.wait()
        42
    """

    __module__ = "compat.jit"

    def __init__(self, *, devices: Sequence[Any] | None = None):
        for d in map(device, devices or ()):
            if d.index is None:
                raise ValueError(f"Expected devices to have indices, got {d}")
            raise RuntimeError(f"PyTorch is not linked with support for {d.type} devices")
        self._ready = threading.Condition()
        self._done = False
        self._value: Any = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[], None]] = []

    def done(self) -> bool:
        """Whether there is a result, or an exception."""
        return self._done

    def wait(self) -> Any:
        """The result; waits for it.

        Raises:
            Exception: the exception of ``set_exception``.
        """
        with self._ready:
            self._ready.wait_for(lambda: self._done)
        return self.value()

    def value(self) -> Any:
        """The result.

        Raises:
            RuntimeError: if there is no result yet.
            Exception: the exception of ``set_exception``.
        """
        if not self._done:
            raise RuntimeError("the Future is not completed: there is no value yet")
        if self._error is not None:
            raise self._error
        return self._value

    def set_result(self, result: Any) -> None:
        """Sets the result; waiting threads continue, and callbacks run in order.

        Raises:
            RuntimeError: if there is one already.
        """
        self._complete(result, None)

    def set_exception(self, result: BaseException) -> None:
        """Sets an exception in place of a result.

        Raises:
            AssertionError: for an argument that is not an exception.
            RuntimeError: if there is a result already.
        """
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._complete(None, result)

    def _complete(self, value: Any, error: BaseException | None) -> None:
        with self._ready:
            if self._done:
                raise RuntimeError(
                    "Attempting to mark a completed Future as complete again. Note that a Future can only be marked "
                    "completed once."
                )
            self._value, self._error, self._done = value, error, True
            callbacks, self._callbacks = self._callbacks, []
            self._ready.notify_all()
        for callback in callbacks:
            callback()

    def then(self, callback: Callable[[Future[T]], Any]) -> Future[Any]:
        """A future of the result of ``callback``, which is called with this future once it is done.

        Raises:
            TypeError: for an argument that is not callable.
        """
        made: Future[Any] = Future()
        self._afterwards("then", callback, made.set_result, made.set_exception)
        return made

    def add_done_callback(self, callback: Callable[[Future[T]], None]) -> None:
        """Calls a function with this future once it is done; its errors are logged.

        Raises:
            TypeError: for an argument that is not callable.
        """
        self._afterwards("add_done_callback", callback, lambda result: None, _log.error)

    def _afterwards(
        self, name: str, callback: Any, result: Callable[[Any], None], error: Callable[[Any], None]
    ) -> None:
        if not callable(callback):
            raise TypeError(f"{name}(): incompatible function arguments: {callback!r} cannot be called")

        def run() -> None:
            try:
                found = callback(self)
            except Exception as e:
                error(_failed(e))
            else:
                result(found)

        with self._ready:
            if not self._done:
                self._callbacks.append(run)
                return
        run()

    def __reduce__(self) -> NoReturn:
        raise RuntimeError("Can not pickle torch.futures.Future")

    def __repr__(self) -> str:
        return f"<torch.jit.Future object at {id(self):#x}>"


def _failed(error: Exception) -> RuntimeError:
    """The error for an exception in a callback."""
    frames = reversed(traceback.extract_tb(error.__traceback__)[1:])
    where = "".join(f"  {f.filename}({f.lineno}): {f.name}\n" for f in frames)
    text = f"Got the following error when running the callback: {type(error).__name__}: {error}"
    return RuntimeError(f"{text}\n\nAt:\n{where}" if where else text)


def _check(futures: Sequence[Any]) -> None:
    for f in futures:
        if f is None:
            raise RuntimeError("Future can't be None")
        if not isinstance(f, Future):
            raise TypeError(f"expected Futures, but got {type(f).__name__}")


def collect_all(futures: Sequence[Future[Any]]) -> Future[list[Future[Any]]]:
    """A future of the list of given futures, once all are done; it gets the first of their exceptions.

    Raises:
        RuntimeError: for None.

    Example:
        >>> one, other = Future(), Future()
        >>> both = collect_all([one, other])
        >>> one.set_result(1)
        >>> both.done()
        False
        >>> other.set_result(2)
        >>> [f.wait() for f in both.wait()]
        [1, 2]
    """
    _check(futures)
    made: Future[list[Future[Any]]] = Future()
    lock, left = threading.Lock(), [len(futures)]

    def one_more(_: Any = None) -> None:
        with lock:
            left[0] -= 1
            if left[0] > 0:
                return
        failed = next((f._error for f in futures if f._error is not None), None)
        made._complete(None if failed is not None else list(futures), failed)

    if not futures:
        made.set_result([])
    for f in futures:
        f.add_done_callback(one_more)
    return made


def wait_all(futures: Sequence[Future[Any]]) -> list[Any]:
    """The results of all futures; waits for them.

    Raises:
        RuntimeError: for None.
        Exception: the first of their exceptions.

    Example:
        >>> later = Future()
        >>> later.set_result(1)
        >>> wait_all([later, later.then(lambda done: done.wait() + 1)])
        [1, 2]
    """
    return [f.wait() for f in collect_all(futures).wait()]
