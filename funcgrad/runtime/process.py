"""The runtime at process exit and after a fork.

XLA cannot be interrupted while it compiles, and other threads may be running when Python exits. Up to Python 3.13 a
thread that tries to take the GIL then is unwound (``pthread_exit``), on which C++ aborts the process; and the
destructors of C++ static objects free what a thread inside XLA uses, which may still run a program. So, if there are
other threads at exit, Python's or XLA's:

- the exiting thread takes the runtime's locks and keeps them. A thread that waits for one blocks forever; the owner of
  one has ``GRACE`` seconds to finish, and blocks when it releases it;
- printing by other threads blocks: a thread that is killed while it holds a file's lock would keep it;
- the C library exits without running destructors, and an unwound thread is paused (``_survive``).

In a forked child XLA's threads do not exist. The child computes by NumPy; what NumPy cannot compute raises an error.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import signal
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import jax

from funcgrad.core.pacing import park

try:
    # Not public API: without it a child of a process that never used arrays would believe that it cannot compute.
    from jax._src import xla_bridge
    from jax._src.xla_bridge import backends_are_initialized
except ImportError:
    xla_bridge = None  # type: ignore[assignment]

    def backends_are_initialized() -> bool:
        return True


#: Seconds that running threads get to finish at exit.
GRACE = 0.1
#: Seconds that printing threads get to finish.
PRINTED = 0.005
#: Seconds after which a thread that waits for a lock looks whether it is lent to it.
WAITED = 0.02


class Process:
    """Whether the process is ending or forked.

    Attributes:
        ending: the thread that exits, once exiting.
        forked: whether it is a child whose parent had used XLA.
    """

    __slots__ = ("ending", "forked")

    def __init__(self) -> None:
        self.ending: int | None = None
        self.forked = False


process = Process()


class Lock:
    """A re-entrant lock that the exiting thread always gets, and that is free in a forked child.

    An owner that waits for another thread lends it to that thread: a finalizer that needs the lock may run there.
    """

    __slots__ = ("_lock", "_loan", "_borrower", "_borrowed", "__weakref__")

    def __init__(self) -> None:
        self._lock = threading.RLock()
        #: Held by the borrower inside the lock, and by the lender to end the loan.
        self._loan = threading.RLock()
        self._borrower: int | None = None
        self._borrowed = 0
        _locks.add(self)

    def __enter__(self) -> None:
        if self._borrower is None or not self._borrow():
            while not self._lock.acquire(timeout=WAITED):
                if self._borrower is not None and self._borrow():  # lent since
                    return

    def __exit__(self, *exc: object) -> None:
        if process.ending is not None:
            pass_by()
        if self._borrowed and self._borrower == threading.get_ident():
            self._borrowed -= 1
            self._loan.release()
        else:
            self._lock.release()

    def _borrow(self) -> bool:
        if self._borrower != threading.get_ident():
            return False
        self._loan.acquire()
        if self._borrower is None:  # the loan has ended
            self._loan.release()
            return False
        self._borrowed += 1
        return True

    @contextmanager
    def lent(self, thread: threading.Thread | None) -> Iterator[None]:
        """Context in which ``thread`` may take the lock; for the owner, while it only waits."""
        self._borrower = thread.ident if thread is not None else None
        try:
            yield
        finally:
            with self._loan:
                self._borrower = None

    def owned(self) -> bool:
        """Whether the calling thread has it."""
        return self._lock._is_owned()  # type: ignore[attr-defined]

    def seize(self, seconds: float) -> None:
        """Acquires the lock, after a timeout even from its owner."""
        if not self._lock.acquire(timeout=seconds):
            self._lock = threading.RLock()
            self._lock.acquire()

    def renew(self) -> None:
        """Resets it to unlocked in a process without other threads."""
        self._loan, self._borrower, self._borrowed = threading.RLock(), None, 0
        if self._lock.acquire(blocking=False):
            self._lock.release()
        else:
            self._lock = threading.RLock()


_locks: weakref.WeakSet[Lock] = weakref.WeakSet()
_renewers: list[Callable[[], None]] = []
_waits: list[Callable[[], None]] = []


@contextmanager
def lending(thread: threading.Thread | None) -> Iterator[None]:
    """Context in which ``thread`` may take all locks that the calling thread has, which only waits meanwhile: also one
    that it has by accident, since an interrupt came as it took or released it."""
    with ExitStack() as loans:
        for lock in [each for each in _locks if each.owned()]:
            loans.enter_context(lock.lent(thread))
        yield


def in_child(renew: Callable[[], None]) -> None:
    """Registers ``renew`` to be called in each forked child, where no other thread exists."""
    _renewers.append(renew)


def at_end(wait: Callable[[], None]) -> None:
    """Registers ``wait`` to be called at exit if other threads must be waited for."""
    _waits.append(wait)


def pass_by() -> None:
    """At exit, returns in the exiting thread and blocks any other."""
    while process.ending is not None and process.ending != threading.get_ident():
        time.sleep(3600)


def refuse(name: str) -> None:
    """Raises in a forked child, where XLA's threads are missing.

    Raises:
        RuntimeError: naming the operation.
    """
    raise RuntimeError(
        f"{name} has to be computed by XLA, which this process cannot use: it was forked from one that had used it, "
        "and XLA's threads are not there. Start processes by 'spawn' or 'forkserver', as in "
        "multiprocessing.get_context('spawn'), or fork before funcgrad is imported."
    )


# ---------------------------------------------------------------- exit


class _Printed:
    """A file that only the exiting thread may use."""

    def __init__(self, file: Any):
        self._file = file

    def __getattr__(self, name: str) -> Any:
        pass_by()
        return getattr(self._file, name)


def _end() -> None:
    """Called at process exit."""
    me = process.ending = threading.get_ident()
    alone = all(thread == me for thread in sys._current_frames())
    if alone and not backends_are_initialized():
        return
    until = time.monotonic() + GRACE
    for lock in list(_locks):
        lock.seize(max(0.0, until - time.monotonic()))
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is not None:
            setattr(sys, name, _Printed(getattr(sys, name)))
    survives = _survive()
    if survives:
        park()
    if not alone:
        time.sleep(PRINTED)
    _keep_backends()
    if not survives:
        for wait in _waits:
            wait()


def _survive() -> bool:
    """Keeps other threads from crashing during exit; returns whether that is possible (with glibc)."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        c = ctypes.CDLL(None)
        register, at_exit, flush = c.on_exit, getattr(c, "__cxa_atexit"), c.fflush  # a class would rename it
    except (OSError, AttributeError):
        return False  # another C library
    # Handlers run in reverse order: files are flushed, then the process exits with its status.
    register(c._exit, None)
    at_exit(flush, None, None)
    if sys.version_info >= (3, 14):
        return True  # threads are no longer unwound
    # A thread that is unwound may find Python's state gone, which Python reports on the C library's stderr.
    with suppress(OSError, ValueError, AttributeError):
        c.fopen.restype = ctypes.c_void_p
        ctypes.c_void_p.in_dll(c, "stderr").value = c.fopen(os.devnull.encode(), b"w")
    # Called by C++, or by the C library, when a thread is unwound in a noexcept function.
    try:
        set_terminate = ctypes.CDLL("libstdc++.so.6")._ZSt13set_terminatePFvvE
    except (OSError, AttributeError):
        pass
    else:
        set_terminate(c.pause)
    handler = ctypes.cast(c.sleep, ctypes.c_void_p)  # is given the signal's number: so many seconds
    c.signal.argtypes = c.sysv_signal.argtypes = [ctypes.c_int, ctypes.c_void_p]
    c.signal(signal.SIGABRT, handler)
    # Unwinding may release Python objects that are gone. Once only: a second error aborts as usual.
    c.sysv_signal(signal.SIGSEGV, handler)
    return True


