"""A small GPT on eight devices, by ``shard_map`` and by shardings, compared with one device; sharded arguments."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad.parallel import device_put, make_mesh, shard_map, virtual_devices

LAYERS, WIDTH, HEADS, WORDS, LENGTH, BATCH = 4, 16, 8, 16, 8, 8
MESH = Mesh(np.array(jax.devices()), ("d",))
GRID = Mesh(np.array(jax.devices()).reshape(4, 2), ("data", "model"))
RNG = np.random.default_rng(0)
TOKENS = RNG.integers(0, WORDS, (BATCH, LENGTH))


def on(*entries: Any, mesh: Mesh = MESH) -> NamedSharding:
    return NamedSharding(mesh, P(*entries))


def weights(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape, scale=0.3).astype("float32")


PARAMS: dict[str, Any] = {
    "embedding": weights(WORDS, WIDTH),
    "positions": weights(LENGTH, WIDTH),
    "layers": {
        "first": 1 + weights(LAYERS, WIDTH),
        "qkv": weights(LAYERS, 3, WIDTH, WIDTH),
        "out": weights(LAYERS, WIDTH, WIDTH),
        "second": 1 + weights(LAYERS, WIDTH),
        "up": weights(LAYERS, WIDTH, 4 * WIDTH),
        "down": weights(LAYERS, 4 * WIDTH, WIDTH),
    },
}


def normed(x: Any) -> Any:
    return x / fnp.sqrt(fnp.mean(x * x, -1, keepdims=True) + 1e-5)


def layer(x: Any, p: Any, total: Callable[[Any], Any]) -> Any:
    """A layer; if its weights are shards, ``total`` sums over the devices with the other shards."""
    q, k, v = fnp.einsum("btw,cwh->cbth", normed(x) * p["first"], p["qkv"])
    q, k, v = (a.reshape(*a.shape[:2], -1, WIDTH // HEADS) for a in (q, k, v))
    scores = fnp.einsum("bthi,bshi->bhts", q, k) / (WIDTH // HEADS) ** 0.5
    scores = fnp.where(fnp.tril(fnp.ones((LENGTH, LENGTH), bool)), scores, -1e9)
    mixed = fnp.einsum("bhts,bshi->bthi", fg.nn.softmax(scores), v)
    x = x + total(mixed.reshape(*x.shape[:2], -1) @ p["out"])
    return x + total(fg.nn.gelu((normed(x) * p["second"]) @ p["up"]) @ p["down"])


def loss(params: Any, tokens: Any, total: Callable[[Any], Any] = lambda x: x) -> Any:
    x = params["embedding"][tokens] + params["positions"]
    x, _ = fg.scan(lambda x, p: (layer(x, p, total), None), x, params["layers"])
    logits = fg.nn.log_softmax(normed(x) @ params["embedding"].T)
    return -fnp.mean(fnp.take_along_axis(logits[:, :-1], tokens[:, 1:, None], -1))


# Each device has a head, and an eighth of the hidden units.
PARTS = {
    "embedding": P(), "positions": P(),
    "layers": {
        "first": P(), "qkv": P(None, None, None, "d"), "out": P(None, "d"), "second": P(), "up": P(None, None, "d"),
        "down": P(None, "d"),
    },
}  # fmt: skip
by_parts = shard_map(
    lambda params, tokens: loss(params, tokens, lambda x: fg.psum(x, "d")),
    mesh=MESH, in_specs=(PARTS, P()), out_specs=P(),
)  # fmt: skip


def step(params: Any, state: Any, tokens: Any, loss: Any = loss) -> Any:
    """Gradient descent with momentum."""
    value, gradients = fg.value_and_grad(loss)(params, tokens)
    state = jax.tree.map(lambda s, g: 0.9 * s + g, state, gradients)
    return jax.tree.map(lambda p, s: p - 0.1 * s, params, state), state, gradients, value


def trained(params: Any, tokens: Any, loss: Any = loss, steps: int = 3) -> tuple[list[float], Any, Any, Any]:
    run = fg.jit(lambda p, s, t: step(p, s, t, loss))
    state, losses, first = jax.tree.map(fnp.zeros_like, params), [], None
    for _ in range(steps):
        params, state, gradients, value = run(params, state, tokens)
        first = gradients if first is None else first
        losses.append(float(value))
    return losses, params, state, first


@pytest.fixture(scope="module")
def alone() -> Any:
    return trained(PARAMS, TOKENS)


def check(found: Any, alone: Any) -> None:
    np.testing.assert_allclose(found[0], alone[0], rtol=1e-5)
    for a, b in zip(jax.tree.leaves(found[3]), jax.tree.leaves(alone[3]), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def collectives(text: str) -> dict[str, int]:
    names = re.findall(r" (all-reduce|all-gather|reduce-scatter|collective-permute|all-to-all)(?:-start)?\(", text)
    return {name: names.count(name) for name in set(names)}


def eighths(*trees: Any) -> None:
    """Each device holds an eighth of the bytes of each tree."""
    for tree in trees:
        leaves = jax.tree.leaves(tree)
        for device in range(8):
            held = sum(x.addressable_shards[device].data.nbytes for x in leaves)
            assert held * 8 == sum(x.nbytes for x in leaves)


def test_by_parts(alone: Any) -> None:
    check(trained(PARAMS, TOKENS, by_parts), alone)
    found = collectives(fg.jit(fg.grad(by_parts)).lower(PARAMS, TOKENS).compile().as_text())
    # Two sums per layer forward, and two backward: in the text once, as layers are a loop.
    assert found == {"all-reduce": 4}, found


def test_data_parallel_by_shardings(alone: Any) -> None:
    params = device_put(PARAMS, on())
    tokens = device_put(TOKENS, on("d"))
    check(trained(params, tokens), alone)
    assert collectives(fg.jit(fg.grad(loss)).lower(params, tokens).compile().as_text()).keys() == {"all-reduce"}


def test_fully_sharded(alone: Any) -> None:
    where = jax.tree.map(lambda x: on(*[None] * (x.ndim - 1), "d"), PARAMS)
    found = trained(device_put(PARAMS, where), device_put(TOKENS, on("d")))
    check(found, alone)
    eighths(*found[1:])
    text = fg.jit(fg.grad(loss)).lower(device_put(PARAMS, where), device_put(TOKENS, on("d"))).compile().as_text()
    counted = collectives(text)
    assert counted.get("all-gather") or counted.get("all-to-all"), counted


def test_gradients_are_where_their_parameters_are() -> None:
    def f(p: Any, x: Any) -> Any:
        return fnp.mean(fnp.tanh(x @ p["w"] + p["b"]) ** 2) + fnp.sum(p["b"]) + 2.0 * fnp.sum(p["c"])

    p = device_put({"w": weights(8, 16), "b": weights(16), "c": weights(8)}, on("d"))
    x = device_put(weights(8, 8), on("d"))
    wanted = fg.grad(f)(jax.device_get(p), jax.device_get(x))
    for g in (fg.grad(f), fg.jit(fg.grad(f)), lambda p, x: fg.vjp(lambda p: f(p, x), p)[1](1.0)[0]):
        for name, found in g(p, x).items():
            assert found.sharding.is_equivalent_to(p[name].sharding, found.ndim), (name, found.sharding)
            np.testing.assert_allclose(found, wanted[name], rtol=1e-5, atol=1e-6)


def test_operations_at_once_and_deferred() -> None:
    x = device_put(weights(8, 16), on("d"))
    assert not fg.runtime.programs.by_numpy()
    for y in (fnp.sin(x) * 2 + 1, fg.vmap(fnp.sin)(x), fg.jvp(fnp.sin, (x,), (x,))[1]):
        assert y.sharding.is_equivalent_to(x.sharding, 2), y.sharding
    for _ in range(3):  # the second time it is compiled as a whole
        g = fg.grad(lambda x: fnp.sum(fnp.sin(x) ** 2))(x)
        assert g.sharding.is_equivalent_to(x.sharding, 2)
        np.testing.assert_allclose(g, np.sin(2 * np.asarray(x)), rtol=1e-5, atol=1e-6)
        x = x - 0.1 * g


def test_jit_with_shardings() -> None:
    x, w, b = weights(8, 4), weights(4, 6), weights(6)
    place = {
        "in_shardings": ({"w": on(None, "model", mesh=GRID), "b": None}, on("data", mesh=GRID)),
        "out_shardings": {"y": on("data", "model", mesh=GRID)},
    }
    f = fg.jit(lambda p, x, n: {"y": fnp.tanh(x @ p["w"] + p["b"]) * n}, static_argnums=2, **place)
    p = {"w": w, "b": b}
    found = f(p, x, 2)["y"]
    np.testing.assert_allclose(found, 2 * np.tanh(x @ w + b), rtol=1e-5)
    assert found.sharding.spec == P("data", "model")
    # Inside a gradient, a batch and another jit they are constraints.
    total = lambda p, x: fnp.sum(f(p, x, 2)["y"] ** 2)
    gradients = fg.jit(fg.grad(total))(p, x)
    assert gradients["w"].sharding.spec == P(None, "model")
    assert str(fg.trace(total, p, x)).count("sharding_constraint") == 3
    batched = fg.jit(fg.vmap(lambda x: f(p, x, 2)["y"]))(np.stack([x, x]))
    assert batched.sharding.spec == P(None, "data", "model")
    with jax.set_mesh(GRID):
        g = fg.jit(lambda x: x * 2, in_shardings=P("data"), out_shardings=P(None, "model"))
        assert g(x).sharding.spec == P(None, "model")
        assert fg.jit(fg.grad(lambda x: fnp.sum(g(x))))(x).sharding.spec == P("data")


def test_donated_parts() -> None:
    state = {"a": device_put(weights(8, 4), on("d"))}
    f = fg.jit(lambda s: {"a": s["a"] + 1}, donate_argnums=0, in_shardings=({"a": on("d")},), out_shardings=on("d"))
    found = f(state)
    assert state["a"].is_deleted()
    assert found["a"].sharding.spec == P("d")


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda: fg.jit(lambda p: p, in_shardings=({"w": on("d")},))({"w": np.ones(6)}),
            ValueError,
            r"axis 0 of p\['w'\]",
        ),
        (lambda: fg.jit(lambda p: p, in_shardings=on("d", None))(np.ones(8)), ValueError, "2 entries, but p of type"),
        (
            lambda: fg.jit(lambda p, q: p, in_shardings=(on("d"),))(1.0, 2.0),
            ValueError,
            "1 entries, but the call has 2",
        ),
        (
            lambda: fg.jit(lambda p: p, in_shardings=({"v": None},))({"w": 1.0}),
            ValueError,
            "p is a dict of .'w'., but is",
        ),
        (
            lambda: fg.jit(lambda p: p, in_shardings=({"w": "d"},)),
            TypeError,
            r"in_shardings\[0\]\['w'\] must be a Sharding",
        ),
        (lambda: fg.jit(lambda p: p, in_shardings=on("d"))(p=np.ones(8)), ValueError, "nothing of keyword arguments"),
        (lambda: fg.jit(lambda p: {"y": p}, out_shardings={"z": on("d")})(1.0), ValueError, "the result is a dict of"),
        (lambda: fg.jit(lambda p: p[:3], out_shardings=on("d"))(np.ones(8)), ValueError, "axis 0 of the result"),
        (lambda: device_put({"w": 1.0}, {"w": "cpu"}), TypeError, r"a device or a sharding for x\['w'\], got 'cpu'"),
        (lambda: device_put({"w": 1.0}, {"v": on()}), ValueError, r"x is a dict of \['w'\], but is given a dict"),
        (lambda: make_mesh((4, 2), ("data",)), ValueError, "has 2 sizes, but axis_names has 1"),
        (lambda: virtual_devices(9), RuntimeError, "wants 9 devices, but there are 8"),
    ],
)
def test_errors_name_the_argument(call: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


def test_meshes() -> None:
    mesh = make_mesh((4, 2), ("data", "model"))
    assert dict(mesh.shape) == {"data": 4, "model": 2}
    assert len(virtual_devices(8)) == 8
