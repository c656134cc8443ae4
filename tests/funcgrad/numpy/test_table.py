"""Every function of funcgrad.numpy, row by row: NumPy's values, derivatives of both orders in both modes."""

from __future__ import annotations

import types
import warnings
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad.numpy.creation.scalars import ScalarType
from tests.funcgrad.numpy_rows import BY_VALUE, ROWS
from tests.funcgrad.oracle import assert_close
from tests.funcgrad.table import LOST, asked, check_row
from tests.funcgrad.tolerances import DIFFERENCED

# The derivative of a limit loses more digits.
WORSE = {"prod with zeros": 1e-6, "roots": 1e-5, "poly of a matrix": 1e-6}
# At a kink, or where eigenvalues have no second derivative at every point.
FIRST_ONLY = {"prod with zeros", "sinc", "roots", "poly of a matrix"}


# Not in JAX's NumPy, or not with these arguments.
NOT_JAX_S = (
    "average returned|bincount|choose|delete|ediff1d|gradient of places|histogram density|insert several|nanpercentile|"
    "nanquantile|pad dict|piecewise of one|poly of a matrix|polydiv rest|put|put_along_axis|repeat each|"
    "quantile averaged_inverted_cdf|quantile closest_observation|quantile interpolated_inverted_cdf|quantile hazen|"
    "quantile weibull|quantile median_unbiased|quantile normal_unbiased|quantile weighted|r_ of columns|fix"
)


@pytest.mark.parametrize("name", ROWS)
def test_values_and_derivatives(name: str) -> None:
    jax = None if name in NOT_JAX_S.split("|") else jnp
    by_value, second = name in BY_VALUE, name not in FIRST_ONLY
    check_row(ROWS[name], fnp, np, jax, by_value=by_value, second=second, lost=WORSE.get(name, LOST))


# Rows whose own arithmetic requires arrays, or where a list has another meaning.
NOT_LISTS = """
count_nonzero|all and any|select|diff of ends|isclose|allclose|integer powers|float powers|remainder|fmod|sinc|block|
block of cubes|diag_indices|diag_indices_from|divmod|piecewise|piecewise of one|tril_indices|tril_indices_from|
triu_indices|triu_indices_from
""".replace("\n", "").split("|")


def test_lists_are_arrays() -> None:
    for name, (f, arguments) in ROWS.items():
        if name not in BY_VALUE and name not in NOT_LISTS:
            lists = [np.asarray(x).tolist() for x in arguments]
            fg.trace(lambda f=f, lists=lists: f(fnp, *lists))


# ---------------------------------------------------------------- completeness

# Without a row: each has its own test, or is not a function of arrays.
ELSEWHERE = {
    "at", "bool_", "can_cast", "finfo", "iinfo", "isdtype", "iscomplexobj", "isrealobj", "isscalar", "iterable",
    "promote_types", "result_type", "cummax", "cummin", "logsumexp", "softmax", "log_softmax", "rsqrt",
    "complexfloating", "floating", "generic", "inexact", "integer", "ndarray", "number", "signedinteger",
    "unsignedinteger", *{n for n, v in vars(fnp).items() if isinstance(v, ScalarType)},
    "bartlett", "blackman", "hamming", "hanning", "isposinf", "dynamic_slice", "dynamic_update_slice", "top_k",
}  # fmt: skip


def public() -> set[str]:
    modules = types.ModuleType
    values = {n: v for n, v in vars(fnp).items() if not n.startswith("_") and not isinstance(v, modules)}
    return {n for n, v in values.items() if callable(v) or n in ("mgrid", "ogrid", "r_", "c_")} - {"e"}


def test_every_public_function_has_a_row() -> None:
    assert sorted(public() - {n.split()[0] for n in ROWS} - asked(ROWS) - ELSEWHERE) == []


@pytest.mark.parametrize("name", ["bartlett", "blackman", "hamming", "hanning"])
def test_windows(name: str) -> None:
    for n in (0, 1, 2, 7):
        mine, wanted = getattr(fnp, name)(n), getattr(np, name)(n)
        assert_close(mine, wanted.astype(np.float32), f"{name} of {n}")


