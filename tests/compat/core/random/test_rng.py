"""The samplers, compared with the numbers of PyTorch (golden/rng.json, written by golden/make_rng.py)."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import subprocess
import sys
import warnings
from fractions import Fraction
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compat._core.random.engine import Engine
from compat._operators import samplers as random
from compat._operators.samplers.boxmuller import normals_by_numpy, normals_from_bits32
from compat._operators.samplers.exact import c_function, fma32, fma64
from compat._operators.samplers.shuffle import forward_shuffle, inside_out_shuffle

ROOT = Path(__file__).parents[4]
GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "rng.json").read_text())


def _dtype(name: str) -> np.dtype:
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


def _same_c_library() -> bool:
    grid = [(i + 0.5) / 512 for i in range(512)]
    functions = (math.log, lambda x: math.log1p(-x), math.exp, math.sin, math.cos, math.tan)
    values = np.array([f(x) for f in functions for x in grid])
    return hashlib.sha256(values.tobytes()).hexdigest()[:16] == GOLDEN["c_library"]


# With another C library than the one that computed the numbers, the last bits may differ.
SAME_C_LIBRARY = _same_c_library()


# ---- the steps of programs


def _ramp(size: list[int], dtype: str) -> np.ndarray:
    return (np.arange(math.prod(size)) % 8 / 8).astype(_dtype(dtype)).reshape(size)


def _rates(size: int, dtype: str) -> np.ndarray:
    return (np.arange(size) ** 2 / 4).astype(_dtype(dtype))


def _multinomial(engine: Engine, size: list[int], dtype: str, n_sample: int, replacement: bool) -> np.ndarray:
    weights = (np.arange(math.prod(size)) * 37 % 101 + 1).astype(_dtype(dtype)).reshape(size)
    return random.multinomial(engine, weights, n_sample, replacement)


def _layer(engine: Engine, kind: str, arguments: list[int]) -> np.ndarray:
    """The parameters of a layer, concatenated, as the documentation of ``samplers`` describes them."""
    parts: list[np.ndarray] = []

    def draw(bound: float, *shapes: tuple[int, ...]) -> None:
        parts.extend(random.uniform(engine, shape, np.float32, -bound, bound).ravel() for shape in shapes)

    def weight_and_bias(weight: tuple[int, ...], bias: int) -> None:
        fan_in = math.prod(weight[1:])
        draw(math.sqrt(3.0) * (math.sqrt(2.0 / (1 + math.sqrt(5) ** 2)) / math.sqrt(fan_in)), weight)
        draw(1 / math.sqrt(fan_in), (bias,))

    if kind == "Linear":
        weight_and_bias((arguments[1], arguments[0]), arguments[1])
    elif kind == "Conv2d":
        weight_and_bias((arguments[1], arguments[0], arguments[2], arguments[2]), arguments[1])
    elif kind == "ConvTranspose2d":
        weight_and_bias((arguments[0], arguments[1], arguments[2], arguments[2]), arguments[1])
    elif kind == "Bilinear":
        first, second, out = arguments
        draw(1 / math.sqrt(first), (out, first, second), (out,))
    elif kind == "LSTM":
        inputs, hidden, layers = arguments
        for layer in range(layers):
            width = hidden if layer else inputs
            draw(1 / math.sqrt(hidden), (4 * hidden, width), (4 * hidden, hidden), (4 * hidden,), (4 * hidden,))
    elif kind == "Embedding":
        parts.append(random.normal(engine, arguments).ravel())
    else:
        assert kind == "MultiheadAttention"
        width = arguments[0]
        weight_and_bias((width, width), width)
        draw(math.sqrt(3.0) * math.sqrt(2.0 / (4 * width)), (3 * width, width))
        zeros = np.zeros(width, np.float32)
        parts = [parts[2], np.zeros(3 * width, np.float32), parts[0], zeros]
    return np.concatenate(parts)


def _dropout_mask(engine: Engine, size: list[int], p: float) -> np.ndarray:
    if p in (0.0, 1.0):
        return np.full(size, 1.0 - p, np.float32)
    return random.bernoulli(engine, size, np.float32, 1 - p)


def _loader(engine: Engine, n: int, batch_size: int, shared: bool) -> np.ndarray:
    return random.sampler_permutation(engine, n, shared=shared)


STEPS = {
    "bernoulli_ramp": lambda e, size, dtype, p_dtype: random.bernoulli(e, size, dtype, _ramp(size, p_dtype)),
    "random_from": random.random,
    "randint": random.random,
    "multinomial": _multinomial,
    "poisson": lambda e, size, dtype: random.poisson(e, _rates(size, dtype)),
    "binomial": lambda e, size, dtype: random.binomial(e, np.floor(_rates(size, dtype)), _ramp([size], dtype)),
    "standard_gamma": lambda e, size, dtype: random.standard_gamma(e, _rates(size, dtype)),
    "sampler_permutation": _loader,
    "random_indices": lambda e, **options: np.fromiter(random.random_indices(e, **options), np.int64),
    "layer": _layer,
    "dropout_mask": _dropout_mask,
}


def _run(engine: Engine, name: str, arguments: dict[str, Any]) -> np.ndarray:
    if "dtype" in arguments and name not in ("multinomial", "poisson", "binomial", "standard_gamma"):
        arguments = {**arguments, "dtype": _dtype(arguments["dtype"])}
    return STEPS.get(name, getattr(random, name, None))(engine, **arguments)


# ---- programs and errors


def _check_state(engine: Engine, result: dict[str, Any]) -> None:
    state = engine.get_state()
    state[5024:5032] = 0
    assert hashlib.sha256(state.tobytes()).hexdigest()[:16] == result["sha"]
    if SAME_C_LIBRARY or result["waiting"] is None:
        assert engine.next_double_normal == result["waiting"]
    else:
        assert engine.next_double_normal == pytest.approx(result["waiting"], rel=1e-14)


def _check_values(value: np.ndarray, result: dict[str, Any]) -> None:
    assert value.dtype == _dtype(result["dtype"])
    assert list(value.shape) == result["shape"]
    assert value.flags.c_contiguous
    if "all" in result and not SAME_C_LIBRARY:
        raw = np.frombuffer(base64.b64decode(result["all"]), value.dtype).reshape(value.shape)
        wide = np.complex128 if value.dtype.kind == "c" else np.float64
        # compositions of functions with an error in the last bit, after which rounding may differ
        np.testing.assert_allclose(
            value.astype(wide), raw.astype(wide), rtol=16 * float(ml_dtypes.finfo(value.dtype).eps)
        )
        return
    if "head" in result:
        head = value.ravel()[:4]
        reals = head.view(head.real.dtype) if value.dtype.kind == "c" else head
        assert reals.tolist() == result["head"]
    assert hashlib.sha256(value.tobytes()).hexdigest()[:16] == result["values"]


@pytest.mark.parametrize("program", GOLDEN["programs"], ids=lambda program: program["name"])
def test_program(program: dict[str, Any]) -> None:
    engine = Engine(program["seed"])
    for (name, arguments), result in zip(program["steps"], program["results"], strict=True):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            value = _run(engine, name, arguments)
        _check_values(value, result)
        _check_state(engine, result)


@pytest.mark.parametrize("failure", GOLDEN["errors"], ids=lambda failure: f"{failure[0]} {failure[1]}")
def test_error(failure: list[Any]) -> None:
    """The same error as PyTorch's, and an unchanged engine."""
    name, arguments, kind, message = failure
    engine = Engine(3)
    before = engine.get_state()
    with pytest.raises((RuntimeError, NotImplementedError)) as raised:
        _run(engine, name, arguments)
    assert type(raised.value).__name__ == kind
    assert str(raised.value) == message
    np.testing.assert_array_equal(engine.get_state(), before)


