"""How the C library keeps memory that was freed.

XLA takes the memory for what a program computes on the way from ``malloc``, in one piece, and frees it at the end. By
default a piece of more than 32 MB is then given back to the system, and each page of it taken again at the next step,
for up to a fifth of the step's time; smaller ones are kept. Here they are kept up to ``KEPT`` bytes.
"""

from __future__ import annotations

import ctypes
import os

#: Larger pieces are given back, as is what is free beyond this at the end of the heap.
KEPT = 512 << 20
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3


def keep_freed_memory() -> bool:
    """Tells glibc's ``malloc``, unless its user has; returns whether it was told."""
    if "CS_GNU_LIBC_VERSION" not in getattr(os, "confstr_names", ()):
        return False
    told = any(name.startswith("MALLOC_") for name in os.environ) or "GLIBC_TUNABLES" in os.environ
    if told or not (os.confstr("CS_GNU_LIBC_VERSION") or "").startswith("glibc"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    return bool(mallopt(_MMAP_THRESHOLD, KEPT)) and bool(mallopt(_TRIM_THRESHOLD, KEPT))


keep_freed_memory()
