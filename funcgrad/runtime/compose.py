"""Composes the programs of a window into one, to be compiled whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import copysign
from operator import is_
from typing import Any

import jax
import numpy as np

from funcgrad.core.ir import ArrayType, Atom, Equation, Literal, Program, Var
from funcgrad.core.passes import common_subexpressions, dead_code
from funcgrad.interpreters.staging import stage
from funcgrad.primitives.shape import reshape, slice_


class Numbers:
    """The numbers of a window, packed into one vector per dtype, which are arguments of its program.

    Attributes:
        types: per number, which vector and the index in it.
        any: whether there are any numbers.
        vectors: the number of vectors.
    """

    __slots__ = ("types", "any", "vectors", "_picks", "_last")

    def __init__(self, dtypes: Sequence[np.dtype]):
        counts: dict[np.dtype, int] = {}
        self.types: list[tuple[np.dtype, int]] = []
        for dtype in dtypes:
            counts[dtype] = counts.get(dtype, 0) + 1
            self.types.append((dtype, counts[dtype] - 1))
        self.any = bool(dtypes)
        self.vectors = len(counts)
        self._picks = [(d, [i for i, e in enumerate(dtypes) if e == d]) for d in counts]
        #: A device, the numbers of the last call, and their vectors there, once they recur: one object, so that an
        #: interrupt cannot separate them.
        self._last: tuple[Any, list[Any], list[Any]] = (None, [], [])

    def packed(self, numbers: Sequence[Any]) -> list[np.ndarray]:
        """The vectors."""
        if len(self._picks) == 1:
            return [np.array(numbers, self._picks[0][0])]
        return [np.array([numbers[i] for i in places], dtype) for dtype, places in self._picks]

    def again(self, numbers: Sequence[Any]) -> Sequence[Any]:
        """The vectors, on the default device if they are those of the last call; else its program transfers them."""
        _, last, placed = self._last
        if not last or not _identical(numbers, last):
            self._last = None, list(numbers), []
            return self.packed(numbers)
        if not placed:
            placed = jax.device_put(self.packed(numbers))
            self._last = None, last, placed
        return placed

    def on(self, place: Any, numbers: Sequence[Any]) -> list[Any]:
        """The vectors on a device; they are copied there only if they differ from the last ones."""
        where, last, placed = self._last
        if where != place or not _identical(numbers, last):
            placed = jax.device_put(self.packed(numbers), place)
            self._last = place, list(numbers), placed
        return placed


#: The types of equal numbers that are the same, but for the sign of zero.
_EXACT = (float, int, bool)


def _identical(numbers: Sequence[Any], last: Sequence[Any]) -> bool:
    """Whether numbers are those of the last call, whose signs of zero count."""
    if all(map(is_, numbers, last)):
        return True
    for a, b in zip(numbers, last):
        same = a.__class__ is b.__class__ and a.__class__ in _EXACT and a == b
        if a is not b and not (same and (a or copysign(1.0, a) == copysign(1.0, b))):
            return False
    return True


class _Composer:
    """A program to which others are appended."""

    def __init__(self) -> None:
        self.equations: list[Equation] = []
        self.constants: dict[int, tuple[Var, Any]] = {}
        self._literals: dict[tuple, Literal] = {}

    def inline(self, program: Program, arguments: Sequence[Atom]) -> list[Atom]:
        """Appends a program's equations with fresh variables; returns its outputs."""
        known: dict[Var, Atom] = dict(zip(program.inputs, arguments, strict=True))
        for variable, value in program.constants:
            known[variable] = self.constants.setdefault(id(value), (variable, value))[0]

        def read(atom: Atom) -> Atom:
            return known[atom] if type(atom) is Var else self._literal(atom)

        for equation in program.equations:
            outputs = [Var(v.type) for v in equation.outputs]
            inputs = [read(a) for a in equation.inputs]
            self.equations.append(Equation(equation.primitive, inputs, outputs, equation.params, equation.source))
            known.update(zip(equation.outputs, outputs, strict=True))
        return [read(a) for a in program.outputs]

    def wire(
        self, codes: Sequence[Any], wires: Sequence[int], number: Callable[[Var], Atom]
    ) -> tuple[list[Var], list[Atom]]:
        """Appends the programs of wired executables; returns the variables of their inputs, and their results.

        Args:
            codes, wires: as in ``compose``.
            number: called for each number in order, with the variable that the program has for it.
        """
        inputs: dict[int, Var] = {}
        results: list[Atom] = []
        at = 0
        for code in codes:
            variables = code.program.inputs
            operands: list[Atom] = []
            for w, variable in zip(wires[at : at + code.buffers], variables):
                operands.append(results[w] if w >= 0 else inputs.setdefault(~w, Var(variable.type)))
            at += code.buffers
            operands += [number(v) for v in variables[code.buffers :]]
            results += self.inline(code.program, operands)
        return [inputs[i] for i in range(len(inputs))], results

    def _literal(self, atom: Any) -> Literal:
        """Equal literals are one object in a program."""
        return self._literals.setdefault((atom.type, atom.value.tobytes()), atom)


