"""Reverse mode: a tape of operations and their values, traversed backwards.

The function is evaluated once, in the surrounding context (arrays, an outer ``grad``, ``vmap``, ``jit``). Rules run in
the context in which the pullback is called, so higher derivatives need nothing more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcgrad.core.errors import Source
from funcgrad.core.ir import ArrayType
from funcgrad.core.primitive import Primitive
from funcgrad.core.tracing import (
    Interpreter,
    Tracer,
    base,
    bind,
    check_outside,
    current_source,
    differentiated_by,
    restoring,
    running,
    state,
    surrounding,
    type_of,
)
from funcgrad.interpreters.rules import accumulate, no_rule, pull, summed_pullback
from funcgrad.interpreters.transpose import linearize_flat, transpose_program

_new = object.__new__
Pullback = Callable[[Sequence[Any]], list[Any]]


class ReverseTracer(Tracer):
    """A value, and the slot that accumulates its cotangent."""

    __slots__ = ("value", "slot")
    interpreter: Reverse
    value: Any
    slot: int

    def underlying(self) -> Any:
        return self.value

    def differentiated_by(self) -> list[Interpreter]:
        beneath = differentiated_by(self.value)
        return [self.interpreter, *beneath] if self.interpreter.alive else beneath

    def origin(self) -> Source | None:
        for entry in self.interpreter.tape:
            out_slots, source = entry[4], entry[6]
            if self.slot == out_slots or (isinstance(out_slots, list) and self.slot in out_slots):
                return source
        return None


class Reverse(Interpreter):
    """Records the tape.

    Attributes:
        tape: per operation the inputs of its rule: (primitive or pullback, operands, operand slots, results, result
            slots, params), and the user's line.
        slots: the number of cotangent slots.
        outside: the function that applies primitives to the values beneath the tracers.
    """

    __slots__ = ("tape", "slots", "outside")
    description = "grad"

    def __init__(self) -> None:
        super().__init__()
        self.tape: list[tuple] = []
        self.slots = 0
        self.outside = surrounding()

    def wrap(self, value: Any, type: ArrayType) -> ReverseTracer:
        # Created once per operation, so Python's constructor is bypassed.
        tracer = _new(ReverseTracer)
        tracer.interpreter = self
        tracer.type = type
        tracer.value = value
        tracer.slot = self.slots
        self.slots += 1
        return tracer

    def argument(self, value: Any, type: ArrayType) -> ReverseTracer:
        return self.wrap(self.constant(value) if value.__class__ is np.ndarray else value, type)

    def process(self, primitive: Primitive, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        values: list[Any] = []
        slots: list[int | None] = []
        for x in operands:
            if x.__class__ is ReverseTracer and x.interpreter is self:
                values.append(x.value)
                slots.append(x.slot)
            else:
                values.append(x if x.__class__ is not np.ndarray else self.constant(x))
                slots.append(None)
        source = current_source()
        if primitive.vjp is not None or primitive.jvp is not None:
            return self._general(primitive, values, slots, params, source)
        out = self.outside(primitive, values, params)
        type = out.type if isinstance(out, Tracer) else type_of(out)
        if not primitive.differentiable or not type.inexact:
            return out
        if primitive.partials is None and primitive.transpose is None:
            raise no_rule(primitive)
        tracer = self.wrap(out, type)
        self.tape.append((primitive, values, tuple(slots), out, tracer.slot, params, source))
        return tracer

    def _general(
        self, primitive: Primitive, values: list[Any], slots: list[int | None], params: dict[str, Any], source: Any
    ) -> Any:
        needs = [s is not None for s in slots]
        if primitive.vjp is not None:
            outs, pullback = primitive.vjp(values, needs, params)
            if state.axes:
                pullback = _summed(primitive, pullback, [type_of(x) for x in values], params)
        else:
            outs, pullback = vjp_from_jvp(primitive, values, needs, params)
        check_outside(self, primitive, outs)
        results = [self.wrap(o, t) if t.inexact else o for o, t in zip(outs, map(type_of, outs))]
        out_slots = [r.slot if isinstance(r, ReverseTracer) and r.interpreter is self else None for r in results]
        self.tape.append((pullback, None, tuple(slots), None, out_slots, None, source))
        return results if primitive.multiple else results[0]

    def constant(self, array: np.ndarray) -> Any:
        """An array that the caller may mutate before the backward pass."""
        return array if self.outside is bind else base().held(array)

    def pull(self, seeds: Sequence[tuple[int, Any]], inputs: Sequence[ReverseTracer]) -> list[Any]:
        """The inputs' cotangents, ``None`` for zero, from (output slot, cotangent) pairs."""
        tape: Sequence[tuple] = self.tape
        if self.outside is not bind:
            # A backward pass recorded as one operation would not be fused with others, so its steps are recorded one by
            # one.
            if state.floor is None:
                found = base().walk(self.backward, tape, seeds, [(x.slot, x.value) for x in inputs])
                if found is not None:
                    return found
            if state.floor is not None:  # a staged program keeps arrays, not placeholders
                tape = [_computed(entry) for entry in tape]
        cts = self.backward(tape, seeds)
        return [cts[x.slot] for x in inputs]

    def backward(self, tape: Sequence[tuple], seeds: Sequence[tuple[int, Any]]) -> list[Any]:
        """Cotangents by slot, from those of the outputs. A rule's operations are attributed to its operation's line."""
        cts: list[Any] = [None] * self.slots
        for slot, ct in seeds:
            cts[slot] = accumulate(cts[slot], ct)
        outside = state.source
        try:
            _walk(tape, cts)
        finally:
            state.source = outside
        return cts


