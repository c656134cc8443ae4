"""Segments: recorded operations joined into one, so that a repeated sequence is recorded faster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from funcgrad.core.ir import Program
from funcgrad.runtime.compose import join
from funcgrad.runtime.deferred import Hold, holding, local
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
        complete: whether none of them has run.
        inputs: the distinct buffers read from outside.
    """

    def __init__(self) -> None:
        self.begin = self.end = len(local.ops)
        self.complete = False
        self.inputs: list[Any] = []
        self._codes: list[Executable] = []
        self._wires: list[int] = []
        self._results: dict[int, int] = {}

    def close(self) -> None:
        """Analyses the recorded operations."""
        self.end = len(local.ops)
        inputs: dict[int, int] = {}
        for code, buffers, _, results in local.ops[self.begin :]:
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
        for at in range(self.begin, self.end):
            yield at, local.ops[at][2]

    def join(self, wanted: list[int]) -> Executable | None:
        """Joins them into one operation with the wanted results, also in the window; None if there are none.

        No other result may be referenced.
        """
        if not self._codes:
            return None
        numbers = [n for _, given in self.numbers() for n in given]
        code = Joined(self._codes, self._wires, wanted)
        results = [r for op in local.ops[self.begin :] for r in op[3]]
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
