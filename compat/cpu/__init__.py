"""``torch.cpu``: the device that everything is on, in the words in which programs speak to an accelerator."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from compat.cpu import amp as amp
from funcgrad import runtime


class Stream:
    """Work that is done in order: there is one such, of everything."""

    def __init__(self, priority: int = -1):
        pass

    def wait_stream(self, stream: Any) -> None:
        """Waits for another one's work, which is in this one's order anyway."""

    def record_event(self) -> None:
        """Marks where the work is."""

    def wait_event(self, event: Any) -> None:
        """Waits for a mark, before which everything is done anyway."""


class Event:
    """A mark among the work: what came before it is done when something asks."""

    def __init__(self, enable_timing: bool = False):
        pass

    def query(self) -> bool:
        """Whether the work before it is done."""
        return True

    def record(self, stream: Any = None) -> None:
        """Puts the mark."""

    def synchronize(self) -> None:
        """Runs what has been recorded so far."""
        synchronize()

    def wait(self, stream: Any = None) -> None:
        """Makes a stream wait for the event."""


_stream = Stream()


def current_stream(device: Any = None) -> Stream:
    """The one there is."""
    return _stream


@contextmanager
def stream(stream: Any) -> Iterator[None]:
    """Runs the body, whose work is in the one order that there is."""
    yield


def is_available() -> bool:
    """Whether there is a CPU."""
    return True


def is_initialized() -> bool:
    """Whether it is ready."""
    return True


def device_count() -> int:
    """One: all cores together."""
    return 1


def current_device() -> str:
    """The one there is."""
    return "cpu"


def set_device(device: Any) -> None:
    """Chooses among the one there is."""


def synchronize(device: Any = None) -> None:
    """Runs what has been recorded so far."""
    # Not compat.runtime's, which has programs compiled: this may be called at every step.
    runtime.flush_all()
    runtime.wait()
