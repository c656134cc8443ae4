"""Every function of funcgrad.nn, row by row: JAX's values, derivatives of both orders in both modes."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import funcgrad as fg
from funcgrad import nn
from tests.funcgrad.nn.test_attention import DRAWN
from tests.funcgrad.table import Row, check_row

RNG = np.random.default_rng(0)
# None at a kink, and none so near to one that finite differences would step over it. One is the mean of its row.
X = np.array([[-7.3, -3.4, -1.2, -0.6], [0.3, 0.8, 2.6, 6.7]])
LOGITS, CLASSES = RNG.normal(size=(3, 4)), np.array([1, 3, 0])
IMAGES, KERNEL, BIAS = RNG.normal(size=(2, 3, 6, 5)), RNG.normal(size=(4, 3, 3, 2)), RNG.normal(size=4)
QUERY, KEY, VALUE = (RNG.normal(size=(2, n, 3, 4)) for n in (5, 6, 6))


def _conv(xp: Any, x: Any, w: Any, b: Any) -> Any:
    if xp is nn:
        return nn.conv(x, w, b, stride=2, padding=1)
    return lax.conv_general_dilated(x, w, (2, 2), [(1, 1), (1, 1)], precision="highest") + b[:, None, None]


def _pool(name: str, ours: dict[str, Any]) -> Any:
    def pool(xp: Any, x: Any) -> Any:
        if xp is nn:
            return getattr(nn, name)(x, 2, **ours)
        window, stride = (1, 1, 2, 2), (1, 1, 2, 2)
        if name == "max_pool":
            return lax.reduce_window(x, -np.inf, lax.max, window, stride, "VALID")
        return lax.reduce_window(x, 0.0, lax.add, window, stride, "VALID") / 4

    return pool


def _attention(causal: bool) -> Any:
    def attention(xp: Any, q: Any, k: Any, v: Any) -> Any:
        if xp is nn:
            return nn.dot_product_attention(q, k, v, is_causal=causal)
        # JAX's own function rounds to single precision.
        scores = jnp.einsum("bihd,bjhd->bhij", q, k) / np.sqrt(q.shape[-1])
        seen = np.tri(q.shape[1], k.shape[1]) > 0 if causal else None
        return jnp.einsum("bhij,bjhd->bihd", jax.nn.softmax(scores, where=seen), v)

    return attention


def _cross_entropy(xp: Any, x: Any) -> Any:
    if xp is nn:
        return nn.cross_entropy(x, CLASSES)
    return -(jax.nn.log_softmax(x) * jax.nn.one_hot(CLASSES, 4, dtype=x.dtype)).sum(-1).mean()


# Each row is a function of `xp`, which is jax.nn or funcgrad.nn, and of arrays; the floating ones are differentiated.
ROWS: dict[str, Row] = {
    **{
        name: (lambda xp, x, name=name: getattr(xp, name)(x), (X,))
        for name in (
            "celu", "elu", "glu", "hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh", "leaky_relu", "log_sigmoid",
            "log_softmax", "logsumexp", "mish", "relu", "relu6", "selu", "sigmoid", "silu", "soft_sign", "softmax",
            "softplus", "squareplus", "standardize", "swish",
        )
    },
    "gelu": (lambda xp, x: xp.gelu(x, approximate="none" if xp is nn else False), (X,)),
    "gelu tanh": (lambda xp, x: xp.gelu(x, approximate="tanh" if xp is nn else True), (X,)),
    "softmax where": (lambda xp, x: xp.softmax(x, axis=1, where=X > -2), (X,)),
    "one_hot": (lambda xp, i: xp.one_hot(i, 4, dtype="float64"), (CLASSES,)),
    "dot_product_attention": (_attention(False), (QUERY, KEY, VALUE)),
    "dot_product_attention causal": (_attention(True), (KEY, KEY + 1, VALUE)),
    "conv": (_conv, (IMAGES, KERNEL, BIAS)),
    "avg_pool": (_pool("avg_pool", {}), (IMAGES,)),
    "max_pool": (_pool("max_pool", {}), (IMAGES,)),
    "cross_entropy": (_cross_entropy, (LOGITS,)),
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_values_and_derivatives(name: str) -> None:
    check_row(ROWS[name], nn, jax.nn, jax.nn)


def test_every_public_function_has_a_row() -> None:
    public = {n for n in nn.__all__ if not isinstance(getattr(nn, n), ModuleType)}
    assert sorted(public - {name.split()[0] for name in ROWS}) == []
    assert {n for n in fg.nn.activations.__all__ if getattr(nn, n) is not getattr(fg.nn.activations, n)} == set()


def test_every_initializer_is_tested() -> None:
    elsewhere = {"delta_orthogonal", "orthogonal", "variance_scaling"}
    assert {*nn.initializers.__all__} == {*DRAWN, *elsewhere} - {"axes"}
