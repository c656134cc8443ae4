"""Native CPU kernels for products and convolutions, which XLA calls through its foreign function interface.

They are a few hundred lines of C++ in ``source/``, compiled once by the system's compiler and cached in the user's
cache folder. Without a compiler XLA's own code is used. The C twins of Python functions (``twins.py``) are compiled the
same way. See ``docs/how/native.md``.
"""

from funcgrad.native.library import library
from funcgrad.native.rewriting import rewritten

__all__ = ["library", "rewritten"]