@pytest.mark.parametrize("part", ["first", "second"])
def test_every_argument_of_a_float32_normal(part: str) -> None:
    """All 2**24 values of the first uniform and then of the second, hashed in blocks."""
    digest = hashlib.sha256()
    for start in range(0, 1 << 24, 1 << 20):
        numbers = np.arange(start, start + (1 << 20), dtype=np.uint32).reshape(-1, 8)
        # 6601320 of 2**24 is the uniform whose radius is one
        pair = (numbers, np.zeros_like(numbers)) if part == "first" else (np.full_like(numbers, 6601320), numbers)
        digest.update(normals_from_bits32(np.concatenate(pair, axis=1).ravel(), 0.0, 1.0).tobytes())
    assert digest.hexdigest() == GOLDEN["every_argument"][part]


# ---- the engine


def test_reference_stream() -> None:
    """The C++ standard (26.6.6 [rand.predef]) fixes the 10000th word of mt19937 with seed 5489."""
    assert Engine(5489).random32(10_000)[-1] == 4123659995


def test_words_one_by_one_and_in_blocks() -> None:
    whole = Engine(8).random32(2000)
    engine, parts = Engine(8), []
    for size in (1, 0, 3, 623, 624, 1, 700):
        parts.append(engine.random32(size))
        parts.append(np.array([engine.next32()], np.uint32))
    joined = np.concatenate(parts)
    np.testing.assert_array_equal(joined, whole[: len(joined)])


