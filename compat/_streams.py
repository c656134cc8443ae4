"""``torch.Stream`` and ``torch.Event``: each device has one queue of work."""

from __future__ import annotations

from time import perf_counter
from typing import Any

from compat import cpu
from compat._core.types.device import CPU, accelerator_type, available, jax_device
from compat._core.types.device import device as Device
from funcgrad import runtime


class Stream(cpu.Stream):
    """The queue of a device, in which work runs in order.

    Args:
        device: the device; by default the accelerator, or the CPU.
        priority: ignored.
    """

    __module__ = "compat"

    def __init__(self, device: Any = None, *, priority: int = 0):
        super().__init__(priority)
        self.device = _place(device)

    def synchronize(self) -> None:
        """Waits until all work is done."""
        _wait(self.device)

    def query(self) -> bool:
        """Whether all work is done; waits for it."""
        self.synchronize()
        return True

    def record_event(self, event: Any = None) -> Any:
        """Records an event, by default a new one; returns it."""
        event = self._new_event() if event is None else event
        event.record(self)
        return event

    def _new_event(self) -> Any:
        return Event(self.device)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and self.device == other.device

    def __hash__(self) -> int:
        return hash(self.device)


class Event(cpu.Event):
    """A marker in a queue.

    Args:
        device: the device; by default the accelerator, or the CPU.
        enable_timing: whether to record the time, which waits for the work before the marker.
        blocking: ignored.

    Example:
        >>> start, end = torch.Event(enable_timing=True), torch.Event(enable_timing=True)
        >>> start.record(), end.record()
        (None, None)
        >>> start.elapsed_time(end) >= 0
        True
    """

    __module__ = "compat"

    def __init__(self, device: Any = None, *, enable_timing: bool = False, blocking: bool = False):
        super().__init__(enable_timing)
        self.device, self._timed = _place(device), enable_timing
        self._time: float | None = None

    def record(self, stream: Any = None) -> None:
        """Puts the marker after the work requested so far."""
        if self._timed:
            self.synchronize()
            self._time = perf_counter()

    def synchronize(self) -> None:
        """Waits until the work before the marker is done."""
        _wait(self.device)

    def query(self) -> bool:
        """Whether the work before the marker is done; waits for it."""
        self.synchronize()
        return True

    def elapsed_time(self, end_event: Event) -> float:
        """The milliseconds from this event to another one.

        Raises:
            ValueError: if one of them has no timing, or was not recorded.
        """
        if self._time is None or end_event._time is None:
            raise ValueError("Both events must be created with argument 'enable_timing=True', and recorded.")
        return (end_event._time - self._time) * 1000


def _place(device: Any) -> Device:
    if device is not None:
        return available(device)
    try:
        return available(accelerator_type())
    except RuntimeError:
        return CPU


def _wait(device: Device) -> None:
    place = jax_device(device)
    if place is None:
        cpu.synchronize()
    else:
        runtime.synchronize(place)
