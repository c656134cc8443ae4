"""``scan`` compared with JAX's: values, all derivatives, batches, and the residuals that it saves."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad.core.ir import Program
from funcgrad.primitives.contraction import matmul
from funcgrad.primitives.elementwise import add, mul, tanh
from funcgrad.primitives.reductions import reduce_sum
from tests.funcgrad.oracle import Case, Draw, check, check_eager, distinct, examples, normal
from tests.funcgrad.tolerances import FEW32, MANY32


def ours(reverse: bool, unroll: int) -> Any:
    def f(w: Any, b: Any, h: Any, xs: Any) -> list[Any]:
        def step(carry: Any, x: Any) -> Any:
            h, total, count = carry
            after = tanh(add(matmul(h, w), mul(x, b)))
            return (after, add(total, reduce_sum(mul(after, x), axes=(0,))), count + 1), {"h": after, "x": x}

        carry, ys = fg.scan(step, (h, fnp.zeros((), h.dtype), 0), xs, reverse=reverse, unroll=unroll)
        return [*carry, ys["h"], ys["x"]]

    return f


def theirs(reverse: bool, unroll: int) -> Any:
    def f(w: Any, b: Any, h: Any, xs: Any) -> list[Any]:
        def step(carry: Any, x: Any) -> Any:
            h, total, count = carry
            after = jnp.tanh(jnp.matmul(h, w, precision="highest") + x * b)
            return (after, total + jnp.sum(after * x), count + 1), {"h": after, "x": x}

        carry, ys = jax.lax.scan(step, (h, jnp.zeros((), h.dtype), 0), xs, reverse=reverse, unroll=unroll)
        return [*carry, ys["h"], ys["x"]]

    return f


def scan(draw: Draw) -> Case:
    how = draw(st.sampled_from([3, 4])), draw(st.booleans()), draw(st.sampled_from([1, 2]))
    return _case(*how)


def _case(*how: Any) -> Case:
    shapes = (3, 3), (3,), (3,), (how[0], 3)
    return Case(ours(*how[1:]), theirs(*how[1:]), [normal(s, np.float64) for s in shapes])


CASES = {"scan": scan}


@examples(4)
@given(st.data())
def test_against_jax(data: Any) -> None:
    check(scan(data.draw))


def test_step_by_step() -> None:
    check_eager(_case(3, False, 1))


def test_within_jit() -> None:
    case = _case(3, True, 1)
    check(Case(fg.jit(case.ours), case.theirs, case.operands))


@pytest.mark.parametrize("wanted", [0, 1])
def test_closed_over_values_of_a_step_are_operands(wanted: int) -> None:
    """Arrays and tracers of an outer transform, used outside the loop as well."""

    def closing(lib: Any, scan: Any) -> Any:
        def f(w: Any, x: Any) -> list[Any]:
            v = lib.sin(w)
            return [lib.sum(scan(lambda c, _: (c * v + w, c), x, None, length=3)[1]) * v]

        return f

    operands = [normal((2,), np.float64)] * 2
    check(Case(closing(fnp, fg.scan), closing(jnp, jax.lax.scan), operands, frozen=(1 - wanted,)))


def test_a_loop_in_a_loop() -> None:
    def nested(lib: Any, scan: Any) -> Any:
        def f(c: Any, xs: Any) -> list[Any]:
            def outer(c: Any, row: Any) -> Any:
                c, ys = scan(lambda c, x: (lib.sin(c) * x, c + x), c, row)
                return c, lib.sum(ys)

            return list(scan(outer, c, xs))

        return f

    check(Case(nested(fnp, fg.scan), nested(jnp, jax.lax.scan), [normal((), np.float64), normal((2, 3), np.float64)]))


def test_a_carry_that_gets_its_derivative_late() -> None:
    """The first carries are constants; they depend on the operand only after two steps."""

    def late(scan: Any) -> Any:
        def f(x: Any) -> list[Any]:
            def step(carry: Any, _: Any) -> Any:
                a, b, c = carry
                return (b * 2.0, c * c, c + x), a

            (a, b, c), ys = scan(step, (np.float64(0), np.float64(1), np.float64(1)), None, length=4)
            return [a, b, c, ys]

        return f

    check(Case(late(fg.scan), late(jax.lax.scan), [normal((), np.float64)]))


def test_through_a_primitive_that_is_differentiated_by_linearizing() -> None:
    """Sorting declares its forward derivative only; in the loop and around it."""

    def sorting(lib: Any, scan: Any) -> Any:
        def f(xs: Any, v: Any) -> list[Any]:
            return list(scan(lambda c, x: (lib.sort(c * x + v), c), v, xs))

        return f

    check(
        Case(
            sorting(fnp, fg.scan),
            sorting(jnp, jax.lax.scan),
            [normal((2, 3), np.float64, 0.5, 1.5), distinct((3,), np.float64)],
        )
    )


def test_linearize_gives_values_and_a_loop_of_tangents() -> None:
    x = fnp.array([0.5, 1.5, 2.0])

    def f(c: Any, lib: Any = fnp, scan: Any = fg.scan) -> Any:
        return scan(lambda c, x: (lib.sin(c) * x, c * x), c, x)

    (value, ys), push = fg.linearize(f, 0.7)
    wanted, tangents = jax.jvp(lambda c: f(c, jnp, jax.lax.scan), (jnp.float32(0.7),), (jnp.float32(2.0),))
    np.testing.assert_allclose(value, wanted[0], rtol=FEW32)
    np.testing.assert_allclose(ys, wanted[1], rtol=FEW32)
    for ours, theirs in zip(push(2.0), tangents, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=MANY32)


def test_linearize_of_a_call() -> None:
    value, push = fg.linearize(fg.jit(fnp.sin), 0.5)
    assert float(value) == pytest.approx(np.sin(0.5)) and float(push(2.0)) == pytest.approx(2 * np.cos(0.5))


def test_the_transpose_of_a_linear_loop() -> None:
    """The result of linearizing a loop is linear, and can be transposed."""
    xs = fnp.array([0.5, 1.5, 2.0])

    def f(c: Any, lib: Any = fnp, scan: Any = fg.scan) -> Any:
        return scan(lambda c, x: (lib.sin(c) * x, c * x), c, xs)[1]

    _, push = fg.linearize(f, 0.7)
    _, pull = fg.vjp(push, 0.0)
    _, wanted = jax.vjp(lambda c: f(c, jnp, jax.lax.scan), jnp.float32(0.7))
    ct = np.array([1.0, -2.0, 3.0], np.float32)
    np.testing.assert_allclose(pull(ct)[0], wanted(ct)[0], rtol=MANY32)


def test_lengths_and_empty_loops() -> None:
    carry, ys = fg.scan(lambda c, x: (c + x, c), 1.0, fnp.zeros((0,)))
    assert float(carry) == 1.0 and ys.shape == (0,)
    carry, ys = fg.scan(lambda c, _: (c * 2, None), 1.0, length=10)
    assert float(carry) == 1024.0 and ys is None
    assert fg.grad(lambda x: fg.scan(lambda c, _: (c * x, None), 1.0, length=0)[0])(3.0) == 0.0


def test_structures() -> None:
    carry, ys = fg.scan(
        lambda c, x: ({"n": c["n"] + 1, "s": [c["s"][0] + x[0] * x[1]]}, (x[0], {"n": c["n"]})),
        {"n": 0, "s": [0.0]},
        (fnp.arange(3.0), fnp.ones(3)),
    )
    assert int(carry["n"]) == 3 and float(carry["s"][0]) == 3.0
    np.testing.assert_array_equal(ys[0], [0, 1, 2])
    np.testing.assert_array_equal(ys[1]["n"], [0, 1, 2])


def test_a_number_takes_the_dtype_of_the_first_step() -> None:
    carry, _ = fg.scan(lambda c, x: (c + x, None), 0, fnp.ones(3, np.float64))
    assert carry.dtype == np.float64
    carry, ys = fg.scan(lambda c, _: (c + 1, 2.0), 0, length=3)
    assert carry.dtype == np.int64 and ys.dtype == np.float32


def _equations(program: Program) -> int:
    inner = [p for e in program.equations for p in e.params.values() if isinstance(p, Program)]
    return len(program) + sum(map(_equations, inner))


def test_a_longer_loop_is_no_longer_a_program() -> None:
    def f(w: Any, xs: Any) -> Any:
        return fnp.sum(fg.scan(lambda c, x: (fnp.tanh(c @ w + x), c), xs[0], xs)[1])

    sizes = {
        n: [_equations(fg.trace(g, np.ones((2, 2), np.float32), np.ones((n, 2), np.float32))) for g in (f, fg.grad(f))]
        for n in (3, 3000)
    }
    assert sizes[3] == sizes[3000]


def test_loop_invariant_values_are_saved_once() -> None:
    def f(w: Any, xs: Any) -> Any:
        def step(c: Any, x: Any) -> Any:
            c = fnp.sin(c @ fnp.exp(w)) * x
            return c, c

        return fnp.sum(fg.scan(step, xs[0], xs)[1])

    program = fg.trace(fg.grad(f), np.ones((5, 5), np.float32), np.ones((7, 5), np.float32)).check()
    forward, backward = [e for e in program.equations if e.primitive.name == "scan"]
    assert all(v.type.size <= 7 * 5 for v in forward.outputs), "a matrix was stacked"
    assert (
        sum(v.type.shape == (7, 5) for v in forward.outputs) <= 4
    )  # the result, the product, the carry; xs is available
    assert backward.params["reverse"] and len(backward.outputs) == 2


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: fg.scan(lambda c, x: (c, x), 0.0), ValueError, "must be given as length"),
        (lambda: fg.scan(lambda c, x: (c, x), 0.0, (np.ones(2), np.ones(3))), ValueError, r"2 \(xs\[0\] of type"),
        (lambda: fg.scan(lambda c, x: (c, x), 0.0, np.ones(2), length=3), ValueError, r"3 \(length\)"),
        (lambda: fg.scan(lambda c, x: (c, x), 0.0, 1.0), ValueError, "no axis to loop over"),
        (lambda: fg.scan(lambda c, x: (c, x), "a", np.ones(2)), TypeError, "init is 'a' of type str"),
        (lambda: fg.scan(lambda c, x: c, 0.0, np.ones(2)), TypeError, "must return"),
        (lambda: fg.scan(lambda c, x: ((c, c), x), 0.0, np.ones(2)), TypeError, "structure"),
        (lambda: fg.scan(lambda c, x: (c, "a"), 0.0, np.ones(2)), TypeError, "must return arrays"),
        (lambda: fg.scan(lambda c, x: ({"a": c["a"] > 0}, x), {"a": np.ones(2)}, np.ones(2)), TypeError, r"carry\['a"),
        (lambda: fg.scan(lambda c, x: (c, x), 0.0, np.ones(2), unroll=0), ValueError, "unroll"),
    ],
)  # fmt: skip
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()
