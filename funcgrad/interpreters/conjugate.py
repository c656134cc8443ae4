"""Late conjugation: moves a program's conjugations towards its results, where most cancel.

The gradient of a complex function, as used in gradient descent, is the conjugate of what is computed from conjugated
cotangents. Computed that way each zero part gets its sign from two negations; with the conjugations moved,
``conj(mul(conj(g), x))`` is ``mul(g, conj(x))``, as the formula would be written.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from funcgrad.core.dtypes import is_complex
from funcgrad.core.ir import Atom, Equation, Literal, Program, Var
from funcgrad.core.tracing import bind, state, type_of
from funcgrad.interpreters.staging import stage
from funcgrad.primitives import contraction, convolution, elementwise, indexing, reductions, shape
from funcgrad.primitives.elementwise import cast, conj, imag, make_complex, neg, real

#: Primitives that commute with conjugation.
COMMUTING = frozenset(
    (cast, elementwise.add, elementwise.sub, neg, elementwise.mul, elementwise.div, elementwise.select)
    + (elementwise.square, contraction.dot, convolution.conv, reductions.cumulative_sum)
    + (shape.reshape, shape.transpose, shape.broadcast, shape.reduce_sum, shape.slice_, shape.pad)
    + (shape.concatenate, shape.reverse, indexing.gather, indexing.scatter, indexing.scatter_add, indexing.put)
    + (indexing.dynamic_slice, indexing.dynamic_update_slice)
)


class Value(NamedTuple):
    """The representation of a program's value.

    Attributes:
        held: the array.
        turned: whether the value is the conjugate of ``held``; None if it is real.
        moving: whether it depends on an input that conjugations are moved past.
    """

    held: Any
    turned: bool | None
    moving: bool

    def plain(self) -> Any:
        """The value itself."""
        return self.other() if self.turned else self.held

    def other(self) -> Any:
        """The conjugate of the value."""
        return np.conj(self.held) if isinstance(self.held, np.generic) else conj(self.held)


def conjugated_late(program: Program, past: Sequence[Var]) -> Program:
    """The program with conjugations of values that depend on some inputs moved to minimize their number.

    Args:
        past: these inputs; the program is linear in them.

    Example:
        >>> import numpy as np
        >>> from funcgrad.interpreters.conjugate import conjugated_late
        >>> from funcgrad.interpreters.staging import stage
        >>> from funcgrad.core.ir import ArrayType
        >>> from funcgrad.primitives.elementwise import conj, mul
        >>> z = ArrayType((), np.dtype(np.complex64))
        >>> program = stage(lambda g, x: [conj(mul(conj(g), x))], [z, z])
        >>> print(conjugated_late(program, program.inputs[:1]))
        program(a: c64[], b: c64[]) {
          c: c64[] = conj b
          d: c64[] = mul a c
          return d
        }
    """
    for equation in program.equations:
        if equation.primitive is conj:
            break
    else:
        return program
    types = [v.type for v in program.inputs]
    return stage(lambda *arrays: _turned(program, arrays, set(past)), types, name=program.name)


def _turned(program: Program, arrays: Sequence[Any], past: set[Var]) -> list[Any]:
    values = {v: Value(x, False, v in past) for v, x in (*zip(program.inputs, arrays), *program.constants)}

    def read(atom: Atom) -> Value:
        value = Value(atom.value, False, False) if isinstance(atom, Literal) else values[atom]
        return value._replace(turned=None) if _is_real(value.held) else value

    outside = state.source
    try:
        for equation in program.equations:
            state.source = equation.source or outside
            values.update(zip(equation.outputs, _results(equation, [read(a) for a in equation.inputs])))
    finally:
        state.source = outside
    return [read(a).plain() for a in program.outputs]


def _results(equation: Equation, operands: list[Value]) -> list[Value]:
    primitive, params = equation.primitive, equation.params
    moving = any(v.moving for v in operands)
    if primitive is conj:
        (value,) = operands
        return [value if value.turned is None else value._replace(turned=not value.turned)]
    if primitive is make_complex and _is_nothing(operands[1].held):
        return [Value(bind(primitive, [v.held for v in operands], params), None, moving)]
    if primitive is make_complex and moving:  # as transposed rules create them: with a negated part, to be conjugated
        x, y = (v.held for v in operands)
        return [Value(make_complex(x, neg(y)), True, True)]
    if primitive in (real, imag) and operands[0].turned:
        part = bind(primitive, [operands[0].held], params)
        return [Value(neg(part) if primitive is imag else part, None, moving)]
    commutes = primitive in COMMUTING
    late = commutes and any(v.turned and v.moving for v in operands)
    given = [v.held if v.turned is None or v.turned == late else v.other() for v in operands]
    found = bind(primitive, given, params)
    turned = None if commutes and all(v.turned is None for v in operands) else late
    return [Value(x, turned, moving) for x in (found if primitive.multiple else [found])]


def _is_real(value: Any) -> bool:
    if isinstance(value, np.generic):
        return bool(np.imag(value) == 0)
    return not is_complex(type_of(value).dtype)


def _is_nothing(value: Any) -> bool:
    return isinstance(value, np.generic) and bool(value == 0)
