"""Random nests of transforms, loops, branches and custom rules: funcgrad, compiled and not, compared with JAX.

A program is a function of a vector of three to one of the same size, written for both libraries. It is drawn as a tree:
the leaves are arithmetic, and a node puts its subtree into a loop, a branch, a batch, a checkpoint, a custom rule, or
takes its derivative. Finally the whole is transformed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.funcgrad.languages import OURS, THEIRS, compare_trees
from tests.funcgrad.oracle import QUICK, examples

W = np.random.default_rng(7).normal(size=(3, 3)) / 2
C = np.array([0.3, -0.8, 1.1])
Function = Callable[[Any], Any]


@dataclass
class Program:
    """A function for either library.

    Attributes:
        text: its description, for the report of a failure.
        of: the function, given a library.
    """

    text: str
    of: Callable[[Any], Function]


def _leaves() -> list[Program]:
    functions: dict[str, Callable[[Any, Any], Any]] = {
        "sin": lambda m, x: m.np.sin(x),
        "tanh": lambda m, x: m.np.tanh(x * 2 - C),
        "linear": lambda m, x: m.np.tanh(m.np.matmul(W, x)),
        "first": lambda m, x: m.np.cos(x * x[0]),
        "reverse": lambda m, x: x[::-1] * C,
        "cumsum": lambda m, x: m.np.cumsum(x) / 3,
        "normalized": lambda m, x: x / (1 + m.np.sum(x * x)),
        "set": lambda m, x: m.np.asarray(x).at[1].set(m.np.sin(x[2])),
        "add": lambda m, x: m.np.asarray(x).at[np.array([0, 0, 2])].add(m.np.cos(x)) / 2,
        "index": lambda m, x: m.np.asarray(x)[m.np.astype(x[0] > x[1], int)] * C,
        "softmax": lambda m, x: m.np.exp(x) / m.np.sum(m.np.exp(x)),
        "where": lambda m, x: m.np.where(x > 0.1, m.np.sin(x), x / 2),
        "constant": lambda m, x: m.np.ones(3) * C,
        "stopped": lambda m, x: m.stop_gradient(m.np.sin(x)) * x,
        "sorted": lambda m, x: m.np.sort(x) * C,
        "complex": lambda m, x: m.np.real(m.np.exp(1j * x) * (1 + x)) / 2,
        "solved": lambda m, x: m.np.linalg.solve(np.eye(3) * 2 + W / 4, x),
    }
    return [Program(name, lambda m, f=f: lambda x: f(m, x)) for name, f in functions.items()]


LEAVES = _leaves()


# ---------------------------------------------------------------- nodes with one child


def _scan(m: Any, f: Function) -> Function:
    def step(c: Any, y: Any) -> Any:
        c = m.np.tanh(f(c) + y)
        return c, {"c": c, "y": y[0] * c[1]}

    def run(x: Any) -> Any:
        last, kept = m.scan(step, x, m.np.stack([x, C * x, C]))
        return last + m.np.sum(kept["c"], 0) / 3 + kept["y"]

    return run


def _scan_closure(m: Any, f: Function) -> Function:
    """Captures a differentiated value, carries an integer, runs in reverse."""

    def run(x: Any) -> Any:
        def step(c: Any, y: Any) -> Any:
            v, i = c
            v = f(v) * x[0] + y * x / (i + 1)
            return (v, i + 1), v[::-1]

        (last, _), kept = m.scan(step, (C * 1, 0), W, reverse=True, unroll=2)
        return m.np.tanh(last + kept[0])

    return run


def _fori(m: Any, f: Function) -> Function:
    return lambda x: m.fori_loop(0, 3, lambda i, c: m.np.tanh(f(c) + x * i), x)


def _map(m: Any, f: Function) -> Function:
    return lambda x: m.np.mean(m.map(lambda v: f(v) * x, m.np.outer(C, x)), 0)


def _cond(m: Any, f: Function) -> Function:
    return lambda x: m.cond(m.np.sum(x) > 0.2, f, lambda v: m.np.sin(v) * x[1], x)


def _cond_closure(m: Any, f: Function) -> Function:
    """One branch is constant, the other captures a value; they return a tree."""

    def run(x: Any) -> Any:
        y = m.np.cos(x)
        found = m.cond(x[0] > x[2], lambda: {"a": f(y), "b": y[0]}, lambda: {"a": C * 1, "b": m.np.sum(x)})
        return found["a"] * found["b"]

    return run


def _switch(m: Any, f: Function) -> Function:
    def run(x: Any) -> Any:
        index = m.np.astype(m.np.floor(x[0] * 3), int)
        return m.switch(index, [f, lambda v: v * C, lambda v: f(v * 2)], x)

    return run


def _vmap(m: Any, f: Function) -> Function:
    return lambda x: m.np.mean(m.vmap(f)(m.np.stack([x, C * x, C, -x])), 0)


def _vmap_axes(m: Any, f: Function) -> Function:
    def run(x: Any) -> Any:
        rows = m.vmap(lambda v, s, w: {"o": f(v * s + w) * x}, in_axes=(1, 0, None), out_axes={"o": -1})
        return m.np.sum(rows(m.np.outer(x, C), C, x)["o"], 1) / 3

    return run


def _collective(m: Any, f: Function) -> Function:
    def one(v: Any) -> Any:
        return f(v - m.pmean(v, "i")) + m.psum(v * m.axis_index("i"), "i") / 4 + m.all_gather(v[0], "i")[:3]

    return lambda x: m.np.mean(m.vmap(one, axis_name="i")(m.np.stack([x, C * x, C])), 0)


def _associative(m: Any, f: Function) -> Function:
    def combine(a: Any, b: Any) -> Any:
        return a[0] * b[0], a[1] * b[0] + b[1]

    return lambda x: m.associative_scan(combine, (m.np.sin(f(x)), x))[1]


def _checkpoint(m: Any, f: Function) -> Function:
    return m.checkpoint(f)


def _checkpoint_policy(m: Any, f: Function) -> Function:
    policy = m.checkpoint_policies.save_only_these_names("kept")
    body = m.checkpoint(lambda x, y: m.np.sin(m.checkpoint_name(f(x), "kept")) * m.np.matmul(W, y), policy=policy)
    return lambda x: body(x, m.np.cos(x))


def _jit(m: Any, f: Function) -> Function:
    compiled = m.jit(lambda s, x: f(x) * s, static_argnums=0)
    return lambda x: compiled(2, x) / 2


def _closing_jit(m: Any, f: Function) -> Function:
    return lambda x: m.jit(lambda y: f(y) * x[1])(m.np.sin(x))


def _custom_jvp(m: Any, f: Function) -> Function:
    """Its rule is the true derivative: with another one JAX's loops differ from their unrolled steps."""
    rule = m.custom_jvp(lambda x, s: f(x) * s)
    rule.defjvp(lambda p, t: (rule(*p), m.jvp(lambda x, s: f(x) * s, p, t)[1]))
    return lambda x: rule(x, m.np.cos(x[0]))


