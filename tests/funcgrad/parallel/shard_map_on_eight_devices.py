"""``shard_map`` compared with JAX's and with the program without it: collectives, derivatives, nesting, errors."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad.core import passes
from funcgrad.parallel import shard_map

MESH = Mesh(np.array(jax.devices()).reshape(4, 2), ("data", "model"))
BOTH = ("data", "model")
ROWS, BLOCKS = P("data"), P("data", "model")
RNG = np.random.default_rng(0)
X, W = RNG.normal(size=(8, 8)), RNG.normal(size=(8, 8))

OURS = SimpleNamespace(
    np=fnp, lax=fg, shard_map=shard_map, grad=fg.grad, vmap=fg.vmap, jvp=fg.jvp, scan=fg.scan, cond=fg.cond,
    checkpoint=fg.checkpoint, jit=fg.jit, fori_loop=fg.fori_loop,
)  # fmt: skip
THEIRS = SimpleNamespace(
    np=jnp, lax=jax.lax, shard_map=jax.shard_map, grad=jax.grad, vmap=jax.vmap, jvp=jax.jvp, scan=jax.lax.scan,
    cond=jax.lax.cond, checkpoint=jax.checkpoint, jit=jax.jit, fori_loop=jax.lax.fori_loop,
)  # fmt: skip

#: By name: a function of a library and of shards, in_specs, out_specs, and more arguments of shard_map.
PROGRAMS: dict[str, tuple[Callable[..., Any], Any, Any, dict[str, Any]]] = {}


def program(in_specs: Any, out_specs: Any, **more: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def named(f: Callable[..., Any]) -> Callable[..., Any]:
        PROGRAMS[f.__name__] = f, in_specs, out_specs, more
        return f

    return named


@program((BLOCKS, P()), BLOCKS)
def exchanges(A, x, w):  # type: ignore[no-untyped-def]
    y = A.lax.all_gather(x, "model", axis=1, tiled=True) @ w
    z = A.lax.psum_scatter(A.np.sin(y), "model", scatter_dimension=1, tiled=True)
    return A.lax.ppermute(z, "data", [(0, 1), (1, 2), (2, 3)]) + A.lax.pshuffle(x * w[:2, :4], "data", [2, 0, 3, 1])


@program((ROWS, P()), ROWS)
def all_to_all(A, x, w):  # type: ignore[no-untyped-def]
    return A.lax.all_to_all(x * w[:2], "data", 1, 0, tiled=True)


@program((BLOCKS, P()), P())
def reductions(A, x, w):  # type: ignore[no-untyped-def]
    numbered = x * A.lax.axis_index("data") + A.lax.axis_index(BOTH) + A.lax.axis_size("model")
    mean = A.lax.pmean(A.np.sum(A.np.sin(numbered)), BOTH)
    return mean * w + A.lax.psum(A.np.sum(w * w), "data") * w  # the second is replicated already


@program((P(None, BOTH), P()), P(None, BOTH))
def an_axis_over_two(A, x, w):  # type: ignore[no-untyped-def]
    return A.lax.all_gather(x, BOTH, axis=1, tiled=True) @ w[:, :1]


@program((BLOCKS, P()), BLOCKS)
def gradients_inside_are_sums(A, x, w):  # type: ignore[no-untyped-def]
    g = A.grad(lambda w: A.np.sum(A.np.sin(x @ w[:4])))(w)
    h = A.grad(lambda w: A.lax.pmean(A.np.sum(A.np.cos(x @ w[:4])), BOTH))(w)
    return x @ (g + h)[:4, :4]


@program((BLOCKS, P()), BLOCKS)
def gradients_inside_of_each(A, x, w):  # type: ignore[no-untyped-def]
    own = A.lax.pcast(w, BOTH, to="varying")
    return x @ A.grad(lambda w: A.np.sum(A.np.sin(x @ w[:4])))(own)[:4, :4]


@program((BLOCKS, P()), BLOCKS, check_vma=False)
def unchecked(A, x, w):  # type: ignore[no-untyped-def]
    g = A.grad(lambda w: A.np.sum(A.np.sin(x @ w[:4])))(w)
    return x @ A.lax.pmean(g, BOTH)[:4, :4]


@program((BLOCKS, P()), (BLOCKS, P()), check_vma=False)
def unchecked_results(A, x, w):  # type: ignore[no-untyped-def]
    return A.lax.psum(x, "model") * x, A.lax.psum(A.np.sin(x), BOTH) @ w[:4]


@program((BLOCKS, P()), (BLOCKS, P("data")))
def a_loop(A, x, w):  # type: ignore[no-untyped-def]
    def step(c, row):  # type: ignore[no-untyped-def]
        return A.np.tanh(c + A.lax.psum(c * row[:4], "model")), A.np.sum(c * row[4:])

    c, ys = A.scan(step, x, w)
    return c, A.lax.psum(ys, "model")


@program((BLOCKS, P()), P())
def a_loop_whose_carry_is_the_same(A, x, w):  # type: ignore[no-untyped-def]
    return A.scan(lambda c, row: (A.lax.psum(A.np.tanh(c * x + row[:4]), BOTH), None), w[:2, :4], w)[0]


@program((BLOCKS, P()), BLOCKS)
def branches(A, x, w):  # type: ignore[no-untyped-def]
    y = A.cond(A.np.sum(w) > 0, lambda a: A.lax.psum(A.np.sin(a), "model") + a * w[:2, :4], lambda a: a * 2.0, x)
    return A.fori_loop(0, 3, lambda i, c: A.np.sin(c) * A.lax.psum(c, "model") + w[:2, :4], y)


@program((BLOCKS, P()), BLOCKS)
def calls(A, x, w):  # type: ignore[no-untyped-def]
    f = lambda x, w: A.np.sin(A.lax.psum(A.np.sin(x) @ w[:4, :4], "model")) * x
    return (
        A.checkpoint(f)(x, w) + A.jit(f)(x, w) + A.vmap(lambda r: f(r, w))(x) + A.jvp(lambda x: f(x, w), (x,), (x,))[1]
    )


@program((ROWS, P()), ROWS, axis_names={"data"})
def the_compiler_has_the_other_axis(A, x, w):  # type: ignore[no-untyped-def]
    return A.lax.psum(A.np.sin(x @ w), "data") * x


def total(A: Any, name: str, x: Any, w: Any) -> Any:
    """A scalar computed from all results, to be differentiated."""
    f, in_specs, out_specs, more = PROGRAMS[name]
    outs = A.shard_map(partial(f, A), mesh=MESH, in_specs=in_specs, out_specs=out_specs, **more)(x, w)
    outs = outs if isinstance(outs, tuple) else (outs,)
    return sum(A.np.sum(y * np.cos(np.arange(y.size)).reshape(y.shape)) for y in outs)


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_jax(name: str) -> None:
    def three(A: Any, value_and_grad: Any, x: Any, w: Any) -> Any:
        f = partial(total, A, name)
        return value_and_grad(f, (0, 1))(x, w), A.jvp(f, (x, w), (x * 0.1, w * 0.2))[1]

    ours = fg.jit(partial(three, OURS, fg.value_and_grad))(X, W)
    theirs = jax.jit(partial(three, THEIRS, jax.value_and_grad))(X, W)
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


# ---------------------------------------------------------------- compared with the program without it

layer = shard_map(
    lambda x, w: fnp.sin(fg.psum(x @ fg.all_gather(w, "data", axis=1, tiled=True), "model")),
    mesh=MESH, in_specs=(BLOCKS, P("model", "data")), out_specs=ROWS,
)  # fmt: skip
plain = lambda x, w: fnp.sin(x @ w)
square = lambda f, *args: fnp.sum(f(*args) ** 2)
MANY = RNG.normal(size=(3, 8, 8))
AROUND: dict[str, Callable[[Any], Any]] = {
    "called at once": lambda f: f(X, W),
    "differentiated at once": lambda f: fg.grad(partial(square, f), (0, 1))(X, W),
    "of a Hessian": lambda f: fg.jit(fg.hessian(lambda x: square(f, x, W)))(X),
    "linearized": lambda f: fg.jit(lambda x: fg.linearize(f, x, W)[1](x, W))(X),
    "batched": lambda f: fg.jit(fg.vmap(f, (2, None), out_axes=1))(MANY.transpose(1, 2, 0), W),
    "batched gradients": lambda f: fg.jit(fg.vmap(fg.grad(partial(square, f), (0, 1)), (0, None)))(MANY, W),
    "gradient of a batch": lambda f: fg.jit(fg.grad(lambda w: square(fg.vmap(f, (0, None)), MANY, w)))(W),
    "in a loop": lambda f: fg.jit(
        fg.grad(lambda w: square(lambda: fg.scan(lambda c, x: (fnp.tanh(c + f(x, w)), None), X, MANY)[0]))
    )(W),
    "computed again": lambda f: fg.jit(fg.grad(lambda w: square(fg.checkpoint(f), X, w)))(W),
    "of its pullback": lambda f: fg.vjp(f, X, W)[1](X),
}


@pytest.mark.parametrize("name", AROUND)
def test_transforms_around(name: str) -> None:
    for a, b in zip(jax.tree.leaves(AROUND[name](layer)), jax.tree.leaves(AROUND[name](plain)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


@fg.custom_vjp
def with_rule(a, w):  # type: ignore[no-untyped-def]
    return fnp.sin(a @ w)


with_rule.defvjp(
    lambda a, w: (fnp.sin(a @ w), (a, w)),
    lambda kept, g: ((g * fnp.cos(kept[0] @ kept[1])) @ kept[1].T, kept[0].T @ (g * fnp.cos(kept[0] @ kept[1]))),
)


@pytest.mark.parametrize("f", [with_rule, fg.interop.from_jax(lambda a, w: jnp.sin(a @ w)), plain])
def test_gradients_of_replicated_operands_are_summed(f: Callable[..., Any]) -> None:
    divided = shard_map(f, mesh=MESH, in_specs=(ROWS, P()), out_specs=ROWS)
    closed = lambda x, w: shard_map(lambda x: f(x, w), mesh=MESH, in_specs=ROWS, out_specs=ROWS)(x)
    wanted = fg.grad(partial(square, plain), 1)(X, W)
    for g in (divided, closed) if f is plain else (divided,):
        np.testing.assert_allclose(fg.jit(fg.grad(partial(square, g), 1))(X, W), wanted, rtol=1e-9)


def test_branches_that_devices_choose_differently() -> None:
    def parts(x: Any, w: Any) -> Any:
        return fg.cond(fnp.sum(x) > 0, lambda a: fnp.sin(a) * w[:2], lambda a: a * 2.0, x)

    def whole(x: Any, w: Any) -> Any:
        return fnp.concatenate([parts(part, w) for part in fnp.split(x, 4)])

    divided = shard_map(parts, mesh=MESH, in_specs=(ROWS, P()), out_specs=ROWS)
    for a, b in zip(*[fg.jit(fg.grad(partial(square, f), (0, 1)))(X, W) for f in (divided, whole)], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9)
    until = lambda x: fg.while_loop(lambda c: fnp.sum(c) < 50.0, lambda c: c * 1.5 + 1.0, x)
    found = fg.jit(shard_map(until, mesh=MESH, in_specs=ROWS, out_specs=ROWS))(abs(X))
    np.testing.assert_allclose(found, np.concatenate([until(part) for part in np.split(abs(X), 4)]), rtol=1e-9)


def test_one_inside_another() -> None:
    def outer(x: Any, w: Any) -> Any:
        inner = shard_map(
            lambda a, b: fg.psum(fnp.sin(a @ b), "model"), in_specs=(P(None, "model"), P("model")), out_specs=P(),
            axis_names={"model"},
        )  # fmt: skip
        return x * fg.psum(fnp.sum(inner(x, w)), "data")

    nested = shard_map(outer, mesh=MESH, in_specs=(ROWS, P()), out_specs=ROWS, axis_names={"data"})
    alone = lambda x, w: x * sum(fnp.sum(fnp.sin(x[:, i : i + 4] @ w[i : i + 4])) for i in (0, 4))
    np.testing.assert_allclose(fg.jit(nested)(X, W), alone(X, W), rtol=1e-9)
    for a, b in zip(*[fg.jit(fg.grad(partial(square, f), (0, 1)))(X, W) for f in (nested, alone)], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9)


def test_axes_of_a_batch_beside_those_of_a_mesh() -> None:
    share = lambda r: r / fg.psum(r, ("data", "i"))
    inside = fg.jit(shard_map(fg.vmap(share, axis_name="i"), mesh=MESH, in_specs=ROWS, out_specs=ROWS))(X)
    np.testing.assert_allclose(inside, X / X.sum(0), rtol=1e-9)
    divided = shard_map(lambda x: x / fg.psum(fnp.sum(x, 0), ("data", "i")), mesh=MESH, in_specs=ROWS, out_specs=ROWS)
    np.testing.assert_allclose(fg.jit(fg.vmap(divided, axis_name="i"))(MANY), MANY / MANY.sum((0, 1)), rtol=1e-9)


def test_extremes_and_their_gradients() -> None:
    largest = shard_map(lambda x: fg.pmax(x, "data") * fg.pmin(x, "data"), mesh=MESH, in_specs=ROWS, out_specs=P())
    whole = lambda x: fnp.max(x.reshape(4, 2, 8), 0) * fnp.min(x.reshape(4, 2, 8), 0)
    tied = np.round(X)
    np.testing.assert_allclose(largest(tied), whole(tied))
    wanted = fg.grad(partial(square, whole))(tied)
    np.testing.assert_allclose(fg.jit(fg.grad(partial(square, largest)))(tied), wanted)
    both = shard_map(lambda x: fg.pmin(x > -1, "data"), mesh=MESH, in_specs=ROWS, out_specs=P())(X)
    np.testing.assert_array_equal(both, (X > -1).reshape(4, 2, 8).all(0))


def test_random_numbers_of_each_device() -> None:
    def draw(key: Any) -> Any:
        return fg.random.normal(fg.random.fold_in(key, fg.axis_index("data")), (2,))

    key = fg.random.key(0)
    found = fg.jit(shard_map(draw, mesh=MESH, in_specs=P(), out_specs=ROWS))(key)
    alone = np.concatenate([fg.random.normal(fg.random.fold_in(key, i), (2,)) for i in range(4)])
    np.testing.assert_array_equal(found, alone)


def test_exchanges_are_as_few_as_jax_has() -> None:
    def f(A: Any, x: Any, w: Any, v: Any, b: Any) -> Any:
        y = A.lax.psum(A.np.tanh(x @ w) @ v, "model") + b
        return A.lax.psum(A.np.sum(A.np.sin(y)), "data")

    args = X, W, W, W[0]
    for check, wanted in ((True, 3), (False, 5)):
        counts = []
        for A, grad, jit in ((OURS, fg.grad, fg.jit), (THEIRS, jax.grad, jax.jit)):
            g = A.shard_map(
                partial(f, A), mesh=MESH, in_specs=(ROWS, P(None, "model"), P("model"), P()), out_specs=P(),
                check_vma=check,
            )  # fmt: skip
            counts.append(jit(grad(g, (1, 2, 3))).lower(*args).compile().as_text().count(" all-reduce("))
        assert counts[0] <= counts[1], (check, counts)
        assert counts[0] <= wanted, (check, counts)


def test_the_mesh_of_the_context() -> None:
    with jax.set_mesh(MESH):
        f = shard_map(lambda x: fg.psum(x, "data"), in_specs=ROWS, out_specs=P())
        for g in (f, fg.jit(f)):
            np.testing.assert_allclose(g(X), X.reshape(4, 2, 8).sum(0))


def test_meshes_of_explicit_axes() -> None:
    explicit = jax.make_mesh((4, 2), BOTH)
    x = jax.device_put(X, jax.NamedSharding(explicit, BLOCKS))
    g = shard_map(lambda x: fg.psum(x, "data"), mesh=explicit, in_specs=BLOCKS, out_specs=P(None, "model"))
    np.testing.assert_allclose(fg.jit(fg.grad(lambda x: square(g, x)))(x), np.tile(2 * g(X), (4, 1)))
    contracted = fg.lax.dot(x, x.T)  # whose sharding is not in JAX's types
    np.testing.assert_allclose(contracted, X @ X.T)


def test_called_twice_it_is_compiled_once() -> None:
    f = shard_map(lambda x: fnp.sin(x) * 2, mesh=MESH, in_specs=ROWS, out_specs=ROWS)
    f(X)
    known = len(passes._interned)
    f(X)
    assert len(passes._interned) == known


# ---------------------------------------------------------------- errors


def refused(f: Callable[..., Any], *args: Any, **more: Any) -> Callable[[], Any]:
    return lambda: shard_map(f, **{"mesh": MESH, "in_specs": ROWS, "out_specs": ROWS, **more})(*args)


def one(x: Any) -> Any:
    return x


def two(x: Any, y: Any) -> Any:
    return x


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (refused(one, X, in_specs=P("data", None, None)), ValueError, "has 3 entries, but x of type .* has 2 axes"),
        (refused(one, {"w": X[:6]}), ValueError, r"axis 0 of x\['w'\] of type .* cannot be divided among 4 devices"),
        (refused(one, X, in_specs=P("rows")), ValueError, r"names 'rows', but there are \['data', 'model'\]"),
        (refused(one, X, in_specs=P("data", "data")), ValueError, "names 'data' twice"),
        (refused(lambda x: {"y": x}, X, out_specs=P()), ValueError, r"the result\['y'\] .* varies along \['data'\]"),
        (refused(two, X, {"j": X}, in_specs=(ROWS, {"k": ROWS})), ValueError, "y is a dict of .'j'., but is given"),
        (refused(two, X, X, in_specs=(ROWS,)), ValueError, "has 1 entries, but the call has 2 arguments"),
        (refused(two, X, X, in_specs=(ROWS, "data")), TypeError, "wants a PartitionSpec for y, got 'data'"),
        (refused(one, "a"), TypeError, "x is 'a' of type str, wanted an array"),
        (refused(one, X, mesh=None), ValueError, "there is no mesh"),
        (refused(one, X, mesh=3), TypeError, "mesh must be a Mesh, got 3"),
        (refused(one, X, axis_names={"rows"}), ValueError, r"axis_names has \['rows'\], but the mesh has"),
        (
            refused(lambda x: (x, x), X, out_specs=(P(),)),
            ValueError,
            "the result is a tuple of 2, but is given a tuple",
        ),
        (refused(lambda x: fg.psum(x, "rows"), X), NameError, "no axis is called 'rows'"),
        (refused(lambda x: fg.vjp(fnp.sin, 1.0)[1](x[0, 0])[0], X), ValueError, "the cotangent varies"),
        (refused(lambda x: fg.pcast(x, "data", to="same"), X), ValueError, "to must be 'varying', got 'same'"),
        (refused(lambda x: fg.scan(lambda c, _: (c, c[0]), x, length=2)[1], X, out_specs=P()), ValueError, "varies"),
    ],
)
def test_error_messages_name_the_argument(call: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


def test_an_argument_that_is_no_array() -> None:
    f = shard_map(lambda x, how: x * 2 if how == "double" else x, mesh=MESH, in_specs=(ROWS, None), out_specs=ROWS)
    np.testing.assert_array_equal(f(X, "double"), 2 * X)
