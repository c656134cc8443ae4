"""Attention, standardization, and initializers, compared with JAX's."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad import nn
from tests.funcgrad.oracle import assert_close
from tests.funcgrad.tolerances import FEW32, MANY, MANY32

RNG = np.random.default_rng(0)
Q = RNG.normal(size=(2, 5, 4, 3))
K, V = RNG.normal(size=(2, 2, 6, 4, 3))
BIAS, MASK = RNG.normal(size=(4, 5, 6)), RNG.random((2, 1, 5, 6)) > 0.4
MASK[0, 0, 2] = False


@pytest.mark.parametrize(
    ("arguments", "more"),
    [
        ((Q, K, V), {}),
        ((Q[0], K[0], V[0]), {"scale": 0.3}),
        ((Q, K[:, :, :2], V[:, :, :2]), {"is_causal": True}),
        ((Q, K, V, BIAS), {"is_causal": True}),
        ((Q, K, V, None, MASK), {}),
    ],
)
def test_attention(arguments: tuple, more: dict[str, Any]) -> None:
    live = tuple(i for i, x in enumerate(arguments) if x is not None and x.dtype != bool)
    ours = lambda *xs: fnp.sum(nn.dot_product_attention(*xs, **more) ** 2)
    theirs = lambda *xs: (jax.nn.dot_product_attention(*xs, **more) ** 2).sum()
    value, gradient = fg.jit(fg.value_and_grad(ours, live))(*arguments)
    # JAX computes the weights in float32.
    wanted, wanted_gradient = jax.jit(jax.value_and_grad(theirs, live))(*arguments)
    assert_close(value, np.asarray(wanted), "value", FEW32)
    for mine, other in zip(gradient, wanted_gradient, strict=True):
        assert_close(mine, np.asarray(other), "gradient", MANY32)


def test_a_bias_may_be_a_number_or_a_list() -> None:
    for bias in (0.5, [[[0.5] * 6] * 5] * 4):
        wanted = np.asarray(nn.dot_product_attention(Q, K, V))  # the softmax of shifted scores is the same
        assert_close(nn.dot_product_attention(Q, K, V, bias), wanted, "averages", FEW32)


def test_a_bias_of_more_rows_than_queries_widens_the_scores_of_any_size() -> None:
    query, key, bias = (
        np.ones((2, 1, 4, 64), np.float32),
        np.ones((2, 600, 4, 64), np.float32),
        RNG.normal(size=(4, 5, 600)),
    )
    bias = bias.astype(np.float32)
    found = fg.jit(nn.dot_product_attention)(query, key, key, bias)
    few = fg.jit(nn.dot_product_attention)(np.repeat(query, 5, axis=1), key, key, bias)
    assert_close(found, np.asarray(few), "averages", FEW32)


@pytest.mark.parametrize("shapes", [((2, 5, 4, 3), (2, 6, 4, 2)), ((2, 5, 4, 3), (2, 6, 3, 3)), ((5, 3), (6, 3))])
def test_attention_that_does_not_fit(shapes: tuple) -> None:
    query, key = map(np.ones, shapes)
    with pytest.raises(ValueError, match=r"^dot_product_attention: "):
        nn.dot_product_attention(query, key, key)


@pytest.mark.parametrize("more", [{}, {"axis": (0, 2)}, {"where": K > 0, "axis": 1}, {"mean": 1.0, "variance": K**2}])
def test_standardize(more: dict[str, Any]) -> None:
    # JAX computes the variance as the mean of squares minus the square of the mean.
    assert_close(nn.standardize(K, **more), np.asarray(jax.nn.standardize(K, **more)), "values", FEW32)


NAMED = [
    "glorot_normal", "glorot_uniform", "he_normal", "he_uniform", "kaiming_normal", "kaiming_uniform", "lecun_normal",
    "lecun_uniform", "xavier_normal", "xavier_uniform",
]  # fmt: skip
DRAWN = {
    **{name: (lambda m, name=name: getattr(m, name)()) for name in NAMED},
    "axes": lambda m: m.variance_scaling(1.5, "fan_out", "normal", in_axis=0, out_axis=(1, 3), batch_axis=2),
    "uniform": lambda m: m.uniform(0.3),
    "normal": lambda m: m.normal(0.3),
    "truncated_normal": lambda m: m.truncated_normal(0.3, lower=-1.0),
    "constant": lambda m: m.constant(np.arange(4.0)),
    "zeros": lambda m: m.zeros,
    "ones": lambda m: m.ones,
}


@pytest.mark.parametrize("name", DRAWN)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_initial_numbers_are_those_of_jax(name: str, dtype: Any) -> None:
    shape = (2, 5, 3, 4)
    got = DRAWN[name](nn.initializers)(fg.random.key(3), shape, dtype)
    wanted = DRAWN[name](jax.nn.initializers)(jax.random.key(3), shape, dtype)
    assert_close(got, np.asarray(wanted), name, MANY32)


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (2, 3, 4)])
def test_orthogonal_numbers(shape: tuple[int, ...]) -> None:
    x = np.asarray(nn.initializers.orthogonal(2.0)(fg.random.key(0), shape, np.float64)).reshape(-1, shape[-1])
    x = x.T if x.shape[0] < x.shape[1] else x
    assert_close(x.T @ x, 4 * np.eye(x.shape[1]), "columns")


@pytest.mark.parametrize("shape", [(3, 2, 4), (2, 5, 3, 3)])
def test_kernels_that_keep_lengths(shape: tuple[int, ...]) -> None:
    x = np.asarray(nn.initializers.delta_orthogonal(2.0)(fg.random.key(0), shape, np.float64))
    middle = x[tuple((n - 1) // 2 for n in shape[:-2])]
    assert x.shape == shape and np.sum(x**2) == np.sum(middle**2)
    np.testing.assert_allclose(middle @ middle.T, 4 * np.eye(shape[-2]), atol=MANY)
    with pytest.raises(ValueError, match="at least as many outputs"):
        nn.initializers.delta_orthogonal()(fg.random.key(0), (3, 4, 2))


def test_invalid_initializers_are_refused() -> None:
    with pytest.raises(ValueError, match="mode must be"):
        nn.initializers.variance_scaling(1.0, "fan", "normal")
    with pytest.raises(ValueError, match="distribution must be"):
        nn.initializers.variance_scaling(1.0, "fan_in", "cauchy")
    for initializer in (nn.initializers.he_normal(), nn.initializers.orthogonal()):
        with pytest.raises(ValueError, match="at least two axes"):
            initializer(fg.random.key(0), (3,))