def _summed(primitive: Primitive, pullback: Pullback, types: Sequence[ArrayType], params: dict[str, Any]) -> Pullback:
    return lambda cts: summed_pullback(primitive, pullback(cts), types, params)


def _computed(entry: tuple) -> tuple:
    rule, values, slots, out, *rest = entry
    return rule, values if values is None else [base().ready(x) for x in values], slots, base().ready(out), *rest


def _walk(tape: Sequence[tuple], cts: list[Any]) -> None:
    for rule, values, slots, out, out_slot, params, source in reversed(tape):
        state.source = source
        if values is None:
            received = [None if s is None else cts[s] for s in out_slot]
            if any(ct is not None for ct in received):
                for slot, ct in zip(slots, rule(received), strict=True):
                    if slot is not None:
                        cts[slot] = accumulate(cts[slot], ct)
            continue
        ct = cts[out_slot]
        if ct is None:
            continue
        cts[out_slot] = None  # not read again: release it
        for index, slot in enumerate(slots):
            if slot is not None:
                cts[slot] = accumulate(cts[slot], pull(rule, index, ct, out, values, params))


def vjp_from_jvp(
    primitive: Primitive, values: Sequence[Any], needs: Sequence[bool], params: dict[str, Any]
) -> tuple[list[Any], Pullback]:
    """The results and the pullback of a primitive that has a ``jvp`` rule only."""

    def f(*operands: Any) -> list[Any]:
        out = bind(primitive, operands, params)
        return list(out) if primitive.multiple else [out]

    outs, program = linearize_flat(f, values, needs)

    def pullback(cotangents: Sequence[Any]) -> list[Any]:
        found = iter(transpose_program(program, cotangents))
        return [next(found) if n else None for n in needs]

    return outs, pullback


@restoring
def vjp_flat(f: Callable[..., Sequence[Any]], primals: Sequence[Any]) -> tuple[list[Any], Pullback]:
    """The values of ``f`` and its pullback; ``f`` takes and returns flat sequences of arrays.

    Returns:
        The results, and a function from their cotangents (``None`` for zero) to the primals' (``None`` where zero, or
        where the primal has no derivative: integers, bools).
    """
    interpreter = Reverse()
    types = [type_of(p) for p in primals]
    with running(interpreter):
        arguments = [interpreter.argument(p, t) if t.inexact else p for p, t in zip(primals, types, strict=True)]
        results = list(f(*arguments))
    mine = [r.__class__ is ReverseTracer and r.interpreter is interpreter for r in results]
    outs = [r.value if m else r for r, m in zip(results, mine, strict=True)]
    output_slots = [r.slot if m else None for r, m in zip(results, mine, strict=True)]
    traced = [t.inexact for t in types]
    inputs = [a for a, t in zip(arguments, traced, strict=True) if t]

    def pullback(cotangents: Sequence[Any]) -> list[Any]:
        seeds = [(s, ct) for s, ct in zip(output_slots, cotangents, strict=True) if s is not None and ct is not None]
        found = iter(interpreter.pull(seeds, inputs))
        return [next(found) if t else None for t in traced]

    return outs, pullback
