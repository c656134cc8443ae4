"""Products and convolutions on the CPU by kernels of our own, which XLA calls through its foreign function interface.

They are a few hundred lines of C++ in ``source/``, compiled once by the machine's own compiler and kept among the
user's caches. Without a compiler everything runs as XLA does it. The C twins of Python functions (``twins.py``) are
compiled by the same rules. ``docs/how/native.md`` has the whole of it.
"""

from funcgrad.native.library import library
from funcgrad.native.rewriting import rewritten

__all__ = ["library", "rewritten"]
