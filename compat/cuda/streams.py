"""``torch.cuda.streams``: XLA has one queue per GPU, so all streams of a GPU are the same.

Work runs in order; waiting for another stream is a no-op. Events record when the work before them was done.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from compat._core.types.device import device as _Device
from compat._streams import Event as _Event
from compat._streams import Stream as _Stream
from compat.cuda._devices import index_of, is_available, jax_device
from funcgrad import runtime

__all__ = ["Event", "ExternalStream", "Stream", "StreamContext", "current_stream", "default_stream", "stream"]


def synchronize(device: Any = None) -> None:
    """Waits until a GPU has done all its work.

    Raises:
        AssertionError: if there is none.
    """
    runtime.synchronize(jax_device(device))


class Stream(_Stream):
    """The queue of a GPU's work.

    Args:
        device: the GPU; by default the current one.
        priority: ignored.

    Raises:
        RuntimeError: if there is no GPU.
    """

    __module__ = "compat.cuda.streams"

    def __init__(self, device: Any = None, priority: int = 0, **kwargs: Any):
        if not is_available():
            raise RuntimeError("torch.cuda.Stream requires CUDA support")
        super().__init__(_Device("cuda", index_of(device)))
        self.priority = priority
        self.cuda_stream = 0

    def _new_event(self) -> Event:
        return Event()

    def __repr__(self) -> str:
        return f"<torch.cuda.Stream device={self.device} cuda_stream={self.cuda_stream:#x}>"


class ExternalStream(Stream):
    """A stream of another library: not supported.

    Raises:
        RuntimeError: always.
    """

    def __init__(self, stream_ptr: int, device: Any = None, **kwargs: Any):
        raise RuntimeError("ExternalStream: XLA runs all work in a queue of its own, and takes no other one")


class Event(_Event):
    """A marker in a GPU's queue.

    Args:
        enable_timing: whether to record the time, which waits for the work before the marker.
        blocking, interprocess: ignored.

    Raises:
        RuntimeError: if there is no GPU.
    """

    __module__ = "compat.cuda.streams"

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False):
        if not is_available():
            raise RuntimeError("Tried to instantiate dummy base class Event")
        super().__init__(_Device("cuda", index_of(None)), enable_timing=enable_timing)

    def record(self, stream: Any = None) -> None:
        """Puts the marker after the work requested so far, of a stream's GPU or the current one."""
        self.device = current_stream().device if stream is None else stream.device
        super().record(stream)


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
