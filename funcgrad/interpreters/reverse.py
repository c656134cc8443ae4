"""Reverse mode: a tape of the operations with their values, walked backwards.

The function is evaluated once, in whatever surrounds it (arrays, an outer ``grad``, ``vmap``, ``jit``). Rules run in
the context that surrounds the pullback's call, so derivatives of derivatives need nothing more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from funcgrad.interpreters.rules import accumulate, no_rule, pull
from funcgrad.interpreters.transpose import linearize_flat, transpose_program
from funcgrad.primitive import Primitive
from funcgrad.tracing import Interpreter, Tracer, bind, current_source, running, state, type_of

Pullback = Callable[[Sequence[Any]], list[Any]]


class ReverseTracer(Tracer):
    """A value, and the place where its cotangent will be gathered."""

    __slots__ = ("value", "slot")

    def __init__(self, interpreter: Reverse, value: Any, slot: int):
        self.interpreter = interpreter
        self.type = type_of(value)
        self.value = value
        self.slot = slot

    def underlying(self) -> Any:
        return self.value


class Reverse(Interpreter):
    """Keeps the tape.

    Attributes:
        tape: per operation, what its rule needs: (primitive or pullback, operands, operand slots, results, result
            slots, params), and the user's line.
        slots: how many places for cotangents there are.
    """

    __slots__ = ("tape", "slots")
    description = "grad"

    def __init__(self) -> None:
        super().__init__()
        self.tape: list[tuple] = []
        self.slots = 0

    def wrap(self, value: Any) -> ReverseTracer:
        tracer = ReverseTracer(self, value, self.slots)
        self.slots += 1
        return tracer

    def process(self, primitive: Primitive, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        values: list[Any] = []
        slots: list[int | None] = []
        for x in operands:
            if isinstance(x, ReverseTracer) and x.interpreter is self:
                values.append(x.value)
                slots.append(x.slot)
            else:
                values.append(x)
                slots.append(None)
        source = current_source()
        if primitive.vjp is not None or primitive.jvp is not None:
            return self._general(primitive, values, slots, params, source)
        out = bind(primitive, values, params)
        if not primitive.differentiable or not type_of(out).inexact:
            return out
        if primitive.partials is None and primitive.transpose is None:
            raise no_rule(primitive)
        tracer = self.wrap(out)
        self.tape.append((primitive, values, slots, out, tracer.slot, params, source))
        return tracer

    def _general(
        self, primitive: Primitive, values: list[Any], slots: list[int | None], params: dict[str, Any], source: Any
    ) -> Any:
        needs = [s is not None for s in slots]
        if primitive.vjp is not None:
            outs, pullback = primitive.vjp(values, needs, params)
        else:
            outs, pullback = vjp_from_jvp(primitive, values, needs, params)
        results = [self.wrap(o) if type_of(o).inexact else o for o in outs]
        out_slots = [r.slot if isinstance(r, ReverseTracer) and r.interpreter is self else None for r in results]
        self.tape.append((pullback, None, slots, None, out_slots, None, source))
        return results if primitive.multiple else results[0]

    def backward(self, seeds: Sequence[tuple[int, Any]]) -> list[Any]:
        """Cotangents by slot, from those of the outputs. What a rule does counts as done on its operation's line."""
        cts: list[Any] = [None] * self.slots
        for slot, ct in seeds:
            cts[slot] = accumulate(cts[slot], ct)
        outside = state.source
        try:
            self._walk(cts)
        finally:
            state.source = outside
        return cts

    def _walk(self, cts: list[Any]) -> None:
        for rule, values, slots, out, out_slot, params, source in reversed(self.tape):
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
            cts[out_slot] = None  # nothing after this reads it: let it go
            for index, slot in enumerate(slots):
                if slot is not None:
                    cts[slot] = accumulate(cts[slot], pull(rule, index, ct, out, values, params))


def vjp_from_jvp(
    primitive: Primitive, values: Sequence[Any], needs: Sequence[bool], params: dict[str, Any]
) -> tuple[list[Any], Pullback]:
    """The results and the pullback of a primitive that states its forward derivative only."""

    def f(*operands: Any) -> list[Any]:
        out = bind(primitive, operands, params)
        return list(out) if primitive.multiple else [out]

    outs, program = linearize_flat(f, values, needs)

    def pullback(cotangents: Sequence[Any]) -> list[Any]:
        found = iter(transpose_program(program, cotangents))
        return [next(found) if n else None for n in needs]

    return outs, pullback


def vjp_flat(f: Callable[..., Sequence[Any]], primals: Sequence[Any]) -> tuple[list[Any], Pullback]:
    """The values of ``f`` and its pullback; ``f`` takes and returns flat sequences of arrays.

    Returns:
        The results, and a function from their cotangents (``None`` for zero) to the primals' (``None`` where zero, or
        where the primal has no derivative: integers, bools).
    """
    interpreter = Reverse()
    with running(interpreter):
        arguments = [interpreter.wrap(p) if type_of(p).inexact else p for p in primals]
        results = list(f(*arguments))
    mine = [isinstance(r, ReverseTracer) and r.interpreter is interpreter for r in results]
    outs = [r.value if m else r for r, m in zip(results, mine, strict=True)]
    input_slots = [a.slot if isinstance(a, ReverseTracer) and a.interpreter is interpreter else None for a in arguments]
    output_slots = [r.slot if m else None for r, m in zip(results, mine, strict=True)]

    def pullback(cotangents: Sequence[Any]) -> list[Any]:
        seeds = [(s, ct) for s, ct in zip(output_slots, cotangents, strict=True) if s is not None and ct is not None]
        found = interpreter.backward(seeds)
        return [None if s is None else found[s] for s in input_slots]

    return outs, pullback
