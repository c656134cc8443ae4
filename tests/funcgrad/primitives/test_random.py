"""Random bits and samples: the numbers of ``jax.random``, their distributions, and under transforms."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from funcgrad import random
from funcgrad.core import dtypes
from funcgrad.core.ir import ArrayType
from funcgrad.interpreters.batching import batch_flat
from funcgrad.primitives import random as p
from tests.funcgrad.oracle import Case, Draw, Ours, Sampler, a_shape, assert_close, check, examples

KINDS = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}


def keys() -> Sampler:
    return lambda rng: rng.integers(0, 2**32, 2, dtype=np.uint32)


def random_bits(draw: Draw) -> Case:
    shape, width = a_shape(draw, most=2), draw(st.sampled_from(list(KINDS)))
    # JAX counts from 0.
    return Case(
        lambda key: p.random_bits(key, np.uint64(0), shape=shape, width=width),
        lambda key: jax.random.bits(key, shape, KINDS[width]),
        [keys()],
    )


CASES = {"random_bits": random_bits}


@given(st.data())
@examples(6)
def test_bits(data: Any) -> None:
    check(random_bits(data.draw), data.draw(st.integers(0, 99)))


def test_threefry_of_the_reference_implementation() -> None:
    """The known answers of Random123 for Threefry-2x32 with 20 rounds."""
    everything = np.uint32(0xFFFFFFFF)
    for key, counter, wanted in (
        ([0, 0], 0, 0x6B200159_99BA4EFE),
        ([everything] * 2, 0xFFFFFFFF_FFFFFFFF, 0x1CB996FC_BB002BE7),
        ([0x13198A2E, 0x03707344], 0x243F6A88_85A308D3, 0xC4923A9C_483DF7A0),
    ):
        got = p.random_bits(np.array(key, np.uint32), np.uint64(counter), shape=(), width=64)
        assert int(got) == wanted


def test_the_counter_continues_where_it_stopped() -> None:
    key = random.key(3)
    whole = np.asarray(p.random_bits(key, np.uint64(0), shape=(10,), width=32))
    assert np.asarray(p.random_bits(key, np.uint64(4), shape=(2, 3), width=32)).ravel().tolist() == whole[4:].tolist()


def test_a_batch_of_counters_and_keys() -> None:
    key, starts = random.key(3), np.arange(6, dtype=np.uint64).reshape(2, 3)

    def f(key: Any, start: Any) -> list[Any]:
        return [p.random_bits(key, start, shape=(2,), width=32)]

    def nested(key: Any, starts: Any) -> list[Any]:
        (out,), _ = batch_flat(f, 3, [key, starts], [None, 0])
        return [out]

    (got,), _ = batch_flat(nested, 2, [random.split(key), starts], [0, 0])
    for i, k in enumerate(random.split(key)):
        for j in range(3):
            wanted = p.random_bits(k, starts[i, j], shape=(2,), width=32)
            assert np.asarray(got)[i, j].tolist() == np.asarray(wanted).tolist()


# ---------------------------------------------------------------- the numbers of jax.random

FLOATS = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16]
SEEDS = [0, 7, 2**40 + 3]


@pytest.mark.parametrize("seed", SEEDS)
def test_keys(seed: int) -> None:
    key, theirs = random.key(seed), jax.random.PRNGKey(seed)
    assert_close(key, theirs, "key")
    assert_close(random.key(np.int64(seed)), theirs, "key of an array")
    assert_close(random.split(key, (2, 3)), jax.random.split(theirs, (2, 3)), "split")
    assert_close(random.fold_in(key, 12), jax.random.fold_in(theirs, 12), "fold_in")
    assert_close(random.fold_in(key, np.int32(12)), jax.random.fold_in(theirs, 12), "fold_in of an array")


@pytest.mark.parametrize("dtype", FLOATS)
def test_real_samples(dtype: Any) -> None:
    key = random.key(5)
    for name, args in (("uniform", (-2.0, 3.0)), ("uniform", ()), ("normal", ()), ("gumbel", ())):
        ours, theirs = (getattr(m, name)(key, (5, 3), dtype, *args) for m in (random, jax.random))
        assert_close(ours, theirs, name)


def test_complex_normals() -> None:
    assert_close(
        random.normal(random.key(1), (4,), complex), jax.random.normal(random.key(1), (4,), np.complex64), "normal"
    )


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint32, np.int64])
def test_integers(dtype: Any) -> None:
    key, info = random.key(2), np.iinfo(dtype)
    bounds = [(0, 10), (3, 3), (5, 120), (info.min, info.max)]
    if info.bits < 64:
        bounds += [(info.min, info.max + 1), (0, info.max + 1)]  # a bound that the dtype cannot represent
    for low, high in bounds:
        got = random.randint(key, (20,), low, high, dtype)
        assert_close(got, jax.random.randint(key, (20,), low, high, dtype), f"randint {low}, {high}")
    got = random.randint(key, (2, 3), np.array([0, 10, 20]), np.array([[10], [30]]), dtype)
    assert_close(got, jax.random.randint(key, (2, 3), np.array([0, 10, 20]), np.array([[10], [30]]), dtype), "arrays")


def test_permutations() -> None:
    key, x = random.key(4), np.arange(12.0).reshape(3, 4)
    assert_close(random.permutation(key, 10), jax.random.permutation(key, 10), "of a number")
    assert_close(random.permutation(key, 0), jax.random.permutation(key, 0), "of nothing")
    assert_close(random.permutation(key, x[0]), jax.random.permutation(key, x[0]), "of a vector")
    assert_close(random.permutation(key, x, 1), jax.random.permutation(key, x, 1), "of columns")
    ours, theirs = (m.permutation(key, x, -1, independent=True) for m in (random, jax.random))
    assert_close(ours, theirs, "of each row")


def test_choices() -> None:
    key = random.key(6)
    p_, logits = np.array([0.1, 0.5, 0.9], np.float32), np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    assert_close(random.bernoulli(key, p_), jax.random.bernoulli(key, p_), "bernoulli")
    assert_close(random.bernoulli(key, p_, (5, 3)), jax.random.bernoulli(key, p_, (5, 3)), "bernoulli")
    assert_close(random.categorical(key, logits), jax.random.categorical(key, logits), "categorical")
    assert_close(
        random.categorical(key, logits, 0, (7, 3)), jax.random.categorical(key, logits, 0, (7, 3)), "categorical"
    )


# ---------------------------------------------------------------- distributions, transforms, errors


def test_distributions() -> None:
    """Mean and variance within five standard errors; classes as frequent as they should be."""
    n, key = 20000, random.key(0)
    for name, x, mean, variance in (
        ("uniform", random.uniform(key, (n,)), 0.5, 1 / 12),
        ("normal", random.normal(key, (n,)), 0.0, 1.0),
        ("gumbel", random.gumbel(key, (n,)), np.euler_gamma, np.pi**2 / 6),
        ("bernoulli", random.bernoulli(key, 0.3, (n,)), 0.3, 0.21),
        ("randint", random.randint(key, (n,), 0, 5), 2.0, 2.0),
    ):
        x = np.asarray(x, float)
        assert abs(x.mean() - mean) < 5 * np.sqrt(variance / n), name
        assert abs(x.var() - variance) < 0.05 * variance, name
    classes = np.asarray(random.categorical(key, np.log(np.array([0.2, 0.3, 0.5], np.float32)), shape=(n,)))
    np.testing.assert_allclose(np.bincount(classes, minlength=3) / n, [0.2, 0.3, 0.5], atol=0.02)


def test_uniform_is_differentiable_in_its_bounds() -> None:
    key = random.key(0)
    u = float(random.uniform(key))

    def f(low: Any, high: Any) -> list[Any]:
        return [random.uniform(key, (), float, low, high)]

    _, pullback = Ours.vjp(f, [jnp.float32(1.0), jnp.float32(3.0)])
    assert [round(float(g), 5) for g in pullback([jnp.float32(1)])] == [round(1 - u, 5), round(u, 5)]


def test_a_batch_of_keys_equals_separate_keys() -> None:
    keys = random.split(random.key(0), 3)

    def f(key: Any) -> list[Any]:
        return [
            random.normal(random.fold_in(key, 1), (2,)),
            random.randint(key, (), 0, 100),
            random.permutation(key, 5),
            random.categorical(key, jnp.zeros(4)),
        ]

    outs, dims = batch_flat(f, 3, [keys], [0])
    for out, dim, *wanted in zip(outs, dims, *map(f, keys), strict=True):
        assert_close(np.moveaxis(np.asarray(out), dim, 0), np.stack(wanted), "batched")


def test_staged_keys() -> None:
    def f(seed: Any) -> list[Any]:
        return [random.normal(random.fold_in(random.key(seed), 3), (3,))]

    wanted = random.normal(random.fold_in(random.key(9), 3), (3,))
    assert_close(Ours.run(f, [np.int64(9)])[0], wanted, "staged")


KEY = ArrayType((2,), dtypes.uint32)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda k: random.normal(np.zeros(2), (2,)), TypeError, r"^normal: a key .* got f64\[2\]"),
        (lambda k: random.bits(random.split(k)), TypeError, r"^bits: a key .* got u32\[2,2\]"),
        (lambda k: random.bits(k, (2,), "int32"), TypeError, r"^bits: dtype .* got int32"),
        (lambda k: random.uniform(k, (2,), int), TypeError, r"^uniform: wants a floating dtype, got int64"),
        (lambda k: random.uniform(k, (-1,)), ValueError, r"^uniform: shape \(-1,\)"),
        (lambda k: random.uniform(k, (2,), float, np.zeros(3)), ValueError, r"\(3,\).*\(2,\)"),
        (lambda k: random.uniform(k, (1,), float, np.zeros(3)), ValueError, r"^uniform: minval.*\(3,\).*\(1,\)"),
        (lambda k: random.randint(k, (2,), 0, 300, np.int8), ValueError, r"^randint: maxval 300 is no int8"),
        (lambda k: random.randint(k, (2,), 0, 3, float), TypeError, r"^randint: .* got float32"),
        (lambda k: random.permutation(k, np.zeros(3), 1), ValueError, r"^permutation: axis 1 .* of 1 axes"),
        (lambda k: random.permutation(k, -1), ValueError, r"^permutation: .* got -1"),
        (lambda k: random.categorical(k, np.zeros((2, 3)), 2), ValueError, r"^categorical: axis 2 .* of 2 axes"),
        (lambda k: random.categorical(k, np.zeros((2, 3)), 1, (3,)), ValueError, r"\(2,\).*\(3,\)"),
        (lambda k: random.bernoulli(k, 1), TypeError, r"^bernoulli: wants a floating dtype, got int64"),
        (lambda k: random.key(0.5), TypeError, r"^key: seed must be an integer, got f32\[\]"),
        (lambda k: random.fold_in(k, 0.5), TypeError, r"^fold_in: data must be an integer, got f32\[\]"),
    ],
)
def test_invalid_operands_are_named(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call(random.key(0))


@pytest.mark.parametrize(
    ("key", "start", "width", "error", "message"),
    [
        (KEY.with_shape((3,)), (), 32, TypeError, r"got u32\[3\]"),
        (KEY, (2,), 32, TypeError, r"counter for each key, got u64\[2\] for the key u32\[2\]"),
        (KEY, (), 12, ValueError, r"width 12"),
    ],
)
def test_bits_that_do_not_fit_are_named(
    key: ArrayType, start: tuple[int, ...], width: int, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=f"^random_bits: .*{message}"):
        p.random_bits.output_types([key, ArrayType(start, dtypes.uint64)], {"shape": (), "width": width})
