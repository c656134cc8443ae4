"""Which values XLA computes again in each kernel that reads them, on a CPU, and where that is prevented.

On a CPU XLA generates a kernel for each stored value, fused from the elementwise operations that it depends on. A value
that several kernels need is computed in each, unless that would read more memory. In a recurrence whose values are all
read, such as :math:`c_t = a_t c_{t-1} + b_t`, the kernel of :math:`c_t` computes all of :math:`c_1` to :math:`c_t`: all
together, a number of operations that is quadratic in the number of steps.

XLA does not repeat a division. So a value that would be repeated too often is divided by a one that XLA does not know,
which stores it and changes no bit (subnormal numbers are zero in XLA's arithmetic on a CPU).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jax import lax

from funcgrad.core.ir import ArrayType, Atom, Equation, Program, Var
from funcgrad.core.primitive import Primitive
from funcgrad.interpreters.vectors import MOVES

#: The primitives, besides elementwise ones, that XLA fuses into their users; and the primitives that it fuses their
#: operands into.
_MOVES = MOVES | {"reshape", "iota"}
_REDUCES = frozenset(("sum", "prod", "reduce_max", "reduce_min", "all", "any"))
#: Functions that XLA expands into several operations.
FUNCTIONS = frozenset(
    ("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "cos", "cosh", "erf", "erfc", "exp", "exp2",
     "expm1", "log", "log1p", "logistic", "pow", "sin", "sinh", "tan", "tanh")
)  # fmt: skip
#: The operations that XLA does not compute again for another kernel.
_UNREPEATED = FUNCTIONS | {"div", "rem", "rsqrt", "sqrt"}

#: A value is stored if another kernel that reads it would compute so many operations again, on so many elements all
#: together. A kernel of its own takes as long as some tens of thousands of vectorized operations.
LEAST_OPERATIONS, LEAST_WORK = 8, 1 << 16


def goes_in(equation: Equation) -> bool:
    """Whether XLA fuses an operation into its users."""
    return equation.primitive is not stored and (equation.primitive.elementwise or moves(equation))


def moves(equation: Equation) -> bool:
    """Whether an operation only moves elements, in the kernel that reads them."""
    return equation.primitive.name in _MOVES


def takes_in(equation: Equation) -> bool:
    """Whether XLA fuses operands into an operation."""
    return equation.primitive is stored or goes_in(equation) or equation.primitive.name in _REDUCES


class Fused:
    """Which values of a program XLA computes within the kernels that read them.

    Attributes:
        inlined: values that are recomputed in each kernel that reads them.
        stored: other values that some kernel computes: the outputs, and those that are read outside a fused kernel.
        uses: the number of equations that read each value.
    """

    def __init__(self, program: Program) -> None:
        outputs = set(program.outputs)
        blocked, reduced, self.uses = _users(program)
        blocked |= outputs
        # An operand of a reduction that is also used otherwise, as in a softmax, is not recomputed.
        blocked |= {a for a in reduced if self.uses[a] > 1}
        self.inlined: set[Var] = set()
        shared: set[Var] = set()
        for e in program.equations:
            if goes_in(e):
                v = e.outputs[0]
                if _unary(e):
                    self.inlined.add(v)
                elif v not in blocked:
                    self.inlined.add(v)
                    if self.uses.get(v, 0) > 1:
                        shared.add(v)
        self.inlined -= _parted(program, self.inlined, shared)
        self.stored: set[Atom] = outputs | blocked


def _users(program: Program) -> tuple[set[Atom], set[Atom], dict[Atom, int]]:
    """The values read outside a fused kernel; the reduced ones; the number of readers of each."""
    blocked: set[Atom] = set()
    reduced: set[Atom] = set()
    uses: dict[Atom, int] = {}
    for e in program.equations:
        if not takes_in(e):
            blocked.update(e.inputs)
        elif not goes_in(e):
            reduced.update(e.inputs)
        for a in set(e.inputs):
            uses[a] = uses.get(a, 0) + 1
    return blocked, reduced, uses


def _parted(program: Program, inlined: set[Var], shared: set[Var]) -> set[Var]:
    """The shared values that an operation reads both directly and through a stored value: XLA stores them, too."""
    found: set[Var] = set()
    place: dict[Atom, int] = {v: 1 << i for i, v in enumerate(shared)}
    #: For each value, the shared ones it depends on, and those on which it depends through a stored one.
    comes: dict[Atom, int] = {}
    beyond: dict[Atom, int] = {}
    for e in program.equations:
        whole = outside = 0
        for a in e.inputs:
            reach = comes.get(a, 0) | place.get(a, 0)
            whole |= reach
            outside |= beyond.get(a, 0) if a in inlined and takes_in(e) else reach
        if outside and takes_in(e):
            found.update(a for a in e.inputs if a in inlined and place.get(a, 0) & outside)
        for v in e.outputs:
            comes[v], beyond[v] = whole, outside
    return found


def _unary(equation: Equation) -> bool:
    """Whether it reads at most one array of the size of its result: XLA recomputes such an operation freely."""
    large = {a for a in equation.inputs if type(a) is Var and a.type.size >= equation.outputs[0].type.size}
    return len(large) <= 1


# ---------------------------------------------------------------- storing values


def _divided(x: Any, one: Any) -> Any:
    return lax.div(x, lax.broadcast(one, x.shape))


#: ``stored(x, one)`` is ``x``, which XLA stores; ``one`` is a result of ``unknown_one``.
stored = Primitive("stored", infer=lambda x, one: x, lower=_divided)


def _one(x: Any, *, dtype: np.dtype) -> Any:
    first = lax.reshape(lax.slice(x, (0,) * x.ndim, (1,) * x.ndim), ())
    if x.dtype.kind == "f":
        first = lax.bitcast_convert_type(first, np.dtype(f"int{8 * x.dtype.itemsize}"))
    one = first.dtype.type(1)
    return lax.convert_element_type(lax.clamp(one, first, one), dtype)


#: One, as a number that XLA does not know, from any array of numbers.
unknown_one = Primitive("unknown_one", infer=lambda x, *, dtype: ArrayType((), dtype), lower=_one)


def with_stored_values(program: Program, inputs: Sequence[Var]) -> Program:
    """The program with values stored that XLA would compute again too often; the same object if there are none.

    Args:
        program: a program without calls, for the CPU.
        inputs: its inputs that the unknown one may be computed from.
    """
    chosen = _chosen(program)
    seen = next((v for v in inputs if v.type.size and v.type.dtype.kind in "fi"), None)
    if not chosen or seen is None:
        return program
    equations: list[Equation] = []
    ones: dict[np.dtype, Var] = {}
    known: dict[Atom, Var] = {}
    for e in program.equations:
        operands = [known.get(a, a) for a in e.inputs]
        equations.append(Equation(e.primitive, operands, e.outputs, e.params, e.source))
        for v in chosen.intersection(e.outputs):
            dtype = v.type.dtype
            if dtype not in ones:
                ones[dtype] = Var(ArrayType((), dtype))
                equations.insert(0, Equation(unknown_one, [seen], [ones[dtype]], {"dtype": dtype}))
            known[v] = Var(v.type)
            equations.append(Equation(stored, [v, ones[dtype]], [known[v]], {}, e.source))
    outputs = [known.get(a, a) for a in program.outputs]
    return Program(program.inputs, program.constants, equations, outputs, program.name)


def _chosen(program: Program) -> set[Var]:
    """The values that ``with_stored_values`` stores."""
    fused = Fused(program)
    chosen: set[Var] = set()
    masks: dict[Atom, int] = {}  # for each inlined value, the operations of which its kernel consists
    bit = 1
    for e in program.equations:
        if not goes_in(e) or e.primitive.name in _UNREPEATED:
            continue
        (v,) = e.outputs
        if v not in fused.inlined:
            continue
        mask = 0
        for a in e.inputs:
            mask |= masks.get(a, 0)
        if not moves(e):
            mask |= bit
            bit <<= 1
            operations = mask.bit_count()
            if (
                fused.uses.get(v, 0) > 1 and operations >= LEAST_OPERATIONS
                and operations * v.type.size >= LEAST_WORK and v.type.dtype in _DIVISIBLE
            ):  # fmt: skip
                chosen.add(v)
                continue
        masks[v] = mask
    return chosen


_DIVISIBLE = (np.dtype(np.float32), np.dtype(np.float64))
