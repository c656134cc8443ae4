"""The walk back along a tape, staged once for all tapes of one structure.

Where nothing but arrays surrounds a tape, the walk depends on the tape's structure alone: on its operations, on the
types of what they were given, and on what was whose result. Python's control flow has had its say by then: the tape is
made anew each time. So when a structure is met again its walk is staged, and from then on it is noted down as one
operation, however long it is.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from funcgrad.interpreters.staging import stage
from funcgrad.ir import ArrayType, Program
from funcgrad.passes import common_subexpressions, dead_code, used_inputs
from funcgrad.runtime.eager import Stepwise, kind_of, note_all
from funcgrad.tracing import type_of

#: An operation on a tape: see ``Reverse``.
Entry = tuple[Any, ...]
#: From a tape and pairs of a slot and a cotangent to the cotangents of all slots.
Backward = Callable[[Sequence[Entry], Sequence[tuple[int, Any]]], list[Any]]

#: How many walks are kept.
KEPT = 512
#: Walks by structure, the latest used last; None for one that was met once.
_walks: OrderedDict[tuple, Walk | None] = OrderedDict()


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
        self, backward: Backward, tape: Sequence[Entry], slots: Sequence[int], wanted: Sequence[int], kinds: Sequence
    ):
        arrays = [i for i, k in enumerate(kinds) if isinstance(k, ArrayType)]
        numbers = [i for i, k in enumerate(kinds) if not isinstance(k, ArrayType)]
        self.nonzero: list[bool] = []

        def run(*operands: Any) -> list[Any]:
            values = iter([x for _, x in sorted(zip((*arrays, *numbers), operands, strict=True), key=_first)])
            seeds = [(slot, next(values)) for slot in slots]
            of_slot = {slot: next(values) for slot in wanted}
            found = backward(_retold(tape, of_slot, values), seeds)
            self.nonzero = [found[slot] is not None for slot in wanted]
            return [found[slot] for slot in wanted if found[slot] is not None]

        types = [type_of(kinds[i]()) if i in set(numbers) else kinds[i] for i in (*arrays, *numbers)]
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


def _first(pair: tuple[int, Any]) -> int:
    return pair[0]


def _retold(tape: Sequence[Entry], of_slot: dict[int, Any], values: Any) -> list[Entry]:
    """The tape with other values, in the order in which ``walk_again`` lists them."""
    told = []
    for primitive, _, slots, _, out_slot, params, source in tape:
        operands = [next(values) if slot is None else of_slot[slot] for slot in slots]
        out = of_slot[out_slot] = next(values)
        told.append((primitive, operands, slots, out, out_slot, params, source))
    return told


def walk_again(
    backward: Backward, tape: Sequence[Entry], seeds: Sequence[tuple[int, Any]], inputs: Sequence[tuple[int, Any]]
) -> list[Any] | None:
    """The inputs' cotangents, by a walk known from an earlier tape; None if it is to be done step by step.

    Args:
        backward: does the walk.
        tape: of which nothing is traced by an outer interpreter.
        seeds: pairs of a slot and its cotangent.
        inputs: pairs of a slot and its value.
    """
    values = [x for _, x in (*seeds, *inputs)]
    structure: list[tuple] = [tuple([slot for slot, _ in seeds])]
    for primitive, operands, slots, out, _, params, _ in tape:
        if operands is None:
            return None
        if None in slots:
            values += [x for x, slot in zip(operands, slots) if slot is None]
        values.append(out)
        structure.append((primitive, *slots, *params.items()) if params else (primitive, *slots))
    kinds = tuple([kind_of(x) for x in values])
    if None in kinds:
        return None
    key = (tuple(structure), kinds)
    if key not in _walks:
        _walks[key] = None
        if len(_walks) > KEPT:
            _walks.popitem(last=False)
        return None
    _walks.move_to_end(key)
    walk = _walks[key]
    if walk is None:
        walk = _walks[key] = Walk(backward, tape, structure[0], [slot for slot, _ in inputs], kinds)
    return walk.note(values)
