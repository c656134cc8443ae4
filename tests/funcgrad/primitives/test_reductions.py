"""Reductions and cumulative operations, compared with ``jax.lax``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax import lax

from funcgrad.core import dtypes
from funcgrad.core.ir import ArrayType
from funcgrad.primitives import reductions as p
from tests.funcgrad.oracle import (
    Case,
    Draw,
    Ours,
    Sampler,
    a_dtype,
    a_real_dtype,
    a_shape,
    an_axis,
    check,
    check_eager,
    distinct,
    examples,
    normal,
    some_axes,
)

Theirs = Callable[..., Any]
Sample = Callable[[tuple[int, ...], np.dtype], Sampler]


def over_axes(
    primitive: Any,
    theirs: Theirs,
    *,
    dtype: Callable[..., np.dtype],
    more: Any = (),
    empty: bool = True,
    sample: Sample = normal,
) -> Any:
    def case(draw: Draw) -> Case:
        whole = a_shape(draw, sizes=(2, 3, 1, 4, 0) if empty else (2, 3, 1, 4))
        axes = some_axes(draw, len(whole))
        x = sample(whole, dtype(draw, *more))
        return Case(lambda x: primitive(x, axes=axes), lambda x: theirs(x, axes), [x])

    return case


def over_one(
    primitive: Any, theirs: Theirs, *, sample: Sample = normal, dtype: Callable[..., np.dtype] = a_dtype
) -> Any:
    def case(draw: Draw) -> Case:
        whole = a_shape(draw, least=1, sizes=(3, 5, 1, 2, 0))
        axis, back = an_axis(draw, len(whole)), draw(st.booleans())
        kind = dtype(draw, np.int32)
        return Case(
            lambda x: primitive(x, axis=axis, reverse=back),
            lambda x: theirs(x, axis=axis, reverse=back),
            [sample(whole, kind)],
        )

    return case


def of_bools(primitive: Any, theirs: Theirs) -> Any:
    def case(draw: Draw) -> Case:
        whole = a_shape(draw)
        axes = some_axes(draw, len(whole))
        return Case(lambda x: primitive(x, axes=axes), lambda x: theirs(x, axes), [normal(whole, bool)])

    return case


def place(primitive: Any, theirs: Theirs) -> Any:
    def case(draw: Draw) -> Case:
        whole = a_shape(draw, least=1, sizes=(3, 1, 4))
        axis, index = an_axis(draw, len(whole)), np.dtype(draw(st.sampled_from([np.int32, np.int64])))
        # Integers tie: the first one counts.
        x = normal(whole, a_real_dtype(draw, np.int8, bool))
        return Case(lambda x: primitive(x, axis=axis, dtype=index), lambda x: theirs(x, axis, index), [x])

    return case


def any_dtype(draw: Draw, *more: Any) -> np.dtype:
    # XLA's products in half precision and funcgrad's are rounded in different orders.
    return np.dtype(draw(st.sampled_from([np.float64, np.float32, np.complex128, *more])))


EXTREME = dict(dtype=a_real_dtype, more=(np.int8,), empty=False, sample=distinct)
CASES = {
    "sum": over_axes(p.reduce_sum, lax.reduce_sum, dtype=a_dtype, more=(np.int32, np.uint8)),
    "prod": over_axes(p.reduce_prod, lax.reduce_prod, dtype=any_dtype, more=(np.int32,)),
    "reduce_max": over_axes(p.reduce_max, lax.reduce_max, **EXTREME),
    "reduce_min": over_axes(p.reduce_min, lax.reduce_min, **EXTREME),
    "any": of_bools(p.reduce_any, lax.reduce_or),
    "all": of_bools(p.reduce_all, lax.reduce_and),
    "argmax": place(p.argmax, lax.argmax),
    "argmin": place(p.argmin, lax.argmin),
    "cumsum": over_one(p.cumulative_sum, lax.cumsum),
    "cumprod": over_one(p.cumulative_prod, lax.cumprod, dtype=any_dtype),
    "cummax": over_one(p.cumulative_max, lax.cummax, sample=distinct, dtype=a_real_dtype),
    "cummin": over_one(p.cumulative_min, lax.cummin, sample=distinct, dtype=a_real_dtype),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
@given(st.data())
@examples(5)
def test_against_jax(name: str, data: Any) -> None:
    check(CASES[name](data.draw), data.draw(st.integers(0, 99)))


@pytest.mark.parametrize("name", ["sum", "prod", "reduce_max", "cumprod"])
@given(st.data())
@examples(1)
def test_operation_by_operation(name: str, data: Any) -> None:
    check_eager(CASES[name](data.draw))


# ---------------------------------------------------------------- special cases


def gradient(f: Callable[..., Any], x: np.ndarray, ct: Any = None) -> np.ndarray:
    outs, pullback = Ours.vjp(lambda x: [f(x)], [jnp.asarray(x)])
    return np.asarray(pullback([jnp.ones_like(outs[0]) if ct is None else ct])[0])


def test_elements_that_tie_for_an_extreme_share_evenly() -> None:
    x = np.array([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]])
    assert gradient(lambda x: p.reduce_max(x, axes=(1,)), x).tolist() == [[0, 0.5, 0.5], [1 / 3] * 3]


@pytest.mark.parametrize(
    ("x", "wanted"),
    [([2.0, 0.0, 3.0], [0.0, 6.0, 0.0]), ([0.0, 0.0, 3.0], [0.0, 0.0, 0.0]), ([2.0, 5.0, 3.0], [15.0, 6.0, 10.0])],
)
def test_products_with_zeros_have_derivatives(x: list[float], wanted: list[float]) -> None:
    assert gradient(lambda x: p.reduce_prod(x, axes=(0,)), np.array(x)).tolist() == wanted


def test_the_second_derivative_of_a_product_with_two_zeros() -> None:
    # d2 (x y z) / dx dy = z, at x = y = 0
    x = jnp.asarray([0.0, 0.0, 3.0])

    def first(x: Any) -> list[Any]:
        return Ours.vjp(lambda x: [p.reduce_prod(x, axes=(0,))], [x])[1]([jnp.float64(1)])

    assert np.asarray(Ours.jvp(first, [x], [jnp.asarray([1.0, 0, 0])])[1][0]).tolist() == [0.0, 3.0, 0.0]


def test_a_running_extreme_gives_ties_half_each() -> None:
    got = gradient(lambda x: p.cumulative_max(x, axis=0, reverse=False), np.array([1.0, 1.0, 0.0]))
    assert got.tolist() == [2.0, 1.0, 0.0]


X = ArrayType((2, 0), dtypes.float32)


@pytest.mark.parametrize(
    ("primitive", "params", "message"),
    [
        (p.reduce_sum, {"axes": (2,)}, r"^sum: axes \(2,\) do not fit f32\[2,0\]"),
        (p.reduce_sum, {"axes": (0, 0)}, r"^sum: axes \(0, 0\) do not fit f32\[2,0\]"),
        (p.reduce_max, {"axes": (1,)}, r"^reduce_max: has no value over axes \(1,\) of f32\[2,0\]"),
        (p.argmax, {"axis": 1, "dtype": dtypes.int32}, r"^argmax: has no value over axis 1 of f32\[2,0\]"),
        (p.argmin, {"axis": 2, "dtype": dtypes.int32}, r"^argmin: axis 2 is out of range for f32\[2,0\]"),
        (p.cumulative_sum, {"axis": 2, "reverse": False}, r"^cumsum: axis 2 is out of range for f32\[2,0\]"),
    ],
)
def test_invalid_operands_are_named(primitive: Any, params: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        primitive.output_types([X], params)
