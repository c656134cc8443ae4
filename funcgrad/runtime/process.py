"""The runtime when the process ends, and when it is forked.

XLA cannot be stopped while it compiles, which may take long, and other threads may be in the middle of anything when
Python ends the process. Up to Python 3.13 a thread that wants to go on with Python then is unwound (``pthread_exit``),
which C++ answers by ending the process; and the destructors of C++'s static objects take away what a thread in XLA
needs. So, where there are other threads when the process ends:

- the ending thread takes the runtime's locks and keeps them. A thread that wants one waits for ever; one that has one
  gets ``GRACE`` to come back, and waits for ever when it gives its lock back;
- what others print waits for ever, too: a thread that is ended while it has the lock of a file takes that along;
- the C library is told to end without the destructors, and C++ to pause a thread that is unwound (``_survive``).

In a forked child the threads of XLA are gone. The child computes by NumPy; what NumPy cannot compute is an error.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import os
import signal
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import jax

try:
    # Not public: without it a child of a process whose arrays were never used takes itself for one that cannot compute.
    from jax._src import xla_bridge
    from jax._src.xla_bridge import backends_are_initialized
except ImportError:
    xla_bridge = None  # type: ignore[assignment]

    def backends_are_initialized() -> bool:
        return True


#: Seconds that running threads get to finish when the process ends.
GRACE = 0.1
#: Seconds that printing threads get to finish.
PRINTED = 0.005


class Process:
    """What the process is about to do: end or fork.

    Attributes:
        ending: the thread that ends it, once it is ending.
        forked: whether it is a child whose parent had used XLA.
    """

    __slots__ = ("ending", "forked")

    def __init__(self) -> None:
        self.ending: int | None = None
        self.forked = False


process = Process()


class Lock:
    """A re-entrant lock that the thread which ends the process always gets, and that a forked child finds free.

    An owner that waits for another thread lends it to that thread: a finalizer that needs the lock may run there.
    """

    __slots__ = ("_lock", "_loan", "_borrower", "_borrowed", "__weakref__")

    def __init__(self) -> None:
        self._lock = threading.RLock()
        #: Held by the borrower while it is inside, and by the lender to end the loan.
        self._loan = threading.RLock()
        self._borrower: int | None = None
        self._borrowed = 0
        _locks.add(self)

    def __enter__(self) -> None:
        if self._borrower is None or not self._borrow():
            self._lock.acquire()

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
        """Context in which ``thread`` may have the lock; for the thread that has it, and does nothing but wait."""
        self._borrower = thread.ident if thread is not None else None
        try:
            yield
        finally:
            with self._loan:
                self._borrower = None

    def seize(self, seconds: float) -> None:
        """Takes the lock, after so many seconds even from its owner."""
        if not self._lock.acquire(timeout=seconds):
            self._lock = threading.RLock()
            self._lock.acquire()

    def renew(self) -> None:
        """Unlocks it in a process without other threads."""
        self._loan, self._borrower, self._borrowed = threading.RLock(), None, 0
        if self._lock.acquire(blocking=False):
            self._lock.release()
        else:
            self._lock = threading.RLock()


_locks: weakref.WeakSet[Lock] = weakref.WeakSet()
_renewers: list[Callable[[], None]] = []
_waits: list[Callable[[], None]] = []


def in_child(renew: Callable[[], None]) -> None:
    """Has ``renew`` called in each forked child, where no other thread is left."""
    _renewers.append(renew)


def at_end(wait: Callable[[], None]) -> None:
    """Has ``wait`` called at the end where other threads cannot be left where they are: it waits for one."""
    _waits.append(wait)


def pass_by() -> None:
    """Goes on in the thread that ends the process, if it is ending; any other stays here."""
    while process.ending is not None and process.ending != threading.get_ident():
        time.sleep(3600)


def refuse(name: str) -> None:
    """Raises in a forked child, where XLA's threads are missing.

    Raises:
        RuntimeError: naming what was to be computed.
    """
    raise RuntimeError(
        f"{name} has to be computed by XLA, which this process cannot use: it was forked from one that had used it, "
        "and XLA's threads are not there. Start processes by 'spawn' or 'forkserver', as in "
        "multiprocessing.get_context('spawn'), or fork before funcgrad is imported."
    )


# ---------------------------------------------------------------- the end


def imported() -> None:
    """Takes the half million objects that importing has made out of Python's search for garbage, which at the end alone
    would take three times as long as all else."""
    gc.freeze()


class _Printed:
    """A file that only the thread which ends the process may use."""

    def __init__(self, file: Any):
        self._file = file

    def __getattr__(self, name: str) -> Any:
        pass_by()
        return getattr(self._file, name)


def _end() -> None:
    """Called when the process ends."""
    me = process.ending = threading.get_ident()
    if all(thread == me for thread in sys._current_frames()):
        return
    until = time.monotonic() + GRACE
    for lock in list(_locks):
        lock.seize(max(0.0, until - time.monotonic()))
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is not None:
            setattr(sys, name, _Printed(getattr(sys, name)))
    time.sleep(PRINTED)
    _keep_backends()
    if not _survive():
        for wait in _waits:
            wait()


def _survive() -> bool:
    """Keeps other threads from crashing while the process ends; returns whether it could, as with glibc."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        c = ctypes.CDLL(None)
        register, at_exit, flush = c.on_exit, getattr(c, "__cxa_atexit"), c.fflush  # a class would rename it
    except (OSError, AttributeError):
        return False  # another C library
    # The last one registered is called first: files are written, then the process ends with the status it ends with.
    register(c._exit, None)
    at_exit(flush, None, None)
    if sys.version_info >= (3, 14):
        return True  # threads are not unwound any more
    # What C++ calls, and else the C library, for a thread that is unwound where it must not be.
    try:
        set_terminate = ctypes.CDLL("libstdc++.so.6")._ZSt13set_terminatePFvvE
    except (OSError, AttributeError):
        pass
    else:
        set_terminate(c.pause)
    handler = ctypes.cast(c.sleep, ctypes.c_void_p)  # is given the signal's number: so many seconds
    c.signal.argtypes = c.sysv_signal.argtypes = [ctypes.c_int, ctypes.c_void_p]
    c.signal(signal.SIGABRT, handler)
    # What is unwound may let go of Python's objects, which are gone. Once only: another one is an error as ever.
    c.sysv_signal(signal.SIGSEGV, handler)
    return True


def _keep_backends() -> None:
    """Keeps XLA's backends alive when Python's modules are torn down, where they would wait for their threads."""
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
    """Called by JAX with each step of compiling, the first of them before XLA is asked."""
    if event.startswith("/jax/core/compile/"):
        refuse(str(details.get("fun_name", "a program of JAX's")))


atexit.register(_end)
if hasattr(os, "register_at_fork"):
    # JAX warns of a deadlock at each fork, once it has begun; a child that does not call XLA has none.
    if getattr(xla_bridge, "_at_fork_handler_installed", None) is False:
        xla_bridge._at_fork_handler_installed = True
    os.register_at_fork(before=_before_fork, after_in_child=_after_fork)
