"""The walk back along a tape, staged once for all tapes of one structure.

Where nothing but arrays surrounds a tape, the walk depends on the tape's structure alone: on its operations, on the
types of what they were given, and on what was whose result. Python's control flow has had its say by then: the tape is
made anew each time. So a walk is staged when its structure is new, and noted down as one operation, however long it is.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from funcgrad.caching import Cache, Group
from funcgrad.interpreters.staging import stage
from funcgrad.ir import ArrayType, Program
from funcgrad.passes import common_subexpressions, dead_code, used_inputs
from funcgrad.runtime.eager import Stepwise, cache_of_code, kind_of, note_all, set_walk
from funcgrad.tracing import type_of

#: An operation on a tape: see ``Reverse``.
Entry = tuple[Any, ...]
#: From a tape and pairs of a slot and a cotangent to the cotangents of all slots.
Backward = Callable[[Sequence[Entry], Sequence[tuple[int, Any]]], list[Any]]

_WALKS = Group("walks", 512)
#: Walks by structure. Those of tapes on which there are programs or functions live as long as the first of these.
_walks: Cache[tuple, Walk] = Cache(_WALKS)


class Walk:
    """A walk, staged.

    Attributes:
        code: what runs it.
        arrays, numbers: which of the values that a walk may read are its operands.
        types: of the cotangents that are not zero.
        nonzero: for each input, whether its cotangent is one of those.
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
        """Notes the walk down; returns the inputs' cotangents, ``None`` for zero."""
        found = iter(
            note_all(self.code, self.types, [values[i] for i in self.arrays], [values[i] for i in self.numbers])
        )
        return [next(found) if n else None for n in self.nonzero]


_carries = operator.attrgetter("vjp")


def _first(pair: tuple[int, Any]) -> int:
    return pair[0]


def _retold(tape: Sequence[Entry], of_slot: dict[int, Any], values: Sequence[Any]) -> list[Entry]:
    """The tape with other values: of operands that have no slot, and then of results."""
    others, results = iter(values[: len(values) - len(tape)]), iter(values[len(values) - len(tape) :])
    told = []
    for primitive, _, slots, _, out_slot, params, source in tape:
        operands = [next(others) if slot is None else of_slot[slot] for slot in slots]
        out = of_slot[out_slot] = next(results)
        told.append((primitive, operands, slots, out, out_slot, params, source))
    return told


def walk_at_once(
    backward: Backward, tape: Sequence[Entry], seeds: Sequence[tuple[int, Any]], inputs: Sequence[tuple[int, Any]]
) -> list[Any] | None:
    """The inputs' cotangents, by a staged walk; None if it has to be done step by step.

    Args:
        backward: does the walk.
        tape: of which nothing is traced by an outer interpreter.
        seeds: pairs of a slot and its cotangent.
        inputs: pairs of a slot and its value.
    """
    primitives, operands, slots, outs, _, params, _ = zip(*tape, strict=True) if tape else ((),) * 7
    if None in operands:
        return None
    seeded, wanted = tuple([slot for slot, _ in seeds]), tuple([slot for slot, _ in inputs])
    given = [x for _, x in (*seeds, *inputs)]
    given += [x for xs, places in zip(operands, slots) if None in places for x, slot in zip(xs, places) if slot is None]
    kinds = tuple([kind_of(x) for x in given])
    if None in kinds:
        return None
    # The types of results follow from the others.
    key = (primitives, slots, tuple([tuple(p.items()) if p else None for p in params]), seeded, wanted, kinds)
    known = _known(primitives, params)
    walk = known.get(key)  # looked up once, if it is there: the hash of a long key takes time
    if walk is None:
        walk = known.again(key)
    if walk is None:
        walk = known[key] = Walk(backward, tape, seeded, wanted, (*kinds, *map(type_of, outs)))
    return walk.note([*given, *outs])


def _known(primitives: Sequence[Any], params: Sequence[Any]) -> Cache[tuple, Walk]:
    """Where the walks along such tapes are."""
    if not any(map(_carries, primitives)):
        return _walks
    of = next(cache_of_code(p) for primitive, p in zip(primitives, params) if _carries(primitive))
    found: Cache[tuple, Walk] | None = of.get(_WALKS)
    if found is None:
        found = of[_WALKS] = Cache(_WALKS)
    return found


set_walk(walk_at_once)
