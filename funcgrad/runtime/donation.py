"""Which buffers a compiled window takes over for which of its results.

XLA writes a result into the buffer of an operand where the two are tied together; if the operand's elements are still
wanted when the result is written, it copies one of them first. What can be written in place are results that are
computed element by element: an optimizer's parameters and its state from their old values. So operands are tied to such
results only, each to the nearest one; JAX ties them in order, so the results come in the order of the operands.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from funcgrad.core.ir import Equation, Program, Var

#: How many equations lie at most between an operand and its new value.
FARTHEST = 24


def pairs(program: Program, free: Sequence[int]) -> list[tuple[int, int]]:
    """Inputs with the outputs that may be written into their buffers: (input, output), in the order of the inputs.

    Args:
        free: the inputs that nothing else references.
    """
    given = {program.inputs[i]: i for i in free}
    makers = {v: e for e in program.equations for v in e.outputs}
    near: list[tuple[int, int, int]] = []
    for place, atom in enumerate(program.outputs):
        if type(atom) is Var and atom in makers:
            near += [(far, given[v], place) for v, far in _sources(atom, makers, given).items()]
    found: dict[int, int] = {}
    taken: set[int] = set()
    results = set(program.outputs)
    for _, i, place in sorted(near):
        if i not in found and place not in taken and program.inputs[i] not in results:
            found[i] = place
            taken.add(place)
    return sorted(found.items())


def _sources(output: Var, makers: dict[Var, Equation], given: dict[Var, int]) -> dict[Var, int]:
    """The given variables of the output's type that it is computed from element by element, and how far they are."""
    found: dict[Var, int] = {}
    seen = {output}
    front = [output]
    for far in range(FARTHEST):
        behind: list[Any] = []
        for variable in front:
            if variable in given and _kind(variable) == _kind(output):
                found[variable] = far
            equation = makers.get(variable)
            if equation is not None and (equation.primitive.elementwise or equation.primitive.name == "reshape"):
                behind += [a for a in equation.inputs if type(a) is Var and a.type.size == output.type.size]
        front = [v for v in dict.fromkeys(behind) if v not in seen]
        seen.update(front)
        if not front:
            break
    return found


def _kind(variable: Var) -> tuple[Any, ...]:
    return variable.type.shape, variable.type.dtype
