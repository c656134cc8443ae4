"""Splits a program that would be expensive to compile into pieces: separate programs, run one after the other.

XLA's time and memory grow superlinearly with a program, above all if many of its values are needed (``estimate``). So
the cost of one program is bounded, and a larger one is cut: the equations in order, each piece as long as the bound
allows, ended where few values are used by later pieces. The cuts depend on the program alone. Pieces that are equal up
to variable names, such as those of a loop, are compiled once. Values that no later piece reads are released or donated.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import starmap
from typing import Any, cast
from weakref import WeakValueDictionary

import numpy as np

from funcgrad.core.ir import Atom, Equation, Literal, Program, Var
from funcgrad.runtime.constants import scalar
from funcgrad.runtime.donation import pairs
from funcgrad.runtime.estimate import Fusion
from funcgrad.runtime.process import process
from funcgrad.runtime.programs import Executable

#: The bounds of a piece: milliseconds of its equations; operations of one kernel; recomputed operations, if they are so
#: many times its equations: programs of layers all have a few.
EQUATIONS, LARGEST, REPEATED, TIMES = 3000, 800, 850, 3.5
#: The final fraction of a piece in which it may end.
END = 0.25

#: Cached pieces by their computation, as long as a program references them.
_known: WeakValueDictionary[tuple, Executable] = WeakValueDictionary()


class Piece:
    """A compiled range of a program's equations.

    Attributes:
        code: the executable.
        reads: the indices of its operands among the program's values.
        numbers: for each vector of numbers that it reads, the vector's index and which elements are read.
        writes: the indices of its results.
        dead: the indices of values that no later piece reads.
    """

    __slots__ = ("code", "reads", "numbers", "writes", "dead")

    def __init__(
        self, code: Executable, reads: list[int], numbers: list[tuple[int, Any]], writes: list[int], dead: list[int]
    ):
        self.code, self.reads, self.numbers, self.writes, self.dead = code, reads, numbers, writes, dead


class Pieces:
    """A program in pieces. Calling it with the program's inputs runs them and returns the outputs.

    Args:
        program: the program.
        vectors: how many of its inputs, the last ones, are vectors of numbers.
        free: the inputs whose buffers may be donated.
        ends: the index of the equation after which each piece ends.

    Attributes:
        pieces: the pieces.
        donated: the inputs whose buffers are donated.
        places: the number of values to store, the inputs first.
        outputs: the indices of the outputs, or literals.
    """

    __slots__ = ("pieces", "donated", "places", "outputs")

    def __init__(self, program: Program, vectors: int, free: Sequence[int], ends: Sequence[int]):
        self.pieces: list[Piece] = []
        maker = _Maker(program, vectors, free)
        begin = 0
        for end in ends:
            self.pieces.append(maker.piece(begin, end))
            begin = end
        self.donated = tuple(sorted(maker.donated))
        self.places = maker.places
        self.outputs = [a if isinstance(a, Literal) else maker.place_of[a] for a in program.outputs]

    @property
    def run(self) -> Pieces:
        """The function that runs the pieces."""
        return self

    def __call__(self, *inputs: Any) -> list[Any]:
        return Progress(self, inputs).finish()

    def prepare(self, shardings: Sequence[Any] = (), rehearse: bool = False) -> None:
        """Compiles the pieces one after the other without running them, unless the process is ending.

        Args:
            shardings: the shardings that inputs are committed to. XLA chooses the shardings of a piece's results when
                it compiles it, so pieces with such inputs are compiled as they run.
            rehearse: as for ``Executable.prepare``.
        """
        for piece in self.pieces if not any(shardings) else ():
            if not piece.code.warm and process.ending is None:
                piece.code.prepare(rehearse=rehearse)
                piece.code.warm = True


class Progress:
    """A run of pieces, which resumes where an exception has interrupted it.

    Attributes:
        pieces: the pieces to run.
        values: computed values that are still needed, by index.
        found: the results of each piece that has run.
        kept: the number of pieces whose results are in ``values``.
    """

    __slots__ = ("pieces", "values", "found", "kept")

    def __init__(self, pieces: Pieces, inputs: Sequence[Any]):
        self.pieces = pieces
        self.values: list[Any] = [*inputs, *[None] * (pieces.places - len(inputs))]
        self.found: list[Sequence[Any]] = []
        self.kept = 0

    def finish(self) -> list[Any]:
        """Runs the remaining pieces, and returns the program's outputs."""
        values, found = self.values, self.found
        for number, piece in enumerate(self.pieces.pieces[self.kept :], self.kept):
            if len(found) == number:
                operands = [values[i] for i in piece.reads]
                operands += [values[i][places] for i, places in piece.numbers]
                # In C from the call to the list: an interrupt cannot lose results whose operands were donated.
                found.extend(starmap(piece.code.run, (operands,)))
                piece.code.warm = True
            for i, value in zip(piece.writes, found[number]):
                values[i] = value
            for i in piece.dead:
                values[i] = None
            found[number] = ()
            self.kept = number + 1
        return [scalar(i.value, i.type.dtype) if isinstance(i, Literal) else values[i] for i in self.pieces.outputs]


