"""``torch.cpu``: the CPU, with the API of accelerator modules."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from compat.cpu import amp as amp
from funcgrad import runtime


class Stream:
    """A queue of work: the CPU has a single one."""

    def __init__(self, priority: int = -1):
        pass

    def wait_stream(self, stream: Any) -> None:
        """Waits for another stream: a no-op, as there is a single queue."""

    def record_event(self) -> None:
        """Records an event."""

    def wait_event(self, event: Any) -> None:
        """Waits for an event: a no-op, as there is a single queue."""


class Event:
    """An event in the queue: synchronizing with it runs the recorded work."""

    def __init__(self, enable_timing: bool = False):
        pass

    def query(self) -> bool:
        """Whether the work before it is done."""
        return True

    def record(self, stream: Any = None) -> None:
        """Records the event."""

    def synchronize(self) -> None:
        """Runs the operations recorded so far."""
        synchronize()

    def wait(self, stream: Any = None) -> None:
        """Makes a stream wait for the event."""


_stream = Stream()


def current_stream(device: Any = None) -> Stream:
    """The only stream."""
    return _stream


@contextmanager
def stream(stream: Any) -> Iterator[None]:
    """Runs the body in the only stream."""
    yield


def is_available() -> bool:
    """Whether there is a CPU: True."""
    return True


def is_initialized() -> bool:
    """Whether it is initialized: True."""
    return True


def device_count() -> int:
    """The number of devices: 1."""
    return 1


def current_device() -> str:
    """The current device."""
    return "cpu"


def set_device(device: Any) -> None:
    """Sets the current device: a no-op."""


def synchronize(device: Any = None) -> None:
    """Runs the operations recorded so far."""
    # Not compat.runtime.synchronize, which waits for compilations: this may be called at every step.
    runtime.flush_all()
    runtime.wait()
