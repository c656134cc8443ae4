"""Pacing: a background thread leaves the interpreter to the program's threads.

CPython runs one thread at a time. NumPy's operations release the interpreter's lock and wait for it afterwards, so
beside a thread that works in Python without a break, a program of many small operations stands still. A paced thread
works in turns of ``TURN`` seconds, with breaks of ``BREAK`` seconds.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

#: The seconds of work between two breaks, and of a break.
TURN, BREAK = 1e-3, 3e-3
#: The interpreter's switch interval, in seconds, as long as a thread is paced: for work that cannot be interrupted.
SWITCH_INTERVAL = 1e-4


class _Turn(threading.local):
    #: When this thread's turn ends; None in a thread that is not paced.
    end: float | None = None


_turn = _Turn()
_hurried = 0  # how many threads wait for the paced ones


@contextmanager
def paced() -> Iterator[None]:
    """Context in which the calling thread takes breaks at ``pause``."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(min(interval, SWITCH_INTERVAL))
    _turn.end = time.perf_counter() + TURN
    try:
        yield
    finally:
        _turn.end = None
        if interval > SWITCH_INTERVAL and sys.getswitchinterval() <= SWITCH_INTERVAL:  # nobody else has set it
            sys.setswitchinterval(interval)


def pause() -> None:
    """Takes a break if the calling thread is paced, its turn is over, and no thread waits for it."""
    end = _turn.end
    if end is not None and time.perf_counter() >= end:
        if not _hurried:
            time.sleep(BREAK)
        _turn.end = time.perf_counter() + TURN


@contextmanager
def hurried() -> Iterator[None]:
    """Context in which paced threads take no breaks, since the caller waits for one."""
    global _hurried
    _hurried += 1
    try:
        yield
    finally:
        _hurried -= 1