def _gradient(m: Any, f: Function) -> Function:
    return m.grad(lambda x: m.np.sum(m.np.sin(f(x)) * C))


def _pushed(m: Any, f: Function) -> Function:
    return lambda x: m.jvp(f, (x,), (m.np.cos(x),))[1] / 2


def _linearized(m: Any, f: Function) -> Function:
    def run(x: Any) -> Any:
        y, along = m.linearize(f, x)
        return y + m.np.mean(m.vmap(along)(m.np.outer(C, x)), 0)

    return run


def _pulled(m: Any, f: Function) -> Function:
    def run(x: Any) -> Any:
        y, pull, aux = m.vjp(lambda v: (f(v) * x, m.np.sum(v)), x, has_aux=True)
        return m.np.tanh(pull(y)[0] + aux + m.np.mean(m.vmap(pull)(W)[0], 0))

    return run


def _transposed(m: Any, f: Function) -> Function:
    def run(x: Any) -> Any:
        along = m.linearize(f, x)[1]
        return m.np.tanh(m.linear_transpose(along, x)(m.np.cos(x))[0])

    return run


def _jacobian(m: Any, f: Function) -> Function:
    return lambda x: m.np.tanh(m.np.matmul(m.jacrev(f)(x), C))


def _jacobian_forward(m: Any, f: Function) -> Function:
    return lambda x: m.np.tanh(m.np.matmul(m.jacfwd(f)(x), x))


