"""Executables of whole programs, and buffers from and to NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from funcgrad.interpreters.lower import lowered
from funcgrad.ir import Program


class Executable:
    """A program, compiled when it first runs.

    Calling it takes one buffer (or typed NumPy scalar) per input and returns a list of buffers.
    """

    __slots__ = ("program", "run", "__weakref__")

    def __init__(self, program: Program, donate: Sequence[int] = ()):
        self.program = program
        self.run = jax.jit(lowered(program), donate_argnums=tuple(donate))

    def __call__(self, *buffers: Any) -> list[Any]:
        return self.run(*buffers)


def executable(program: Program, donate: Sequence[int] = ()) -> Executable:
    """The executable of ``program``, one per program object and choice of donated inputs.

    Args:
        donate: inputs whose buffers the results may reuse; the caller must not use them again.
    """
    key = (Executable, *donate)
    found = program.cache.get(key)
    if found is None:
        found = program.cache[key] = Executable(program, donate)
    return found


def from_numpy(array: np.ndarray) -> jax.Array:
    """A buffer with the array's contents; the array may be changed afterwards."""
    return jax.numpy.array(array, copy=True)


def to_numpy(buffer: Any) -> np.ndarray:
    """The buffer's contents, read-only, without a copy where the device is the CPU; waits until they are computed."""
    return np.asarray(buffer)