def _split(dtype: np.dtype, count: int) -> Program:
    """The elements of a vector as variables."""

    def run(vector: Any) -> list[Any]:
        return [reshape(slice_(vector, start=(i,), limit=(i + 1,), strides=(1,)), shape=()) for i in range(count)]

    return stage(run, [ArrayType((count,), dtype)], name="numbers")


def compose(
    codes: Sequence[Any], wires: Sequence[int], wanted: Sequence[int], numbers: Sequence[tuple[np.dtype, int]]
) -> tuple[Program, list[int]]:
    """The program of wired executables.

    Args:
        codes: executables, whose inputs are buffers, then numbers.
        wires: per operand, the index of a result, or ``~i`` for input ``i``.
        wanted: the results that become outputs.
        numbers: per number, its dtype and its index in the vector of that dtype. The vectors are the last inputs.

    Returns:
        The program, and for each wanted result the index of its output.
    """
    composer = _Composer()
    vectors: dict[np.dtype, int] = {}
    for dtype, _ in numbers:
        vectors[dtype] = vectors.get(dtype, 0) + 1
    heads = {dtype: Var(ArrayType((count,), dtype)) for dtype, count in vectors.items()}
    scalars = {dtype: composer.inline(_split(dtype, count), [heads[dtype]]) for dtype, count in vectors.items()}
    places = iter(numbers)

    def number(_: Var) -> Atom:
        dtype, place = next(places)
        return scalars[dtype][place]

    head, results = composer.wire(codes, wires, number)
    whole = Program(
        [*head, *heads.values()], list(composer.constants.values()), composer.equations, [results[i] for i in wanted],
        "window",
    )  # fmt: skip
    small = dead_code(common_subexpressions(dead_code(whole)))
    distinct = list(dict.fromkeys(small.outputs))
    place_of = {atom: i for i, atom in enumerate(distinct)}
    program = Program(small.inputs, small.constants, small.equations, distinct, small.name)
    return program, [place_of[a] for a in small.outputs]


def join(codes: Sequence[Any], wires: Sequence[int], wanted: Sequence[int]) -> Program:
    """The program of wired executables, on the buffers and then the numbers, each a separate input.

    Args:
        codes, wires, wanted: as in ``compose``; all inputs are used, in order.
    """
    composer = _Composer()
    numbers: list[Var] = []

    def number(variable: Var) -> Atom:
        numbers.append(Var(variable.type))
        return numbers[-1]

    head, results = composer.wire(codes, wires, number)
    whole = Program(
        [*head, *numbers], list(composer.constants.values()), composer.equations,
        [results[i] for i in wanted], "backward",
    )  # fmt: skip
    return dead_code(common_subexpressions(dead_code(whole)))
