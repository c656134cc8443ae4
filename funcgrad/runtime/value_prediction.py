"""Values that a few small recorded operations compute, without running the window that these are in.

``foreseen`` predicts a value, so that indices can be checked before they are used; the operations stay recorded.
``run_alone`` runs the operations. Python often asks for a number beside the work: whether a step size is 1, whether all
of a few elements are finite. Running everything recorded so far for it would end the window there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from funcgrad.core.tracing import state
from funcgrad.runtime import numpy_backend, report
from funcgrad.runtime.deferred import Deferred, Operation, local, lock, set_alone, value_of
from funcgrad.runtime.process import process
from funcgrad.runtime.programs import CALL_COST, Executable, by_numpy
from funcgrad.runtime.recording import Recording
from funcgrad.runtime.sequence import run

#: The maximum estimated milliseconds of a prediction, and the same if floats are involved.
MOST, FLOATS = 0.2, 0.06
#: The most operations that run alone, the fewest others that are worth keeping, and how many of the last recorded
#: operations are searched.
FEW, OTHERS, NEAR = 4, 8, 12


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


# ---------------------------------------------------------------- run alone


def run_alone(buffer: Deferred) -> bool:
    """Computes a buffer by the few small operations that it depends on, unless hardly any others are recorded; returns
    whether it did."""
    queue = local.queue
    ops = queue.ops
    if len(ops) <= OTHERS or queue.backlog or queue.later or queue.due or queue.recent:
        return False
    if state.depth or state.deferring or process.forked or not by_numpy():
        return False
    with lock:
        places = _places(buffer, ops)
        if not places or len(ops) - len(places) < OTHERS:
            return False
        queue.runs += 1
        taken = [ops[i] for i in places]
        recording = Recording(taken[::-1])
        results = list(range(len(recording.pending)))
        try:
            with numpy_backend.quiet():
                found = run(recording.codes, recording.wires, recording.inputs, recording.numbers, results, _now)
                recording.finish(results, found)
        except Exception:
            return False  # the window raises it, and says where
        for i, op in zip(places, taken):
            if i < len(ops) and ops[i] is op:  # no finalizer that needed a value has run it meanwhile
                del ops[i]
    report.stats.single += len(places)
    return True


def _now(code: Executable, buffers: Sequence[Any], numbers: Sequence[Any]) -> Sequence[Any]:
    return code.now(buffers, numbers)


def _places(buffer: Deferred, ops: Sequence[Operation]) -> list[int]:
    """The places of the operations that a buffer depends on, the last first; none if they are not few and small."""
    wanted = {id(buffer)}
    found: list[int] = []
    last = len(ops) - 1
    for i in range(last, max(-1, last - NEAR), -1):
        code, buffers, _, results = ops[i]
        made = [id(r) for r in results]
        if wanted.isdisjoint(made):
            continue
        if len(found) == FEW or code.steps is None or code.takes() > CALL_COST:
            return []
        found.append(i)
        wanted.difference_update(made)
        wanted.update([id(b) for b in buffers if b.__class__ is Deferred and not hasattr(b, "value")])
        if not wanted:
            return found
    return []


set_alone(run_alone)
