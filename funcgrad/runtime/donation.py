"""Buffer donation: which input buffers a compiled window reuses for which of its results.

XLA writes a result into a donated operand's buffer; if the operand is still needed when the result is written, it
copies one of them first. Results computed elementwise, such as an optimizer's new parameters and state from the old
ones, need no copy. So operands are donated to such results only, each to the nearest one; JAX matches them in order, so
results are sorted like the operands.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from funcgrad.core.ir import Equation, Program, Var

#: The maximum number of equations between an operand and its new value.
FARTHEST = 24


def pairs(program: Program, free: Sequence[int]) -> list[tuple[int, int]]:
    """Pairs (input, output) such that the output may be written into the input's buffer, in the order of the inputs.

    Args:
        free: the inputs that have no other references.
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
    """The given variables of the output's type from which it is computed elementwise, and their distances."""
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
