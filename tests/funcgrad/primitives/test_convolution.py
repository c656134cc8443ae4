"""The convolution, compared with ``jax.lax.conv_general_dilated``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax import lax

from funcgrad.core import dtypes
from funcgrad.core.ir import ArrayType
from funcgrad.primitives import convolution as p
from tests.funcgrad.oracle import Case, Draw, assert_close, check, check_eager, examples, normal


def numbers(draw: Draw, count: int, low: int, high: int) -> tuple[int, ...]:
    return tuple(draw(st.integers(low, high)) for _ in range(count))


def placed(sizes: list[int], dims: tuple[int, ...]) -> list[int]:
    """``sizes``, in the order of a layout."""
    return [sizes[dims.index(d)] for d in range(len(dims))]


def conv(draw: Draw) -> Case:
    spatial = draw(st.sampled_from([1, 2, 0]))
    groups = draw(st.sampled_from([2, 1, 3]))
    batch, into, out = numbers(draw, 3, 1, 2)
    order = st.permutations(range(spatial + 2)).map(tuple)
    layout = draw(
        st.just(p.channels_first(spatial))
        | st.just(p.channels_last(spatial))
        | st.builds(p.Layout, order, order, order)
    )
    sizes, window = numbers(draw, spatial, 1, 6), numbers(draw, spatial, 1, 3)
    padding = tuple(zip(numbers(draw, spatial, -1, 2), numbers(draw, spatial, -1, 2), strict=True))
    config = p.Config(
        numbers(draw, spatial, 1, 2),
        padding,
        numbers(draw, spatial, 1, 2),
        numbers(draw, spatial, 1, 2),
        groups,
        layout,
    )
    dtype = draw(st.sampled_from([np.float64, np.float64, np.float32, np.complex128]))
    return Case(
        lambda x, w: p.conv(x, w, config=config),
        lambda x, w: theirs(x, w, config),
        [
            normal(placed([batch, groups * into, *sizes], layout.x), dtype),
            normal(placed([groups * out, into, *window], layout.w), dtype),
        ],
    )


def theirs(x: Any, w: Any, config: p.Config, batch_groups: int = 1) -> Any:
    return lax.conv_general_dilated(
        x, w, *config[:4], lax.ConvDimensionNumbers(*config.layout), feature_group_count=config.groups,
        batch_group_count=batch_groups, precision="highest",
    )  # fmt: skip


CASES = {"conv": conv}


@given(st.data())
@examples(8)
def test_conv(data: Any) -> None:
    check(conv(data.draw), data.draw(st.integers(0, 99)))


def test_operation_by_operation() -> None:
    x, w = normal((2, 3, 7, 5), np.float64), normal((4, 3, 3, 2), np.float64)
    config = p.Config((2, 1), ((1, 1), (0, 2)), (1, 1), (1, 2), 1, p.channels_first(2))
    check_eager(Case(lambda x, w: p.conv(x, w, config=config), lambda x, w: theirs(x, w, config), [x, w]))


@pytest.mark.parametrize(
    ("x", "w", "groups"),
    [((0, 2, 4), (3, 2, 2), 1), ((2, 0, 4), (3, 0, 2), 1), ((2, 2, 0), (2, 1, 2), 2), ((2, 2, 4), (0, 2, 2), 1)],
)  # fmt: skip
def test_empty(x: tuple[int, ...], w: tuple[int, ...], groups: int) -> None:
    config = p.Config((1,), ((1, 1),), (1,), (1,), groups, p.channels_first(1))
    operands = [normal(x, np.float64), normal(w, np.float64)]
    check(Case(lambda x, w: p.conv(x, w, config=config), lambda x, w: theirs(x, w, config), operands), batched=False)


@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16, dtypes.int32])
def test_other_dtypes(dtype: np.dtype) -> None:
    config = p.Config((1,), ((1, 1),), (1,), (1,), 2, p.channels_first(1))
    operands = [normal((2, 4, 5), dtype), normal((6, 2, 3), dtype)]
    check(Case(lambda x, w: p.conv(x, w, config=config), lambda x, w: theirs(x, w, config), operands, order=1))


def test_batch_groups() -> None:
    config = p.Config((2,), ((1, 0),), (1,), (1,), 1, p.channels_last(1))
    operands = [normal((6, 5, 2), np.float64), normal((3, 2, 9), np.float64)]
    check(
        Case(
            lambda x, w: p.convolve(x, w, strides=2, padding=((1, 0),), batch_groups=3, layout=config.layout),
            lambda x, w: theirs(x, w, config, batch_groups=3),
            operands,
        )
    )


def test_defaults() -> None:
    rng = np.random.default_rng(0)
    x, w = normal((2, 3, 8), np.float64)(rng), normal((4, 3, 3), np.float64)(rng)
    config = p.Config((1,), ((0, 0),), (1,), (1,), 1, p.channels_first(1))
    assert_close(p.convolve(x, w), theirs(x, w, config), "convolve")


X, W = ArrayType((2, 4, 8), dtypes.float32), ArrayType((6, 2, 3), dtypes.float32)
RIGHT = p.Config((1,), ((0, 0),), (1,), (1,), 2, p.channels_first(1))


@pytest.mark.parametrize(
    ("x", "w", "config", "error", "message"),
    [
        (X, W.with_dtype(dtypes.float64), RIGHT, TypeError, r"f32\[2,4,8\] and f64\[6,2,3\]"),
        (X, W.with_shape((6, 2)), RIGHT, ValueError, r"number of axes.*f32\[2,4,8\] and f32\[6,2\]"),
        (X, W, RIGHT._replace(groups=1), ValueError, r"4 features.*1 groups.*2 features.*f32\[2,4,8\].*f32\[6,2,3\]"),
        (X, W.with_shape((5, 2, 3)), RIGHT, ValueError, r"5 outputs.*2 groups.*f32\[5,2,3\]"),
        (X, W.with_shape((6, 2, 0)), RIGHT, ValueError, r"window \(0,\) must be positive.*f32\[6,2,0\]"),
        (X, W, RIGHT._replace(strides=(0,)), ValueError, r"strides \(0,\) must be positive.*f32\[2,4,8\]"),
        (X, W, RIGHT._replace(padding=((0, 0),) * 2), ValueError, r"padding .* must have 1 entries.*f32\[2,4,8\]"),
        (X, W, RIGHT._replace(layout=p.Layout((0, 0, 1), (0, 1, 2), (0, 1, 2))), ValueError, r"layout.x \(0, 0, 1\)"),
    ],
)
def test_invalid_operands_are_named(
    x: ArrayType, w: ArrayType, config: p.Config, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=f"^conv: .*{message}"):
        p.conv.output_types([x, w], {"config": config})


def test_batch_groups_that_do_not_divide_are_named() -> None:
    with pytest.raises(ValueError, match=r"^conv: 3 batch groups.*f32\[2,4,8\]"):
        p.convolve(np.zeros(X.shape, np.float32), np.zeros(W.shape, np.float32), batch_groups=3)