def sunk(program: Program, vectors: int) -> Program:
    """The program with reads of single elements of a vector moved to their first use."""
    waiting: dict[Var, Equation] = {}
    heads: set[Atom] = set(program.inputs[len(program.inputs) - vectors :])
    equations: list[Equation] = []

    def put(equation: Equation) -> None:
        for a in equation.inputs:
            if type(a) is Var and a in waiting:
                put(waiting.pop(a))
        equations.append(equation)

    for e in program.equations:
        if (
            len(e.inputs) == len(e.outputs) == 1
            and not e.primitive.effect
            and (e.inputs[0] in heads or e.inputs[0] in waiting)
        ):
            waiting[e.outputs[0]] = e
        else:
            put(e)
    for v in list(waiting):
        if v in waiting:
            put(waiting.pop(v))
    return Program(program.inputs, program.constants, equations, program.outputs, program.name)


def cuts(program: Program) -> tuple[list[int], float]:
    """The number of equations after which each piece of a program ends, and the estimated compile time in
    milliseconds."""
    fusion = Fusion(program)
    costs: dict[tuple, float] = {}  # equal pieces are compiled once
    last = _last_uses(program)
    kinds = [(e.primitive, *[v.type for v in e.outputs]) for e in program.equations]
    ends: list[int] = []
    begin = at = 0
    while at < len(program.equations):
        fusion.add(program.equations[at])
        repeated = fusion.repeated() > max(REPEATED, TIMES * (at + 1 - begin))
        if at > begin and (repeated or fusion.equations > EQUATIONS or fusion.largest > LARGEST):
            end = _best(program, last, kinds, begin, at)
            costs[tuple(kinds[begin:end])] = fusion.cost()
            ends.append(end)
            fusion.begin()
            begin = at = end
        else:
            at += 1
    costs[tuple(kinds[begin:])] = fusion.cost()
    return [*ends, len(program.equations)], sum(costs.values())


def _best(program: Program, last: dict[Var, int], kinds: Sequence[tuple], begin: int, most: int) -> int:
    """The end of a piece that begins at ``begin``, at most ``most``: where few values are live, and preferably late and
    before an equation like its first, so that pieces of a loop are equal."""
    first = begin + max(1, int((1 - END) * (most - begin)))
    made = [v for e in program.equations[begin:most] for v in e.outputs]
    outputs = set(program.outputs)
    at = {v: i for i, e in enumerate(program.equations[begin:most], begin) for v in e.outputs}
    change = [0] * (most - begin + 2)
    for v in made:
        if v not in outputs and last.get(v, -1) > at[v]:
            change[at[v] + 1 - begin] += v.type.size
            if last[v] < most:
                change[last[v] + 1 - begin] -= v.type.size
    best, found, going = None, most, 0
    for end in range(begin + 1, most + 1):
        going += change[end - begin]
        if end >= first:
            rank = going, kinds[end] != kinds[begin], -end
            if best is None or rank < best:
                best, found = rank, end
    return found


def _last_uses(program: Program) -> dict[Var, int]:
    """The index of the last equation that reads each variable."""
    return {a: i for i, e in enumerate(program.equations) for a in e.inputs if type(a) is Var}


