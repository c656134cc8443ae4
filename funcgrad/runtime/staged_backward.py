"""Backward passes over a tape, staged once per tape structure.

If no outer transform traces the tape, the backward pass depends only on the tape's structure: its operations, their
operand types, and the dataflow. Python control flow is already resolved, as the tape is recorded anew each time. So a
pass is staged for each new structure, and recorded as one operation.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from funcgrad.core.caching import Cache, Group
from funcgrad.core.ir import ArrayType, Program
from funcgrad.core.passes import common_subexpressions, dead_code, used_inputs
from funcgrad.core.tracing import type_of
from funcgrad.interpreters.rules import accumulate
from funcgrad.interpreters.staging import stage
from funcgrad.runtime.deferred import flush
from funcgrad.runtime.eager import Stepwise, cache_of_code, kind_of, note_all, set_walk

#: An operation on a tape: see ``Reverse``.
Entry = tuple[Any, ...]
#: Maps a tape and (slot, cotangent) pairs to the cotangents of all slots.
Backward = Callable[[Sequence[Entry], Sequence[tuple[int, Any]]], list[Any]]

#: The maximum number of operations of a pass, and of passes of one tape that run together.
LONGEST, TOGETHER = 400, 4
_PASSES = Group("staged backward passes", 512)
#: Passes by structure. Those of tapes with programs or functions are owned by the first of these.
_passes: Cache[tuple, StagedPass] = Cache(_PASSES)


class StagedPass:
    """A staged backward pass.

    Attributes:
        code: its executable.
        arrays, numbers: which of the tape's values are its operands.
        types: the types of the nonzero cotangents.
        nonzero: for each input, whether its cotangent is nonzero.
    """

    __slots__ = ("code", "arrays", "numbers", "types", "nonzero")

    def __init__(
        self, backward: Backward, tape: Sequence[Entry], seeded: Sequence[int], wanted: Sequence[int], kinds: Sequence
    ):
        arrays = [i for i, k in enumerate(kinds) if isinstance(k, ArrayType)]
        numbers = [i for i, k in enumerate(kinds) if not isinstance(k, ArrayType)]
        self.nonzero: list[bool] = []

        def run(*operands: Any) -> list[Any]:
            values = iter([x for _, x in sorted(zip((*arrays, *numbers), operands, strict=True), key=_first)])
            seeds = [(slot, next(values)) for slot in seeded]
            of_slot = {slot: next(values) for slot in wanted}
            found = backward(_retold(tape, of_slot, list(values)), seeds)
            self.nonzero = [found[slot] is not None for slot in wanted]
            return [found[slot] for slot in wanted if found[slot] is not None]

        types = [*[kinds[i] for i in arrays], *[type_of(kinds[i]()) for i in numbers]]
        program = dead_code(common_subexpressions(stage(run, types, name="backward")))
        used = used_inputs(program)
        inputs = [v for v, u in zip(program.inputs, used, strict=True) if u]
        self.arrays = [i for i, u in zip(arrays, used, strict=False) if u]
        self.numbers = [i for i, u in zip(numbers, used[len(arrays) :], strict=True) if u]
        small = Program(inputs, program.constants, program.equations, program.outputs, program.name)
        self.code = Stepwise(small, len(self.numbers))
        self.types = small.output_types

    def note(self, values: Sequence[Any]) -> list[Any]:
        """Records the pass; returns the inputs' cotangents, ``None`` for zero."""
        found = iter(
            note_all(self.code, self.types, [values[i] for i in self.arrays], [values[i] for i in self.numbers])
        )
        return [next(found) if n else None for n in self.nonzero]


_carries = operator.attrgetter("vjp")


def _first(pair: tuple[int, Any]) -> int:
    return pair[0]


def _retold(tape: Sequence[Entry], of_slot: dict[int, Any], values: Sequence[Any]) -> list[Entry]:
    """The tape with its values replaced: of operands without a slot, and then of results."""
    others, results = iter(values[: len(values) - len(tape)]), iter(values[len(values) - len(tape) :])
    told = []
    for primitive, _, slots, _, out_slot, params, source in tape:
        operands = [next(others) if slot is None else of_slot[slot] for slot in slots]
        out = of_slot[out_slot] = next(results)
        told.append((primitive, operands, slots, out, out_slot, params, source))
    return told


