"""Executables of whole programs, and buffers from and to NumPy."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from funcgrad.interpreters.lower import lowered
from funcgrad.ir import Program
from funcgrad.runtime.constants import scalar
from funcgrad.runtime.deferred import catch_up, let_go, local, ready


class Executable:
    """A program, compiled when it first runs.

    Calling it takes one buffer (or typed NumPy scalar) per input and returns a list of buffers.

    Attributes:
        run: what JAX made of it: buffers in, list of buffers out.
        buffers: how many of its inputs, the first ones, are buffers; the others are numbers.
        numbers: the dtypes of the inputs that are numbers.
        results: how many results it has.
        warm: whether it has run, and so is compiled.
        windows: what was compiled of windows that it is in, if it is one that may not live long.
    """

    __slots__ = ("program", "run", "buffers", "numbers", "results", "warm", "windows", "__weakref__")

    def __init__(self, program: Program, numbers: int = 0, donate: Sequence[int] = ()):
        self.program = program
        self.run = jax.jit(lowered(program), donate_argnums=tuple(donate))
        self.buffers = len(program.inputs) - numbers
        self.numbers = tuple(v.type.dtype for v in program.inputs[self.buffers :])
        self.results = len(program.outputs)
        self.warm = False
        self.windows: OrderedDict[tuple, Any] = OrderedDict()

    def __call__(self, *buffers: Any) -> list[Any]:
        return self.run(*buffers)

    def now(self, buffers: Sequence[Any], numbers: Sequence[Any]) -> list[Any]:
        """The results, from buffers that are there and Python numbers."""
        found = self.run(*buffers, *[scalar(n, dtype) for n, dtype in zip(numbers, self.numbers)])
        self.warm = True
        return found

    def cold(self) -> set[Executable]:
        """What would have to be compiled for ``now``."""
        return set() if self.warm else {self}

    def prepare(self) -> None:
        """Compiles it without running it: what JAX compiled is found when it is called for the first time."""
        self.run.lower(*[jax.ShapeDtypeStruct(t.shape, t.dtype) for t in self.program.input_types]).compile()


def executable(program: Program, numbers: int = 0, donate: Sequence[int] = ()) -> Executable:
    """The executable of ``program``, one per program object and choice of donated inputs.

    Args:
        numbers: how many of its inputs, the last ones, are Python numbers.
        donate: inputs whose buffers the results may reuse; the caller must not use them again.
    """
    key = (Executable, numbers, *donate)
    found = program.cache.get(key)
    if found is None:
        found = program.cache[key] = Executable(program, numbers, donate)
    return found


def from_numpy(array: np.ndarray) -> jax.Array:
    """A buffer with the array's contents; the array may be changed afterwards."""
    buffer = jax.numpy.array(array, copy=True)
    if local.hold is not None:
        local.hold.from_host(buffer)
    return buffer


def to_numpy(buffer: Any) -> np.ndarray:
    """The buffer's contents, read-only, without a copy where the device is the CPU; waits until they are computed."""
    let_go()
    found = np.asarray(ready(buffer))
    if local.queue.due:
        catch_up()
    return found
