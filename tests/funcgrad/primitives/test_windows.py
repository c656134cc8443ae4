"""Windowed reductions: compared with ``jax.lax.reduce_window``, and extrema with a loop over windows."""

from __future__ import annotations

import itertools
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax import lax

from funcgrad.core import dtypes
from funcgrad.core.ir import ArrayType
from funcgrad.primitives import windows as p
from tests.funcgrad.oracle import (
    Case,
    Draw,
    Ours,
    Sampler,
    a_real_dtype,
    a_shape,
    as_list,
    check,
    check_eager,
    distinct,
    examples,
    normal,
)
from tests.funcgrad.tolerances import MANY


def a_window(draw: Draw, shape: tuple[int, ...]) -> p.Window:
    def each(low: int, high: int) -> tuple[int, ...]:
        return tuple(draw(st.integers(low, high)) for _ in shape)

    padding = tuple(zip(each(-1, 2), each(-1, 2), strict=True))
    return p.Window(each(1, 3), each(1, 3), padding, each(1, 2), each(1, 2))


def sliding(primitive: Any, initial: float, combine: Any, sample: Any, *more: Any) -> Any:
    """Any window; JAX cannot differentiate extrema over all of them."""

    def case(draw: Draw) -> Case:
        shape = a_shape(draw, sizes=(4, 3, 7, 1, 0), most=2)
        window = a_window(draw, shape)
        x = sample(shape, a_real_dtype(draw, *more))

        def theirs(x: Any) -> Any:
            info = None if dtypes.is_inexact(x.dtype) else np.iinfo(x.dtype)
            start = initial if info is None or initial == 0 else info.min if initial < 0 else info.max
            return lax.reduce_window(x, np.asarray(start, x.dtype)[()], combine, *window)

        return Case(lambda x: primitive(x, window=window), theirs, [x], order=2 if combine is lax.add else 0)

    return case


