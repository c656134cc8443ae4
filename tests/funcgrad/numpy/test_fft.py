"""Fourier transforms: the primitives against JAX and finite differences, the functions against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad import fft
from funcgrad.primitives import fft as p
from tests.funcgrad.oracle import Case, Draw, a_shape, an_axis, assert_close, check, examples, normal
from tests.funcgrad.tolerances import CONDITIONED, MANY

# ---------------------------------------------------------------- primitives


def _complex(draw: Draw) -> Case:
    shape = (*a_shape(draw, most=2, sizes=(2, 3, 1, 0)), draw(st.sampled_from([4, 3, 1])))
    axes = tuple(sorted(draw(st.sets(st.sampled_from([d for d, n in enumerate(shape) if n]), min_size=1))))
    inverse = draw(st.booleans())
    theirs = jnp.fft.ifftn if inverse else jnp.fft.fftn
    dtype = draw(st.sampled_from([np.complex128, np.complex64]))
    return Case(
        lambda x: p.fft(x, axes=axes, inverse=inverse),
        lambda x: theirs(x, axes=axes) if x.size else x,
        [normal(shape, dtype)],
    )


def _real(draw: Draw) -> Case:
    shape = (*a_shape(draw, most=1, sizes=(2, 3)), draw(st.sampled_from([4, 5, 1, 2])))
    axis = an_axis(draw, len(shape))
    dtype = draw(st.sampled_from([np.float64, np.float32]))
    return Case(lambda x: p.rfft(x, axis=axis), lambda x: jnp.fft.rfft(x, axis=axis), [normal(shape, dtype)])


def _to_real(draw: Draw) -> Case:
    shape = (*a_shape(draw, most=1, sizes=(2, 3)), draw(st.sampled_from([3, 1, 2])))
    axis = an_axis(draw, len(shape))
    n = 2 * (shape[axis] - 1) + draw(st.booleans()) or 1
    dtype = draw(st.sampled_from([np.complex128, np.complex64]))
    return Case(lambda x: p.irfft(x, axis=axis, n=n), lambda x: jnp.fft.irfft(x, n, axis=axis), [normal(shape, dtype)])


CASES = {"fft": _complex, "rfft": _real, "irfft": _to_real}


@pytest.mark.parametrize("name", CASES)
@given(st.data())
@examples(4)
def test_primitives_against_jax(name: str, data: Any) -> None:
    check(CASES[name](data.draw), data.draw(st.integers(0, 99)))


# ---------------------------------------------------------------- functions

ONE = ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]
SEVERAL = ["fftn", "ifftn", "rfftn", "irfftn", "fft2", "ifft2", "rfft2", "irfft2"]
TAKES_REAL = {"rfft", "ihfft", "rfftn", "rfft2"}
NORMS = st.sampled_from([None, "backward", "ortho", "forward"])


def _array(name: str, shape: tuple[int, ...], seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape)
    return x if name in TAKES_REAL else x + 1j * rng.normal(size=shape)


def _differences(f: Callable[[Any], Any], x: np.ndarray) -> None:
    """The derivatives of a linear map: its tangent is the map itself, and its cotangent the dual of that."""
    rng = np.random.default_rng(7)
    t = rng.normal(size=x.shape) + (1j * rng.normal(size=x.shape) if np.iscomplexobj(x) else 0)
    out, tangent = fg.jvp(f, (x,), (t,))
    assert_close(tangent, np.asarray(f(t)), "jvp")
    ct = rng.normal(size=out.shape) + (1j * rng.normal(size=out.shape) if np.iscomplexobj(np.asarray(out)) else 0)
    (back,) = fg.vjp(f, x)[1](ct)
    assert back.dtype == x.dtype
    # Cotangents are covectors: the pairing has no conjugates.
    np.testing.assert_allclose(
        np.sum(np.asarray(ct) * tangent).real, np.sum(np.asarray(back) * t).real, atol=CONDITIONED
    )


@pytest.mark.parametrize("name", ONE)
@given(st.data())
@examples(6)
def test_along_one_axis(name: str, data: Any) -> None:
    shape = data.draw(st.lists(st.integers(2, 5), min_size=1, max_size=3).map(tuple))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    n = data.draw(st.none() | st.integers(1, 7))
    norm = data.draw(NORMS)
    x = _array(name, shape, data.draw(st.integers(0, 9)))
    got = getattr(fft, name)(x, n, axis, norm)
    assert_close(got, getattr(np.fft, name)(x, n, axis, norm), name)
    _differences(lambda y: getattr(fft, name)(y, n, axis, norm), x)


@pytest.mark.parametrize("name", SEVERAL)
@given(st.data())
@examples(6)
def test_along_several_axes(name: str, data: Any) -> None:
    shape = data.draw(st.lists(st.integers(2, 4), min_size=2, max_size=4).map(tuple))
    axes = data.draw(st.permutations(range(len(shape))).map(lambda order: order[:2]))
    s = data.draw(st.none() | st.lists(st.integers(1, 5), min_size=2, max_size=2))
    norm = data.draw(NORMS)
    x = _array(name, shape, data.draw(st.integers(0, 9)))
    assert_close(getattr(fft, name)(x, s, axes, norm), getattr(np.fft, name)(x, s, axes, norm), name)
    _differences(lambda y: getattr(fft, name)(y, s, axes, norm), x)


def test_more_axes_than_xla_has_transforms_for_and_the_same_twice() -> None:
    x = _array("fftn", (2, 3, 2, 3, 2), 0)
    assert_close(fft.fftn(x), np.fft.fftn(x), "five axes")
    assert_close(fft.ifftn(x, axes=(1, 1, 0)), np.fft.ifftn(x, axes=(1, 1, 0)), "an axis twice")


@pytest.mark.parametrize("n", range(1, 8))
def test_frequencies_and_shifts(n: int) -> None:
    assert_close(fft.fftfreq(n, 0.5, dtype=np.float64), np.fft.fftfreq(n, 0.5), "fftfreq")
    assert_close(fft.rfftfreq(n, 0.5, dtype=np.float64), np.fft.rfftfreq(n, 0.5), "rfftfreq")
    x = np.arange(n * 3.0).reshape(n, 3)
    for axes in (None, 0, (0, 1), -1):
        assert_close(fft.fftshift(x, axes), np.fft.fftshift(x, axes), "fftshift")
        assert_close(fft.ifftshift(x, axes), np.fft.ifftshift(x, axes), "ifftshift")


@pytest.mark.parametrize(
    ("dtype", "wanted"),
    [("float32", "complex64"), ("float64", "complex128"), ("bool", "complex64"), ("float16", "complex64"),
     ("int64", "complex64"), ("complex64", "complex64"), ("complex128", "complex128")],
)  # fmt: skip
def test_dtypes(dtype: str, wanted: str) -> None:
    x = np.ones(4, dtype)
    assert fft.fft(x).dtype == wanted
    assert fft.irfft(x).dtype == ("float64" if wanted == "complex128" else "float32")
    if "complex" not in dtype:
        assert fft.rfft(x).dtype == wanted


def test_numpy_functions_of_traced_arrays() -> None:
    x = np.arange(5.0)

    def power(v: Any) -> Any:
        return fnp.sum(fnp.abs(np.fft.rfft(v)) ** 2)

    got = fg.grad(power)(x)
    # By Parseval's theorem: every coefficient but the first counts twice.
    np.testing.assert_allclose(got, 5 * x + x.sum(), rtol=MANY)
    np.testing.assert_allclose(fg.jit(fg.grad(power))(x), got, rtol=MANY)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fft.fft(np.ones(3), 0), "invalid number of data points"),
        (lambda: fft.irfft(np.ones(1)), "invalid number of data points"),
        (lambda: fft.fft(np.ones(3), axis=1), "axis 1 is out of range"),
        (lambda: fft.fft(np.ones(3), norm="none"), "norm must be"),
        (lambda: fft.fftn(np.ones((3, 3)), (1,), (0, 1)), "the same length"),
        (lambda: fft.fftn(np.ones(3), (1, 2)), "more sizes"),
        (lambda: fft.rfftn(np.ones((3, 3)), axes=(1, 1)), "only once"),
        (lambda: fft.irfftn(np.ones((3, 3)), axes=()), "at least one axis"),
        (lambda: fft.fftfreq(0), "n must be at least 1"),
    ],
)
def test_values_that_do_not_fit(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_types_that_do_not_fit() -> None:
    with pytest.raises(TypeError, match="takes real arrays"):
        fft.rfft(np.ones(3, complex))
    with pytest.raises(TypeError, match="dtype must be floating"):
        fft.fftfreq(3, dtype=int)
    with pytest.raises(TypeError, match="takes complex arrays"):
        p.fft(np.ones(3), axes=(0,), inverse=False)
    with pytest.raises(ValueError, match="do not fit"):
        p.fft(np.ones(3, complex), axes=(1,), inverse=False)
    with pytest.raises(ValueError, match="2 coefficients"):
        p.irfft(np.ones(3, complex), axis=0, n=2)
