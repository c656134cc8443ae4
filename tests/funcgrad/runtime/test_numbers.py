"""The numbers of a window, as arguments of its program."""

from __future__ import annotations

import math
from typing import Any

import jax
import numpy as np
import pytest

import compat as torch
from funcgrad import runtime
from funcgrad.runtime.compose import Numbers

F64, I64 = np.dtype(np.float64), np.dtype(np.int64)


def test_numbers_that_recur_are_transferred_once() -> None:
    numbers = Numbers([F64, I64, F64])
    # Other objects in each call.
    first = numbers.again([float("0.1"), int("3000"), float("0")])
    assert all(isinstance(v, np.ndarray) for v in first)
    second = numbers.again([float("0.1"), int("3000"), float("0")])
    third = numbers.again([float("0.1"), int("3000"), float("0")])
    assert all(isinstance(v, jax.Array) for v in second)
    assert all(a is b for a, b in zip(second, third, strict=True))
    for got in (first, second):
        assert [np.asarray(v).tolist() for v in got] == [[0.1, 0.0], [3000]]
        assert [v.dtype for v in got] == [F64, I64]


@pytest.mark.parametrize("change", [[0.2, 3, 0.0], [0.1, 4, 0.0], [0.1, 3, -0.0], [0.1, 3, math.nan], [True, 3, 0.0]])
@pytest.mark.parametrize("place", [False, True])
def test_other_numbers_are_transferred_again(change: list[Any], place: bool) -> None:
    numbers = Numbers([F64, I64, F64])
    where = jax.sharding.SingleDeviceSharding(jax.devices()[0])

    def given(values: list[Any]) -> Any:
        return numbers.on(where, values) if place else numbers.again(values)

    for _ in range(3):
        given([0.1, 3, 0.0])
    for _ in range(3):
        floats, ints = given(change)
        assert repr(np.asarray(floats).tolist()) == repr([float(change[0]), change[2]])
        assert np.asarray(ints).tolist() == [change[1]]


@pytest.mark.deferral
def test_a_recorded_number_may_change_at_any_step() -> None:
    def inverse(c: float) -> float:
        x = torch.ones(3)
        for _ in range(5):
            x = (x * 2).neg().neg() / 2
        runtime.flush()
        found: float = (1 / (x * c)).sum().item()
        return found

    for c in [0.0] * 40 + [-0.0, 0.0, 2.0, 2.0, 2.0, -0.0]:
        expected = math.copysign(math.inf, c) if c == 0 else 3 / c
        assert inverse(c) == expected
