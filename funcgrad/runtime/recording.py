"""Recordings: operations taken from a queue, with their dataflow, to be run by a window."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from funcgrad.native.twins import twin
from funcgrad.runtime.constants import shared
from funcgrad.runtime.deferred import Deferred, ready
from funcgrad.runtime.pieces import Progress
from funcgrad.runtime.programs import Executable

if TYPE_CHECKING:
    from funcgrad.runtime.windows import Window


_native = twin(Path(__file__).with_suffix(".c"), Deferred=Deferred, ndarray=np.ndarray, shared=shared)


class Entangled(Exception):
    """An operand is the result of an operation that another thread has recorded but not yet run."""


class Recording:
    """Operations taken from a queue.

    Attributes:
        codes: their executables.
        wires: for all operands in order, the index of a result, or ``~i`` for input ``i``.
        inputs: the distinct buffers from outside.
        numbers: the Python numbers, in order.
        pending: the results, in order.
        hosted: the indices of inputs that are NumPy arrays, with the placeholders that own them.
        box: the raw results of a compiled run, or its progress.
        window: the ``Window`` that runs it.
    """

    __slots__ = ("codes", "wires", "inputs", "hosted", "numbers", "pending", "box", "window")

    def __init__(self, ops: Sequence[Any]):
        self.codes: list[Executable] = []
        self.wires: list[int] = []
        self.inputs: list[Any] = []
        self.hosted: list[tuple[int, Deferred]] = []
        self.numbers: list[Any] = []
        self.pending: list[Deferred] = []
        self.box: list[Any] = []
        self.window: Window | None = None
        self._gather(ops)

    def _gather(self, ops: Sequence[Any]) -> None:
        if _native is not None:
            lists = self.codes, self.wires, self.inputs, self.hosted, self.numbers, self.pending
            if not _native.gather(ops, *lists):
                raise Entangled
            return
        # Every operation passes here, so this loop is minimal.
        codes, wires, pending, numbers, inputs = self.codes, self.wires, self.pending, self.numbers, self.inputs
        places: dict[int, int] = {}
        place_of, wire, wait = places.get, wires.append, pending.append
        for code, buffers, given, results in ops:
            codes.append(code)
            for b in buffers:
                i = place_of(id(b))
                if i is None:
                    value = b
                    if b.__class__ is Deferred:  # a result of an earlier window
                        try:
                            value = b.value
                        except AttributeError:
                            raise Entangled from None
                        i = place_of(id(value))
                    if i is None:
                        i = ~len(inputs)
                        if value.__class__ is np.ndarray:
                            self.hosted.append((~i, b))
                        inputs.append(value)
                        if id(value) not in shared:
                            places[id(value)] = i
                    if value is not b:
                        places[id(b)] = i
                wire(i)
            if given:
                numbers += given
            for r in results:
                places[id(r)] = len(pending)
                wait(r)

    def put(self) -> None:
        """Transfers inputs that are NumPy arrays to the device."""
        while self.hosted:
            i, deferred = self.hosted.pop()
            self.inputs[i] = ready(deferred)
            del deferred

    def found(self) -> Sequence[Any]:
        """The results of the compiled run; a run in pieces resumes where it was interrupted."""
        return returned(self.box)

    def finish(self, places: Sequence[int], values: Sequence[Any]) -> None:
        """Sets the buffers of results; idempotent."""
        pending = self.pending
        for i, value in zip(places, values):
            pending[i].value = value


def returned(box: Sequence[Any]) -> Sequence[Any]:
    """The results of a compiled run, taken from ``box``."""
    (found,) = box
    return found.finish() if found.__class__ is Progress else found


def pass_errors_on(ops: list[Any]) -> None:
    """Removes operations whose operands could not be computed, since their results cannot be either."""
    kept = []
    count = len(ops)
    for op in ops[:count]:
        failed = next((b.error for b in op[1] if b.__class__ is Deferred and hasattr(b, "error")), None)
        if failed is None:
            kept.append(op)
        else:
            for deferred in op[3]:
                deferred.error = failed
    ops[:count] = kept


def runnable(ops: Sequence[Any]) -> int:
    """The number of leading operations that depend only on available values and each other."""
    made: set[int] = set()
    for count, (_, buffers, _, results) in enumerate(ops):
        for b in buffers:
            if b.__class__ is Deferred and id(b) not in made and not hasattr(b, "value"):
                return count
        made.update(map(id, results))
    return len(ops)
