"""Evaluating a program: binds its equations in order, in whatever context surrounds the call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from funcgrad.core.ir import Atom, Literal, Program
from funcgrad.core.primitive import Primitive
from funcgrad.core.tracing import bind, state

_perform: Callable[[Primitive, Sequence[Any], dict[str, Any]], Any]


def set_performer(function: Callable[[Primitive, Sequence[Any], dict[str, Any]], Any]) -> None:
    """Sets the function that binds a primitive with an effect."""
    global _perform
    _perform = function


def evaluate(program: Program, arguments: Sequence[Any]) -> list[Any]:
    """The program's results on ``arguments``: arrays, or tracers of any interpreter."""
    if len(arguments) != len(program.inputs):
        raise TypeError(f"{program.name}: takes {len(program.inputs)} arrays, got {len(arguments)}")
    values: dict[Atom, Any] = dict(zip(program.inputs, arguments, strict=True))
    values.update(program.constants)
    outside = state.source
    try:
        for equation in program.equations:
            state.source = equation.source or outside
            operands = [a.value if a.__class__ is Literal else values[a] for a in equation.inputs]
            apply = _perform if equation.primitive.effect else bind
            results = apply(equation.primitive, operands, equation.params)
            if equation.primitive.multiple:
                values.update(zip(equation.outputs, results, strict=True))
            else:
                values[equation.outputs[0]] = results
    finally:
        state.source = outside
    return [a.value if isinstance(a, Literal) else values[a] for a in program.outputs]
