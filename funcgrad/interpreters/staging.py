"""Staging: running a function on types, to write down the program that it performs."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import jax
import numpy as np

from funcgrad.core.errors import ConcretizationError, Source
from funcgrad.core.ir import ArrayType, Atom, Equation, Literal, Program, Var
from funcgrad.core.primitive import Primitive
from funcgrad.core.tracing import (
    Interpreter,
    Tracer,
    concrete,
    current_source,
    differentiated_by,
    running,
    state,
    type_of,
    typed,
)
from funcgrad.interpreters.evaluate import evaluate


class StagedTracer(Tracer):
    """An array known by its type only."""

    __slots__ = ("variable",)
    interpreter: Staging

    def __init__(self, interpreter: Staging, variable: Var):
        self.interpreter = interpreter
        self.type = variable.type
        self.variable = variable

    def underlying(self) -> Any:
        needed = self.interpreter.needed(self.variable)
        if needed is not None:
            return self.interpreter.value(self.variable, needed)
        raise ConcretizationError(
            f"Under {self.interpreter.description} an array has a shape and a dtype but no value. Choose between "
            "arrays with funcgrad.numpy.where and between computations with funcgrad.cond, repeat with "
            "funcgrad.while_loop or scan, or make the argument that decides static (static_argnums)."
        )

    def differentiated_by(self) -> list[Interpreter]:
        return self.interpreter.differentiated_by(self.variable)

    def origin(self) -> Source | None:
        for equation in self.interpreter.equations:
            if self.variable in equation.outputs:
                return equation.source
        return None


class Staging(Interpreter):
    """Writes every operation down as an equation.

    Attributes:
        constants: what was met that is not this interpreter's: arrays, and tracers of outer interpreters.
    """

    __slots__ = ("equations", "constants", "_captured", "_literals", "_places", "_placed", "_values", "description")

    def __init__(self, description: str = "trace") -> None:
        super().__init__()
        self.description = description
        self.equations: list[Equation] = []
        self.constants: list[tuple[Var, Any]] = []
        self._captured: dict[int, Var] = {}
        self._literals: dict[tuple[ArrayType, bytes], Literal] = {}
        self._places: dict[Var, int] = {}  # of the equations, by what they compute; so far of the first so many
        self._placed = 0
        self._values: dict[Var, Any] = {}

    def input(self, type: ArrayType) -> StagedTracer:
        return StagedTracer(self, Var(type))

    def atom(self, x: Any) -> Atom:
        """The variable or literal that stands for ``x`` in the program; equal literals are one object."""
        if isinstance(x, StagedTracer) and x.interpreter is self:
            return x.variable
        type = type_of(x)
        x = typed(x)
        if isinstance(x, np.generic):
            key = type, x.tobytes()
            literal = self._literals.get(key)
            if literal is None:
                literal = self._literals[key] = Literal(x, type)
            return literal
        var = self._captured.get(id(x))
        if var is None:
            # The list keeps x alive, so its id stays its own.
            var = self._captured[id(x)] = Var(type)
            self.constants.append((var, x))
        return var

    def process(self, primitive: Primitive, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        if primitive.close is not None:
            operands, params = primitive.close(self, operands, params)
        inputs = [x.variable if type(x) is StagedTracer and x.interpreter is self else self.atom(x) for x in operands]
        types = primitive.output_types([a.type for a in inputs], params)
        if primitive.multiple:
            outputs = [Var(t) for t in types]
            self.equations.append(Equation(primitive, inputs, outputs, params, current_source()))
            return [StagedTracer(self, v) for v in outputs]
        output = Var(types[0])
        self.equations.append(Equation(primitive, inputs, [output], params, current_source()))
        return StagedTracer(self, output)

    def needed(self, variable: Var) -> list[Equation] | None:
        """The equations that a variable comes of, None where they start from what has no value or act on the world."""
        for place in range(self._placed, len(self.equations)):
            self._places.update(dict.fromkeys(self.equations[place].outputs, place))
        self._placed = len(self.equations)
        constants = {v for v, _ in self.constants} | self._values.keys()
        places: set[int] = set()
        pending: list[Atom] = [variable]
        while pending:
            atom = pending.pop()
            if isinstance(atom, Literal) or atom in constants:
                continue
            made = self._places.get(atom)
            if made is None or self.equations[made].primitive.effect:
                return None
            if made not in places:
                places.add(made)
                pending.extend(self.equations[made].inputs)
        return [self.equations[place] for place in sorted(places)]

    def differentiated_by(self, variable: Var) -> list[Interpreter]:
        """The outer transforms that differentiate what a variable comes of."""
        found = {v: by for v, x in self.constants if (by := differentiated_by(x))}
        for equation in self.equations if found else ():
            by = list(dict.fromkeys(i for a in equation.inputs if isinstance(a, Var) for i in found.get(a, ())))
            if by and equation.primitive.differentiable:
                found.update((v, by) for v in equation.outputs if v.type.inexact)
        return found.get(variable, [])

    def value(self, variable: Var, needed: list[Equation]) -> Any:
        """What a variable holds that comes of constants alone, which it has also while the function is traced.

        Raises:
            ConcretizationError: where a constant is traced by an outer interpreter, and has no value there.
        """
        atoms = {atom for equation in needed for atom in equation.inputs} | {variable}
        known = (*self.constants, *self._values.items())
        program = Program([], [(v, concrete(x)) for v, x in known if v in atoms], needed, [variable], "known")
        floor, state.floor = state.floor, None
        try:
            (found,) = evaluate(program, [])
        finally:
            state.floor = floor
        self._values[variable] = found
        return found

    def program(self, inputs: Sequence[StagedTracer], outputs: Sequence[Any], name: str) -> Program:
        return Program(
            [t.variable for t in inputs], self.constants, self.equations, [self.atom(x) for x in outputs], name
        )


def stage(
    f: Callable[..., Sequence[Any]],
    types: Sequence[ArrayType],
    *,
    name: str = "program",
    description: str = "trace",
    by: Staging | None = None,
) -> Program:
    """The program that ``f`` performs on arrays of ``types``.

    Args:
        f: takes arrays, returns a flat sequence of arrays.
        types: one per argument.
        name: what the program is called when printed.
        description: what an error message calls the transform.
        by: the interpreter that writes it down, if it is not just any.
    """
    interpreter = Staging(description) if by is None else by
    # Plain arrays that the function closes over stay plain, also where JAX traces: what their own methods and operators
    # compute is computed now.
    with uncollected(), jax.ensure_compile_time_eval(), running(interpreter, floor=True):
        inputs = [interpreter.input(t) for t in types]
        outputs = f(*inputs)
        return interpreter.program(inputs, list(outputs), name)


@contextmanager
def uncollected() -> Iterator[None]:
    """Within it Python does not look for cycles of garbage: a trace makes many objects that all stay, and to look at
    them again and again takes time that grows faster than the program."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
