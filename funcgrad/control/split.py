"""Splits a program into one that also returns residuals, and one of these and of tangents or cotangents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from funcgrad.core.ir import Literal, Program, Var, kept_with_program
from funcgrad.core.passes import common_subexpressions, dead_code
from funcgrad.core.tracing import Tracer, running
from funcgrad.interpreters.evaluate import evaluate
from funcgrad.interpreters.reverse import Pullback, vjp_flat
from funcgrad.interpreters.staging import Staging, stage
from funcgrad.interpreters.transpose import linearize_flat
from funcgrad.primitives.shape import zeros

Backward = Callable[[tuple[bool, ...]], tuple[Program, list[bool]]]


@kept_with_program
def split_for_reverse(program: Program, needs: tuple[bool, ...]) -> tuple[Program, Backward]:
    """Splits a program (without constants) for reverse mode.

    The forward pass is staged once. The backward pass is staged by running the pullback under a second staging
    interpreter; the forward variables that it captures are the residuals.

    Args:
        needs: which inputs need a cotangent.

    Returns:
        The forward program, whose outputs are the results followed by the residuals; and a function that maps the mask
        of given output cotangents to the backward program of the residuals and those cotangents, with the mask of the
        inputs that receive a cotangent.
    """
    forward = Staging("jit")
    with running(forward, floor=True):
        inputs = [forward.wrap(t) for t in program.input_types]

        def f(*wanted: Any) -> list[Any]:
            given = iter(wanted)
            return evaluate(program, [next(given) if n else x for x, n in zip(inputs, needs, strict=True)])

        outs, pullback = vjp_flat(f, [x for x, n in zip(inputs, needs, strict=True) if n])
        residuals, derive = _stage_backward(pullback, program, needs)
    whole = forward.program(inputs, [*outs, *residuals], program.name)
    return dead_code(whole), derive


def depth(values: Sequence[Any]) -> int:
    """The nesting depth of the innermost transform that traces one of the values."""
    return max((x.interpreter.level for x in values if isinstance(x, Tracer)), default=0)


@kept_with_program
def split_for_forward(program: Program, needs: tuple[bool, ...]) -> tuple[Program, Program, list[bool]]:
    """Splits a program (without constants) for forward mode into results and their tangents.

    Args:
        needs: which inputs have a tangent.

    Returns:
        The program whose outputs are the results followed by the residuals; the linear program from the residuals and
        the tangents to the tangents of the results; and the mask of results with a nonzero tangent.
    """
    staging = Staging("jit")
    with running(staging, floor=True):
        inputs = [staging.wrap(t) for t in program.input_types]
        outs, linear = linearize_flat(lambda *xs: evaluate(program, xs), inputs, needs)
        linear = dead_code(common_subexpressions(linear))
        nonzero = [not isinstance(a, Literal) for a in linear.outputs]  # a literal in a linear program is zero
        variables = [v for v, _ in linear.constants]
        residuals = [x for _, x in linear.constants]
        whole = dead_code(staging.program(inputs, [*outs, *residuals], program.name))
    moved = [a for a, n in zip(linear.outputs, nonzero, strict=True) if n]
    pushed = Program([*variables, *linear.inputs], [], linear.equations, moved, f"jvp_{program.name}")
    return whole, dead_code(pushed), nonzero


def _stage_backward(pullback: Pullback, program: Program, needs: tuple[bool, ...]) -> tuple[list[Any], Backward]:
    staging = Staging("jit")
    with running(staging, floor=True):
        cts = [staging.wrap(t.strong()) for t in program.output_types]
        found = iter(pullback(cts))
        whole = [next(found) if n else None for n in needs]
        nonzero = [ct is not None for ct in whole]
        body = staging.program(cts, [ct for ct in whole if ct is not None], f"vjp_{program.name}")
    body = dead_code(common_subexpressions(body))
    variables: list[Var] = [v for v, _ in body.constants]
    full = Program([*variables, *body.inputs], [], body.equations, body.outputs, body.name)

    @lru_cache(maxsize=64)
    def derive(mask: tuple[bool, ...]) -> tuple[Program, list[bool]]:
        return full if all(mask) else _with_zeros(full, len(variables), mask), nonzero

    return [x for _, x in body.constants], derive


def _with_zeros(full: Program, residuals: int, mask: tuple[bool, ...]) -> Program:
    """The backward program when only some cotangents are given: the others are zeros."""
    types = full.input_types
    given = [*types[:residuals], *[t for t, m in zip(types[residuals:], mask, strict=True) if m]]

    def f(*args: Any) -> list[Any]:
        cts = iter(args[residuals:])
        padded = [next(cts) if m else zeros(t) for t, m in zip(types[residuals:], mask, strict=True)]
        return evaluate(full, [*args[:residuals], *padded])

    return dead_code(stage(f, given, name=full.name))
