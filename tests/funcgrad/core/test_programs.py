"""Programs: tracing, printing, the checker, passes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad.core import dtypes
from funcgrad.core.ir import ArrayType, Equation, Literal, Program, Var
from funcgrad.core.passes import common_subexpressions, dead_code, used_inputs
from funcgrad.interpreters.evaluate import evaluate
from funcgrad.primitives.elementwise import add, eq, sin
from funcgrad.primitives.shape import reshape
from funcgrad.runtime import executable
from tests.funcgrad.oracle import assert_close

X = np.array([0.5, -1.0, 2.0])
F64 = ArrayType((3,), dtypes.float64)


def names(program: Program) -> list[str]:
    return [e.primitive.name for e in program.equations]


# ---------------------------------------------------------------- types


def test_types_are_interned() -> None:
    import copy
    import pickle

    t = ArrayType((2, 3), dtypes.float32, weak=True)
    assert t is ArrayType((np.int64(2), 3), np.dtype("float32"), True)  # type: ignore[arg-type]
    assert t is ArrayType((2, 3), "float32", 1)  # type: ignore[arg-type]
    assert t is pickle.loads(pickle.dumps(t))
    assert t is copy.deepcopy(t)
    assert t.strong() is ArrayType((2, 3), dtypes.float32)
    assert t.with_shape((6,)) is ArrayType((6,), dtypes.float32, True)
    assert t.with_dtype(dtypes.int8) is ArrayType((2, 3), dtypes.int8)
    assert (t.ndim, t.size, repr(t)) == (2, 6, "f32[2,3]~")
    with pytest.raises(TypeError, match="got datetime64"):
        ArrayType((), "datetime64[s]")  # type: ignore[arg-type]


# ---------------------------------------------------------------- tracing and printing


def test_trace_of_arrays_numbers_and_types() -> None:
    class Shaped:
        shape, dtype = (3,), np.float64

    for x in (X, Shaped(), F64, fnp.asarray(X)):
        program = fg.trace(lambda x: {"y": fnp.sin(x) * 2, "x": x}, x)
        assert program.input_types == [F64]
        assert program.output_types == [F64, F64]
        assert names(program) == ["sin", "mul"]
    assert fg.trace(lambda x: x, 2.0).input_types == [ArrayType((), dtypes.float32, weak=True)]
    assert fg.trace(lambda: fnp.zeros(2)).output_types == [ArrayType((2,), dtypes.float32)]
    with pytest.raises(TypeError, match="trace: got 'no' of type str"):
        fg.trace(lambda x: x, "no")


def test_constants_and_literals() -> None:
    table = np.ones(3)
    program = fg.trace(lambda x: x * table + x * 2 * table + np.float64(3) + 4, X)
    assert [(v.type, c is table) for v, c in program.constants] == [(F64, True)]
    literals = [a.value for e in program.equations for a in e.inputs if isinstance(a, Literal)]
    assert [float(v) for v in literals] == [2.0, 3.0, 4.0]
    closed, values = program.closed()
    assert not closed.constants
    assert values[0] is table
    assert_close(evaluate(closed, [table, X])[0], 3 * X + 7, "evaluated")


def test_printed() -> None:
    inner = fg.jit(lambda x: fnp.sin(x))  # noqa: PLW0108
    program = fg.trace(lambda x, n: (inner(x) + np.ones(3), n[:1], 3.0), X, np.arange(2))
    assert repr(program) == "\n".join(
        [
            "program(a: f64[3], b: i64[2]) with (c: f64[3]) {",
            "  d: f64[3] = call a",
            "    <lambda>(e: f64[3]) {",
            "      f: f64[3] = sin e",
            "      return f",
            "    }",
            "  g: f64[3] = add d c",
            "  h: i64[1] = slice b {start=(0,), limit=(1,), strides=(1,)}",
            "  return g, h, 3.0",
            "}",
        ]
    )


def test_sources_are_the_user_s_lines() -> None:
    def f(x: Any) -> Any:
        y = fnp.sin(x)  # one
        return fg.grad(lambda z: fnp.sum(z * y))(x)  # two

    text = fg.trace(f, X).pretty(source=True)
    assert "# test_programs.py:" in text
    lines = {line.split(" = ")[1].split()[0]: line for line in text.splitlines() if " = " in line}
    assert lines["sin"].endswith("y = fnp.sin(x)  # one")
    assert "# two" in lines["mul"]


def test_a_program_runs_compiled_and_in_any_context() -> None:
    program = fg.trace(lambda x: (fnp.sin(x), x * 2), X)
    for results in (executable(program)(X), evaluate(program, [X]), fg.jit(lambda x: evaluate(program, [x]))(X)):
        assert_close(results[0], np.sin(X), "sin")
        assert_close(results[1], 2 * X, "double")
    assert_close(fg.grad(lambda x: fnp.sum(evaluate(program, [x])[0]))(X), np.cos(X), "gradient")
    with pytest.raises(TypeError, match="takes 1 arrays, got 2"):
        evaluate(program, [X, X])


# ---------------------------------------------------------------- the checker


def broken(change: Callable[[Program], None]) -> Program:
    """A program of two equations, corrupted after it was made."""
    program = fg.trace(lambda x: fnp.sin(x) + 1.0, X)
    change(program)
    return program


def set_inputs(number: int, inputs: Sequence[Any]) -> Callable[[Program], None]:
    def change(program: Program) -> None:
        e = program.equations[number]
        program.equations[number] = Equation(e.primitive, inputs, e.outputs, e.params, e.source)

    return change


def swap(program: Program) -> None:
    program.equations.reverse()


def twice(program: Program) -> None:
    program.equations.append(program.equations[-1])


def wrong_type(program: Program) -> None:
    e = program.equations[0]
    program.equations[0] = Equation(e.primitive, e.inputs, [Var(ArrayType((2,), dtypes.float64))], e.params)


def wrong_literal(program: Program) -> None:
    e = program.equations[1]
    program.equations[1] = Equation(
        e.primitive, [e.inputs[0], Literal(np.float32(1), ArrayType((), dtypes.float64))], e.outputs, {}
    )


def unknown_output(program: Program) -> None:
    program.outputs = [Var(F64)]


def input_twice(program: Program) -> None:
    program.inputs = program.inputs * 2


def wrong_constant(program: Program) -> None:
    program.constants = [(Var(F64), np.ones(2))]


def bad_inside(program: Program) -> None:
    inner = broken(swap)
    call = fg.trace(fg.jit(fnp.sin), X).equations[0]
    program.equations.insert(0, Equation(call.primitive, program.inputs, [Var(F64)], {"program": inner}))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (swap, r"equation 0 \(add, from test_programs.py.*reads a variable of type f64\[3\] that nothing has assigned"),
        (twice, r"equation 2 \(add.* is assigned twice"),
        (wrong_type, r"gives \[f64\[3\]\], but its variables are of types \[f64\[2\]\]"),
        (wrong_literal, r"the literal np.float32\(1.0\) is not of its type f64\[\]"),
        (unknown_output, r"reads a variable of type f64\[3\] that nothing has assigned"),
        (input_twice, "inputs: a variable .* is assigned twice"),
        (wrong_constant, r"constants: a value of shape \(2,\) for a variable of type f64\[3\]"),
        (set_inputs(0, [Var(F64)]), "reads a variable"),
        (bad_inside, "nothing has assigned"),
    ],
)
def test_broken_programs_are_rejected(change: Any, message: str) -> None:
    program = broken(change)
    with pytest.raises(fg.ProgramError, match=message):
        program.check()


def test_operands_that_do_not_fit_are_rejected() -> None:
    a, b = Var(F64), Var(ArrayType((2,), dtypes.float64))
    for equation, error in [
        (Equation(add, [a, b], [Var(F64)], {}), ValueError),
        (Equation(reshape, [a], [Var(b.type)], {"shape": (2,)}), ValueError),
        (Equation(add, [a, Var(ArrayType((), dtypes.float32))], [Var(F64)], {}), fg.ProgramError),
    ]:
        program = fg.trace(lambda x, y: x, X, X[:2])
        program.inputs, program.equations, program.outputs = [a, b], [equation], list(equation.outputs)
        with pytest.raises(error):
            program.check()


# ---------------------------------------------------------------- passes


def test_dead_code() -> None:
    def f(x: Any, y: Any) -> Any:
        _ = fnp.cos(y) * np.arange(3.0)
        return fnp.sin(x), x

    program = fg.trace(f, X, X)
    assert names(program) == ["cos", "mul", "sin"]
    assert used_inputs(program) == [True, False]
    lean = dead_code(program).check()
    assert names(lean) == ["sin"]
    assert lean.constants == []
    assert len(lean.inputs) == 2
    assert_close(evaluate(lean, [X, X])[0], np.sin(X), "value")


def test_common_subexpressions() -> None:
    def f(x: Any) -> Any:
        a = fnp.sin(x) * 2 + fnp.sum(x)
        b = fnp.sin(x) * 2 + fnp.sum(x)
        return a, b, fnp.sin(x) * 3, fnp.sin(x) * np.float32(3), fnp.sum(x, axis=0, keepdims=True)

    program = fg.trace(f, X.astype("float32"))
    lean = common_subexpressions(program).check()
    assert names(lean).count("sin") == 1
    assert names(lean).count("sum") == 1
    assert names(lean).count("mul") == 2
    assert names(lean).count("add") == 1
    x = X.astype("float32")
    for a, b in zip(evaluate(lean, [x]), f(fnp.asarray(x)), strict=True):
        assert_close(a, np.asarray(b), "value")


def test_different_equations_are_not_merged() -> None:
    def f(x: Any) -> Any:
        return (
            x[0:1],
            x[1:2],
            x * 1.0,
            x * -1.0,
            fnp.sum(x, 0),
            fnp.prod(x, 0),
            x > 0.0,
            x > -0.0,
            x.astype("int8"),
            x.astype("int16"),
        )

    program = fg.trace(f, X)
    lean = common_subexpressions(program).check()
    assert len(lean) == len(program)  # 0.0 and -0.0 are different literals


def test_merging_follows_through_calls_and_outputs() -> None:
    inner = fg.jit(fnp.sin)
    program = fg.trace(lambda x: (inner(x), inner(x), inner(x) + inner(x)), X)
    lean = common_subexpressions(program).check()
    assert names(lean) == ["call", "add"]
    assert lean.outputs[0] is lean.outputs[1]


def test_programs_of_no_equations() -> None:
    program = fg.trace(lambda x: (x, 2.0, x), X)
    assert len(program) == 0
    assert dead_code(program).check().output_types == [F64, ArrayType((), dtypes.float32, weak=True), F64]
    assert_close(executable(program)(X)[2], X, "identity")
    assert evaluate(fg.trace(lambda: ()), []) == []


def test_the_fixture_checks_programs() -> None:
    """Every program in these tests is checked when it is made, so an invalid one raises."""
    a = Var(F64)
    with pytest.raises(fg.ProgramError):
        Program([], [], [Equation(sin, [a], [Var(F64)], {})], [])
    with pytest.raises(fg.ProgramError):
        Program([a], [], [Equation(eq, [a, a], [Var(F64)], {})], [])