class _Maker:
    """Builds the pieces of a program.

    Attributes:
        place_of: the index of each value that later pieces or callers need.
        places: the number of those values.
        donated: inputs whose buffers were donated.
    """

    def __init__(self, program: Program, vectors: int, free: Sequence[int]):
        self.program = program
        self.place_of: dict[Atom, int] = {v: i for i, v in enumerate(program.inputs)}
        self.places = len(program.inputs)
        self.donated: set[int] = set()
        self._heads: set[Atom] = set(program.inputs[len(program.inputs) - vectors :])
        self._free: set[Atom] = {program.inputs[i] for i in free}
        self._constants = dict(program.constants)
        self._last = _last_uses(program)
        self._outputs = set(program.outputs)

    def piece(self, begin: int, end: int) -> Piece:
        """The piece for a range of the equations."""
        equations, numbers = self._with_own_numbers(self.program.equations[begin:end])
        made = {v for e in equations for v in e.outputs}
        read = dict.fromkeys([a for e in equations for a in e.inputs if type(a) is Var and a not in made])
        heads = [head for head, _, _ in numbers]
        reads = [v for v in read if v not in self._constants and v not in heads]
        constants = [(v, self._constants[v]) for v in read if v in self._constants]
        results = [v for v in made if v in self._outputs or self._last.get(v, -1) >= end]
        results.sort(key={v: i for i, e in enumerate(equations) for v in e.outputs}.__getitem__)
        dead = [v for v in reads if self._last[v] < end and v not in self._outputs]
        dead = [v for v in dead if self.place_of[v] >= len(self.program.inputs) or v in self._free]
        program = Program([*reads, *heads], constants, equations, results, self.program.name)
        ties = pairs(program, [i for i, v in enumerate(reads) if v in dead])
        first = [results[j] for _, j in ties]
        program.outputs = [*first, *[v for v in results if v not in first]]
        donate = tuple([i for i, _ in ties])
        self.donated |= {self.place_of[reads[i]] for i in donate if reads[i] in self._free}
        for v in program.outputs:
            self.place_of[v] = self.places
            self.places += 1
        places = self.place_of
        return Piece(
            _code(program, donate), [places[v] for v in reads], [(places[v], where) for _, v, where in numbers],
            [places[v] for v in program.outputs], [places[v] for v in dead],
        )  # fmt: skip

    def _with_own_numbers(
        self, equations: Sequence[Equation]
    ) -> tuple[list[Equation], list[tuple[Var, Var, np.ndarray]]]:
        """The equations with their numbers read from vectors of the piece's own; for each vector, the source vector and
        the indices of its elements."""
        elements: dict[Var, dict[int, int]] = {}
        for e in equations:
            if e.inputs and e.inputs[0] in self._heads:
                where = elements.setdefault(cast(Var, e.inputs[0]), {})
                where.setdefault(e.params["start"][0], len(where))
        own = {head: Var(head.type.with_shape((len(where),))) for head, where in elements.items()}
        found = []
        for e in equations:
            if e.inputs and e.inputs[0] in own:
                head = e.inputs[0]
                place = elements[head][e.params["start"][0]]
                params = {**e.params, "start": (place,), "limit": (place + 1,)}
                e = Equation(e.primitive, [own[head]], e.outputs, params, e.source)
            found.append(e)
        return found, [(own[head], head, np.array(list(where))) for head, where in elements.items()]


def _code(program: Program, donate: tuple[int, ...]) -> Executable:
    """The executable of a piece, or of an equal one."""
    number: dict[Atom, Any] = {v: i for i, v in enumerate(program.inputs)}
    number |= {v: ("constant", id(value)) for v, value in program.constants}
    key: list[Any] = [donate, *program.input_types]
    for e in program.equations:
        key.append((e.primitive, *[_name(a, number) for a in e.inputs], *e.params.items(), len(e.outputs)))
        for v in e.outputs:
            number[v] = len(number)
            key.append(v.type)
    key += [number[a] for a in program.outputs]
    whole = tuple(key)
    found = _known.get(whole)
    if found is None:
        found = _known[whole] = Executable(program, 0, donate)
    return found


def _name(atom: Atom, number: dict[Atom, Any]) -> Any:
    return (atom.type, atom.value.tobytes()) if isinstance(atom, Literal) else number[atom]
