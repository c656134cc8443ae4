"""Chooses the operations of a program for the CPU that are computed in vector registers instead of by the C library.

They take ten milliseconds more to compile, each, so they are for large arrays. XLA computes an operation again for each
element of what it is broadcast to, and one by one where elements change their places; there a call of the C library
takes a third of the time.
"""

from __future__ import annotations

from collections.abc import Sequence

from funcgrad.core import dtypes
from funcgrad.core.ir import Atom, Equation, Program, Var, kept_with_program
from funcgrad.core.primitive import Primitive
from funcgrad.primitives import power_lowering, trigonometric_lowering

#: The primitives that XLA fuses with operations before them, and whose results have the elements in other places.
MOVES = frozenset(("broadcast", "concatenate", "dynamic_slice", "gather", "pad", "reverse", "slice", "transpose"))

#: For so many elements the time to compile is saved within some hundred runs.
LEAST = 2**13
LOWERINGS = trigonometric_lowering.LOWERINGS | power_lowering.LOWERINGS
_DTYPES = frozenset(dtypes.FLOATING) - {dtypes.float64}

_primitives: dict[Primitive, Primitive] = {}


def _in_vectors(primitive: Primitive) -> Primitive:
    found = _primitives.get(primitive)
    if found is None:
        name = f"{primitive.name}_in_vectors"
        found = _primitives[primitive] = Primitive(
            name, infer=primitive.infer, lower=LOWERINGS[primitive.name], elementwise=True
        )
    return found


def suits(equation: Equation) -> bool:
    """Whether an operation may be computed in vector registers, by its function, dtype and size."""
    if equation.primitive.name not in LOWERINGS:
        return False
    result = equation.outputs[0].type
    return result.dtype in _DTYPES and result.size >= LEAST


@kept_with_program
def vectorized(program: Program) -> Program:
    """The program with functions in vector registers; the same object if there are none."""
    if not any(map(suits, program.equations)):
        return program
    moved = _moved(program.equations)
    equations = [
        Equation(_in_vectors(e.primitive), e.inputs, e.outputs, e.params, e.source)
        if suits(e) and e.outputs[0] not in moved
        else e
        for e in program.equations
    ]
    return Program(program.inputs, program.constants, equations, program.outputs, program.name)


def _moved(equations: Sequence[Equation]) -> set[Atom]:
    """The values of which XLA may compute elements in other places, or several times."""
    moved: set[Atom] = set()
    for e in reversed(equations):
        fused = e.primitive.elementwise or e.primitive.name == "reshape"
        moves = e.primitive.name in MOVES or (fused and not moved.isdisjoint(e.outputs))
        size = e.outputs[0].type.size if e.primitive.elementwise else 0
        moved.update(a for a in e.inputs if type(a) is Var and (moves or a.type.size < size))
    return moved
