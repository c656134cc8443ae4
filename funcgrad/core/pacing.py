"""Pacing: a background thread leaves the interpreter to the program's threads.

CPython runs one thread at a time. NumPy's operations release the interpreter's lock and wait for it afterwards, so
beside a thread that works in Python without a break, a program of many small operations stands still. A paced thread
works in turns of ``TURN`` seconds, with breaks of ``BREAK`` seconds, which begin at any call of a function: most of its
work is in JAX. Within a turn the threads change every ``SWITCH_INTERVAL``. Breaks as long as the turns cost more than
they save: much of a short turn passes in waiting, and lowering a program of 185 equations, 60 ms of work, took 500 ms.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

#: The seconds of work between two breaks, and of a break.
TURN, BREAK = 2e-2, 1e-3
#: The interpreter's switch interval, in seconds, as long as a thread is paced.
SWITCH_INTERVAL = 1e-4

_hurried = 0  # how many threads wait for the paced ones
_parked = False  # whether paced threads sleep at their next call, for good


@contextmanager
def paced() -> Iterator[None]:
    """Context in which the calling thread takes breaks, unless it is being profiled."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(min(interval, SWITCH_INTERVAL))
    profiled = sys.getprofile() is not None
    if not profiled:
        sys.setprofile(_breaks())
    try:
        yield
    finally:
        if not profiled:
            sys.setprofile(None)
        if interval > SWITCH_INTERVAL and sys.getswitchinterval() <= SWITCH_INTERVAL:  # nobody else has set it
            sys.setswitchinterval(interval)


def _breaks() -> Callable[[FrameType, str, Any], None]:
    """A profile function that takes a break if a turn is over and no thread waits for this one."""
    clock = time.perf_counter
    end = clock() + TURN

    def take(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal end
        while _parked:
            time.sleep(3600)
        if clock() >= end:
            if not _hurried:
                time.sleep(BREAK)
            end = clock() + TURN

    return take


@contextmanager
def hurried() -> Iterator[None]:
    """Context in which paced threads take no breaks, since the caller waits for one."""
    global _hurried
    _hurried += 1
    try:
        yield
    finally:
        _hurried -= 1


def park() -> None:
    """Has paced threads sleep at their next call until the process exits.

    A thread that needs the interpreter after its end is unwound, which C++ that has acquired the interpreter's lock
    does not survive.
    """
    global _parked
    _parked = True
