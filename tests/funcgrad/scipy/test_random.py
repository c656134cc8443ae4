"""Distributions: the numbers of ``jax.random``, their moments, their derivatives, batches of keys, errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest
import scipy.special

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad import random
from funcgrad.core.ir import ArrayType
from funcgrad.primitives import random as p
from tests.funcgrad.oracle import assert_close
from tests.funcgrad.table import SECOND, STEP
from tests.funcgrad.tolerances import CONDITIONED, DIFFERENCED, MANY, MANY32

KEY = random.key(5)
A, B = np.array([0.5, 2.0, 9.0]), np.array([1.5, 0.7, 3.0])
COVARIANCE = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.1], [0.0, 0.1, 0.7]])
SHARES = np.array([0.2, 0.3, 0.5])
CASES = ("random_gamma", "random_poisson", "random_binomial")


class Row(NamedTuple):
    """Parameters and a suitable shape; keywords; the expected mean and variance of a sample."""

    args: tuple[Any, ...] = ()
    shape: tuple[int, ...] = (4, 3)
    more: tuple[tuple[str, Any], ...] = ()
    mean: float | None = None
    variance: float | None = None
    at: tuple[Any, ...] = ()


SQRT = np.sqrt
REAL: dict[str, Row] = {
    "exponential": Row(mean=1, variance=1),
    "laplace": Row(mean=0, variance=2),
    "logistic": Row(mean=0, variance=np.pi**2 / 3),
    "cauchy": Row(),
    "maxwell": Row(mean=2 * SQRT(2 / np.pi), variance=3 - 8 / np.pi),
    "double_sided_maxwell": Row((A, B), (2,), mean=1, variance=3 * 4, at=(1.0, 2.0)),
    "lognormal": Row((A,), mean=np.exp(0.125), variance=(np.exp(0.25) - 1) * np.exp(0.25), at=(0.5,)),
    "pareto": Row((A,), mean=1.25, variance=5 / (16 * 3), at=(5.0,)),
    "rayleigh": Row((A,), mean=2 * SQRT(np.pi / 2), variance=4 * (2 - np.pi / 2), at=(2.0,)),
    "weibull_min": Row((A, B), mean=2, variance=4, at=(2.0, 1.0)),
    "triangular": Row((-A, 0 * A, B), mean=1 / 3, variance=7 / 18, at=(-1.0, 0.0, 2.0)),
    "wald": Row((A,), mean=0.5, variance=0.125, at=(0.5,)),
    "truncated_normal": Row((-A, B), mean=0, variance=0.7737413, at=(-2.0, 2.0)),
    "gamma": Row((A,), mean=3, variance=3, at=(3.0,)),
    "loggamma": Row((A,), mean=-0.5772157, variance=np.pi**2 / 6, at=(1.0,)),
    "beta": Row((A, B), mean=0.4, variance=0.04, at=(2.0, 3.0)),
    "chisquare": Row((A,), mean=3, variance=6, at=(3.0,)),
    "f": Row((np.broadcast_to(A, (4, 3)), np.broadcast_to(B, (4, 3))), mean=1.25, at=(6.0, 10.0)),
    "t": Row((A,), mean=0, variance=10 / 8, at=(10.0,)),
    "generalized_normal": Row((2.0,), mean=0, variance=0.5, at=(2.0,)),
    "binomial": Row((np.array([3.0, 40.0, 2000.0]), SHARES), mean=12, variance=8.4, at=(40.0, 0.3)),
}
VECTORS: dict[str, Row] = {
    "dirichlet": Row((A,), (4,)),
    "multivariate_normal": Row((A, COVARIANCE), (4,)),
    "ball": Row((3, 2), more=(("shape", (5,)),)),
    "orthogonal": Row((3,), (2,)),
}
WHOLE: dict[str, Row] = {
    "poisson": Row((A * 5,), mean=12, variance=12, at=(12.0,)),
    "geometric": Row((SHARES,), mean=4, variance=12, at=(0.25,)),
    "rademacher": Row(mean=0, variance=1),
}
#: Samplers whose values the tests of keys and bits check; and an alias of ``permutation``.
ELSEWHERE = {
    "PRNGKey",
    "bernoulli", "bits", "categorical", "choice", "fold_in", "gumbel", "key", "multinomial", "normal", "permutation",
    "randint", "shuffle", "split", "uniform",
}  # fmt: skip


def draw(library: Any, name: str, row: Row, dtype: Any) -> Any:
    args = [np.asarray(a, dtype) if isinstance(a, np.ndarray) else a for a in row.args]
    more = dict(row.more)
    shape = () if "shape" in more else (row.shape,)
    return getattr(library, name)(KEY, *args, *shape, dtype=dtype, **more)


def test_a_key_under_its_deprecated_name() -> None:
    assert random.PRNGKey(7).tolist() == random.key(7).tolist() == jax.random.key_data(jax.random.key(7)).tolist()


def test_every_function_is_in_a_table() -> None:
    public = {n for n, v in vars(random).items() if callable(v) and not n.startswith("_")}
    assert public == {*REAL, *VECTORS, *WHOLE, *ELSEWHERE}


@pytest.mark.parametrize("name", [*REAL, *VECTORS])
def test_the_numbers_of_jax(name: str) -> None:
    row, dtype = REAL.get(name) or VECTORS[name], np.float32
    # The last digits depend on the compiler: the same operations, fused or not.
    assert_close(draw(random, name, row, dtype), draw(jax.random, name, row, dtype), name, MANY32)


@pytest.mark.parametrize("name", WHOLE)
def test_integers_as_in_jax(name: str) -> None:
    row = WHOLE[name]
    assert_close(draw(random, name, row, np.int32), draw(jax.random, name, row, np.int32), name)


def test_half_precision() -> None:
    assert random.gamma(KEY, 2.0, (3,), "bfloat16").dtype == "bfloat16"
    assert random.exponential(KEY, (3,), np.float16).dtype == np.float16


@pytest.mark.parametrize("name", [n for n, row in {**REAL, **WHOLE}.items() if row.mean is not None])
def test_moments(name: str) -> None:
    row = {**REAL, **WHOLE}[name]
    n = 20000
    x = np.asarray(getattr(random, name)(random.key(1), *row.at, (n,)), float)
    spread = x.std()
    assert abs(x.mean() - row.mean) < 5 * spread / np.sqrt(n)
    if row.variance is not None:
        assert abs(x.var() - row.variance) < 0.15 * row.variance


# ---------------------------------------------------------------- derivatives

SMOOTH: dict[str, Callable[[Any, Any], Any]] = {
    "gamma": lambda m, a: m.gamma(KEY, a, dtype=np.float64),
    "loggamma": lambda m, a: m.loggamma(KEY, a, dtype=np.float64),
    "beta": lambda m, a: m.beta(KEY, a, 2 * a, dtype=np.float64),
    "dirichlet": lambda m, a: m.dirichlet(KEY, a, dtype=np.float64),
    "chisquare": lambda m, a: m.chisquare(KEY, a, dtype=np.float64),
    "t": lambda m, a: m.t(KEY, a, (3,), dtype=np.float64),
    "pareto": lambda m, a: m.pareto(KEY, a, dtype=np.float64),
    "weibull_min": lambda m, a: m.weibull_min(KEY, a, a, (3,), dtype=np.float64),
    "truncated_normal": lambda m, a: m.truncated_normal(KEY, -a, a + 1, dtype=np.float64),
    "wald": lambda m, a: m.wald(KEY, a, dtype=np.float64),
    "triangular": lambda m, a: m.triangular(KEY, -a, 0.5 * a, 2 * a, dtype=np.float64),
    "multivariate_normal": lambda m, a: m.multivariate_normal(KEY, a, COVARIANCE * a[1], dtype=np.float64),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_derivatives_are_those_of_jax(name: str) -> None:
    def ours(a: Any) -> Any:
        return fnp.sum(fnp.sin(SMOOTH[name](random, a)))

    wanted = jax.jit(jax.grad(lambda a: jax.numpy.sum(jax.numpy.sin(SMOOTH[name](jax.random, a)))))(A)
    back, forth = fg.jit(lambda a: (fg.grad(ours)(a), fg.jvp(ours, (a,), (B,))[1]))(A)
    assert_close(back, wanted, "reverse", 10 * CONDITIONED)
    assert_close(forth, np.sum(np.asarray(wanted) * B), "forward", 10 * CONDITIONED)


# For gamma variables, which are drawn by rejection, and distributions based on them, differences measure something
# else: how a sample moves with its parameter at fixed random bits, not at fixed probability.
OF_GAMMA = ("gamma", "loggamma", "beta", "dirichlet", "chisquare", "t")


@pytest.mark.parametrize("name", SMOOTH)
def test_second_derivatives_are_symmetric_and_differences_of_first_ones(name: str) -> None:
    def slope(a: Any) -> Any:
        return fg.grad(lambda a: fnp.sum(fnp.sin(SMOOTH[name](random, a))))(a)

    @fg.jit
    def ask(a: Any) -> Any:
        ahead = fg.jvp(slope, (a,), (B,))[1]
        back = fg.vjp(slope, a)[1](B)[0]
        return ahead, back, (slope(a + STEP * B) - slope(a - STEP * B)) / (2 * STEP)

    ahead, back, differences = ask(A)
    assert_close(ahead, np.asarray(back), "forwards, and backwards", CONDITIONED)
    if name not in OF_GAMMA:
        assert_close(ahead, np.asarray(differences), "differences", SECOND)


def test_second_derivatives_of_gamma_samples() -> None:
    """Derivatives of the inverse of the distribution function, by differences along the parameter."""
    sample = lambda a: random.gamma(KEY, a, (3,), dtype=np.float64)
    x = np.asarray(sample(A))
    chance = scipy.special.gammainc(A, x)
    # The difference has an error of step**2 times the fourth derivative, and of rounding, 1e-15 / step**2: both about
    # 3e-8.
    step = 2e-4
    moved = [scipy.special.gammaincinv(A + k * step, chance) for k in (-1, 0, 1)]
    wanted = (moved[0] - 2 * moved[1] + moved[2]) / step**2
    found = fg.jvp(lambda a: fg.jvp(sample, (a,), (np.ones(3),))[1], (A,), (np.ones(3),))[1]
    assert_close(found, wanted, "second derivative", 10 * DIFFERENCED)
    logarithm = lambda a: random.loggamma(KEY, a, (3,), dtype=np.float64)
    of_logarithm = fg.jvp(lambda a: fg.jvp(logarithm, (a,), (np.ones(3),))[1], (A,), (np.ones(3),))[1]
    slope = np.asarray(fg.jvp(sample, (A,), (np.ones(3),))[1])
    assert_close(of_logarithm, wanted / x - (slope / x) ** 2, "of its logarithm", 10 * DIFFERENCED)


# ---------------------------------------------------------------- choices


def test_choices_are_those_of_jax() -> None:
    x, shares = np.arange(12.0).reshape(3, 4), SHARES.astype(np.float32)
    for args in (
        (5, (4,)),
        (5, (4,), False),
        (3, (2, 4), True, shares),
        (3, (2,), False, shares),
        (x, (2,), True, None, 1),
        (x, (2, 2), False, None, -1),
        (x, (), True, shares),
        (3, (0,)),
    ):
        assert_close(random.choice(KEY, *args), jax.random.choice(KEY, *args), f"choice{args}")
    assert_close(random.shuffle(KEY, x), jax.random.permutation(KEY, x), "shuffle")


def test_multinomial() -> None:
    got = random.multinomial(KEY, np.float32(30), SHARES.astype(np.float32))
    assert_close(got, jax.random.multinomial(KEY, np.float32(30), SHARES.astype(np.float32), dtype=np.float32), "one")
    several = np.asarray(random.multinomial(KEY, np.float32(100), SHARES.astype(np.float32), shape=(500, 3)))
    np.testing.assert_array_equal(several.sum(-1), 100)
    # Five standard deviations of a mean of 500.
    np.testing.assert_allclose(several.mean(0), 100 * SHARES, atol=1.2)


def test_samples_stay_where_they_belong() -> None:
    q = np.asarray(random.orthogonal(KEY, 2, (5,), np.float64, m=4))
    np.testing.assert_allclose(q @ q.swapaxes(-1, -2), np.broadcast_to(np.eye(2), (5, 2, 2)), atol=MANY)
    points = np.asarray(random.ball(KEY, 3, 1, (500,)))
    assert (np.abs(points).sum(-1) <= 1).all()
    for method in ("eigh", "svd"):
        x = np.asarray(random.multivariate_normal(KEY, np.zeros(3), COVARIANCE, (20000,), method=method))
        # Four standard deviations of the largest variance, of 20,000 samples.
        np.testing.assert_allclose(np.cov(x.T), COVARIANCE, atol=0.08)


# ---------------------------------------------------------------- transforms


def test_a_batch_of_keys_equals_separate_keys() -> None:
    keys = random.split(KEY, 3)

    def f(key: Any, a: Any) -> Any:
        return (
            random.gamma(key, a, (2,)),
            random.poisson(key, a * 4, (2,)),
            random.binomial(key, np.float32(20), 0.3, (2,)),
            random.choice(key, 5, (3,), False),
        )

    a = A.astype(np.float32)
    got = fg.vmap(f)(keys, a)
    nested = fg.vmap(fg.vmap(f, (0, None)), (None, 0))(keys, a)
    staged = fg.jit(fg.vmap(f))(keys, a)
    for i in range(3):
        for j, wanted in enumerate(f(keys[i], a[i])):
            assert_close(got[j][i], np.asarray(wanted), "batched", MANY32)
            assert_close(nested[j][i, i], np.asarray(wanted), "nested", MANY32)
            assert_close(staged[j][i], np.asarray(wanted), "staged", MANY32)


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda k: random.gamma(np.zeros(2), 1.0), TypeError, "^gamma: a key"),
        (lambda k: random.gamma(k, 1.0, dtype=int), TypeError, "^gamma: wants a floating dtype"),
        (lambda k: random.beta(k, np.ones(2), np.ones(3)), ValueError, "^beta: .*do not broadcast"),
        (lambda k: random.beta(k, np.ones(2), 1.0, (3,)), ValueError, "^beta: operands of shapes"),
        (lambda k: random.poisson(k, 1.0, dtype=float), TypeError, "^poisson: wants an integer dtype"),
        (lambda k: random.poisson(k, 1j), TypeError, "^poisson: lam must be real"),
        (lambda k: random.choice(k, 0, (1,)), ValueError, "nothing to choose from"),
        (lambda k: random.choice(k, 2, (3,), False), ValueError, "cannot take 3 of 2"),
        (lambda k: random.choice(k, 2, (3,), True, np.ones(3)), ValueError, "one probability for each of 2"),
        (lambda k: random.choice(k, np.ones(2), (3,), axis=1), ValueError, "axis 1 is out of range"),
        (lambda k: random.dirichlet(k, 1.0), ValueError, "alpha must have"),
        (lambda k: random.multivariate_normal(k, np.zeros(2), np.eye(3)), ValueError, "square matrices"),
        (lambda k: random.multivariate_normal(k, np.zeros(2), np.eye(2), method="lu"), ValueError, "method must be"),
    ],
)
def test_invalid_operands_are_named(call: Callable[[Any], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call(KEY)


@pytest.mark.parametrize(
    ("operands", "message"),
    [
        ([ArrayType((3,), np.dtype(np.uint32)), ArrayType((), np.dtype(np.float32))], "a key is"),
        ([ArrayType((4, 2), np.dtype(np.uint32)), ArrayType((3,), np.dtype(np.float32))], "for each key"),
    ],
)
def test_operands_that_do_not_fit_are_named(operands: list[ArrayType], message: str) -> None:
    with pytest.raises(TypeError, match=f"^random_gamma: .*{message}"):
        p.random_gamma.output_types(operands, {"log": False})
