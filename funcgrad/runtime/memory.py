"""How the C library hands out memory, so that the buffers of one step are those of the last.

XLA asks for the temporary buffers of a program anew each time it runs. glibc maps large blocks afresh from the system
and gives them back at once, so every page of every step is faulted in again: a third to a half of a convolutional
network's step on a CPU. Told to keep what it has, it hands the same pages out again: a step of an MNIST network takes
0.7 of the time (50 ms for 70, two cores). The price is that the process keeps the most memory that it ever needed.

``FUNCGRAD_MALLOC=system`` in the environment leaves the C library alone, and so does any of its own settings there.
"""

from __future__ import annotations

import ctypes
import os
import sys

# The parameters' numbers, from glibc's malloc.h.
_TRIM_THRESHOLD, _MMAP_MAX = -1, -4


def keep_memory() -> bool:
    """Makes glibc keep freed memory; returns whether it is glibc."""
    if not sys.platform.startswith("linux") or os.environ.get("FUNCGRAD_MALLOC", "") == "system":
        return False
    if any(name.startswith("MALLOC_") for name in os.environ) or "malloc" in os.environ.get("GLIBC_TUNABLES", ""):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False  # another C library
    # As many pools as there are threads, as ever: one for all would have XLA's threads wait for each other.
    return all([mallopt(_MMAP_MAX, 0), mallopt(_TRIM_THRESHOLD, 2**31 - 1)])


keep_memory()
