"""Evaluating a program by NumPy, and how long that would take."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from funcgrad.core.ir import Atom, Equation, Literal, Program, kept_with_program
from funcgrad.runtime.numpy_backend import arithmetic, control, indexing, linalg, shape, windows  # noqa: F401  # their rules are in the table now
from funcgrad.runtime.numpy_backend.table import RULES, NotHere

#: What an equation takes, and an element of its largest operand or result, in milliseconds: fitted to the programs of
#: training steps of two transformers, a VAE, a graph network and an actor critic, with products on one thread.
EQUATION_COST, ELEMENT_COST = 0.002, 1e-6
#: How many products of matrices are one element's time.
PRODUCTS = 16


def evaluate(program: Program, arguments: Sequence[Any]) -> list[np.ndarray]:
    """The program's results on NumPy arrays. They may be views of the arguments and of each other.

    NumPy warns of what XLA passes over: the caller may be ``quiet``.

    Raises:
        NotHere: if some operation has no rule here, or not for these values.
    """
    return function(program)(arguments)


control.set_evaluator(evaluate)


@kept_with_program
def function(program: Program) -> Callable[[Sequence[Any]], list[np.ndarray]]:
    """``evaluate`` as a function of the arguments, for which nothing is looked up while it runs.

    Raises:
        NotHere: if some operation has no rule here.
    """
    start: list[Any] = [None] * len(program.inputs)
    places: dict[Atom, int] = {v: i for i, v in enumerate(program.inputs)}

    def place_of(atom: Atom) -> int:
        if atom not in places:
            places[atom] = len(start)
            start.append(np.asarray(atom.value) if isinstance(atom, Literal) else None)
        return places[atom]

    for variable, constant in program.constants:
        start[place_of(variable)] = np.asarray(constant)
    steps = []
    for e in program.equations:
        if e.primitive.name not in RULES:
            raise NotHere(e.primitive.name)
        rule = RULES[e.primitive.name]
        reads = tuple(map(place_of, e.inputs))
        writes = [(place_of(v), v.type.dtype) for v in e.outputs]
        one = len(writes) == 1 and len(reads) in (1, 2)
        # Most operations have an operand or two and a result; ``first`` distinguishes them from the others.
        first, second = (reads[0], reads[-1] if len(reads) == 2 else None) if one else (None, None)
        place, dtype = writes[0] if one else (0, np.dtype(bool))
        steps.append((partial(rule, **e.params) if e.params else rule, first, second, place, dtype, reads, writes))
    outputs = [place_of(a) for a in program.outputs]
    inputs = len(program.inputs)

    def run(arguments: Sequence[Any]) -> list[np.ndarray]:
        values = start.copy()
        values[:inputs] = arguments
        for call, first, second, place, dtype, reads, writes in steps:
            if first is None:
                found = call(*[values[i] for i in reads])
                found = found if found.__class__ is list else [found]
                for (place, dtype), x in zip(writes, found, strict=True):
                    values[place] = _fit(x, dtype)
            else:
                x = call(values[first]) if second is None else call(values[first], values[second])
                values[place] = x if x.__class__ is np.ndarray and x.dtype is dtype else _fit(x, dtype)
        return [values[i] for i in outputs]

    return run


def _fit(x: Any, dtype: np.dtype) -> np.ndarray:
    """A rule's result as an array of ``dtype``."""
    if x.__class__ is list:
        (x,) = x
    return x if x.__class__ is np.ndarray and x.dtype == dtype else np.asarray(x, dtype)


def _products(equation: Equation) -> int:
    (contracted, _), x = equation.params["contract"], equation.inputs[0].type
    return equation.outputs[0].type.size * math.prod(x.shape[d] for d in contracted) // PRODUCTS


def _convolved(equation: Equation) -> int:
    """All windows are materialized, and then multiplied."""
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
_WORK: dict[str, Callable[[Equation], int]] = {"dot": _products, "dot_in_single": _products, "conv": _convolved}
_WORK.update(dict.fromkeys(linalg.ON_MATRICES, _factored))
_WORK.update(dict.fromkeys(("window_sum", "window_max", "window_min", "window_argmax", "window_argmin"), _windows))


@kept_with_program
def milliseconds(program: Program) -> float:
    """About how long it takes; infinite if it cannot be done."""
    return sum(map(_cost, program.equations))


def _cost(equation: Equation) -> float:
    if equation.primitive.name not in RULES:
        return math.inf
    inner = sum(map(milliseconds, _programs(equation)))
    return EQUATION_COST + ELEMENT_COST * _elements(equation) + equation.params.get("length", 1) * inner


@kept_with_program
def elements(program: Program) -> int:
    """The elements of each equation's largest operand or result, or what it does instead of so many, in all."""
    return sum(_elements(e) + e.params.get("length", 1) * sum(map(elements, _programs(e))) for e in program.equations)


def _programs(equation: Equation) -> list[Program]:
    return [p for p in equation.params.values() if isinstance(p, Program)]


def _elements(equation: Equation) -> int:
    largest = max([a.type.size for a in (*equation.inputs, *equation.outputs)], default=0)
    return max(largest, _WORK.get(equation.primitive.name, lambda _: 0)(equation))
