"""Program-to-program passes: dead code, common subexpressions, inlining of calls, interning of equal programs."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Sequence
from typing import Any

from funcgrad.core.ir import Atom, Equation, Program, Var, kept_with_program


def dead_code(program: Program) -> Program:
    """The program without equations and constants that no output depends on; its inputs are kept."""
    return part(program, program.inputs, program.outputs, program.name)


def part(
    program: Program, inputs: Sequence[Var], outputs: Sequence[Atom], name: str, first: int | None = None
) -> Program:
    """The sub-program that computes some of a program's values.

    Args:
        inputs: the sub-program's inputs; a superset of those that the outputs depend on.
        outputs: the values to compute.
        name: the name used for printing.
        first: only the first so many equations are considered; None for all.
    """
    live, kept = _live(program.equations[:first], outputs)
    constants = [(v, x) for v, x in program.constants if v in live] if program.constants else []
    return Program(inputs, constants, kept, outputs, name)


def used_inputs(program: Program) -> list[bool]:
    """Which inputs the outputs depend on, equation by equation."""
    live, _ = _live(program.equations, program.outputs)
    return [v in live for v in program.inputs]


def reads(equations: Sequence[Equation], outputs: Sequence[Atom]) -> Counter[Atom]:
    """How often equations and outputs read each variable."""
    found: Counter[Atom] = Counter(a for e in equations for a in e.inputs if type(a) is Var)
    found.update(a for a in outputs if type(a) is Var)
    return found


def _live(equations: Sequence[Equation], outputs: Sequence[Atom]) -> tuple[set[Atom], list[Equation]]:
    """The atoms and equations that some values depend on."""
    live = set(outputs)
    kept: list[Equation] = []
    for equation in reversed(equations):
        if not live.isdisjoint(equation.outputs) or equation.primitive.effect or (equation.params and _acts(equation)):
            kept.append(equation)
            live.update(equation.inputs)
    kept.reverse()
    return live, kept


def _acts(equation: Equation) -> bool:
    """Whether the equation has an effect, itself or in a program that it carries."""
    return equation.primitive.effect or any(map(_has_effects, equation.programs()))


@kept_with_program
def _has_effects(program: Program) -> bool:
    return any(map(_acts, program.equations))


def common_subexpressions(program: Program) -> Program:
    """The program with equations of the same primitive, operands and parameters merged, and without reshapes to the
    operand's own shape."""
    known: dict[Atom, Atom] = {}
    seen: dict[tuple, Equation] = {}
    kept: list[Equation] = []
    results = set(program.outputs)

    for equation in program.equations:
        inputs = [known.get(a, a) for a in equation.inputs] if known else equation.inputs
        out = equation.outputs[0] if equation.primitive.name == "reshape" else None
        if out is not None and inputs[0].type == out.type and out not in results:
            known[out] = inputs[0]
            continue
        key = (equation.primitive, *inputs, *equation.params.items())  # equal literals are one object
        earlier = None if _acts(equation) else seen.get(key)
        if earlier is None:
            if inputs != equation.inputs:
                equation = Equation(equation.primitive, inputs, equation.outputs, equation.params, equation.source)
            seen[key] = equation
            kept.append(equation)
        else:
            known.update(zip(equation.outputs, earlier.outputs, strict=True))
    return Program(program.inputs, program.constants, kept, [known.get(a, a) for a in program.outputs], program.name)


def inlined(program: Program) -> Program:
    """The program with calls inlined."""
    if not any(e.primitive.name == "call" for e in program.equations):
        return program
    equations: list[Equation] = []
    known = _inline(program, program.inputs, equations)
    return Program(program.inputs, program.constants, equations, known, program.name)


def _inline(program: Program, arguments: Sequence[Atom], equations: list[Equation]) -> list[Atom]:
    """Adds a program's equations with fresh variables; returns its outputs."""
    known: dict[Atom, Atom] = dict(zip(program.inputs, arguments, strict=True))
    for equation in program.equations:
        inputs = [known.get(a, a) for a in equation.inputs]
        if equation.primitive.name == "call":
            known.update(zip(equation.outputs, _inline(equation.params["program"], inputs, equations), strict=True))
            continue
        outputs = [Var(v.type) for v in equation.outputs]
        equations.append(Equation(equation.primitive, inputs, outputs, equation.params, equation.source))
        known.update(zip(equation.outputs, outputs, strict=True))
    return [known.get(a, a) for a in program.outputs]


@kept_with_program
def simplified_closed(program: Program) -> tuple[Program, list[Any]]:
    """The program after dead code and common subexpression elimination, constants as inputs; and the constants."""
    return dead_code(common_subexpressions(program)).closed()


_KEPT = 256
_interned: OrderedDict[tuple, Program] = OrderedDict()


def interned(program: Program) -> Program:
    """An earlier program with equal equations, if cached, so that its compiled executables are reused.

    Args:
        program: a program without constants.
    """
    key = _fingerprint(program)
    try:
        found = _interned.setdefault(key, program)
    except TypeError:  # a parameter that cannot be compared
        return program
    _interned.move_to_end(key)
    while len(_interned) > _KEPT:
        _interned.popitem(last=False)
    return found


def _fingerprint(program: Program) -> tuple:
    places: dict[Atom, int] = {v: i for i, v in enumerate([*program.inputs, *[v for v, _ in program.constants]])}

    def atom(a: Atom) -> Any:
        return places[a] if isinstance(a, Var) else (a.type, a.value.tobytes())

    def parameter(value: Any) -> Any:
        # The type is part of the key: True and 1.0 equal 1.
        return _fingerprint(value) if isinstance(value, Program) else (type(value), value)

    equations = []
    for e in program.equations:
        params = tuple((k, parameter(v)) for k, v in e.params.items())
        equations.append((e.primitive, tuple(map(atom, e.inputs)), params))
        for variable in e.outputs:
            places[variable] = len(places)
    constants = tuple(id(x) for _, x in program.constants)
    return (*program.input_types, tuple(equations), tuple(map(atom, program.outputs)), constants)
