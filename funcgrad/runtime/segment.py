"""Segments: recorded operations joined into one, so that a repeated sequence is recorded faster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from funcgrad.core.ir import Program
from funcgrad.runtime.compose import join
from funcgrad.runtime.deferred import Hold, Operation, holding, local, lock
from funcgrad.runtime.programs import Executable
from funcgrad.runtime.sequence import run


class Joined(Executable):
    """Operations joined into one: compiled only as part of a window; otherwise they run one by one.

    Attributes:
        parts: the operations' executables.
        wires, wanted: as in ``compose.join``.
    """

    __slots__ = ("parts", "wires", "wanted")

    def __init__(self, parts: list[Executable], wires: Sequence[int], wanted: list[int]):
        self._program = None
        buffers = 1 + max([~w for w in wires if w < 0], default=-1)
        numbers = [dtype for code in parts for dtype in code.numbers]
        self._begin(buffers, numbers, len(wanted), sum([code.cost for code in parts]))
        self.parts = parts
        self.wires = wires
        self.wanted = wanted

    @property
    def program(self) -> Program:
        """The parts as one program, created lazily: segments that occur once rarely need it."""
        if self._program is None:
            self._program = join(self.parts, self.wires, self.wanted)
        return self._program

    def cold(self) -> set[Executable]:
        return set().union(*[code.cold() for code in set(self.parts)])

    def takes_alone(self) -> float:
        return sum([n * code.takes_alone() for code, n in Counter(self.parts).items()])

    def takes_within(self) -> float:
        return sum([n * code.takes_within() for code, n in Counter(self.parts).items()])

    def stay(self) -> None:
        for code in set(self.parts):
            code.stay()

    def now(self, buffers: Sequence[Any], numbers: Sequence[Any]) -> Sequence[Any]:
        return run(self.parts, self.wires, buffers, numbers, self.wanted, _now)


def _now(code: Executable, buffers: Sequence[Any], numbers: Sequence[Any]) -> Sequence[Any]:
    return code.now(buffers, numbers)


class Segment:
    """The operations that this thread records inside ``segment()``.

    Attributes:
        begin, end: the number of recorded operations before and after.
        complete: whether none of them has run, also by another thread.
        inputs: the distinct buffers read from outside.
    """

    def __init__(self) -> None:
        with lock:
            self._runs = local.queue.runs
            self.begin = self.end = len(local.ops)
        self.complete = False
        self._ops: list[Operation] = []
        self.inputs: list[Any] = []
        self._codes: list[Executable] = []
        self._wires: list[int] = []
        self._results: dict[int, int] = {}

    def close(self) -> None:
        """Analyses the recorded operations."""
        self._ops = local.ops[self.begin :]
        self.end = self.begin + len(self._ops)
        self.complete = self._runs == local.queue.runs
        inputs: dict[int, int] = {}
        for code, buffers, _, results in self._ops:
            self._codes.append(code)
            for b in buffers:
                place = self._results.get(id(b))
                if place is None:
                    place = inputs.get(id(b))
                    if place is None:
                        place = inputs[id(b)] = ~len(self.inputs)
                        self.inputs.append(b)
                self._wires.append(place)
            for r in results:
                self._results[id(r)] = len(self._results)

    def place_of(self, buffer: Any) -> int | None:
        """The index of the operations' result that a buffer is."""
        return self._results.get(id(buffer))

    def numbers(self) -> Iterator[tuple[int, Sequence[Any]]]:
        """Each operation's index and its numbers."""
        for at, op in enumerate(self._ops, self.begin):
            yield at, op[2]

    def join(self, wanted: list[int]) -> Executable | None:
        """Joins them into one operation with the wanted results, also in the window; None if there are none.

        No other result may be referenced. If another thread has run them meanwhile, the segment is not complete any
        more.
        """
        if not self._codes:
            return None
        numbers = [n for _, given in self.numbers() for n in given]
        code = Joined(self._codes, self._wires, wanted)
        results = [r for op in self._ops for r in op[3]]
        with lock:
            self.complete = self._runs == local.queue.runs
            if self.complete:
                local.ops[self.begin :] = [(code, self.inputs, numbers, tuple([results[i] for i in wanted]))]
        return code


@contextmanager
def segment() -> Iterator[Segment]:
    """Context that yields a ``Segment`` of the operations recorded in it, none of which runs before its end."""
    found, hold = Segment(), Hold()
    with holding(hold):
        yield found
        found.complete = local.hold is hold
        if found.complete:
            found.close()


def pending_count() -> int:
    """The number of operations that this thread has recorded and not run."""
    return len(local.ops)
