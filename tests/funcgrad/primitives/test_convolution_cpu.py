"""The lowerings of a convolution on the CPU: which is chosen, and that all agree with XLA's own."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from jax import lax

import funcgrad as fg
from funcgrad.primitives import convolution as p
from funcgrad.primitives import convolution_cpu as cpu
from tests.funcgrad.oracle import Case, assert_close, check, normal

Shape = tuple[int, ...]

# Input, kernel, config except layout, and the lowering of it and its two gradients.
SHAPES: list[tuple[Shape, Shape, dict[str, Any], str]] = [
    # Around the number of elements of a window up to which images are processed one by one.
    ((2, 3, 7, 6), (4, 3, 3, 3), {"padding": ((1, 1), (1, 1))}, "by_image by_xla by_xla"),
    ((2, 4, 7, 6), (4, 4, 3, 3), {"padding": ((1, 1), (1, 1))}, "by_xla by_xla by_xla"),
    ((3, 1, 9, 8), (4, 1, 3, 2), {"strides": (2, 1)}, "by_image by_xla by_image"),
    ((2, 2, 9), (3, 2, 4), {"padding": ((2, 0),), "rhs_dilation": (2,)}, "by_image by_image by_image"),
    ((2, 1, 5, 4, 6), (2, 1, 2, 2, 2), {}, "by_image by_xla by_image"),
    ((2, 3, 7, 6), (1, 3, 3, 3), {}, "by_xla by_image by_xla"),
    # More channels than XLA uses a library for, and not; without padding, with, and with negative padding.
    ((2, 17, 7, 6), (4, 17, 3, 3), {}, "by_xla by_xla by_xla"),
    ((2, 16, 7, 6), (4, 16, 3, 3), {}, "by_xla by_xla by_xla"),
    ((2, 17, 7, 6), (18, 17, 3, 2), {"strides": (2, 1), "rhs_dilation": (1, 2)}, "by_xla by_xla by_xla"),
    ((2, 17, 7, 6), (4, 17, 3, 3), {"padding": ((1, 0), (0, 2))}, "by_xla by_xla by_xla"),
    ((2, 17, 7, 6), (4, 17, 3, 3), {"padding": ((-1, 3), (4, -1))}, "by_xla by_xla by_xla"),
    ((17, 2, 6), (3, 2, 4), {"padding": ((3, 3),)}, "by_image by_image by_image"),
    # One element of a window: as many outputs as positions, and more.
    ((3, 5, 2, 3), (6, 5, 1, 1), {}, "by_matrix by_matrix by_matrix"),
    ((3, 5, 2, 3), (7, 5, 1, 1), {}, "by_xla by_matrix by_xla"),
    ((3, 5, 7, 6), (6, 5, 1, 1), {"strides": (2, 3), "padding": ((1, 0), (0, -1))}, "by_matrix by_xla by_matrix"),
    # Groups of one channel, of one output each and of two, and of two channels.
    ((3, 4, 7, 6), (4, 1, 3, 2), {"groups": 4, "padding": ((1, 2), (0, -1))}, "by_channel by_channel by_channel"),
    ((3, 4, 7, 6), (8, 1, 3, 2), {"groups": 4, "strides": (2, 1)}, "by_channel by_xla by_channel"),
    ((3, 4, 7), (8, 2, 3), {"groups": 2, "rhs_dilation": (2,)}, "by_xla by_xla by_xla"),
]  # fmt: skip


def config_of(x: Shape, config: dict[str, Any]) -> p.Config:
    n = len(x) - 2
    ones = (1,) * n
    full: dict[str, Any] = {
        "strides": ones, "padding": ((0, 0),) * n, "lhs_dilation": ones, "rhs_dilation": ones, "groups": 1,
        "layout": p.channels_first(n), **config,
    }  # fmt: skip
    return p.Config(**full)


def theirs(x: Any, w: Any, config: p.Config) -> Any:
    return lax.conv_general_dilated(
        x, w, *config[:4], lax.ConvDimensionNumbers(*config.layout), feature_group_count=config.groups,
        precision="highest",
    )  # fmt: skip


def form(x: Shape, w: Shape, config: p.Config, dtype: Any = np.float32) -> str:
    shapes = (tuple(s[d] for d in dims) for s, dims in zip((x, w), config.layout, strict=False))
    problem = cpu.Problem(*shapes, tuple(config.axes(x, w)), config.groups)
    return cpu.form_of(problem, np.dtype(dtype)).__name__


@pytest.mark.parametrize(("x", "w", "given", "forms"), SHAPES)
def test_all_ways_agree(x: Shape, w: Shape, given: dict[str, Any], forms: str) -> None:
    config = config_of(x, given)
    case = Case(
        lambda x, w: p.conv(x, w, config=config),
        lambda x, w: theirs(x, w, config),
        [normal(x, np.float64), normal(w, np.float64)],
    )
    check(case)


@pytest.mark.parametrize(("x", "w", "given", "forms"), SHAPES)
def test_which_way_is_chosen(x: Shape, w: Shape, given: dict[str, Any], forms: str) -> None:
    config = config_of(x, given)
    xs, ws = np.zeros(x, np.float32), np.zeros(w, np.float32)
    ct = np.zeros(p.conv(xs, ws, config=config).shape, np.float32)
    by_x = fg.trace(lambda ct, w: fg.vjp(lambda x: p.conv(x, w, config=config), xs)[1](ct), ct, ws)
    by_w = fg.trace(lambda ct, x: fg.vjp(lambda w: p.conv(x, w, config=config), ws)[1](ct), ct, xs)
    chosen = [form(x, w, config)]
    for program in (by_x, by_w):
        last = [e for e in program.equations if e.primitive is p.conv][-1]
        a, b = (v.type.shape for v in last.inputs)
        chosen.append(form(a, b, last.params["config"]))
    assert " ".join(chosen) == forms


@pytest.mark.parametrize(("x", "w", "given", "forms"), SHAPES)
def test_float32(x: Shape, w: Shape, given: dict[str, Any], forms: str) -> None:
    config, rng = config_of(x, given), np.random.default_rng(0)
    operands = [normal(s, np.float32)(rng) for s in (x, w)]
    assert_close(fg.jit(lambda x, w: p.conv(x, w, config=config))(*operands), theirs(*operands, config), "float32")


@pytest.mark.parametrize("dtype", [np.float16, np.int32, np.complex64])
def test_other_dtypes_are_left_to_xla(dtype: Any) -> None:
    assert form((2, 1, 7, 6), (4, 1, 3, 3), config_of((2, 1, 7, 6), {}), dtype) == "by_xla"


def test_inside_a_loop_channels_are_last() -> None:
    x, w = np.ones((2, 32, 8, 8), np.float32), np.ones((32, 32, 3, 3), np.float32)
    config = config_of(x.shape, {"padding": ((1, 1), (1, 1))})

    def loop(x: Any, w: Any) -> Any:
        return lax.fori_loop(0, 3, lambda i, x: p.conv.lower(x, w, config=config), x)

    compiled = jax.jit(loop).lower(x, w).compile().as_text()
    assert "b01f_01io->b01f" in compiled
    assert_close(jax.jit(loop)(x, w), theirs(theirs(theirs(x, w, config), w, config), w, config), "loop")


def test_other_platforms_use_xlas_convolution() -> None:
    config = config_of((2, 1, 7, 6), {})
    function = fg.jit(lambda x, w: p.conv(x, w, config=config))
    x, w = np.ones((2, 1, 7, 6), np.float32), np.ones((4, 1, 3, 3), np.float32)
    text = jax.export.export(jax.jit(function), platforms=["cuda"])(x, w).mlir_module()
    assert text.count("stablehlo.convolution") == 1
    assert "stablehlo.while" not in text