def pooled(ours: Any, initial: float, combine: Any) -> Any:
    """A pooling window, over which JAX differentiates extrema."""

    def case(draw: Draw) -> Case:
        size = draw(st.sampled_from([2, 3]))
        window = p.window_over(
            3, (1, 2), (size, size), draw(st.sampled_from([(2, 2), (1, 3)])), [(size // 2, size // 2)] * 2
        )
        operands = [distinct((2, 5, 6), np.float64)]
        return Case(lambda x: ours(x, window), lambda x: lax.reduce_window(x, initial, combine, *window), operands)

    return case


def either(*cases: Any) -> Any:
    return lambda draw: draw(st.sampled_from(cases))(draw)


CASES = {
    "window_sum": sliding(p.window_sum, 0, lax.add, normal, np.int32),
    "window_max": either(
        pooled(lambda x, window: p.window_max(x, window=window), -np.inf, lax.max),
        sliding(p.window_max, -np.inf, lax.max, normal, np.int8),
    ),
    "window_min": either(
        pooled(lambda x, window: p.window_min(x, window=window), np.inf, lax.min),
        sliding(p.window_min, np.inf, lax.min, normal, np.int8),
    ),
    "window_argmax": pooled(lambda x, window: p.window_argmax(x, window=window)[0], -np.inf, lax.max),
    "window_argmin": pooled(lambda x, window: p.window_argmin(x, window=window)[0], np.inf, lax.min),
}


@pytest.mark.parametrize("name", CASES)
@given(st.data())
@examples(6)
def test_against_jax(name: str, data: Any) -> None:
    check(CASES[name](data.draw), data.draw(st.integers(0, 99)))


@pytest.mark.parametrize("name", ["window_sum", "window_max"])
@given(st.data())
@examples(1)
def test_operation_by_operation(name: str, data: Any) -> None:
    check_eager(CASES[name](data.draw))


def test_long_windows() -> None:
    """They are combined by doubling."""
    for primitive, initial, combine in (
        (p.window_sum, 0.0, lax.add), (p.window_max, -np.inf, lax.max), (p.window_min, np.inf, lax.min),
    ):  # fmt: skip
        for size, stride, hole in ((17, 1, 1), (31, 3, 2), (32, 2, 1)):
            window = p.Window((size, 1), (stride, 1), ((2, 3), (0, 0)), (1, 1), (hole, 1))

            def ours(x: Any, window: Any = window, primitive: Any = primitive) -> Any:
                return primitive(x, window=window)

            def theirs(x: Any, window: Any = window, initial: Any = initial, combine: Any = combine) -> Any:
                return lax.reduce_window(x, initial, combine, *window)

            check(Case(ours, theirs, [normal((64, 2), np.float64)], order=0), batched=False)


# ---------------------------------------------------------------- extrema, by a loop


def by_loop(x: np.ndarray, window: p.Window, larger: bool) -> tuple[np.ndarray, np.ndarray, list[tuple]]:
    """Values, offsets, and for each window the position of its extremum (None if there is none)."""
    axes = window.axes(x.shape)
    values = np.full([a.out for a in axes], -np.inf if larger else np.inf)
    offsets = np.full(values.shape, -1, np.int32)
    places = []
    for i in np.ndindex(values.shape):
        best = None
        for number, k in enumerate(itertools.product(*[range(n) for n in window.size])):
            at = [i[d] * a.stride + k[d] * a.window_dilation - a.low for d, a in enumerate(axes)]
            if any(
                j % a.base_dilation or not 0 <= j // a.base_dilation < a.size for j, a in zip(at, axes, strict=True)
            ):
                continue
            place = tuple(j // a.base_dilation for j, a in zip(at, axes, strict=True))
            v = x[place]
            if best is None or (v > x[best] if larger else v < x[best]) or np.isnan(v):
                best, offsets[i], values[i] = place, number, v
        places.append(best)
    return values, offsets, places


def with_specials(shape: tuple[int, ...]) -> Sampler:
    """Few different numbers, so that many tie, and some infinities and NaN."""
    return lambda rng: rng.choice(
        [0.0, 1.0, 2.0, np.inf, -np.inf, np.nan], shape, p=[0.25, 0.25, 0.25, 0.05, 0.15, 0.05]
    )


@pytest.mark.parametrize("larger", [True, False])
@given(st.data())
@examples(12)
def test_ties_nans_and_padding(larger: bool, data: Any) -> None:
    shape = a_shape(data.draw, least=1, most=3, sizes=(5, 2, 1, 3))
    window = a_window(data.draw, shape)
    x = with_specials(shape)(np.random.default_rng(data.draw(st.integers(0, 99))))
    extreme, with_offset = (p.window_max, p.window_argmax) if larger else (p.window_min, p.window_argmin)
    values, offsets, places = by_loop(x, window, larger)
    ct = np.random.default_rng(0).normal(size=values.shape)
    gradient = np.zeros(shape)
    for place, g in zip(places, ct.ravel(), strict=True):
        if place is not None:
            gradient[place] += g
    axes = tuple(range(len(shape)))

    def everything(x: Any, ct: Any) -> list[Any]:
        (out,), pullback = Ours.vjp(lambda x: as_list(extreme(x, window=window)), [x])
        got, offset = with_offset(x, window=window)
        return [out, got, offset, p.window_index(offset, shape, axes, window=window), pullback([ct])[0]]

    out, got, offset, index, pulled = Ours.run(everything, [x, ct])
    np.testing.assert_array_equal(out, values)
    np.testing.assert_array_equal(got, values)
    np.testing.assert_array_equal(offset, offsets)
    flat = [-1 if place is None else np.ravel_multi_index(place, shape) for place in places]
    np.testing.assert_array_equal(np.ravel(index), np.asarray(flat, np.int64))
    np.testing.assert_allclose(pulled, gradient, atol=MANY)


def test_indices_over_axes_that_do_not_slide() -> None:
    x = jnp.asarray(np.arange(24.0).reshape(2, 3, 4))
    window = p.window_over(3, (2,), (2,))
    _, offset = p.window_argmax(x, window=window)
    assert np.asarray(p.window_index(offset, x.shape, (1, 2), window=window))[1].tolist() == [[1, 3], [5, 7], [9, 11]]


def test_half_precision_is_summed_in_single_precision() -> None:
    x = np.full(4096, 0.01, np.float16)
    got = p.window_sum(x, window=p.window_over(1, (0,), (4096,)))
    assert abs(float(got[0]) - 4096 * float(x[0])) < 0.05


X = ArrayType((4, 5), dtypes.float32)
RIGHT = p.window_over(2, (1,), (2,))


@pytest.mark.parametrize(
    ("primitive", "x", "window", "error", "message"),
    [
        (p.window_sum, X, p.window_over(1, (0,), (2,)), ValueError, r"^window_sum: the window \(2,\).*f32\[4,5\]"),
        (p.window_max, X, RIGHT._replace(strides=(0, 1)), ValueError, r"^window_max: strides \(0, 1\).*f32\[4,5\]"),
        (
            p.window_min,
            X,
            RIGHT._replace(padding=((0, 0),)),
            ValueError,
            r"^window_min: padding.*2 entries.*f32\[4,5\]",
        ),
        (p.window_sum, X.with_dtype(dtypes.bool_), RIGHT, TypeError, r"^window_sum: takes numeric.*bool\[4,5\]"),
        (p.window_argmax, X.with_dtype(dtypes.complex64), RIGHT, TypeError, r"^window_argmax: takes real.*c64\[4,5\]"),
    ],
)
def test_invalid_operands_are_named(
    primitive: Any, x: ArrayType, window: p.Window, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        primitive.output_types([x], {"window": window})
