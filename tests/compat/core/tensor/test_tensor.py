"""Tensors: metadata, conversion, creation, views of memory, subscripts, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import compat as torch
from compat._core.memory.typed_storage import warn_typed
from tests.compat.scripts import assert_same, cases, observe


@pytest.mark.parametrize(("source", "want"), cases("tensor"))
def test_golden(source: str, want: dict[str, Any]) -> None:
    warn_typed.cache_clear()  # warned once per process
    assert_same(observe(torch, source), want)


@st.composite
def subscripts(draw: Any) -> tuple[tuple[int, ...], tuple]:
    """A shape, and basic subscripts that NumPy accepts for it."""
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)))
    index: list[Any] = []
    first, last = draw(st.integers(0, len(shape))), draw(st.integers(0, len(shape)))
    dots = draw(st.booleans())
    for place, n in enumerate(shape[:first] + shape[max(first, last) :] if dots else shape[:first]):
        if place == first:
            index.append(Ellipsis)
        kind = draw(st.sampled_from(["int", "slice", "none"]))
        if kind == "none":
            index.append(None)
        if kind == "int":
            index.append(draw(st.integers(-n, n - 1)))
        else:
            ends = st.one_of(st.none(), st.integers(-n - 1, n + 1))
            index.append(slice(draw(ends), draw(ends), draw(st.one_of(st.none(), st.integers(1, 3)))))
    return shape, tuple(index)


@settings(deadline=None, max_examples=120)
@given(subscripts())
def test_basic_subscripts_are_numpys(case: tuple) -> None:
    shape, index = case
    array = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    x = torch.tensor(array)
    part = x[index]
    np.testing.assert_array_equal(part.numpy(), array[index])
    assert part.numel() == 0 or part._base is x
    array[index] = -1
    x[index] = -1
    np.testing.assert_array_equal(x.numpy(), array)


def test_neighbouring_parts_share_a_program() -> None:
    """A loop over ``x[i]`` compiles once: the offset is an argument, not a constant."""
    from compat._operators.pointwise.arithmetic import add

    x = torch.zeros(64, 3)
    _ = x[0] + 1.0
    before = len(add.plans)
    for i in range(64):
        _ = x[i] + float(i)
    assert len(add.plans) == before


def test_numbers_do_not_recompile() -> None:
    from compat._operators.pointwise.arithmetic import mul

    x = torch.ones(5, 7)
    _ = x * 1.5
    before = len(mul.plans)
    for i in range(100):
        _ = x * (i + 0.5)
    assert len(mul.plans) == before


def test_an_error_changes_nothing() -> None:
    x = torch.ones(3)
    for bad in (
        lambda: x.add_(torch.ones(2, 3)),
        lambda: x.copy_(torch.ones(4)),
        lambda: x.__setitem__(0, torch.ones(2)),
    ):
        with pytest.raises(RuntimeError):
            bad()
    assert x.tolist() == [1.0, 1.0, 1.0]
    assert x._version == 0


def test_minus_zero_is_distinguished_from_zero() -> None:
    x = torch.zeros(1)
    assert np.signbit((x * -0.0).numpy()).item()
    assert not np.signbit((x + 0.0).numpy()).item()
    assert np.signbit(torch.full((1,), -0.0).numpy()).item()
    assert not np.signbit(torch.full((1,), 0.0).numpy()).item()


def test_a_changed_default_dtype_invalidates_plans() -> None:
    x = torch.ones(2, dtype=torch.int64)
    assert (x * 1.5).dtype is torch.float32
    torch.set_default_dtype(torch.float64)
    try:
        assert (x * 1.5).dtype is torch.float64
        assert torch.exp(x).dtype is torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    assert (x * 1.5).dtype is torch.float32
