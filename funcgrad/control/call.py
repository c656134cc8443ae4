"""The call: an equation that carries a program, recorded by ``jit`` inside another trace.

Its rules run the interpreters over the program; each derived program is cached.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from funcgrad.control.split import depth, split_for_forward, split_for_reverse
from funcgrad.control.widening import widen_call
from funcgrad.core.ir import ArrayType, Program, kept_with_program
from funcgrad.core.passes import dead_code
from funcgrad.core.primitive import Primitive
from funcgrad.core.tracing import type_of
from funcgrad.interpreters.batching import batch_flat
from funcgrad.interpreters.evaluate import evaluate
from funcgrad.interpreters.forward import jvp_flat
from funcgrad.interpreters.lower import lowered
from funcgrad.interpreters.reverse import Pullback
from funcgrad.interpreters.staging import stage
from funcgrad.interpreters.transpose import transpose_call


def jvp_call(primals: Sequence[Any], tangents: Sequence[Any], *, program: Program) -> tuple[list[Any], list[Any]]:
    """The results and tangents of a call of a program, which are calls of derived programs."""
    mask = tuple(t is not None for t in tangents)
    given = [t for t in tangents if t is not None]
    if depth(given) > depth(primals):
        # In one call with their tangents, results would become values of the inner context too.
        whole, linear, moving = split_for_forward(program, mask)
        known = call_program(whole, primals)
        outs, residuals = known[: len(program.outputs)], known[len(program.outputs) :]
        found = iter(call_program(linear, [*residuals, *given]))
        return outs, [next(found) if n else None for n in moving]
    derived, nonzero = jvp_program(program, mask)
    results = iter(call_program(derived, [*primals, *given]))
    outs = [next(results) for _ in program.outputs]
    return outs, [next(results) if n else None for n in nonzero]


@kept_with_program
def jvp_program(program: Program, mask: tuple[bool, ...]) -> tuple[Program, list[bool]]:
    """The program on operands followed by the tangents marked in ``mask``, and which results have a tangent."""
    nonzero: list[bool] = []
    types = program.input_types

    def f(*args: Any) -> list[Any]:
        given = iter(args[len(types) :])
        tangents = [next(given) if m else None for m in mask]
        outs, out_tangents = jvp_flat(lambda *xs: evaluate(program, xs), args[: len(types)], tangents)
        nonzero[:] = [t is not None for t in out_tangents]
        return [*outs, *[t for t in out_tangents if t is not None]]

    return stage(f, [*types, *[t for t, m in zip(types, mask, strict=True) if m]], name=f"jvp_{program.name}"), nonzero


def _vjp(operands: Sequence[Any], needs: Sequence[bool], params: dict[str, Any]) -> tuple[list[Any], Pullback]:
    program: Program = params["program"]
    if any(isinstance(x, ArrayType) for x in operands):
        return [], lambda cts: transpose_call(program, operands, cts)
    forward, backward = split_for_reverse(program, tuple(needs))
    results = call_program(forward, operands)
    outs, residuals = results[: len(program.outputs)], results[len(program.outputs) :]

    def pullback(cotangents: Sequence[Any]) -> list[Any]:
        mask = tuple(ct is not None for ct in cotangents)
        derived, nonzero = backward(mask)
        found = iter(call_program(derived, [*residuals, *[ct for ct in cotangents if ct is not None]]))
        return [next(found) if n else None for n in nonzero]

    return outs, pullback


def _batch(
    size: int, operands: Sequence[Any], dims: Sequence[int | None], *, program: Program
) -> tuple[list[Any], list[Any]]:
    types = tuple(type_of(x) for x in operands)
    derived, out_dims = batched_program(program, size, types, tuple(dims))
    return call_program(derived, operands), out_dims


@kept_with_program
def batched_program(
    program: Program, size: int, types: tuple[ArrayType, ...], dims: tuple[int | None, ...]
) -> tuple[Program, list[int | None]]:
    """The program vectorized over ``size`` batch elements, and the batch axes of its results."""
    out_dims: list[int | None] = []

    def f(*args: Any) -> list[Any]:
        outs, found = batch_flat(lambda *xs: evaluate(program, xs), size, args, dims)
        out_dims[:] = found
        return outs

    return stage(f, types, name=f"vmap_{program.name}"), out_dims


call = Primitive(
    "call",
    infer=lambda *types, program: program.output_types,
    lower=lambda *xs, program: lowered(program)(*xs),
    jvp=jvp_call,
    vjp=_vjp,
    batch=_batch,
    widen=widen_call,
    multiple=True,
)


def call_program(program: Program, operands: Sequence[Any]) -> list[Any]:
    """Calls a program as one operation; its constants become operands."""
    closed, constants = _closed(program)
    return call(*constants, *operands, program=closed)


@kept_with_program
def _closed(program: Program) -> tuple[Program, list[Any]]:
    return dead_code(program).closed()