def test_kaiser_has_a_derivative() -> None:
    beta = np.float64(3.0)
    tangent = fg.jvp(lambda b: fnp.kaiser(5, b), (beta,), (np.float64(1),))[1]
    wanted = (np.kaiser(5, beta + 1e-6) - np.kaiser(5, beta - 1e-6)) / 2e-6
    assert_close(tangent, wanted.astype(np.asarray(tangent).dtype), "by beta", 10 * DIFFERENCED)


# ---------------------------------------------------------------- static sizes under jit


def test_static_sizes() -> None:
    x = np.array([3, 1, 3, 0])
    assert fg.jit(lambda x: fnp.unique(x, size=5, fill_value=-1))(x).tolist() == [0, 1, 3, -1, -1]
    assert fg.jit(lambda x: fnp.unique(x, size=2))(x).tolist() == [0, 1]
    assert fg.jit(lambda x: fnp.nonzero(x, size=4, fill_value=9)[0])(x).tolist() == [0, 1, 2, 9]
    assert fg.jit(lambda x: fnp.bincount(x, length=3))(x).tolist() == [1, 1, 0]
    assert fg.jit(lambda x: fnp.union1d(x, x + 1, size=4))(x).tolist() == [0, 1, 2, 3]
    lengthened = fg.jit(lambda x: fnp.repeat(np.arange(4), x, total_repeat_length=9))(x)
    assert lengthened.tolist() == [0, 0, 0, 1, 2, 2, 2, 3, 3]
    for f in (fnp.unique, fnp.nonzero, fnp.bincount, lambda x: fnp.repeat(x, x)):
        with pytest.raises((fg.ConcretizationError, TypeError), match="traced"):
            fg.jit(f)(x)


# ---------------------------------------------------------------- empty arrays, and out-of-range values

NOTHING = np.ones((0, 3))
EDGES: dict[str, Callable[[Any], Any]] = {
    "sums": lambda xp: xp.stack([xp.sum(NOTHING, axis=0), xp.prod(NOTHING, axis=0), xp.mean(NOTHING, axis=0)]),
    "median of nothing": lambda xp: xp.median(np.ones(0)),
    "medians of no rows": lambda xp: xp.median(NOTHING, axis=1),
    "median of infinities": lambda xp: xp.median(np.array([np.inf, 1, np.inf])),
    "median between infinities": lambda xp: xp.median(np.array([np.inf, -np.inf])),
    "no numbers": lambda xp: xp.stack(
        [f(np.full(3, np.nan)) for f in (xp.nanmax, xp.nanmean, xp.nanmedian, xp.nanstd)]
    ),
    "one number's variance": lambda xp: xp.nanvar(np.array([1.0, np.nan]), ddof=1),
    "one observation": lambda xp: xp.cov(np.ones((2, 1))),
    "observations that do not vary": lambda xp: xp.corrcoef(np.ones((2, 3))),
    "joined with nothing": lambda xp: xp.concatenate([NOTHING, np.ones((2, 3))]),
    "nothing in bins": lambda xp: xp.histogram(np.ones(0))[0],
    "one value in bins": lambda xp: xp.histogram(np.ones(4), 3)[1],
    "nothing counted": lambda xp: xp.bincount(np.zeros(0, int)),
    "nothing unique": lambda xp: xp.unique(np.ones(0)),
    "more differences than elements": lambda xp: xp.diff(np.ones(3), n=5),
    "nothing repeated": lambda xp: xp.tile(xp.repeat(np.ones((2, 3)), 0, axis=1), (2, 2)),
    "a border of nothing": lambda xp: xp.pad(NOTHING, 1),
    "nothing taken": lambda xp: xp.take(np.ones((2, 3)), np.zeros(0, int), axis=0),
    "a product over nothing": lambda xp: xp.dot(np.ones((2, 0)), np.ones((0, 3))),
    "an outside diagonal": lambda xp: xp.trace(np.ones((2, 3)), offset=9),
    "a polynomial of nothing": lambda xp: xp.polyval(np.ones(0), 2.0),
    "only zeros": lambda xp: xp.trim_zeros(np.zeros(3)),
    "nothing inserted": lambda xp: xp.insert(np.arange(4.0), [], []),
    "nothing deleted": lambda xp: xp.delete(np.arange(4.0), []),
    "nothing to resize": lambda xp: xp.resize(np.ones(0), (2,)),
    "nothing where": lambda xp: xp.argwhere(NOTHING),
    "no bits": lambda xp: xp.packbits(np.zeros(0, bool)),
    "divisors of zero": lambda xp: xp.gcd(np.array(0), np.array([0, 5, -6])),
    "exponents far out": lambda xp: xp.ldexp(np.array([1.0, 0.5]), np.array([1000, -3])),
}


