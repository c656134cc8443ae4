"""Unmerges batch dimensions of products, in programs for several devices.

A product of batches takes one batch dimension, so the batch and head axes of attention are merged before it and split
after it. If heads are divided among devices, no sharding describes the merged dimension: XLA gathers it, and each
device computes all heads. A product over all batch dimensions needs no merging.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from funcgrad.core.ir import ArrayType, Atom, Equation, Program, Shape, Var
from funcgrad.core.passes import dead_code
from funcgrad.primitives.shape import reshape


def unmerged(program: Program) -> Program:
    """The program with products over all the dimensions that had been merged into one batch dimension.

    Args:
        program: a program without calls.
    """
    made = _Unmerged()
    for equation in program.equations:
        made.add(equation)
    outputs = [made.known.get(a, a) for a in program.outputs]
    return dead_code(Program(program.inputs, program.constants, made.equations, outputs, program.name))


class _Unmerged:
    """The new equations of a program.

    Attributes:
        equations: including the merges, which are dead code if the merged value is not used.
        known: the replacement of each value.
        apart: for a value whose first dimension is merged, the value before merging and the number of merged
            dimensions.
    """

    def __init__(self) -> None:
        self.equations: list[Equation] = []
        self.known: dict[Atom, Atom] = {}
        self.apart: dict[Atom, tuple[Atom, int]] = {}

    def add(self, equation: Equation) -> None:
        """Adds an equation, or its replacement."""
        inputs = [self.known.get(a, a) for a in equation.inputs]
        equation = Equation(equation.primitive, inputs, equation.outputs, equation.params, equation.source)
        name = equation.primitive.name
        if name == "reshape":
            self._reshape(equation)
        elif name == "dot":
            self._dot(equation)
        elif name == "transpose":
            self._transpose(equation)
        elif equation.primitive.elementwise and any(x in self.apart for x in inputs):
            self._elementwise(equation)
        else:
            self.equations.append(equation)

    def _reshape(self, equation: Equation) -> None:
        (x,), (out,) = equation.inputs, equation.outputs
        if x in self.apart and self.apart[x][0].type is out.type:  # split again
            self.known[out] = self.apart[x][0]
            return
        if x not in self.apart:
            old, new = x.type.shape, out.type.shape
            lead = next((n for n in range(2, len(old) + 1) if new and prod(old[:n]) == new[0]), 0)
            if lead:
                self.apart[out] = self._shaped(x, (*old[:lead], *new[1:])), lead
        self.equations.append(equation)

    def _dot(self, equation: Equation) -> None:
        (x, y), contract, batch = equation.inputs, equation.params["contract"], equation.params["batch"]
        if batch == ((0,), (0,)) and x in self.apart and y in self.apart:
            (a, lead), (b, other) = self.apart[x], self.apart[y]
            if lead == other and a.type.shape[:lead] == b.type.shape[:lead]:
                contract = tuple(tuple(i + lead - 1 for i in axes) for axes in contract)
                dims, every = tuple(range(lead)), a.type.shape[:lead]
                self._instead(equation, [a, b], {"contract": contract, "batch": (dims, dims)}, every)
                return
        self.equations.append(equation)

    def _transpose(self, equation: Equation) -> None:
        (x,), order = equation.inputs, equation.params["permutation"]
        if x in self.apart and order[0] == 0:
            before, lead = self.apart[x]
            order = (*range(lead), *[i + lead - 1 for i in order[1:]])
            self._instead(equation, [before], {"permutation": order}, before.type.shape[:lead])
            return
        self.equations.append(equation)

    def _elementwise(self, equation: Equation) -> None:
        shape = equation.outputs[0].type.shape
        before, lead = next(self.apart[x] for x in equation.inputs if x in self.apart)
        every = before.type.shape[:lead]
        if not shape or shape[0] != prod(every):
            self.equations.append(equation)
            return
        # Dimensions are aligned from the right, so an operand without the first one is unchanged.
        whole = [len(x.type.shape) == len(shape) and x.type.shape[0] == shape[0] for x in equation.inputs]
        inputs = [self._split(x, every) if full else x for x, full in zip(equation.inputs, whole)]
        self._instead(equation, inputs, equation.params, every)

    def _split(self, x: Atom, every: Shape) -> Atom:
        before, lead = self.apart.get(x, (x, 0))
        if before.type.shape[:lead] == every:
            return before
        return self._shaped(x, (*every, *x.type.shape[1:]))

    def _shaped(self, x: Atom, shape: Shape) -> Atom:
        if x.type.shape == shape:
            return x
        result = Var(ArrayType(shape, x.type.dtype, x.type.weak, x.type.varying))
        self.equations.append(Equation(reshape, [x], [result], {"shape": shape}, None))
        return result

    def _instead(self, equation: Equation, inputs: Sequence[Atom], params: dict[str, Any], every: Shape) -> None:
        """Adds an equation on unmerged values, and the merging of its result."""
        (out,) = equation.outputs
        shape = (*every, *out.type.shape[1:])
        result = Var(ArrayType(shape, out.type.dtype, out.type.weak, out.type.varying))
        self.equations.append(Equation(equation.primitive, inputs, [result], params, equation.source))
        self.equations.append(Equation(reshape, [result], [out], {"shape": out.type.shape}, equation.source))
        self.apart[out] = result, len(every)
