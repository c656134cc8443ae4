"""The compiled kernels, if available.

Whether they are used is decided once per process, by what is on disk when it starts: a library that is finished later
serves the next process. So within a process, and between processes that find the same library, a program gives the same
bits. ``FUNCGRAD_NATIVE`` overrides this: ``0`` for XLA's own code, ``1`` for the kernels, compiled immediately if
necessary.
"""

from __future__ import annotations

import ctypes
import os
import threading
import warnings

import jax
import numpy as np

from funcgrad.native import build

SWITCH = "FUNCGRAD_NATIVE"
SUFFIXES = {np.dtype(np.float32): "f32", np.dtype(np.float64): "f64"}
#: Those of running sums, which there are also of integers.
RUN_SUFFIXES = SUFFIXES | {np.dtype(np.int32): "s32", np.dtype(np.int64): "s64"}
#: The names under which XLA finds them.
NAMES = (
    *[f"funcgrad_{kind}_{suffix}" for kind in ("dot", "conv") for suffix in SUFFIXES.values()],
    "funcgrad_attention_forward_f32",
    "funcgrad_attention_backward_f32",
    "funcgrad_loop_f32",
    "funcgrad_sort",
    "funcgrad_top",
    *[f"funcgrad_run_{suffix}" for suffix in RUN_SUFFIXES.values()],
)


class Library:
    """The kernels of this process.

    Attributes:
        path: the library's file; None before the first request, and if there is none.
    """

    def __init__(self) -> None:
        self.path: str | None = None
        self._decided: bool | None = None
        self._lock = threading.Lock()
        # Decided when the process starts, not at the first request.
        self._found = self._look()

    def _look(self) -> bool:
        if os.environ.get(SWITCH) == "0":
            return False
        file = build.kernels.place()
        return file is not None and file.is_file()

    def available(self) -> bool:
        """Whether the kernels are available to this process; registers them with XLA."""
        if self._decided is None:
            with self._lock:
                if self._decided is None:
                    self._decided = self._decide()
        return self._decided

    def require(self) -> None:
        """Makes this process use the kernels, compiling them if necessary.

        Raises:
            RuntimeError: naming the reason if they are unavailable.
        """
        build.kernels.build()
        with self._lock:
            self._found, self._decided = True, self._load()

    def _decide(self) -> bool:
        wanted = os.environ.get(SWITCH, "")
        if wanted == "0":
            return False
        if wanted == "1":
            build.kernels.build()
        elif not self._found or build.twins:
            build.build_for_the_next()
        if not wanted and not self._found:
            return False
        return self._load()

    def _load(self) -> bool:
        file = build.kernels.place()
        assert file is not None
        try:
            self._register(ctypes.CDLL(str(file)))
        except (OSError, AttributeError) as error:
            warnings.warn(f"native kernels cannot be used, XLA's are: {file}: {error}", RuntimeWarning, stacklevel=2)
            return False
        self.path = str(file)
        return True

    def _register(self, kernels: ctypes.CDLL) -> None:
        for name in NAMES:
            jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(getattr(kernels, name)), platform="cpu")


library = Library()
