"""The load of the processors by other processes during a measurement."""

from __future__ import annotations

import os
import time
from pathlib import Path


class Watch:
    """Measures the load of the processors from its creation on (on Linux).

    Example:
        >>> watch = Watch()
        >>> sum(range(100_000)) > 0
        True
        >>> share = watch.elsewhere()
        >>> share is None or 0 <= share <= 1
        True
    """

    def __init__(self) -> None:
        self._start, self._busy, self._ours = time.monotonic(), _busy_seconds(), seconds_of_family(os.getpid())

    def elsewhere(self) -> float | None:
        """The share of all processors' time since then that was neither idle nor used by this process and its living
        children; None if it is unknown."""
        busy, ours = _busy_seconds(), seconds_of_family(os.getpid())
        if busy is None or self._busy is None:
            return None
        capacity = (time.monotonic() - self._start) * (os.cpu_count() or 1)
        others = (busy - self._busy) - (ours - self._ours)
        return min(1.0, max(0.0, others / capacity)) if capacity > 0 else None


def _busy_seconds() -> float | None:
    """Seconds of work of all processors together."""
    try:
        fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    except OSError:
        return None
    user, nice, system, _idle, _waiting, *interrupts = (int(f) for f in fields[:8])
    return (user + nice + system + sum(interrupts)) / os.sysconf("SC_CLK_TCK")


def seconds_of_family(process: int) -> float:
    """Processor seconds of a process and its descendants."""
    if not Path("/proc").is_dir():
        return 0.0
    times: dict[int, float] = {}
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                # The name in parentheses may contain blanks.
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            children.setdefault(int(fields[1]), []).append(int(entry.name))
            times[int(entry.name)] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    total, family = 0.0, [process]
    while family:
        member = family.pop()
        total += times.get(member, 0.0)
        family += children.get(member, [])
    return total


def wait_until_idle(process: int, timeout: float = 120, window: float = 0.1) -> bool:
    """Waits until a process and its descendants are nearly idle for two successive windows.

    Args:
        process: the id of the process.
        timeout: the maximum wait in seconds.
        window: the length of a window in seconds.

    Returns:
        Whether it became idle; true if processes cannot be observed.
    """
    idle, before, end = 0, seconds_of_family(process), time.monotonic() + timeout
    while idle < 2 and time.monotonic() < end:
        time.sleep(window)
        now = seconds_of_family(process)
        # The system counts in hundredths of a second.
        idle = idle + 1 if now - before <= max(0.1 * window, 0.01) else 0
        before = now
    return idle >= 2
