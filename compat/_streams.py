"""``torch.Stream`` and ``torch.Event``: those of the CPU, which is the device that there is."""

from __future__ import annotations

from typing import Any

from compat import cpu


class Stream(cpu.Stream):
    """Work that is done in order: there is one such, of everything."""

    __module__ = "compat"

    def __init__(self, device: Any = None, *, priority: int = 0):
        super().__init__(priority)


class Event(cpu.Event):
    """A mark among the work."""

    __module__ = "compat"

    def __init__(self, device: Any = None, *, enable_timing: bool = False, blocking: bool = False):
        super().__init__(enable_timing)
