"""Settings of the C library's allocator that keep the buffers of one step for the next.

XLA allocates the temporary buffers of a program anew each time it runs. By default glibc maps large blocks from the
system and returns them at once, so every page of every step is faulted in again: a third to a half of a convolutional
network's step on a CPU. Three settings prevent that, at the price that the process keeps the most memory that it ever
needed:

- Nothing is mapped by itself, and freed memory at the end of an arena is not returned. A step of an MNIST network takes
  0.7 of the time (50 ms for 70, two cores).
- There is one arena. By default there may be eight for each core, and each keeps what some thread once needed. All but
  the first consist of heaps of 64 MiB, which glibc unmaps when they become empty, and larger blocks are mapped by
  themselves there whatever the settings. With one arena a GPT step takes 55 ms for 62 to 80 and 540 MB for 620 (width
  128, two cores), a chain of operations on 10 million elements 28 ms for 73 to 125. Where buffers are small, steps are
  the same within 3%: small blocks come from caches that each thread has of its own.

``FUNCGRAD_MALLOC=system`` in the environment leaves the allocator alone, and so does any of glibc's own settings there.
"""

from __future__ import annotations

import ctypes
import os
import sys

# The parameters' numbers, from glibc's malloc.h.
_TRIM_THRESHOLD, _MMAP_MAX, _ARENA_MAX = -1, -4, -8


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
    settings = ((_MMAP_MAX, 0), (_TRIM_THRESHOLD, 2**31 - 1), (_ARENA_MAX, 1))
    return all(mallopt(parameter, value) for parameter, value in settings)


keep_memory()
