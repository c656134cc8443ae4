"""Retraces programs in equations for operands that vary along more mesh axes than those they were traced for.

Inside ``shard_map`` a type records the mesh axes along which a value varies. The operands of an operation that carries
a program must have exactly the types of the program's inputs, a loop's carry keeps its type, and branches return the
same types: ``pvary`` converts operands and results, and the program is retraced if its inputs vary along more axes.
Binding the operation does this (``Primitive.widen``), so that rules need not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from funcgrad.core.ir import ArrayType, Program, kept_with_program
from funcgrad.core.tracing import type_of
from funcgrad.interpreters.evaluate import evaluate
from funcgrad.interpreters.staging import stage
from funcgrad.primitives.collectives import Over, pvary_p

Axes = frozenset[str]


def raised(x: Any, axes: Axes) -> Any:
    """``x`` as a value that varies along at least ``axes``."""
    missing = axes - type_of(x).varying
    return pvary_p(x, over=Over(tuple(sorted(missing)), True)) if missing else x


def raised_all(xs: Sequence[Any], types: Sequence[ArrayType]) -> list[Any]:
    return [raised(x, t.varying) for x, t in zip(xs, types, strict=True)]


def varying_of(xs: Sequence[Any]) -> tuple[Axes, ...]:
    return tuple(type_of(x).varying for x in xs)


def joined(*rows: Sequence[Axes]) -> tuple[Axes, ...]:
    """The union of the axes of all rows, by position."""
    return tuple(Axes().union(*axes) for axes in zip(*rows, strict=True))


def inputs_of(program: Program) -> tuple[Axes, ...]:
    return tuple(t.varying for t in program.input_types)


def outputs_of(program: Program) -> tuple[Axes, ...]:
    return tuple(t.varying for t in program.output_types)


@kept_with_program
def widened(program: Program, inputs: tuple[Axes, ...], outputs: tuple[Axes, ...] | None = None) -> Program:
    """The program for inputs that vary along these axes, whose outputs vary along at least ``outs``."""
    if inputs == inputs_of(program) and outputs in (None, outputs_of(program)):
        return program
    types = [t.with_varying(v) for t, v in zip(program.input_types, inputs, strict=True)]

    def run(*xs: Any) -> list[Any]:
        found = evaluate(program, xs)
        return found if outputs is None else [raised(x, v) for x, v in zip(found, outputs, strict=True)]

    return stage(run, types, name=program.name)


def widen_call(operands: Sequence[Any], params: dict[str, Any]) -> tuple[Sequence[Any], dict[str, Any]]:
    """The ``widen`` rule of primitives that run a program once."""
    program = params.get("program")
    if program is None:  # a Python function, traced for its arguments
        return operands, params
    given, wanted = varying_of(operands), inputs_of(program)
    if given == wanted:
        return operands, params
    program = widened(program, joined(given, wanted))
    return raised_all(operands, program.input_types), {**params, "program": program}


@kept_with_program
def widened_step(program: Program, inputs: tuple[Axes, ...], consts: int, carries: int, more: Axes) -> Program:
    """The step of a loop for such inputs, and the varying axes of the carry at the fixed point.

    Args:
        more: axes along which every carry varies.
    """
    start, stop = consts, consts + carries
    carry = joined(inputs[start:stop], [more] * carries)
    while True:
        inputs = (*inputs[:start], *carry, *inputs[stop:])
        outputs = outputs_of(widened(program, inputs))
        grown = joined(carry, outputs[:carries])
        if grown == carry:
            return widened(program, inputs, (*carry, *outputs[carries:]))
        carry = grown


def widen_scan(operands: Sequence[Any], params: dict[str, Any]) -> tuple[Sequence[Any], dict[str, Any]]:
    program, consts, carries = params["program"], params["consts"], params["carries"]
    given, wanted = varying_of(operands), inputs_of(program)
    if given == wanted and wanted[consts : consts + carries] == outputs_of(program)[:carries]:
        return operands, params
    program = widened_step(program, joined(given, wanted), consts, carries, Axes())
    return raised_all(operands, program.input_types), {**params, "program": program}


def widen_while(operands: Sequence[Any], params: dict[str, Any]) -> tuple[Sequence[Any], dict[str, Any]]:
    """If devices disagree on when to stop, all carries vary."""
    condition, body, tested, consts = (params[k] for k in ("condition", "body", "tested", "consts"))
    given = varying_of(operands)
    test, rest = given[:tested], given[tested:]
    carries = len(rest) - consts
    test = joined(test, inputs_of(condition)[:tested])
    rest = joined(rest, inputs_of(body))
    goes_on = Axes()
    while True:
        step = widened_step(body, rest, consts, carries, goes_on)
        rest = joined(inputs_of(step), [goes_on] * len(rest))
        asked = widened(condition, (*test, *rest[consts:]))
        (found,) = outputs_of(asked)
        if found <= goes_on:
            break
        goes_on |= found
    types = [*asked.input_types[:tested], *step.input_types]
    return raised_all(operands, types), {**params, "condition": asked, "body": step}


def widen_cond(operands: Sequence[Any], params: dict[str, Any]) -> tuple[Sequence[Any], dict[str, Any]]:
    """If devices choose different branches, the results vary.

    So do the operands, whose cotangents are then summed outside the branches: inside, some devices would be missing.
    """
    branches = params["on_true"], params["on_false"]
    chosen, *given = varying_of(operands)
    inputs = joined(given, *map(inputs_of, branches), [chosen] * len(given))
    programs = [widened(p, inputs) for p in branches]
    outputs = joined(*map(outputs_of, programs), [chosen] * len(programs[0].outputs))
    on_true, on_false = (widened(p, inputs, outputs) for p in branches)
    condition, *rest = operands
    return [condition, *raised_all(rest, on_true.input_types)], {**params, "on_true": on_true, "on_false": on_false}
