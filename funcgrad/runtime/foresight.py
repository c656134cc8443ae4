"""Foreseeing values that are noted down and not computed: positions are to be looked at before they are used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from funcgrad.runtime import numpy_backend
from funcgrad.runtime.deferred import Deferred, Noted, local, value_of
from funcgrad.runtime.programs import by_numpy

#: How long may be taken to look ahead, in milliseconds; and where there are floats on the way.
MOST, FLOATS = 0.2, 0.06


def foreseen(buffer: Deferred) -> np.ndarray | None:
    """What a buffer will hold, read-only, where NumPy makes it of what is there by few small operations.

    The operations stay noted down, so that a window is what it is whoever looks; None where that takes more. Floats
    that decide are mostly what the window is run for, and worth no more than a glance.
    """
    try:
        return buffer.foreseen
    except AttributeError:
        pass
    steps = _steps(buffer, local.ops) if by_numpy() else None
    buffer.foreseen = None if steps is None else _walked(buffer, steps)
    return buffer.foreseen


def _steps(buffer: Deferred, ops: Sequence[Noted]) -> list[Noted] | None:
    """The operations that the buffer comes of, in order; None if they are not few and small."""
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


def _walked(buffer: Deferred, steps: Sequence[Noted]) -> np.ndarray | None:
    values: dict[int, Any] = {}
    try:
        with numpy_backend.quiet():
            for code, buffers, numbers, results in steps:
                operands = [values[id(b)] if id(b) in values else value_of(b) for b in buffers]
                values.update(zip(map(id, results), code.by_numpy(operands, numbers), strict=True))
    except numpy_backend.NotHere:
        return None
    found = np.array(values[id(buffer)])
    found.flags.writeable = False
    return found
