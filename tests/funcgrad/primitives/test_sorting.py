"""Sorting, compared with ``jax.lax``, and its helpers with NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax import lax

from funcgrad.core import dtypes
from funcgrad.core.ir import ArrayType
from funcgrad.primitives import sorting as p
from tests.funcgrad.oracle import (
    Case,
    Draw,
    Ours,
    a_dtype,
    a_real_dtype,
    a_shape,
    an_axis,
    check,
    check_eager,
    distinct,
    examples,
    normal,
)  # fmt: skip


def sort(draw: Draw) -> Case:
    shape = a_shape(draw, least=1, most=2, sizes=(4, 3, 1, 5, 0))
    axis = an_axis(draw, len(shape))
    count = draw(st.integers(1, 3))
    keys = draw(st.integers(1, count))
    # The first key ties where it is an integer; then the next one decides, and finally the original order.
    first = draw(st.sampled_from([distinct(shape, np.float64), normal(shape, np.int8), normal(shape, bool)]))
    operands = [first, *[normal(shape, a_dtype(draw, np.int32) if i >= keys else np.float64) for i in range(1, count)]]
    return Case(
        lambda *xs: p.sort(*xs, axis=axis, keys=keys, stable=True),
        lambda *xs: lax.sort(xs, dimension=axis, num_keys=keys, is_stable=True),
        operands,
    )


def top_k(draw: Draw) -> Case:
    shape = a_shape(draw, least=1, most=2, sizes=(4, 3, 1, 5))
    k = draw(st.integers(0, shape[-1]))
    x = distinct(shape, a_real_dtype(draw, np.int32))
    return Case(lambda x: p.top_k(x, k=k), lambda x: lax.top_k(x, k), [x])


CASES = {"sort": sort, "top_k": top_k}


@pytest.mark.parametrize("name", CASES)
@given(st.data())
@examples(5)
def test_against_jax(name: str, data: Any) -> None:
    check(CASES[name](data.draw), data.draw(st.integers(0, 99)))


@pytest.mark.parametrize("name", CASES)
@given(st.data())
@examples(1)
def test_operation_by_operation(name: str, data: Any) -> None:
    check_eager(CASES[name](data.draw))


@pytest.mark.parametrize("descending", [False, True])
def test_equal_elements_keep_their_order(descending: bool) -> None:
    x = np.array([[2, 1, 2, 1, 2], [0, 0, 0, 1, 1]])
    values, order = p.sorted_with_order(x, axis=1, descending=descending)
    wanted = np.argsort(-x if descending else x, axis=1, kind="stable")
    np.testing.assert_array_equal(order, wanted)
    np.testing.assert_array_equal(values, np.take_along_axis(x, wanted, 1))
    np.testing.assert_array_equal(p.argsort(x, axis=1, descending=descending), wanted)


def test_nans_are_larger_than_numbers_whatever_their_sign() -> None:
    x = np.array([1.0, np.nan, np.inf, -np.nan, -np.inf])
    values, order = p.sorted_with_order(x, axis=0)
    assert np.asarray(order).tolist() == [4, 0, 2, 1, 3]
    assert np.isnan(np.asarray(values)[3:]).all()
    values, order = p.sorted_with_order(x, axis=0, descending=True)
    assert np.asarray(order).tolist() == [1, 3, 2, 0, 4]
    values, places = p.top_k(x, k=3)
    assert np.asarray(places).tolist() == [1, 3, 2]


def test_the_derivative_is_the_permutation() -> None:
    x, ct = np.array([3.0, 1.0, 2.0]), np.array([10.0, 20.0, 30.0])
    _, pullback = Ours.vjp(lambda x: p.sort(x, axis=0, keys=1, stable=True), [x])
    assert np.asarray(pullback([ct])[0]).tolist() == [30, 10, 20]


X = ArrayType((2, 3), dtypes.float32)


@pytest.mark.parametrize(
    ("primitive", "operands", "params", "error", "message"),
    [
        (p.sort, [X], {"axis": 2, "keys": 1, "stable": True}, ValueError, r"^sort: axis 2.*f32\[2,3\]"),
        (p.sort, [X], {"axis": 0, "keys": 2, "stable": True}, ValueError, r"^sort: keys .* 1, got 2"),
        (p.sort, [X, X.with_shape((3,))], {"axis": 0, "keys": 1, "stable": True}, ValueError, "^sort: .* one shape"),
        (p.top_k, [X], {"k": 4}, ValueError, r"^top_k: cannot take 4.*f32\[2,3\]"),
        (p.top_k, [X.with_shape(())], {"k": 0}, ValueError, r"^top_k: cannot take 0.*f32\[\]"),
        (p.top_k, [X.with_dtype(dtypes.complex64)], {"k": 1}, TypeError, r"^top_k: takes real.*c64\[2,3\]"),
    ],
)  # fmt: skip
def test_invalid_operands_are_named(
    primitive: Any, operands: list[ArrayType], params: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        primitive.output_types(operands, params)
