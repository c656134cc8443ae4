"""Evaluating a program by NumPy, and how long that would take."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcgrad.host import arithmetic, control, indexing, linalg, shape, windows  # noqa: F401  # their rules are in the table now
from funcgrad.host.table import RULES, NotHere
from funcgrad.ir import Atom, Equation, Literal, Program, kept_with_program

#: What an equation takes, and an element of its largest operand or result, in milliseconds. Measured on training steps
#: of an MLP and a transformer.
EQUATION_COST, ELEMENT_COST = 0.004, 3e-6
#: How many products of matrices are one element's time.
PRODUCTS = 16


def evaluate(program: Program, arguments: Sequence[Any]) -> list[np.ndarray]:
    """The program's results on NumPy arrays. They may be views of the arguments and of each other.

    Raises:
        NotHere: if some operation has no rule here, or not for these values.
    """
    with np.errstate(all="ignore"):
        return _evaluate(program, arguments)


def _evaluate(program: Program, arguments: Sequence[Any]) -> list[np.ndarray]:
    steps, values, inputs, outputs = _plan(program)
    values = values.copy()
    for place, argument in zip(inputs, arguments, strict=True):
        values[place] = argument
    for run, reads, writes, params in steps:
        found = run(*[values[i] for i in reads], **params)
        if found.__class__ is not list:
            found = (found,)
        for (place, dtype), result in zip(writes, found):
            if result.__class__ is not np.ndarray or result.dtype != dtype:
                result = np.asarray(result, dtype)
            values[place] = result
    return [values[i] for i in outputs]


control.set_evaluator(_evaluate)

#: An equation's rule, where its operands and its results are, with their dtypes, and its parameters.
Step = tuple[Callable[..., Any], Sequence[int], Sequence[tuple[int, np.dtype]], dict[str, Any]]


@kept_with_program
def _plan(program: Program) -> tuple[list[Step], list[Any], Sequence[int], Sequence[int]]:
    """What is done for each equation; the values at the start, constants and literals; where inputs and outputs are.

    Raises:
        NotHere: if some operation has no rule here.
    """
    values: list[Any] = []
    places: dict[Atom, int] = {}

    def place_of(atom: Atom) -> int:
        if atom not in places:
            places[atom] = len(values)
            values.append(np.asarray(atom.value) if isinstance(atom, Literal) else None)
        return places[atom]

    for variable, constant in program.constants:
        values[place_of(variable)] = np.asarray(constant)
    inputs = [place_of(v) for v in program.inputs]
    steps: list[Step] = []
    for e in program.equations:
        if e.primitive.name not in RULES:
            raise NotHere(e.primitive.name)
        writes = [(place_of(v), v.type.dtype) for v in e.outputs]
        steps.append((RULES[e.primitive.name], [place_of(a) for a in e.inputs], writes, e.params))
    return steps, values, inputs, [place_of(a) for a in program.outputs]


def _products(equation: Equation) -> int:
    (contracted, _), x = equation.params["contract"], equation.inputs[0].type
    return equation.outputs[0].type.size * math.prod(x.shape[d] for d in contracted) // PRODUCTS


def _convolved(equation: Equation) -> int:
    """All windows are written out, and then multiplied."""
    x, w = (a.type for a in equation.inputs)
    out, layout = equation.outputs[0].type, equation.params["config"].layout
    places, window = (math.prod(t.shape[d] for d in dims[2:]) for t, dims in ((out, layout.out), (w, layout.w)))
    written = x.shape[layout.x[0]] * x.shape[layout.x[1]] * places * window
    return written + written * w.shape[layout.w[0]] // equation.params["config"].groups // PRODUCTS


def _windows(equation: Equation) -> int:
    return equation.outputs[0].type.size * math.prod(equation.params["window"].size)


def _factored(equation: Equation) -> int:
    """Some hundred steps a matrix, and some twenty a product."""
    *lead, m, n = equation.inputs[0].type.shape
    return math.prod(lead) * (4096 + 20 * m * n * max(m, n) // PRODUCTS)


#: What takes longer than its operands and results are large, in elements.
_WORK: dict[str, Callable[[Equation], int]] = {"dot": _products, "conv": _convolved}
_WORK.update(dict.fromkeys(linalg.ON_MATRICES, _factored))
_WORK.update(dict.fromkeys(("window_sum", "window_max", "window_min", "window_argmax", "window_argmin"), _windows))


@kept_with_program
def milliseconds(program: Program) -> float:
    """About how long it takes; infinite if it cannot be done."""
    return sum(map(_cost, program.equations))


def _cost(equation: Equation) -> float:
    name, params = equation.primitive.name, equation.params
    if name not in RULES:
        return math.inf
    inner = [p for p in params.values() if isinstance(p, Program)]
    elements = max([a.type.size for a in (*equation.inputs, *equation.outputs)], default=0)
    elements = max(elements, _WORK.get(name, lambda _: 0)(equation))
    return EQUATION_COST + ELEMENT_COST * elements + params.get("length", 1) * sum(map(milliseconds, inner))
