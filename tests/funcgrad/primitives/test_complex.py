"""Complex functions where parts are signed zeros, infinities or NaN: as in C99 and NumPy."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp

NAMES = (
    "sqrt", "exp", "log", "log2", "log10", "sin", "cos", "tan", "sinh", "cosh", "tanh", "asin", "acos", "atan", "asinh",
    "acosh", "atanh", "sign", "abs", "angle", "isfinite", "isinf", "isnan",
)  # fmt: skip
INF, NAN = np.inf, np.nan


def numbers(dtype: Any) -> np.ndarray:
    large = np.finfo(dtype).max ** 0.8
    parts = [-INF, -large, -2, -1, -0.5, -1 / large, -0.0, 0.0, 1 / large, 0.5, 1, 2, large, INF, NAN]
    z = np.empty(len(parts) ** 2, dtype)
    z.real, z.imag = np.array(list(itertools.product(parts, parts))).T
    return z


def assert_same(got: Any, wanted: Any, z: np.ndarray) -> None:
    """Equal up to rounding, including signs of zeros, except for zeros and infinities beside a NaN."""
    got, wanted = np.asarray(got), np.asarray(wanted)
    assert got.dtype == wanted.dtype
    if wanted.dtype.kind == "b":
        np.testing.assert_array_equal(got, wanted)
        return
    # Compositions of several functions, each with an error of one or two in the last place.
    rtol = 32 * np.finfo(wanted.dtype).eps
    sides = ((got.real, wanted.real), (got.imag, wanted.imag)) if wanted.dtype.kind == "c" else ((got, wanted),)
    for mine, theirs in sides:
        beside_nan = np.isnan(z) | np.isnan(wanted)
        same = (mine == theirs) & (np.signbit(mine) == np.signbit(theirs))
        with np.errstate(all="ignore"):
            near = np.isfinite(theirs) & (theirs != 0) & (np.abs(mine - theirs) <= rtol * np.abs(theirs))
        loose = beside_nan & (np.abs(mine) == np.abs(theirs)) & ((theirs == 0) | np.isinf(theirs))
        wrong = ~(same | near | loose | (np.isnan(mine) & np.isnan(theirs)))
        assert not wrong.any(), list(zip(z[wrong], got[wrong], wanted[wrong], strict=True))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", NAMES)
def test_special_values_are_those_of_numpy(name: str, dtype: Any) -> None:
    z = numbers(dtype)
    with np.errstate(all="ignore"):
        wanted = getattr(np, name)(z)
    assert_same(getattr(fnp, name)(z), wanted, z)
    assert_same(fg.jit(getattr(fnp, name))(z), wanted, z)


# Where NumPy loses digits, or has NaN for a value that the array API standard defines.
TABLE: dict[str, list[tuple[complex, complex]]] = {
    "expm1": [
        (complex(1e-30, -0.0), complex(1e-30, -0.0)), (complex(INF, 0.0), complex(INF, 0.0)),
        (complex(-INF, INF), complex(-1, 0.0)), (complex(-INF, 2), complex(-1, 0.0)),
        (complex(INF, INF), complex(INF, NAN)), (complex(1, INF), complex(NAN, NAN)),
        (complex(NAN, 0.0), complex(NAN, 0.0)), (complex(0, 1e-30), complex(-5e-61, 1e-30)),
    ],
    "log1p": [
        (complex(1e-30, 1e-30), complex(1e-30, 1e-30)), (complex(-1, 0.0), complex(-INF, 0.0)),
        (complex(-1, 1e-30), complex(np.log(1e-30), np.pi / 2)), (complex(1, INF), complex(INF, np.pi / 2)),
        (complex(-INF, 1), complex(INF, np.pi)), (complex(INF, NAN), complex(INF, NAN)),
        (complex(-3, -0.0), complex(np.log(2), -np.pi)), (complex(NAN, INF), complex(INF, NAN)),
    ],
    "exp2": [
        (complex(3, -0.0), complex(8, -0.0)), (complex(-INF, 1), complex(0.0, 0.0)),
        (complex(INF, 0.0), complex(INF, 0.0)), (complex(0, INF), complex(NAN, NAN)),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", TABLE)
def test_special_values_of_the_standard(name: str) -> None:
    z, wanted = (np.array(side) for side in zip(*TABLE[name], strict=True))
    assert_same(fg.jit(getattr(fnp, name))(z), wanted, z)


@pytest.mark.parametrize("name", ["sqrt", "log", "asin", "acos", "acosh", "atanh", "asinh", "atan"])
def test_derivatives_beside_branch_cuts(name: str) -> None:
    f = getattr(fnp, name)
    on_cut = 2j if name in ("asinh", "atan") else -2.0 + 0j
    away = 1.0 if name in ("asinh", "atan") else 1j
    for sign in (1.0, -1.0):
        near = on_cut + sign * 1e-9 * away
        exactly = complex(sign * 0.0, 2.0) if away == 1.0 else complex(-2.0, sign * 0.0)
        slope = [fg.grad(f, holomorphic=True)(np.complex128(z)) for z in (exactly, near)]
        np.testing.assert_allclose(*slope, rtol=1e-8)  # the two points are 1e-9 apart