def _while(m: Any, f: Function) -> Function:
    def run(x: Any) -> Any:
        start = (x, m.np.sum(x) * 0, 0)
        loop = m.while_loop(
            lambda c: (c[1] < 2) & (c[2] < 6),
            lambda c: (m.np.tanh(f(c[0]) + x), c[1] + m.np.abs(c[0][0]), c[2] + 1),
            start,
        )
        return loop[0] * loop[1] / 2

    return run


def _fori_traced(m: Any, f: Function) -> Function:
    return lambda x: m.fori_loop(0, m.np.astype(x[0] > 0, int) + 1, lambda i, c: m.np.sin(f(c)) + i, x)


def _custom_vjp(m: Any, f: Function) -> Function:
    rule = m.custom_vjp(lambda x, s: f(x) * s)

    def forward(x: Any, s: Any) -> Any:
        return m.vjp(lambda x, s: f(x) * s, x, s)

    rule.defvjp(forward, lambda pull, ct: tuple(pull(ct)))
    return lambda x: rule(x, m.np.cos(x[0]))


def _custom_vjp_nondiff(m: Any, f: Function) -> Function:
    rule = m.custom_vjp(lambda g, n, x: {"y": g(x) * n}, nondiff_argnums=(0, 1))
    rule.defvjp(lambda g, n, x: ({"y": g(x) * n}, {"x": x}), lambda g, n, r, ct: m.vjp(g, r["x"])[1](ct["y"] * n))
    return lambda x: rule(f, 2, x)["y"]


# Functions that can be differentiated in both modes, only forward, only in reverse (JAX has no forward derivative of a
# function with a reverse rule).
BOTH = [
    _scan, _scan_closure, _fori, _map, _cond, _cond_closure, _switch, _vmap, _vmap_axes, _collective, _associative,
    _checkpoint, _checkpoint_policy, _jit, _closing_jit, _custom_jvp, _pushed, _linearized,
]  # fmt: skip
KINDS: dict[str, list[Callable[[Any, Function], Function]]] = {
    "both": [*BOTH, _gradient, _pulled, _transposed, _jacobian, _jacobian_forward],
    "forward": [*BOTH, _jacobian_forward, _while, _fori_traced],
    "reverse": [n for n in [*BOTH, _gradient, _pulled, _jacobian, _custom_vjp, _custom_vjp_nondiff]
                if n not in (_pushed, _linearized, _custom_jvp)],
}  # fmt: skip


def _sum(m: Any, f: Function, g: Function) -> Function:
    return lambda x: f(x) + g(x)


def _after(m: Any, f: Function, g: Function) -> Function:
    return lambda x: f(g(x))


def _times(m: Any, f: Function, g: Function) -> Function:
    return lambda x: f(x) * g(x)


@st.composite
def trees(draw: st.DrawFn, kind: str, depth: int) -> Program:
    if not depth or not draw(st.integers(0, 5)):
        return draw(st.sampled_from(LEAVES))
    below = draw(trees(kind, depth - 1))
    if not draw(st.integers(0, 2)):
        join, other = draw(st.sampled_from([_sum, _after, _times])), draw(trees(kind, depth - 1))
        return Program(f"{join.__name__}({below.text}, {other.text})", lambda m: join(m, below.of(m), other.of(m)))
    node = draw(st.sampled_from(KINDS[kind]))
    return Program(f"{node.__name__}({below.text})", lambda m: node(m, below.of(m)))


# ---------------------------------------------------------------- transforms of the whole

ROWS = np.stack([C, 0.5 - C, C[::-1] * 0.7, np.array([0.2, 0.9, -0.4])])


def _reverse_twice(m: Any, f: Function, c: Any) -> Any:
    gradient = m.grad(lambda x: m.np.sum(f(x)))
    return m.grad(lambda x: m.np.sum(gradient(x) * c))(c)


