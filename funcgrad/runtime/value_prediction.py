"""Predicts values of recorded operations with NumPy, so that indices can be checked before they are used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from funcgrad.runtime import numpy_backend
from funcgrad.runtime.deferred import Deferred, Operation, local, value_of
from funcgrad.runtime.programs import by_numpy

#: The maximum estimated milliseconds of a prediction, and the same if floats are involved.
MOST, FLOATS = 0.2, 0.06


def foreseen(buffer: Deferred) -> np.ndarray | None:
    """The value that a buffer will have, read-only, if a few small NumPy operations can compute it from known values.

    The operations stay recorded, so predicting does not change a window. None if it would take too long; floats get
    less time, since a window that computes them is usually run for them.
    """
    try:
        return buffer.foreseen
    except AttributeError:
        pass
    steps = _steps(buffer, local.ops) if by_numpy() else None
    buffer.foreseen = None if steps is None else _walked(buffer, steps)
    return buffer.foreseen


def _steps(buffer: Deferred, ops: Sequence[Operation]) -> list[Operation] | None:
    """The operations that the buffer depends on, in order; None if they are not few and small."""
    wanted, found, takes, most = {id(buffer)}, [], 0.0, MOST
    for op in reversed(ops):
        code, buffers, _, results = op
        made = set(map(id, results))
        if made.isdisjoint(wanted):
            continue
        takes += code.takes()
        if any(t.dtype.kind not in "biu" for t in code.program.output_types):
            most = FLOATS
        if takes > most:
            return None
        found.append(op)
        wanted -= made
        wanted.update(id(b) for b in buffers if b.__class__ is Deferred and not hasattr(b, "value"))
        if not wanted:
            return found[::-1]
    return None


def _walked(buffer: Deferred, steps: Sequence[Operation]) -> np.ndarray | None:
    values: dict[int, Any] = {}
    try:
        with numpy_backend.quiet():
            for code, buffers, numbers, results in steps:
                operands = [values[id(b)] if id(b) in values else value_of(b) for b in buffers]
                values.update(zip(map(id, results), code.by_numpy(operands, numbers), strict=True))
    except numpy_backend.NotEquivalent:
        return None
    found = np.array(values[id(buffer)])
    found.flags.writeable = False
    return found
