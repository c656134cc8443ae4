"""Operations run one after the other, each by its own executable.

NumPy runs a small operation in a microsecond, so the overhead of a call matters: the ``steps`` of an executable that
always runs by NumPy are called from here directly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from funcgrad.native.twins import twin
from funcgrad.runtime import numpy_backend
from funcgrad.runtime.programs import SMALL, Executable, by_numpy, kept, lasting

#: The results of an executable, from its operands and its numbers.
Now = Callable[[Executable, Sequence[Any], Sequence[Any]], Sequence[Any]]

_native = twin(
    Path(__file__).with_suffix(".c"),
    ndarray=np.ndarray,
    asarray=np.asarray,
    fit=numpy_backend.fit,
    kept=kept,
    small=SMALL,
    Executable=Executable,
)


def run(
    codes: list[Executable], wires: Sequence[int], inputs: Sequence[Any], numbers: Sequence[Any], outputs: list[int],
    now: Now,
) -> list[Any]:  # fmt: skip
    """The results of executables wired together, run in order: buffers, and small read-only NumPy arrays.

    A result is released after the last operation that reads it. The caller enters ``numpy_backend.quiet``.

    Args:
        codes: the executables.
        wires: per operand, the result that it is, or ``~i`` for input ``i``.
        inputs: the buffers from outside, or arrays.
        numbers: the Python numbers, in order.
        outputs: the results that are wanted.
        now: runs those that have no steps, and those whose steps NumPy cannot take with these values.
    """
    small = by_numpy()
    if _native is not None and small:
        results: list[Any] = _native.run(codes, wires, inputs, numbers, outputs, now)
        return results
    last = _last_uses(codes, wires, outputs)
    values: list[Any] = []
    operands: list[Any] = []
    found: Sequence[Any] | None
    at = number = 0
    for code in codes:
        end = at + code.buffers
        operands = [inputs[~w] if w < 0 else values[w] for w in wires[at:end]]
        given = numbers[number : number + len(code.numbers)]
        found = None
        if small and code.steps is not None:
            with suppress(Exception):
                found = code.by_numpy(operands, given)
        result = len(values)
        values += now(code, operands, given) if found is None else found
        for w in (*wires[at:end], *range(result, len(values))):
            if w >= 0 and last[w] <= end:
                values[w] = None
        at, number = end, number + len(code.numbers)
    found = [values[i] for i in outputs]
    del values, operands  # what is referenced elsewhere is copied
    return lasting(found)


def _last_uses(codes: Sequence[Executable], wires: Sequence[int], outputs: Sequence[int]) -> list[int]:
    """For each result, how many wires there are up to the last operation that reads it; infinitely many for outputs."""
    last = [0] * sum([code.results for code in codes])
    at = 0
    for code in codes:
        end = at + code.buffers
        for w in wires[at:end]:
            if w >= 0:
                last[w] = end
        at = end
    for i in outputs:
        last[i] = len(wires) + 1
    return last