def test_pairs_of_words() -> None:
    words = [int(word) for word in Engine(2).random32(20)]
    expected = [high << 32 | low for high, low in zip(words[::2], words[1::2], strict=True)]
    assert Engine(2).random64(10).tolist() == expected
    engine = Engine(2)
    assert [engine.next64() for _ in range(10)] == expected


def test_torch_state_is_accepted_and_reproduced() -> None:
    state = np.frombuffer(base64.b64decode(GOLDEN["state"]), np.uint8)
    assert state.size == random.STATE_SIZE
    engine = Engine().set_state(state)
    np.testing.assert_array_equal(engine.get_state(), state)
    np.testing.assert_array_equal(random.normal(engine, 20), np.array(GOLDEN["after_state"], np.float32))


@given(seed=st.integers(-(2**63), 2**64 - 1), drawn=st.integers(0, 1300), single=st.integers(0, 3))
def test_state_round_trip(seed: int, drawn: int, single: int) -> None:
    engine = Engine(seed)
    engine.random32(drawn)
    random.normal(engine, single)
    state = engine.get_state()
    copy = engine.clone()
    assert copy.initial_seed == engine.initial_seed == seed % 2**64
    expected = random.normal(engine, 5).tolist(), engine.next64(), engine.random32(700).tolist()
    assert (random.normal(copy, 5).tolist(), copy.next64(), copy.random32(700).tolist()) == expected
    engine.set_state(state)
    np.testing.assert_array_equal(engine.get_state(), state)
    assert (random.normal(engine, 5).tolist(), engine.next64(), engine.random32(700).tolist()) == expected


def test_fork_undoes_its_draws() -> None:
    engine = Engine(1)
    random.normal(engine, 1)
    before = engine.get_state()
    with pytest.raises(KeyError), engine.fork():
        random.normal(engine, 3)
        raise KeyError
    np.testing.assert_array_equal(engine.get_state(), before)


def test_unseeded_engine_is_torchs_unseeded_generator() -> None:
    assert Engine().initial_seed == 67280421310721
    first, second = Engine(), Engine()
    assert first.seed_from_entropy() != second.seed_from_entropy()
    assert first.next64() != second.next64()


@pytest.mark.parametrize("seed", [2**64, -(2**63) - 1])
def test_seed_out_of_range(seed: int) -> None:
    engine = Engine(4)
    with pytest.raises(ValueError, match="Overflow when unpacking long long"):
        engine.seed(seed)
    assert engine.next32() == Engine(4).next32()


