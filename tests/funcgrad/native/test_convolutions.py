"""Convolutions by the native kernel, compared with XLA's."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import funcgrad as fg
from funcgrad.core.ir import ArrayType
from funcgrad.native import convolution
from funcgrad.native.convolution import native_conv
from funcgrad.native.rewriting import rewritten
from funcgrad.primitives.convolution import Config, Layout, channels_first, channels_last, conv, convolve

pytestmark = pytest.mark.usefixtures("kernels")


def both(x: np.ndarray, w: np.ndarray, config: Config, reverse: tuple[int, ...] = ()) -> tuple[np.ndarray, np.ndarray]:
    """The convolution by the kernel, and by XLA in float64."""
    ours = jax.jit(lambda x, w: native_conv.lower(x, w, config=config, reverse=reverse))(x, w)
    theirs = jax.jit(lambda x, w: conv.lower(x, jax.numpy.flip(w, reverse), config=config))
    with jax.enable_x64(True):
        return np.asarray(ours), np.asarray(theirs(x.astype(np.float64), w.astype(np.float64)))


def turned(sizes: list[int], dims: tuple[int, ...]) -> tuple[int, ...]:
    shape = [0] * len(sizes)
    for d, n in zip(dims, sizes, strict=True):
        shape[d] = n
    return tuple(shape)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(data=st.data())
def test_any_layout_stride_padding_and_dilation(dtype: Any, data: st.DataObject) -> None:
    def draw(low: int, high: int) -> int:
        return data.draw(st.integers(low, high))

    spatial = draw(1, 2)
    dims = tuple(range(spatial + 2))
    layout = Layout(*(tuple(data.draw(st.permutations(dims))) for _ in range(3)))
    window = [draw(1, 4) for _ in range(spatial)]
    size = [draw(w, 20) for w in window]
    strides = tuple(draw(1, 3) for _ in range(spatial))
    padding = tuple((draw(-1, 3), draw(-1, 3)) for _ in range(spatial))
    holes = tuple(draw(1, 3) if all(s == 1 for s in strides) else 1 for _ in range(spatial))
    config = Config(strides, padding, holes, tuple(draw(1, 2) for _ in range(spatial)), 1, layout)
    batch, features, outputs = draw(1, 9), draw(1, 20), draw(1, 70)
    x, w = turned([batch, features, *size], layout.x), turned([outputs, features, *window], layout.w)
    types = ArrayType(x, np.dtype(dtype)), ArrayType(w, np.dtype(dtype))
    try:
        conv.output_types(types, {"config": config})
    except ValueError:
        assume(False)
    least, convolution._LEAST_WORK = convolution._LEAST_WORK, 1
    try:
        assume(convolution.pays(*types, config))
    finally:
        convolution._LEAST_WORK = least
    rng = np.random.default_rng(0)
    reverse = tuple(layout.w[2:]) if draw(0, 1) else ()
    ours, theirs = both(rng.standard_normal(x).astype(dtype), rng.standard_normal(w).astype(dtype), config, reverse)
    np.testing.assert_allclose(ours, theirs, atol=5e-5 if dtype is np.float32 else 1e-12)


SHAPES = [
    ((8, 3, 20, 20), (16, 3, 3, 3), 1, 1), ((6, 16, 9, 9), (24, 16, 3, 3), 2, 1), ((33, 8, 8, 8), (8, 8, 3, 3), 1, 0),
    ((1, 64, 24, 24), (64, 64, 3, 3), 1, 1), ((4, 5, 17, 30), (70, 5, 5, 1), 1, 2),
    ((4, 32, 12, 12), (48, 32, 1, 1), 2, 0),
    ((2, 1, 28, 28), (32, 1, 7, 7), 3, 3), ((5, 16, 40), (16, 16, 3), 1, 1),
]  # fmt: skip


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize(("x", "w", "stride", "padding"), SHAPES)
def test_forwards_and_both_gradients(x: Any, w: Any, stride: int, padding: int, last: bool) -> None:
    rng, spatial = np.random.default_rng(0), len(x) - 2
    a, b = rng.standard_normal(x), rng.standard_normal(w)
    layout = channels_last(spatial) if last else channels_first(spatial)
    if last:
        a, b = a.transpose(0, *range(2, spatial + 2), 1), b.transpose(*range(2, spatial + 2), 1, 0)

    def f(a: Any, b: Any) -> Any:
        return convolve(a, b, strides=stride, padding=padding, layout=layout)

    def pulled(a: Any, b: Any, ct: Any) -> Any:
        out, pull = fg.vjp(f, a, b)
        return out, *pull(ct)

    ct = rng.standard_normal(fg.eval_shape(f, a, b).shape)
    program = rewritten(fg.trace(pulled, a, b, ct))
    assert [e.primitive for e in program.equations] == [native_conv] * 3
    ours = fg.jit(pulled)(a, b, ct)
    theirs = jax.jit(lambda *xs: list(_by_xla(fg.trace(pulled, a, b, ct), xs)))(a, b, ct)
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-10)
    single = fg.jit(pulled)(*[v.astype(np.float32) for v in (a, b, ct)])
    for one, other in zip(single, theirs, strict=True):
        np.testing.assert_allclose(one, other, atol=3e-6 * np.abs(other).max())


def _by_xla(program: Any, arguments: Any) -> Any:
    """The primitives' own rules, evaluated by JAX."""
    from funcgrad.interpreters.lower import by_equation, lowered

    with by_equation():
        return lowered(program)(*arguments)


def test_operations_left_to_xla() -> None:
    type = ArrayType((8, 16, 12, 12), np.dtype(np.float32))
    kernel = ArrayType((16, 16, 3, 3), np.dtype(np.float32))
    plain = Config((1, 1), ((0, 0), (0, 0)), (1, 1), (1, 1), 1, channels_first(2))
    assert convolution.pays(type, kernel, plain)
    assert not convolution.pays(type.with_dtype(np.dtype(np.float16)), kernel.with_dtype(np.dtype(np.float16)), plain)
    assert not convolution.pays(type, kernel.with_shape((16, 1, 3, 3)), plain._replace(groups=16))
    assert not convolution.pays(type, kernel, plain._replace(lhs_dilation=(2, 2), strides=(2, 2)))
    assert not convolution.pays(type.with_shape((0, 16, 12, 12)), kernel, plain)


def test_batched_kernels_become_feature_groups() -> None:
    x, w = np.ones((4, 2, 8, 10, 10), np.float32), np.ones((4, 8, 8, 3, 3), np.float32)
    assert np.allclose(fg.jit(fg.vmap(convolve))(x, w), 72)
