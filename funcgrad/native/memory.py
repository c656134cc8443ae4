"""Settings of the C library's allocator that keep the buffers of one step for the next.

XLA allocates the temporary buffers of a program anew each time it runs. By default glibc maps large blocks from the
system and returns them at once, so every page of every step is faulted in again: a third to a half of a convolutional
network's step on a CPU. Four settings prevent that, at the price that the process keeps the most memory that it ever
needed:

- Nothing is mapped by itself, and freed memory at the end of an arena is not returned. A step of an MNIST network takes
  0.7 of the time (50 ms for 70, two cores).
- There are two arenas for each CPU and two more: for Python, XLA's threads, two for each CPU, and threads that compile.
  Threads that share an arena wait for its lock, and sleep each time. With two arenas a small network's compiled step
  took 104 us for 92 (two CPUs), and its deferred step up to 400 for 300, since by chance one of XLA's threads shares
  Python's. The price is up to a quarter of the peak, since each of XLA's threads keeps a program's temporary buffers.
  By default there may be eight for each CPU: no faster, and a GPT's peak is 730 MB for 650.
- An arena is extended by at least 64 MiB. All but the first consist of heaps of that size, which glibc unmaps when they
  become empty and could be mapped again without this. Blocks that are larger are mapped by themselves in these arenas
  whatever the settings, as by default: steps with arrays of 120 MB take 1.2 to 2 times as long as with the first arena
  alone, and two thirds of the memory. So XLA is told to make its blocks smaller (``funcgrad/runtime/options.py``).

``FUNCGRAD_MALLOC=system`` in the environment leaves the allocator alone, and so does any of glibc's own settings there,
except the request for huge pages (``glibc.malloc.hugetlb``).
"""

from __future__ import annotations

import ctypes
import os
import sys

from funcgrad.native.machine import cores

# The parameters' numbers, from glibc's malloc.h.
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_MAX, _ARENA_MAX = -1, -2, -4, -8
_HEAP = 2**26


def _arenas() -> int:
    """The number of arenas for Python, XLA's threads, two for each CPU, and the threads that compile."""
    return 2 + 2 * cores()


def keep_memory() -> bool:
    """Makes glibc keep freed memory; returns whether it is glibc."""
    if not sys.platform.startswith("linux") or os.environ.get("FUNCGRAD_MALLOC", "") == "system":
        return False
    tunables = os.environ.get("GLIBC_TUNABLES", "").split(":")
    own = [t for t in tunables if t.startswith("glibc.malloc.") and not t.startswith("glibc.malloc.hugetlb=")]
    if own or any(name.startswith("MALLOC_") for name in os.environ):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False  # another C library
    settings = ((_MMAP_MAX, 0), (_TRIM_THRESHOLD, 2**31 - 1), (_ARENA_MAX, _arenas()), (_TOP_PAD, _HEAP))
    return all(mallopt(parameter, value) for parameter, value in settings)


keep_memory()