def _broken(field: slice, value: int) -> np.ndarray:
    state = Engine(0).get_state()
    state[field] = np.frombuffer(value.to_bytes(field.stop - field.start, "little"), np.uint8)
    return state


@pytest.mark.parametrize(
    ("state", "error", "message"),
    [
        (np.zeros(5056), TypeError, "RNG state must be a torch.ByteTensor"),
        (np.zeros(10, np.uint8), RuntimeError, "Expected a CPUGeneratorImplState of size 5056 but found the input RNG"),
        (np.zeros(5056, np.uint8), RuntimeError, "Invalid mt19937 state"),
        (_broken(slice(8, 12), 625), RuntimeError, "Invalid mt19937 state"),
        (_broken(slice(12, 16), 0), RuntimeError, "Invalid mt19937 state"),
        (_broken(slice(16, 24), 625), RuntimeError, "Invalid mt19937 state"),
    ],
)
def test_bad_state(state: np.ndarray, error: type[Exception], message: str) -> None:
    engine = Engine(6)
    random.normal(engine, 1)
    before = engine.get_state()
    with pytest.raises(error, match=message):
        engine.set_state(state)
    np.testing.assert_array_equal(engine.get_state(), before)


# ---- exact arithmetic

_ordinary = st.floats(-1e6, 1e6, allow_subnormal=False)


@given(x=st.lists(st.floats(-8, 8), min_size=1, max_size=30), scale=_ordinary, shift=_ordinary)
def test_fma64_rounds_once(x: list[float], scale: float, shift: float) -> None:
    expected = [float(Fraction(value) * Fraction(scale) + Fraction(shift)) for value in x]
    assert fma64(np.array(x), scale, shift).tolist() == expected


@given(scale=st.floats(1e-300, 1e300), shift=st.floats(1e-300, 1e300))
def test_fma64_of_any_magnitude(scale: float, shift: float) -> None:
    x = random.uniform(Engine(0), 8, np.float64)
    expected = [float(Fraction(value) * Fraction(scale) + Fraction(shift)) for value in x.tolist()]
    assert fma64(x, scale, shift).tolist() == expected


@given(data=st.data())
def test_fma32_rounds_once(data: st.DataObject) -> None:
    """Also where float64 would first round to a tie of float32 values, which the last shift provokes."""
    floats = st.floats(-1e6, 1e6, width=32, allow_subnormal=False)
    x, scale, shift = (np.float32(data.draw(floats)) for _ in range(3))
    (result,) = fma32(np.array([x]), scale, shift)
    exact = Fraction(float(x)) * Fraction(float(scale)) + Fraction(float(shift))
    neighbours = [np.nextafter(result, np.float32(s) * np.inf, dtype=np.float32) for s in (-1, 1)]
    distance = abs(Fraction(float(result)) - exact)
    for neighbour in neighbours:
        other = abs(Fraction(float(neighbour)) - exact)
        assert distance < other or (distance == other and result.view(np.int32) % 2 == 0)


def test_fma32_does_not_round_twice() -> None:
    """1 + 2**-24 is a tie between float32 values, decided by 2**-80, which float64 cannot represent."""
    x = np.array([2.0**-40], np.float32)
    assert fma32(x, -(2.0**-40), 1 + 2.0**-23)[0] == np.float32(1 + 2.0**-23)
    tie = np.array([1 + 2.0**-12], np.float32)  # its square is 1 + 2**-11 + 2**-24
    above = fma32(tie, 1 + 2.0**-12, 2.0**-100)[0]
    below = fma32(tie, 1 + 2.0**-12, -(2.0**-100))[0]
    assert (above, below) == (np.float32(1 + 2.0**-11 + 2.0**-23), np.float32(1 + 2.0**-11))


