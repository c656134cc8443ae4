"""Staging: runs a function on abstract arrays to record the program that it performs."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from funcgrad.core.errors import ConcretizationError, Source, user_location
from funcgrad.core.ir import ArrayType, Atom, Equation, Literal, Program, Var
from funcgrad.core.primitive import Primitive
from funcgrad.core.tracing import (
    Interpreter,
    Tracer,
    array_classes,
    concrete,
    differentiated_by,
    running,
    state,
    type_of,
    typed,
)
from funcgrad.interpreters.evaluate import evaluate

try:
    # Not public API: ``ensure_compile_time_eval`` does the same through a generator.
    from jax._src.config import eager_constant_folding as _folding
except ImportError:

    def _folding(enabled: bool) -> Any:  # type: ignore[misc]
        return jax.ensure_compile_time_eval()


_new: Any = object.__new__


class StagedTracer(Tracer):
    """An array known only by its type."""

    __slots__ = ("variable",)
    interpreter: Staging
    variable: Var

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
    """Records each operation as an equation.

    Attributes:
        constants: captured values: arrays, and tracers of outer interpreters.
    """

    __slots__ = (
        "equations",
        "constants",
        "_added",
        "_captured",
        "_literals",
        "_places",
        "_placed",
        "_values",
        "description",
    )

    def __init__(self, description: str = "trace") -> None:
        super().__init__()
        self.description = description
        self.equations: list[Equation] = []
        self.constants: list[tuple[Var, Any]] = []
        self._added: list[StagedTracer] = []
        self._captured: dict[int, Var] = {}
        self._literals: dict[tuple[ArrayType, bytes], Literal] = {}
        self._places: dict[Var, int] = {}  # index of the equation by result; filled lazily
        self._placed = 0
        self._values: dict[Var, Any] = {}

    def wrap(self, type: ArrayType) -> StagedTracer:
        """The tracer for a new variable."""
        variable, tracer = _new(Var), _new(StagedTracer)
        variable.type = type
        tracer.interpreter, tracer.type, tracer.variable = self, type, variable
        return tracer

    def added(self, type: ArrayType) -> StagedTracer:
        """Adds an input to the program after the others, for a value that is known only while the function runs."""
        tracer = self.wrap(type)
        self._added.append(tracer)
        return tracer

    def atom(self, x: Any) -> Atom:
        """The variable or literal for ``x`` in the program; equal literals are one object."""
        if isinstance(x, StagedTracer) and x.interpreter is self:
            return x.variable
        if isinstance(x, np.generic):
            type = ArrayType((), x.dtype)
        else:
            type, x = type_of(x), typed(x)
        if isinstance(x, np.generic):
            key = type, x.tobytes()
            literal = self._literals.get(key)
            if literal is None:
                literal = self._literals[key] = Literal(x, type)
            return literal
        var = self._captured.get(id(x))
        if var is None:
            # The list keeps x alive, so its id is not reused.
            var = self._captured[id(x)] = Var(type)
            self.constants.append((var, x))
        return var

    def process(self, primitive: Primitive, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        if primitive.close is not None:
            operands, params = primitive.close(self, operands, params)
        inputs: list[Atom] = []
        types: list[ArrayType] = []
        alike = True
        for x in operands:
            atom = x.variable if x.__class__ is StagedTracer and x.interpreter is self else self.atom(x)
            inputs.append(atom)
            types.append(atom.type)
            alike = alike and atom.type is types[0]
        if alike and types and types[0].dtype in primitive.closed:
            found: Sequence[ArrayType] = types
        else:
            found = primitive.output_types(types, params)
        # Created once per operation, so Python's constructors are bypassed.
        equation = _new(Equation)
        equation.primitive, equation.inputs, equation.params = primitive, inputs, params
        equation.source = state.source or user_location(2)
        self.equations.append(equation)
        if primitive.multiple:
            results = [self.wrap(t) for t in found]
            equation.outputs = [t.variable for t in results]
            return results
        variable, result = _new(Var), _new(StagedTracer)
        result.interpreter, result.type, result.variable = self, found[0], variable
        variable.type = found[0]
        equation.outputs = [variable]
        return result

    def needed(self, variable: Var) -> list[Equation] | None:
        """The equations that a variable depends on; None if one has an effect or depends on an input."""
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
        """The outer transforms that differentiate a constant on which a variable depends."""
        found = {v: by for v, x in self.constants if (by := differentiated_by(x))}
        for equation in self.equations if found else ():
            by = list(dict.fromkeys(i for a in equation.inputs if isinstance(a, Var) for i in found.get(a, ())))
            if by and equation.primitive.differentiable:
                found.update((v, by) for v in equation.outputs if v.type.inexact)
        return found.get(variable, [])

    def value(self, variable: Var, needed: list[Equation]) -> Any:
        """The value of a variable that depends only on constants, computed while the function is traced.

        Raises:
            ConcretizationError: if a constant is traced by an outer interpreter and has no concrete value.
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
            [t.variable for t in (*inputs, *self._added)],
            self.constants,
            self.equations,
            [self.atom(x) for x in outputs],
            name,
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
        name: the name of the program when printed.
        description: the name of the transform in error messages.
        by: the interpreter to use; a new ``Staging`` by default.
    """
    if not state.folding:
        with folding():
            return stage(f, types, name=name, description=description, by=by)
    interpreter = Staging(description) if by is None else by
    collects = gc.isenabled()
    try:
        # A trace allocates many objects that all stay alive: repeated garbage collections of them would take
        # superlinear time.
        gc.disable()
        with running(interpreter, floor=True):
            inputs = [interpreter.wrap(t) for t in types]
            return interpreter.program(inputs, list(f(*inputs)), name)
    finally:
        if collects:
            gc.enable()


class folding:
    """Context in which plain arrays that a staged function closes over stay concrete even while JAX traces: their own
    methods and operators are evaluated immediately."""

    __slots__ = ("before", "entered")

    def __enter__(self) -> None:
        self.before = state.folding
        self.entered = _folding(True)
        self.entered.__enter__()
        state.folding = True

    def __exit__(self, *exc: object) -> None:
        state.folding = self.before
        self.entered.__exit__(None, None, None)


array_classes.add(StagedTracer)