# Of a vector and a batch of four.
WHOLE: dict[str, dict[str, Callable[[Any, Function, Any, Any], Any]]] = {
    "both": {
        "value": lambda m, f, c, r: f(c),
        "gradient": lambda m, f, c, r: m.grad(lambda x: m.np.sum(f(x) ** 2))(c),
        "vmap of gradient": lambda m, f, c, r: m.vmap(m.value_and_grad(lambda x: m.np.sum(f(x) * c)))(r),
        "gradient of vmap": lambda m, f, c, r: m.grad(lambda x: m.np.sum(m.vmap(f)(x) ** 2))(r),
        "hessian": lambda m, f, c, r: m.hessian(lambda x: m.np.sum(f(x) * c))(c),
        "reverse over reverse": lambda m, f, c, r: _reverse_twice(m, f, c),
        "vmap of jvp": lambda m, f, c, r: m.vmap(lambda x, t: m.jvp(f, (x,), (t,)), (None, 0))(c, r),
        "jacobians": lambda m, f, c, r: (m.jacfwd(f)(c), m.jacrev(f)(c)),
        "vmap of hvp": lambda m, f, c, r: m.vmap(
            lambda x: m.jvp(m.grad(lambda y: m.np.sum(m.np.sin(f(y)))), (x,), (c,))[1], in_axes=1
        )(r.T),
        "gradient of a scan": lambda m, f, c, r: m.grad(
            lambda x: m.np.sum(m.scan(lambda v, y: (m.np.tanh(f(v) + y), v), x, r)[1])
        )(c),
    },
    "forward": {
        "value": lambda m, f, c, r: f(c),
        "jvp": lambda m, f, c, r: m.jvp(f, (c,), (r[1],)),
        "vmap": lambda m, f, c, r: m.vmap(f)(r),
        "vmap of jvp": lambda m, f, c, r: m.vmap(lambda x, t: m.jvp(f, (x,), (t,)))(r, r[::-1]),
        "jacfwd": lambda m, f, c, r: m.jacfwd(f)(c),
        "jacfwd twice": lambda m, f, c, r: m.jacfwd(m.jacfwd(lambda x: m.np.sum(f(x))))(c),
        "linearize": lambda m, f, c, r: m.linearize(f, c)[1](r[1]),
    },
    "reverse": {
        "value": lambda m, f, c, r: f(c),
        "gradient": lambda m, f, c, r: m.grad(lambda x: m.np.sum(f(x) ** 2))(c),
        "vmap of gradient": lambda m, f, c, r: m.vmap(m.value_and_grad(lambda x: m.np.sum(f(x) * c)))(r),
        "gradient of vmap": lambda m, f, c, r: m.grad(lambda x: m.np.sum(m.vmap(f)(x) ** 2))(r),
        "reverse over reverse": lambda m, f, c, r: _reverse_twice(m, f, c),
        "jacrev": lambda m, f, c, r: m.jacrev(f)(c),
        "gradient of checkpoint": lambda m, f, c, r: m.grad(lambda x: m.np.sum(m.checkpoint(f)(x)))(c),
    },
}  # fmt: skip


@st.composite
def programs(draw: st.DrawFn) -> tuple[str, Callable[[Any], Any]]:
    kind = draw(st.sampled_from(["both", "both", "forward", "reverse"]))
    program = draw(trees(kind, draw(st.sampled_from([3, 2, 4]))))
    name = draw(st.sampled_from(sorted(WHOLE[kind])))
    return f"{name} of {program.text}", lambda m: WHOLE[kind][name](
        m, program.of(m), m.np.asarray(C), m.np.asarray(ROWS)
    )


@examples(20)
@given(programs())
def test_compiled(case: tuple[str, Callable[[Any], Any]]) -> None:
    text, program = case
    ours = OURS.jit(lambda: program(OURS))()
    theirs = jax.jit(lambda: program(THEIRS), compiler_options=QUICK)()
    # Derivatives of derivatives of loops lose digits, and JAX's in another order.
    compare_trees(ours, theirs, text, 1e-7)


@examples(8)
@given(programs())
def test_outside_jit(case: tuple[str, Callable[[Any], Any]]) -> None:
    text, program = case
    compare_trees(program(OURS), OURS.jit(lambda: program(OURS))(), text, 1e-7)
