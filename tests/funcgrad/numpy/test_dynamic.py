"""Dynamic slices and ``top_k``, compared with ``jax.lax``."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from jax import lax

import funcgrad as fg
import funcgrad.numpy as fnp
from tests.funcgrad.oracle import assert_close

X, U = np.random.default_rng(0).normal(size=(4, 5)), np.random.default_rng(1).normal(size=(2, 3))


@pytest.mark.parametrize("starts", [(0, 0), (1, 2), (3, 4), (-2, -5), (9, -9)])
def test_windows(starts: tuple[int, int]) -> None:
    def program(dynamic_slice: Any, dynamic_update_slice: Any) -> Any:
        def of(x: Any, u: Any, i: Any) -> Any:
            return dynamic_slice(x, (i, starts[1]), (2, 3)), dynamic_update_slice(x, u * 2, (i, starts[1]))

        return of

    ours, theirs = (
        program(fnp.dynamic_slice, fnp.dynamic_update_slice),
        program(lax.dynamic_slice, lax.dynamic_update_slice),
    )
    wanted = theirs(X, U, starts[0])
    for found in (ours(X, U, starts[0]), fg.jit(ours)(X, U, starts[0])):
        for a, b in zip(found, wanted, strict=True):
            assert_close(a, np.asarray(b), "values")
    slopes = [
        m.grad(lambda x, u, f=f: sum((part**2).sum() for part in f(x, u, starts[0])), (0, 1))(X, U)
        for m, f in ((fg, ours), (jax, theirs))
    ]
    for a, b in zip(*slopes, strict=True):
        assert_close(a, np.asarray(b), "gradient")
    batched = fg.vmap(ours, (None, None, 0))(X, U, np.array([starts[0], 1]))
    assert_close(batched[0][0], np.asarray(wanted[0]), "batched")


def test_starts_as_a_vector_and_numbers_without_axes() -> None:
    assert_close(fnp.dynamic_slice(X, np.array([1, 2]), (2, 3)), X[1:3, 2:5], "vector")
    assert float(fnp.dynamic_slice(np.float64(3), (), ())) == 3


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_top_k(axis: int) -> None:
    values, places = fg.jit(lambda x: fnp.top_k(x, 2, axis))(X)
    wanted = [np.moveaxis(np.asarray(a), -1, axis) for a in lax.top_k(np.moveaxis(X, axis, -1), 2)]
    assert_close(values, wanted[0], "values")
    assert_close(places, wanted[1].astype(places.dtype), "places")
    slope = fg.grad(lambda x: fnp.sum(fnp.top_k(x, 2, axis)[0] ** 2))(X)
    assert_close(slope, np.where(np.isin(X, wanted[0]), 2 * X, 0), "gradient")


def test_refusals() -> None:
    with pytest.raises(TypeError, match=r"^dynamic_slice: .*2 axes"):
        fnp.dynamic_slice(X, (0,), (2, 3))
    with pytest.raises(TypeError, match=r"^dynamic_slice: wants an integer"):
        fnp.dynamic_slice(X, (0.0, 1.0), (2, 3))
    with pytest.raises(ValueError, match="does not fit"):
        fnp.dynamic_slice(X, (0, 0), (5, 3))
    with pytest.raises(ValueError, match="cannot take 6 of the 5"):
        fnp.top_k(X, 6)
