"""funcgrad.nn compared with JAX, and a network that learns."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad import nn
from tests.funcgrad.oracle import assert_close

RNG = np.random.default_rng(0)
X = np.array([-30.0, -3.0, -0.7, 0.0, 0.4, 2.0, 30.0])


def same_with_derivatives(ours: Any, theirs: Any, *xs: np.ndarray, tolerance: float | None = None) -> None:
    """Values, and gradients of a weighted sum, by all arguments."""
    weights = RNG.normal(size=jax.eval_shape(theirs, *xs).shape)
    every = tuple(range(len(xs)))
    value, gradient = fg.jit(fg.value_and_grad(lambda *xs: fnp.sum(ours(*xs) * weights), every))(*xs)
    wanted, wanted_gradient = jax.jit(jax.value_and_grad(lambda *xs: jnp.sum(theirs(*xs) * weights), every))(*xs)
    assert_close(value, wanted, "value", tolerance)
    for a, b in zip(gradient, wanted_gradient, strict=True):
        assert_close(a, b, "gradient", tolerance)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (nn.relu, jax.nn.relu),
        (nn.leaky_relu, jax.nn.leaky_relu),
        (lambda x: nn.elu(x, 1.5), lambda x: jax.nn.elu(x, 1.5)),
        (nn.sigmoid, jax.nn.sigmoid),
        (nn.silu, jax.nn.silu),
        (nn.softplus, jax.nn.softplus),
        (nn.gelu, lambda x: jax.nn.gelu(x, approximate=False)),
        (lambda x: nn.gelu(x, "tanh"), jax.nn.gelu),
        (nn.relu6, jax.nn.relu6),
        (nn.hard_tanh, jax.nn.hard_tanh),
        (nn.hard_sigmoid, jax.nn.hard_sigmoid),
        (nn.hard_silu, jax.nn.hard_silu),
        (lambda x: nn.celu(x, 1.5), lambda x: jax.nn.celu(x, 1.5)),
        (nn.selu, jax.nn.selu),
        (nn.mish, jax.nn.mish),
        (nn.log_sigmoid, jax.nn.log_sigmoid),
        (nn.soft_sign, jax.nn.soft_sign),
        (lambda x: nn.squareplus(x, 2.0), lambda x: jax.nn.squareplus(x, 2.0)),
        (nn.softmax, jax.nn.softmax),
        (nn.log_softmax, jax.nn.log_softmax),
        (nn.logsumexp, jax.nn.logsumexp),
    ],
)
def test_activations(ours: Any, theirs: Any) -> None:
    # JAX's leaky_relu has the derivative 1 at exactly 0.
    x = X[X != 0] if ours is nn.leaky_relu else X
    same_with_derivatives(ours, theirs, x)
    wide = np.array([-800.0, 800.0])
    assert_close(ours(wide), theirs(jnp.asarray(wide)), "far out")
    assert np.isfinite(fg.grad(lambda x: fnp.sum(ours(x)))(wide)).all()


def test_glu() -> None:
    x = RNG.normal(size=(2, 4, 3))
    same_with_derivatives(nn.glu, jax.nn.glu, np.moveaxis(x, 1, 2))
    same_with_derivatives(lambda x: nn.glu(x, 1), lambda x: jax.nn.glu(x, 1), x)
    with pytest.raises(ValueError, match=r"glu: axis 2 of f64\[2,4,3\] must be of even size"):
        nn.glu(x, 2)


def test_derivatives_at_zero() -> None:
    assert float(fg.grad(nn.relu)(0.0)) == 0.0
    assert float(fg.grad(nn.softplus)(0.0)) == 0.5
    assert float(fg.grad(nn.gelu)(0.0)) == 0.5
    assert np.isnan(nn.relu(np.float32(np.nan)))


@pytest.mark.parametrize("dtype", ["float16", "float32", "int32"])
def test_dtypes(dtype: str) -> None:
    x = np.ones(3, dtype)
    kept = np.dtype("float32") if dtype == "int32" else np.dtype(dtype)
    for f in (nn.sigmoid, nn.silu, nn.gelu, nn.softplus, nn.softmax, nn.log_softmax, nn.elu):
        assert f(x).dtype == kept
    assert nn.relu(x).dtype == x.dtype


CONVOLUTIONS: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "plain": ((2, 3, 6, 5), (4, 3, 3, 2), {}),
    "same": ((2, 3, 6, 5), (4, 3, 3, 2), {"padding": "same"}),
    "same dilated": ((1, 2, 7), (3, 2, 4), {"padding": "same", "dilation": 2}),
    "strided": ((2, 3, 7, 8), (4, 3, 3, 2), {"stride": (2, 3), "padding": (1, 0)}),
    "dilated": ((2, 3, 7, 8), (4, 3, 2, 2), {"dilation": (2, 1), "padding": 2}),
    "grouped": ((2, 4, 5, 5), (6, 2, 3, 3), {"groups": 2, "padding": 1}),
    "depthwise": ((2, 3, 9), (6, 1, 3), {"groups": 3, "stride": 2}),
    "three axes": ((1, 2, 4, 4, 3), (2, 2, 2, 2, 2), {"padding": (1, 0, 1)}),
    "no axes": ((5, 3), (4, 3), {}),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_conv(name: str) -> None:
    shape, kernel, options = CONVOLUTIONS[name]
    x, w, b = RNG.normal(size=shape), RNG.normal(size=kernel), RNG.normal(size=kernel[0])
    axes = len(shape) - 2

    def each(value: Any) -> tuple[int, ...]:
        return (value,) * axes if isinstance(value, int) else tuple(value)

    holes = each(options.get("dilation", 1))
    if options.get("padding") == "same":
        totals = [d * (k - 1) for d, k in zip(holes, kernel[2:], strict=True)]
        padding = [(n // 2, n - n // 2) for n in totals]
    else:
        padding = [(n, n) for n in each(options.get("padding", 0))]

    def theirs(x: Any, w: Any, b: Any) -> Any:
        strides, groups = each(options.get("stride", 1)), options.get("groups", 1)
        out = lax.conv_general_dilated(
            x, w, strides, padding, rhs_dilation=holes, feature_group_count=groups, precision=lax.Precision.HIGHEST
        )
        return out + b.reshape(-1, *(1,) * axes)

    same_with_derivatives(lambda x, w, b: nn.conv(x, w, b, **options), theirs, x, w, b)
    if axes:
        assert_close(nn.conv(x[0], w, b, **options), np.asarray(theirs(x, w, b))[0], "a single image")


POOLS: dict[str, tuple[tuple[int, ...], dict[str, Any]]] = {
    "plain": ((2, 3, 6, 4), {"size": 2}),
    "overlapping": ((2, 3, 7, 6), {"size": (3, 2), "stride": (2, 1)}),
    "padded": ((2, 3, 6, 5), {"size": 3, "stride": 2, "padding": (1, 0)}),
    "one axis": ((2, 3, 9), {"size": 4, "stride": 3, "padding": 2}),
}


@pytest.mark.parametrize("name", POOLS)
def test_pools(name: str) -> None:
    shape, options = POOLS[name]
    x = RNG.normal(size=shape)
    axes = len(shape) - 2

    def each(value: Any) -> tuple[int, ...]:
        return (value,) * axes if isinstance(value, int) else tuple(value)

    size = (1, 1, *each(options["size"]))
    strides = (1, 1, *each(options.get("stride", options["size"])))
    padding = [(0, 0), (0, 0), *[(n, n) for n in each(options.get("padding", 0))]]

    def window(x: Any, start: float, f: Any) -> Any:
        return lax.reduce_window(x, start, f, size, strides, padding)

    same_with_derivatives(lambda x: nn.max_pool(x, **options), lambda x: window(x, -jnp.inf, lax.max), x)
    count = np.prod(each(options["size"]))
    same_with_derivatives(lambda x: nn.avg_pool(x, **options), lambda x: window(x, 0.0, lax.add) / count, x)
    same_with_derivatives(
        lambda x: nn.avg_pool(x, **options, count_include_pad=False),
        lambda x: window(x, 0.0, lax.add) / window(jnp.ones_like(x), 0.0, lax.add),
        x,
    )
    pair = dict(options, size=each(options["size"]))
    assert_close(nn.max_pool(x[0], **pair), np.asarray(nn.max_pool(x, **options))[0], "a single image")


def test_max_pool_ties_and_dilation() -> None:
    x = np.array([[[1.0, 1.0, 0.0, 2.0, 2.0]]])
    assert_close(
        fg.grad(lambda x: fnp.sum(nn.max_pool(x, 2)))(x), np.array([[[1.0, 0, 0, 1, 0]]]), "the first of equals"
    )
    assert_close(nn.max_pool(x, 2, 1, dilation=2), np.array([[[1.0, 2.0, 2.0]]]), "dilated")
    assert_close(nn.max_pool(np.array([[[1, 3, 2, 0]]]), 2), np.array([[[3, 2]]]), "integers")


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "logsumexp"])
def test_reductions_with_a_mask(name: str) -> None:
    """A mask, of which one row is empty: values, and derivatives, which are finite there."""
    x, mask = X[:6].reshape(2, 3), np.array([[True, False, True], [False] * 3])

    def program(m: Any, n: Any) -> Any:
        f = lambda x: n.where(mask, getattr(m, name)(x, axis=1, where=mask, **more), 0.0)
        return f(x), jacobian[m](f)(x)

    more = {"keepdims": True} if name == "logsumexp" else {}
    jacobian = {nn: fg.jacrev, jax.nn: jax.jacrev}
    ours, theirs = program(nn, fnp), program(jax.nn, jax.numpy)
    assert_close(ours[0], np.asarray(theirs[0]), name)
    assert_close(ours[1][0], np.asarray(theirs[1][0]), f"derivative of {name}")
    assert np.all(np.asarray(ours[1][1]) == 0)


def test_one_hot() -> None:
    labels = np.array([[0, 2], [3, -1]])
    assert_close(nn.one_hot(labels, 3), np.asarray(jax.nn.one_hot(labels, 3, dtype="float32")), "one_hot")
    assert_close(
        nn.one_hot(labels, num_classes=3, dtype="int32", axis=0),
        np.asarray(jax.nn.one_hot(labels, 3, dtype="int32", axis=0)),
        "axis",
    )
    assert_close(fg.vmap(lambda n: nn.one_hot(n, 3))(labels[0]), np.eye(3, dtype="float32")[[0, 2]], "vmap")


def test_cross_entropy() -> None:
    logits, labels = RNG.normal(size=(5, 4)), np.array([0, 3, 1, 1, 2])

    def theirs(logits: Any) -> Any:
        return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1)[:, 0]

    same_with_derivatives(lambda x: nn.cross_entropy(x, labels, reduction="none"), theirs, logits)
    same_with_derivatives(lambda x: nn.cross_entropy(x, labels), lambda x: theirs(x).mean(), logits)
    same_with_derivatives(
        lambda x: nn.cross_entropy(x.T, labels, axis=0, reduction="sum"), lambda x: theirs(x).sum(), logits
    )

    def smoothed(logits: Any) -> Any:
        targets = 0.9 * jax.nn.one_hot(labels, 4) + 0.1 / 4
        return -(targets * jax.nn.log_softmax(logits)).sum(1).mean()

    same_with_derivatives(lambda x: nn.cross_entropy(x, labels, label_smoothing=0.1), smoothed, logits)
    chances = np.asarray(jax.nn.softmax(RNG.normal(size=(5, 4))))
    same_with_derivatives(
        lambda x: nn.cross_entropy(x, chances), lambda x: -(chances * jax.nn.log_softmax(x)).sum(1).mean(), logits
    )
    assert_close(nn.cross_entropy(np.array([[1e4, 0.0]]), np.array([1])), np.float64(1e4), "far off")
    traced = fg.jit(nn.cross_entropy)(logits, labels)
    assert_close(traced, nn.cross_entropy(logits, labels), "traced labels")


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: nn.conv(np.ones((1, 3, 4)), np.ones((2, 2, 3))), ValueError, "3 features does not fit 1 groups"),
        (lambda: nn.conv(np.ones((1, 3, 4)), np.ones((2, 3, 3)), stride=(1, 1)), ValueError, "stride must be an int"),
        (lambda: nn.conv(np.ones((1, 3, 4)), np.ones((2, 3, 3)), padding="full"), ValueError, 'or "valid"'),
        (lambda: nn.conv(np.ones((1, 3, 4)), np.ones((2, 3, 3)), padding="same", stride=2), ValueError, "stride 1"),
        (lambda: nn.max_pool(np.ones((2, 3)), 2), ValueError, "wants .batch, channels"),
        (lambda: nn.max_pool(np.ones((1, 1, 4)), 2, padding=2), ValueError, "at most half of the window"),
        (lambda: nn.one_hot(np.ones(2), 3), TypeError, "labels must be integers"),
        (lambda: nn.gelu(1.0, "erf"), ValueError, "approximate must be"),
        (lambda: nn.cross_entropy(np.ones((2, 3)), np.array([0, 1, 2])), ValueError, r"shape of logits f64\[2,3\]"),
        (lambda: nn.cross_entropy(np.ones((2, 3)), np.ones(2)), ValueError, "integers, or probabilities"),
        (lambda: nn.cross_entropy(np.ones((2, 3)), np.array([0, 3])), IndexError, "3 is out of bounds"),
        (lambda: nn.cross_entropy(np.ones((2, 3)), np.array([0, 1]), reduction="no"), ValueError, "reduction must be"),
    ],
)  # fmt: skip
def test_refusals(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_a_network_learns() -> None:
    """Bars, horizontal or vertical: convolution, pool and dense layer, and SGD with momentum, in one compiled step."""
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 2, 64)
    images = rng.normal(size=(64, 1, 6, 6)).astype("float32") * 0.1
    for image, label in zip(images, labels, strict=True):
        place = rng.integers(6)
        image[0][(place, slice(None)) if label else (slice(None), place)] += 1.0
    params = {
        "kernel": rng.normal(size=(4, 1, 3, 3)).astype("float32") * 0.3,
        "bias": np.zeros(4, "float32"),
        "dense": rng.normal(size=(4, 2)).astype("float32") * 0.3,
    }

    def loss(p: Any, x: Any, y: Any) -> Any:
        h = nn.max_pool(nn.relu(nn.conv(x, p["kernel"], p["bias"], padding=1)), 2)
        return nn.cross_entropy(fnp.mean(h, axis=(2, 3)) @ p["dense"], y)

    @fg.jit
    def step(p: Any, v: Any, x: Any, y: Any, rate: Any) -> Any:
        value, g = fg.value_and_grad(loss)(p, x, y)
        v = jax.tree_util.tree_map(lambda v, g: 0.9 * v - rate * g, v, g)
        return value, jax.tree_util.tree_map(lambda p, v: p + v, p, v), v

    velocity = jax.tree_util.tree_map(np.zeros_like, params)
    losses = []
    for _ in range(60):
        value, params, velocity = step(params, velocity, images, labels, 0.2)
        losses.append(float(value))
    assert losses[0] > 0.5
    assert losses[-1] < 0.1
    assert all(p.dtype == np.float32 for p in jax.tree_util.tree_leaves(params))
