"""``torch.cuda.streams``: XLA has one queue per GPU, so all streams of a GPU are the same.

Work runs in order; waiting for another stream is a no-op. Events record when the work before them was done.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from time import perf_counter
from typing import Any

from compat._core.types.device import available
from compat._core.types.device import device as _Device
from compat.cuda._devices import index_of, is_available, jax_device
from funcgrad import runtime

__all__ = ["Event", "ExternalStream", "Stream", "StreamContext", "current_stream", "default_stream", "stream"]


def synchronize(device: Any = None) -> None:
    """Waits until a GPU has done all its work.

    Raises:
        AssertionError: if there is none.
    """
    runtime.synchronize(jax_device(device))


class Stream:
    """The queue of a GPU's work.

    Args:
        device: the GPU; by default the current one.
        priority: ignored.

    Raises:
        RuntimeError: if there is no GPU.
    """

    def __init__(self, device: Any = None, priority: int = 0, **kwargs: Any):
        if not is_available():
            raise RuntimeError("torch.cuda.Stream requires CUDA support")
        self.device = available(_Device("cuda", index_of(device)))
        self.priority = priority
        self.cuda_stream = 0

    def synchronize(self) -> None:
        """Waits until all work is done."""
        synchronize(self.device)

    def query(self) -> bool:
        """Whether all work is done; waits for it."""
        self.synchronize()
        return True

    def wait_stream(self, stream: Any) -> None:
        """Does nothing: another stream is the same queue."""

    def wait_event(self, event: Any) -> None:
        """Does nothing: work before the event is in the same queue."""

    def record_event(self, event: Any = None) -> Event:
        """Records an event."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and self.device == other.device

    def __hash__(self) -> int:
        return hash(self.device)

    def __repr__(self) -> str:
        return f"<torch.cuda.Stream device={self.device} cuda_stream={self.cuda_stream:#x}>"


class ExternalStream(Stream):
    """A stream of another library: not supported.

    Raises:
        RuntimeError: always.
    """

    def __init__(self, stream_ptr: int, device: Any = None, **kwargs: Any):
        raise RuntimeError("ExternalStream: XLA runs all work in a queue of its own, and takes no other one")


class Event:
    """A marker in a GPU's queue.

    Args:
        enable_timing: whether to record the time, which waits for the work before the marker.
        blocking, interprocess: ignored.

    Raises:
        RuntimeError: if there is no GPU.
    """

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False):
        if not is_available():
            raise RuntimeError("Tried to instantiate dummy base class Event")
        self.enable_timing = enable_timing
        self._device: Any = None
        self._time: float | None = None

    def record(self, stream: Any = None) -> None:
        """Puts the marker after the work requested so far."""
        self._device = None if stream is None else stream.device
        if self.enable_timing:
            self.synchronize()
            self._time = perf_counter()

    def synchronize(self) -> None:
        """Waits until the work before the mark is done."""
        synchronize(self._device)

    def query(self) -> bool:
        """Whether the work before the event is done; waits for it."""
        self.synchronize()
        return True

    def wait(self, stream: Any = None) -> None:
        """Does nothing: all streams are the same."""

    def elapsed_time(self, end_event: Event) -> float:
        """The milliseconds from this event to another one.

        Raises:
            ValueError: if one of them has no timing, or was not recorded.
        """
        if self._time is None or end_event._time is None:
            raise ValueError("Both events must be created with argument 'enable_timing=True', and recorded.")
        return (end_event._time - self._time) * 1000


class StreamContext(AbstractContextManager):
    """A context manager that sets the current stream: a no-op."""

    __module__ = "compat.cuda"

    def __init__(self, stream: Any):
        self.stream = stream

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc: object) -> None:
        return None


def stream(stream: Any) -> StreamContext:
    """A context manager that sets the current stream; None for no change."""
    return StreamContext(stream)


def current_stream(device: Any = None) -> Stream:
    """The queue of a GPU.

    Raises:
        AssertionError: if there is none.
    """
    jax_device(device)
    return Stream(device)


default_stream = current_stream
