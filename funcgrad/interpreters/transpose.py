"""Transposition: from the cotangents of a linear program's results to those of its inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from funcgrad.core import dtypes
from funcgrad.core.ir import ArrayType, Atom, Equation, Literal, Program, Var
from funcgrad.core.tracing import bind, restoring, running, type_of
from funcgrad.interpreters.forward import jvp_flat
from funcgrad.interpreters.rules import accumulate, no_rule, pull, summed_pullback
from funcgrad.interpreters.staging import Staging


def transpose_program(program: Program, cotangents: Sequence[Any]) -> list[Any]:
    """The cotangents of a linear program's inputs, given those of its outputs; ``None`` is zero.

    Equations that depend on no input are evaluated forwards first: they are the coefficients of the linear map.
    """
    linear: set[Var] = set(program.inputs)
    values: dict[Var, Any] = dict(program.constants)

    def read(atom: Atom) -> Any:
        return atom.value if isinstance(atom, Literal) else atom.type if atom in linear else values[atom]

    pending: list[Equation] = []
    for equation in program.equations:
        if any(isinstance(a, Var) and a in linear for a in equation.inputs):
            linear.update(equation.outputs)
            pending.append(equation)
        else:
            results = bind(equation.primitive, [read(a) for a in equation.inputs], equation.params)
            values.update(zip(equation.outputs, results if equation.primitive.multiple else [results], strict=True))

    cts: dict[Var, Any] = {}

    def give(atom: Atom, ct: Any) -> None:
        if isinstance(atom, Var) and atom in linear and ct is not None:
            cts[atom] = accumulate(cts.get(atom), ct)

    for atom, ct in zip(program.outputs, cotangents, strict=True):
        give(atom, ct)
    for equation in reversed(pending):
        received = [cts.pop(v, None) for v in equation.outputs]
        if any(ct is not None for ct in received):
            _transpose_equation(equation, received, [read(a) for a in equation.inputs], linear, give)
    return [cts.get(v) for v in program.inputs]


def _transpose_equation(
    equation: Equation, received: list[Any], operands: list[Any], linear: set[Var], give: Callable[[Atom, Any], None]
) -> None:
    primitive = equation.primitive
    if primitive.vjp is not None:
        needs = [isinstance(a, Var) and a in linear for a in equation.inputs]
        _, pullback = primitive.vjp(operands, needs, equation.params)
        types = [a.type for a in equation.inputs]
        cts = summed_pullback(primitive, pullback(received), types, equation.params)
        for atom, ct in zip(equation.inputs, cts, strict=True):
            give(atom, ct)
        return
    if not primitive.differentiable:
        return
    if primitive.partials is None and primitive.transpose is None:
        raise no_rule(primitive)
    for index, atom in enumerate(equation.inputs):
        if isinstance(atom, Var) and atom in linear:
            give(atom, pull(primitive, index, received[0], None, operands, equation.params))


def transpose_call(program: Program, operands: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
    """The cotangents of the operands given as types, in which the program is linear."""
    linear: list[tuple[Var, Any]] = []
    known: list[tuple[Var, Any]] = []
    for variable, x in zip(program.inputs, operands, strict=True):
        (linear if isinstance(x, ArrayType) else known).append((variable, x))
    constants = [*program.constants, *known]
    inner = Program([v for v, _ in linear], constants, program.equations, program.outputs, program.name)
    found = iter(transpose_program(inner, cotangents))
    return [next(found) if isinstance(x, ArrayType) else None for x in operands]


@restoring
def linearize_flat(
    f: Callable[..., Sequence[Any]], primals: Sequence[Any], needs: Sequence[bool]
) -> tuple[list[Any], Program]:
    """The values of ``f`` and its derivative there, as a linear program of the tangents that ``needs`` marks.

    ``f`` runs once. What depends on primals alone is computed in the surrounding context; only operations on tangents
    are staged. The program's outputs are the tangents of the outputs.
    """
    staging = Staging("linearize")
    with running(staging):
        inputs = [staging.wrap(type_of(p)) if n else None for p, n in zip(primals, needs, strict=True)]
        outs, tangents = jvp_flat(f, primals, inputs)
        tangents = [_materialize(t, o) for t, o in zip(tangents, outs, strict=True)]
        program = staging.program([t for t in inputs if t is not None], tangents, "linear")
    return outs, program


def _materialize(tangent: Any, out: Any) -> Any:
    type = type_of(out)
    if tangent is not None:
        return tangent
    dtype = type.dtype if dtypes.is_inexact(type.dtype) else dtypes.float32
    return dtype.type(0)  # a zero that nothing depends on, so its shape does not matter