def _keep_backends() -> None:
    """Keeps XLA's backends alive at module teardown, where their destructors would wait for threads."""
    if backends_are_initialized():
        for client in {id(d.client): d.client for d in jax.devices()}.values():
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(client))


# ---------------------------------------------------------------- forks


def _before_fork() -> None:
    """Waits for running computations: in the child no thread would finish them."""
    if backends_are_initialized() and not process.forked:
        for array in jax.live_arrays():
            with suppress(RuntimeError):  # donated or failed: reading it raises
                array.block_until_ready()


def _after_fork() -> None:
    for lock in list(_locks):
        lock.renew()
    if backends_are_initialized() and not process.forked:
        process.forked = True
        _keep_backends()
        jax.clear_caches()  # only some small compiled programs would run
        jax.monitoring.register_event_duration_secs_listener(_refuse_compiling)
    for renew in _renewers:
        renew()


def _refuse_compiling(event: str, duration_secs: float, **details: str | int) -> None:
    """Called by JAX at each step of compiling, the first time before XLA is called."""
    if event.startswith("/jax/core/compile/"):
        refuse(str(details.get("fun_name", "a program of JAX's")))


atexit.register(_end)
if hasattr(os, "register_at_fork"):
    # JAX warns of deadlocks at each fork; a child that does not call XLA has none.
    if getattr(xla_bridge, "_at_fork_handler_installed", None) is False:
        xla_bridge._at_fork_handler_installed = True
    os.register_at_fork(before=_before_fork, after_in_child=_after_fork)