@pytest.mark.parametrize("shift", [math.inf, -math.inf, math.nan])
def test_shift_that_is_not_finite(shift: float) -> None:
    np.testing.assert_array_equal(random.normal(Engine(0), 20, np.float64, shift), np.full(20, shift))
    np.testing.assert_array_equal(random.normal(Engine(0), 20, np.float32, shift), np.full(20, shift, np.float32))


@pytest.mark.parametrize("name", ["log", "log1p", "exp", "sin", "cos", "tan"])
def test_c_function(name: str) -> None:
    x = random.uniform(Engine(0), 5000, np.float64) * (-1 if name == "log1p" else 1)
    assert c_function(name)(x).tolist() == [getattr(math, name)(value) for value in x.tolist()]


@pytest.mark.parametrize(("mean", "std"), [(0.0, 1.0), (0.3, 2.7), (-1e-30, 1e-10), (2.0, 0.0), (math.inf, 1.0)])
def test_normals_in_c_and_in_numpy_are_the_same_bits(mean, std):
    words = np.random.default_rng(0).integers(0, 1 << 32, 16 * 1000, dtype=np.uint32)
    words[:32] = 0
    words[32:64] = 0xFFFFFFFF
    found, expected = normals_from_bits32(words, mean, std), normals_by_numpy(words, mean, std)
    assert found.tobytes() == expected.tobytes()


def test_c_function_at_the_ends() -> None:
    assert c_function("log")(np.array([0.0])).tolist() == [-math.inf]
    assert c_function("exp")(np.array([1e4, -1e4])).tolist() == [math.inf, 0.0]


# ---- long shuffles


@pytest.mark.parametrize("n", [4096, 4097, 4200, 20_000, 100_000])
def test_exchanges_in_batches(n: int) -> None:
    """A long shuffle in batches has the result of single exchanges."""
    words = Engine(n).random32(n - 1).tolist()
    order = list(range(n))
    for i, word in enumerate(words):
        partner = i + word % (n - i)
        order[i], order[partner] = order[partner], order[i]
    assert forward_shuffle(Engine(n), n).tolist() == order


def test_long_permutations() -> None:
    """The algorithm for very long shuffles, on a short one: each number is inserted at a random index."""
    engine = Engine(4)
    order = inside_out_shuffle(engine, 1000)
    assert sorted(order.tolist()) == list(range(1000))
    draws = [word % (i + 1) for i, word in enumerate(Engine(4).random64(1000).tolist())]
    last = max(i for i, draw in enumerate(draws) if draw == 0)
    assert order[0] == last
    assert engine.next32() == Engine(4).random32(2001)[-1]


def test_warning_beyond_exact_integers() -> None:
    with pytest.warns(UserWarning, match=r"to - 1 is out of bounds \[-\(2\^11\), 2\^11\]. .* c10::Half can support"):
        random.random(Engine(0), 3, np.float16, 0, 65504)


def test_blocks_of_draws_match_single_ones() -> None:
    """Samplers that draw in blocks leave the engine in the state after the numbers that they used."""
    rates = np.full(700, 30.0)
    whole, single = Engine(5), Engine(5)
    expected = [random.poisson(single, rates[:1])[0] for _ in rates]
    np.testing.assert_array_equal(random.poisson(whole, rates), expected)
    np.testing.assert_array_equal(whole.get_state(), single.get_state())


def test_samplers_import_no_other_module_of_compat() -> None:
    script = f"""
import sys, types
package = types.ModuleType("compat")
package.__path__ = [{str(ROOT / "compat")!r}]
sys.modules["compat"] = package
import compat._operators.samplers
own = ("compat._core", "compat._core.random", "compat._core.random.engine", "compat._operators")
others = [m for m in sys.modules if m.startswith("compat.") and m not in own and "samplers" not in m]
others += [m for m in ("torch", "scipy") if m in sys.modules]
sys.exit(", ".join(others) or None)
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, check=False)
    assert ran.returncode == 0, ran.stderr
