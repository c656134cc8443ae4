"""Functions of many operations, called on arrays outside every transform."""

from __future__ import annotations

import pickle
from typing import Any

import jax
import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad.core.caching import limited
from funcgrad.runtime.call_cache import composite
from funcgrad.runtime.eager import Eager
from tests.funcgrad.numpy_rows import ROWS

# How many operations a function may run one by one: each is compiled separately for each new shape.
FEW = 4
# They call functions of their user, which may read values; or the row has several functions, or an index.
ONE_BY_ONE = (
    "apply_along_axis|apply_over_axes|piecewise|piecewise of one|vectorize|vectorize core|vectorize rows|fromfunction|"
    "r_|c_|mgrid|hsplit and vsplit|real and imaginary|all and any"
)


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The operations that run one by one."""
    ran: list[str] = []
    now = Eager.now

    def counted(self: Eager, primitive: Any, operands: Any, params: Any) -> Any:
        ran.append(primitive.name)
        return now(self, primitive, operands, params)

    monkeypatch.setattr(Eager, "now", counted)
    return ran


@pytest.mark.parametrize("name", [name for name in ROWS if name not in ONE_BY_ONE.split("|")])
def test_few_operations_run_one_by_one(name: str, alone: list[str]) -> None:
    f, arguments = ROWS[name]
    arrays = [fnp.asarray(x) for x in arguments]
    alone.clear()
    f(fnp, *arrays)
    assert len(alone) <= FEW, alone


@composite
def spread(x: Any) -> Any:
    """The distance of elements from their mean, and the mean."""
    mean = fnp.sum(x) / x.size
    return {"distance": fnp.abs(x - mean), "mean": mean}


def test_results_are_arrays(alone: list[str]) -> None:
    x = fnp.asarray(np.array([1.0, 2.0, 6.0]))
    alone.clear()
    found = spread(x)
    assert not alone
    assert all(isinstance(v, jax.Array) for v in found.values())
    np.testing.assert_allclose(found["distance"], [2, 1, 3], rtol=1e-15)  # whole numbers


def test_of_numbers_alone_results_are_weak() -> None:
    small = fnp.asarray(np.ones(2, np.float16))
    rooted = composite(lambda x: fnp.add(fnp.sqrt(x), 1.0))
    assert fnp.multiply(small, rooted(2.0)).dtype == np.float16
    assert fnp.multiply(fnp.ones(2, np.float32), rooted(small)).dtype == np.float32


def test_copies_that_are_written_to_hold_arrays() -> None:
    x = fnp.asarray(np.array([[1.0, np.nan], [2.0, 3.0]]), copy=True)
    fnp.nan_to_num(x, copy=False)
    fnp.fill_diagonal(x, 7.0)
    fnp.put_along_axis(x, np.array([[0], [0]]), 5.0, axis=1)
    assert isinstance(x.held, jax.Array) and x.tolist() == [[5.0, 0.0], [5.0, 7.0]]


def test_an_error_leaves_no_state(alone: list[str]) -> None:
    @composite
    def failing(x: Any) -> Any:
        fnp.sum(fnp.sin(x))
        raise KeyError("mine")

    x = fnp.ones(3)
    with pytest.raises(KeyError, match="mine"):
        failing(x)
    alone.clear()
    assert isinstance(fnp.add(x, 1), jax.Array)
    assert alone == ["add"]


def test_within_transforms_it_is_the_function_itself() -> None:
    x = np.array([0.5, 2.0, -1.0])
    total = lambda x: spread(x)["distance"].sum()
    np.testing.assert_allclose(fg.grad(total)(x), fg.jit(fg.grad(total))(x), rtol=1e-15)  # sums of ones and thirds
    assert fg.trace(total, x).equations[-1].primitive.name == "sum"


def test_under_jax_nothing_of_its_trace_is_kept() -> None:
    whole = fnp.asarray(np.arange(7.0))
    for n in (3, 4):  # the values of the first trace must not be used again
        jitted = jax.jit(lambda x, n=n: fnp.interp(x, fnp.linspace(0.0, 6.0, n), fnp.linspace(0.0, 12.0, n)))
        np.testing.assert_allclose(jitted(whole), 2 * whole, rtol=1e-14)  # a few roundings
    np.testing.assert_allclose(fnp.interp(whole, whole, 2 * whole), 2 * whole, rtol=1e-14)


def test_random_numbers_are_the_same_each_time() -> None:
    key = fg.random.key(3)
    first = fg.random.normal(key, (5,))
    assert all((fg.random.normal(key, (5,)) == first).all() for _ in range(3))
    assert not isinstance(first, np.ndarray)


def test_it_is_pickled_by_name() -> None:
    assert pickle.loads(pickle.dumps(fnp.interp)) is fnp.interp


# ---------------------------------------------------------------- kinds of calls


@pytest.fixture
def traces() -> tuple[Any, list[tuple]]:
    """A composite function, and the arguments that its body received."""
    met: list[tuple] = []

    @composite
    def scaled(x: Any, by: Any = 2.0, *, shift: Any = 0) -> Any:
        met.append((by, shift))
        return fnp.add(fnp.multiply(x, by), shift)

    return scaled, met


def test_a_kind_of_call_is_traced_once(traces: Any) -> None:
    scaled, met = traces
    x = fnp.asarray(np.array([1.0, 2.0]))
    for _ in range(3):
        np.testing.assert_array_equal(scaled(x, 3.0, shift=1), [4, 7])
    assert len(met) == 1
    scaled(x, 3.0, shift=True), scaled(x, 3), scaled(fnp.ones(2, np.float32), 3.0), scaled(fnp.ones(3), 3.0)
    assert len(met) == 5


def test_call_cache_keys_distinguish_equal_values() -> None:
    divided = composite(lambda x, by: fnp.add(fnp.divide(x, by), 0))
    one = fnp.ones(1)
    assert divided(one, 0.0)[0] == np.inf and divided(one, -0.0)[0] == -np.inf
    assert np.isnan(divided(one, np.nan)[0]) and divided(one, np.float32(-0.0)).dtype == np.float32
    assert divided(fnp.ones(1, np.int8), True).dtype == np.float32


def test_changing_numbers_are_not_traced_again(traces: Any) -> None:
    scaled, met = traces
    x = fnp.ones(2)
    for by in [i / 4 for i in range(20)]:
        np.testing.assert_array_equal(scaled(x, by), [by, by])
    traced = len(met)
    scaled(x, 0.0)
    assert len(met) == traced, "one of the first is still known"


def test_arrays_of_numpy_may_change_after_a_call(traces: Any) -> None:
    scaled, _ = traces
    x = np.zeros((512, 512), np.float32)  # large enough to be compiled
    found = [scaled(x, 1.0, shift=1) for _ in range(3)]
    x[:] = 7
    assert all((np.asarray(f) == 1).all() for f in found)
    np.testing.assert_array_equal(scaled([fnp.ones(2), np.ones(2)][1], 3.0), [3, 3])


def test_functions_that_read_values_run_with_them() -> None:
    doubled = composite(lambda x: fnp.multiply(x, 2) if x[0] > 0 else x)
    assert doubled(fnp.ones(2)).tolist() == [2, 2] and doubled(-fnp.ones(2)).tolist() == [-1, -1]
    x = fnp.asarray(np.array([1, 5, 9]))
    assert fnp.digitize(x, fnp.asarray([0, 4, 8])).tolist() == [1, 2, 3]
    assert fnp.digitize(x, fnp.asarray([8, 4, 0])).tolist() == [2, 1, 0], "decreasing bins are seen by their values"


def test_errors_that_depend_on_values_come_each_time() -> None:
    good, bad = fnp.eye(2), fnp.ones((2, 2))
    for _ in range(2):
        assert fnp.linalg.inv(good).shape == (2, 2)
        with pytest.raises(np.linalg.LinAlgError):
            fnp.linalg.cholesky(-good)
        with pytest.raises(np.linalg.LinAlgError):
            fnp.linalg.inv(bad)
        assert fnp.take_along_axis(good, fnp.asarray([[0], [1]]), 1).shape == (2, 1)
        with pytest.raises(IndexError, match="out of bounds"):
            fnp.take_along_axis(good, fnp.asarray([[0], [2]]), 1)


def test_the_oldest_kinds_of_calls_are_evicted(traces: Any) -> None:
    scaled, met = traces
    with limited(4, "calls of functions"):
        for n in (1, 2, 3, 4, 5, 4, 1):
            assert scaled(np.ones(n)).shape == (n,)
    assert len(met) == 6, "4 was still known, 1 was not"


def test_functions_among_the_arguments_are_called_each_time() -> None:
    factor = 2
    applied = composite(lambda f, x: f(x))
    assert applied(lambda x: fnp.multiply(x, factor), fnp.ones(2)).tolist() == [2, 2]
    factor = 3
    assert applied(lambda x: fnp.multiply(x, factor), fnp.ones(2)).tolist() == [3, 3]


def test_search_by_halving_agrees_at_all_sizes() -> None:
    rng = np.random.default_rng(0)
    for size in (0, 1, 2, 3, 7, 8, 9, 100):
        x = np.sort(rng.integers(0, 30, size)).astype(np.float64)
        x[size // 2 + 1 :][-1:] = np.nan
        wanted = np.r_[x, -1, 31, np.nan, x + 0.5]
        for side in ("left", "right"):
            np.testing.assert_array_equal(fnp.searchsorted(x, wanted, side), np.searchsorted(x, wanted, side))
            np.testing.assert_array_equal(
                fg.vmap(lambda v, x=x, side=side: fnp.searchsorted(x, v, side))(wanted),
                np.searchsorted(x, wanted, side),
            )