def backward_at_once(
    backward: Backward, tape: Sequence[Entry], seeds: Sequence[tuple[int, Any]], inputs: Sequence[tuple[int, Any]]
) -> list[Any] | None:
    """The inputs' cotangents, by staged passes; None if it must be done step by step.

    A long tape is processed in segments, one pass each; in a loop they are equal.

    Args:
        backward: performs the pass step by step.
        tape: a tape without values that an outer interpreter traces.
        seeds: pairs of a slot and its cotangent.
        inputs: pairs of a slot and its value.
    """
    if len(tape) <= LONGEST:
        return _whole(backward, tape, seeds, inputs)
    if any(entry[1] is None for entry in tape) or any(kind_of(x) is None for _, x in (*seeds, *inputs)):
        return None
    cts: dict[int, Any] = {slot: None for slot, _ in inputs}
    for slot, ct in seeds:
        cts[slot] = ct if cts.get(slot) is None else accumulate(cts[slot], ct)
    end, count = len(tape), 0
    while end:
        begin = _stretch(tape, end)
        if not _segment(backward, tape[begin:end], cts):
            return None
        end, count = begin, count + 1
        if count % TOGETHER == 0:
            flush()
    return [cts[slot] for slot, _ in inputs]


def _stretch(tape: Sequence[Entry], end: int) -> int:
    """The start of a stretch that ends at ``end``: if possible after an operation like its last one."""
    if end <= LONGEST:
        return 0
    primitive, source = tape[end - 1][0], tape[end - 1][6]
    alike = (
        i for i in range(end - LONGEST, end - LONGEST // 2) if tape[i - 1][0] is primitive and tape[i - 1][6] == source
    )
    return next(alike, end - LONGEST)


def _segment(backward: Backward, tape: Sequence[Entry], cts: dict[int, Any]) -> bool:
    """The backward pass over a part of a tape; returns whether it was possible. Slots are renumbered by results.

    Args:
        cts: cotangents by slot, in which those of the part's results are replaced by those of its operands.
    """
    number = {entry[4]: i for i, entry in enumerate(tape)}
    values: dict[int, Any] = {}
    retold = []
    for primitive, operands, slots, out, out_slot, params, source in tape:
        for x, slot in zip(operands, slots):
            if slot is not None and slot not in number:
                number[slot] = len(number)
                values[slot] = x
        retold.append((primitive, operands, tuple([None if s is None else number[s] for s in slots]), out,
                       number[out_slot], params, source))  # fmt: skip
    seeds = [(number[slot], ct) for slot, ct in cts.items() if slot in number and ct is not None]
    if not seeds:
        return True
    found = _whole(backward, retold, seeds, [(number[slot], x) for slot, x in values.items()])
    if found is None:
        return False
    for entry in tape:
        cts.pop(entry[4], None)
    cts.update(zip(values, found, strict=True))
    return True


def _whole(
    backward: Backward, tape: Sequence[Entry], seeds: Sequence[tuple[int, Any]], inputs: Sequence[tuple[int, Any]]
) -> list[Any] | None:
    """``backward_at_once`` by a single pass."""
    primitives, operands, slots, outs, _, params, _ = zip(*tape, strict=True) if tape else ((),) * 7
    if None in operands:
        return None
    seeded, wanted = tuple([slot for slot, _ in seeds]), tuple([slot for slot, _ in inputs])
    given = [x for _, x in (*seeds, *inputs)]
    given += [x for xs, places in zip(operands, slots) if None in places for x, slot in zip(xs, places) if slot is None]
    kinds = tuple([kind_of(x) for x in given])
    if None in kinds:
        return None
    # Result types follow from the others.
    key = (primitives, slots, tuple([tuple(p.items()) if p else None for p in params]), seeded, wanted, kinds)
    known = _known(primitives, params)
    staged = known.get(key)  # looked up once: hashing a long key takes time
    if staged is None:
        staged = known.again(key)
    if staged is None:
        staged = known[key] = StagedPass(backward, tape, seeded, wanted, (*kinds, *map(type_of, outs)))
    return staged.note([*given, *outs])


def _known(primitives: Sequence[Any], params: Sequence[Any]) -> Cache[tuple, StagedPass]:
    """The cache of passes for such tapes."""
    if not any(map(_carries, primitives)):
        return _passes
    of = next(cache_of_code(p) for primitive, p in zip(primitives, params) if _carries(primitive))
    found: Cache[tuple, StagedPass] | None = of.get(_PASSES)
    if found is None:
        found = of[_PASSES] = Cache(_PASSES)
    return found


set_walk(backward_at_once)