@pytest.mark.parametrize("name", EDGES)
def test_edges(name: str) -> None:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        wanted = np.asarray(EDGES[name](np))
    assert_close(EDGES[name](fnp), wanted, name)


ERRORS: dict[str, tuple[Callable[[Any], Any], type[Exception]]] = {
    "an extreme of nothing": (lambda xp: xp.max(NOTHING), ValueError),
    "a place in nothing": (lambda xp: xp.argmax(NOTHING), ValueError),
    "no arrays": (lambda xp: xp.stack([]), ValueError),
    "an uneven split": (lambda xp: xp.split(np.ones((2, 3)), 4), ValueError),
    "no axis to sort": (lambda xp: xp.sort(np.float64(1)), IndexError),
    "a negative border": (lambda xp: xp.pad(np.ones(3), -1), ValueError),
    "taken from outside": (lambda xp: xp.take(np.ones(3), 9), IndexError),
    "inserted outside": (lambda xp: xp.insert(np.ones(3), 5, 1.0), IndexError),
    "deleted outside": (lambda xp: xp.delete(np.ones(3), 4), IndexError),
    "too few samples": (lambda xp: xp.gradient(np.ones(1)), ValueError),
    "a coordinate outside": (lambda xp: xp.ravel_multi_index(([1], [5]), (2, 3)), ValueError),
    "a number outside": (lambda xp: xp.unravel_index(7, (2, 3)), ValueError),
    "an axis of size two": (lambda xp: xp.squeeze(np.ones((2, 3)), 0), ValueError),
    "an axis out of range": (lambda xp: xp.moveaxis(np.ones((2, 3)), 0, 5), IndexError),
    "no conditions": (lambda xp: xp.select([], []), ValueError),
    "a partition outside": (lambda xp: xp.partition(np.ones(3), 7), ValueError),
    "negative counts": (lambda xp: xp.bincount(np.array([-1])), ValueError),
    "decreasing bins": (lambda xp: xp.histogram(np.ones(3), [2.0, 1.0]), ValueError),
    "no unit": (lambda xp: xp.packbits(np.ones(3)), TypeError),
    "cubes of variables": (lambda xp: xp.cov(np.ones((2, 2, 2))), ValueError),
    "a cube's roots": (lambda xp: xp.roots(np.ones((2, 2))), ValueError),
    "no degree": (lambda xp: xp.polyfit(np.ones(3), np.ones(3), -1), ValueError),
    "blocks of two depths": (lambda xp: xp.block([[np.ones(1)], np.ones(1)]), ValueError),
    "vectors of five": (lambda xp: xp.cross(np.ones(5), np.ones(5)), ValueError),
    "an unknown rule": (lambda xp: xp.quantile(np.ones(3), 0.5, method="none"), ValueError),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_numpy_s(name: str) -> None:
    f, kind = ERRORS[name]
    for xp in (np, fnp):
        with pytest.raises(kind):
            f(xp)


# ---------------------------------------------------------------- NumPy's dispatch

# NumPy functions that dispatch, but have no counterpart here: they write into arrays, print or store them, or are about
# memory, text, dates and dtypes.
ABSENT = """
array2string array_repr array_str busday_count busday_offset common_type copyto datetime_as_string einsum_path
is_busday isfortran isnat may_share_memory min_scalar_type mintypecode place putmask save savetxt savez
savez_compressed shares_memory
"""


def test_numpy_hands_over_every_function() -> None:
    handed = {n for n in dir(np) if hasattr(getattr(np, n), "_implementation") or isinstance(getattr(np, n), np.ufunc)}
    assert sorted(n for n in handed if not hasattr(fnp, n)) == sorted(handed.intersection(ABSENT.split()))
