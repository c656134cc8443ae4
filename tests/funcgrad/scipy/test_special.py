"""Special functions: SciPy's values, and derivatives of first and second order in both modes, against differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.special as sp
from hypothesis import given
from hypothesis import strategies as st

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad import special
from funcgrad.core.errors import NonDifferentiableError
from funcgrad.core.ir import ArrayType
from funcgrad.primitives.special import functions as p
from funcgrad.primitives.special.polynomials import orthogonal_polynomial
from tests.funcgrad.oracle import examples
from tests.funcgrad.tolerances import CONDITIONED, CONDITIONED32, DIFFERENCED, FEW, MANY, MANY32

Domain = tuple[float, float]
ANY, POSITIVE, UNIT, SMALL, DEGREES = (-4.0, 4.0), (0.3, 6.0), (0.05, 0.95), (-0.8, 0.8), (-400.0, 400.0)


class Row(NamedTuple):
    """A function's domains, one per operand; the primitives that it or its derivatives use; its reference.

    Attributes:
        first: arguments that come before the operands.
        frozen: operands without a derivative.
        tolerance: of values; series whose terms cancel lose more digits.
    """

    domains: tuple[Domain, ...]
    meets: str = ""
    theirs: Callable[..., Any] | None = None
    first: tuple[Any, ...] = ()
    frozen: tuple[int, ...] = ()
    tolerance: float = 10 * MANY


TABLE: dict[str, Row] = {
    "gamma": Row((ANY,)),
    "gammaln": Row((ANY,)),
    "loggamma": Row((POSITIVE,)),
    "rgamma": Row((ANY,)),
    "digamma": Row((POSITIVE,)),
    "psi": Row((POSITIVE,)),
    "polygamma": Row((POSITIVE,), first=(2,)),
    "multigammaln": Row(((2.0, 9.0),), theirs=lambda a: sp.multigammaln(a, 3), first=()),
    "gammainc": Row((POSITIVE, POSITIVE), "igamma igamma_by_a"),
    "gammaincc": Row((POSITIVE, POSITIVE), "igammac igamma_by_a"),
    "beta": Row((POSITIVE, POSITIVE)),
    "betaln": Row((POSITIVE, POSITIVE)),
    "betainc": Row((POSITIVE, POSITIVE, UNIT), "betainc betainc_by_parameters"),
    "betaincc": Row((POSITIVE, POSITIVE, UNIT)),
    "factorial": Row((POSITIVE,)),
    "comb": Row(((4.0, 8.0), (1.0, 3.0))),
    "poch": Row((POSITIVE, POSITIVE)),
    "zeta": Row(((1.5, 5.0), POSITIVE), "zeta"),
    "erf": Row((ANY,)),
    "erfc": Row((ANY,)),
    "erfinv": Row((SMALL,)),
    "erfcinv": Row(((0.1, 1.9),), "ndtri"),
    "erfcx": Row((ANY,), "erfcx"),
    "dawsn": Row((ANY,), "dawsn"),
    "ndtr": Row((ANY,)),
    "ndtri": Row((UNIT,), "ndtri"),
    "log_ndtr": Row(((-30.0, 4.0),), "log_ndtr"),
    "owens_t": Row((ANY, ANY), "owens_t"),
    "j0": Row((ANY,), "bessel_j0 bessel_j1"),
    "j1": Row(((-30.0, 30.0),), "bessel_j1"),
    "jn": Row(((-20.0, 20.0),), "bessel_jn", theirs=sp.jv, first=(3,)),
    "y0": Row((POSITIVE,), "bessel_y0 bessel_y1"),
    "y1": Row(((5.0, 30.0),), "bessel_y1"),
    "yn": Row((POSITIVE,), "bessel_yn", first=(2,)),
    "i0": Row((ANY,), "bessel_i0 bessel_i1"),
    "i0e": Row((POSITIVE,), "bessel_i0e bessel_i1e"),
    "i1": Row((ANY,)),
    "i1e": Row((POSITIVE,)),
    "iv": Row((POSITIVE, POSITIVE), "bessel_ive", frozen=(0,)),
    "ive": Row(((0.0, 40.0), (0.3, 60.0)), frozen=(0,)),
    "k0": Row((POSITIVE,), "bessel_k0 bessel_k1"),
    "k0e": Row((POSITIVE,), "bessel_k0e bessel_k1e"),
    "k1": Row((POSITIVE,)),
    "k1e": Row((POSITIVE,)),
    "airy_ai": Row(((-9.0, 5.0),), "airy_ai airy_ai_prime", theirs=lambda x: sp.airy(x)[0]),
    "airy_ai_prime": Row(((-9.0, 5.0),), theirs=lambda x: sp.airy(x)[1]),
    "expi": Row((POSITIVE,), "expi"),
    "exp1": Row((POSITIVE,), "expn"),
    "expn": Row((POSITIVE,), first=(3,)),
    "sici": Row((POSITIVE,), "sine_integral cosine_integral"),
    "fresnel": Row(((-3.0, 3.0),), "fresnel_s fresnel_c"),
    "spence": Row((POSITIVE,), "spence"),
    "hyp1f1": Row((POSITIVE, POSITIVE, ANY), "hyp1f1", tolerance=100 * MANY),
    "hyp2f1": Row((POSITIVE, POSITIVE, POSITIVE, SMALL), "hyp2f1", tolerance=100 * MANY),
    "expit": Row((ANY,)),
    "logit": Row((UNIT,)),
    "log_expit": Row((ANY,)),
    "softplus": Row((ANY,), theirs=lambda x: np.logaddexp(0, x)),
    "xlogy": Row((ANY, POSITIVE)),
    "xlog1py": Row((ANY, POSITIVE)),
    "entr": Row((POSITIVE,)),
    "rel_entr": Row((POSITIVE, POSITIVE)),
    "kl_div": Row((POSITIVE, POSITIVE)),
    "boxcox": Row((POSITIVE, ANY)),
    "boxcox1p": Row((POSITIVE, ANY)),
    "inv_boxcox": Row((POSITIVE, POSITIVE)),
    "exprel": Row((ANY,)),
    "exp2": Row((ANY,)),
    "expm1": Row((ANY,)),
    "log1p": Row((POSITIVE,)),
    "cbrt": Row((POSITIVE,)),
    "sinc": Row((ANY,)),
    "exp10": Row(((-3.0, 2.0),)),
    "radian": Row((ANY, POSITIVE, POSITIVE)),
    "sindg": Row((DEGREES,)),
    "cosdg": Row((DEGREES,)),
    "tandg": Row(((-84.0, 84.0),)),
    "cotdg": Row(((276.0, 354.0),)),
    "cosm1": Row((ANY,)),
    "huber": Row((POSITIVE, ANY)),
    "pseudo_huber": Row((POSITIVE, ANY)),
    "ellipk": Row(((-5.0, 0.9),)),
    "ellipkm1": Row((UNIT,)),
    "chdtr": Row((POSITIVE, POSITIVE)),
    "chdtrc": Row((POSITIVE, POSITIVE)),
    "gdtr": Row((POSITIVE, POSITIVE, UNIT)),
    "gdtrc": Row((POSITIVE, POSITIVE, UNIT)),
    "pdtr": Row((POSITIVE, POSITIVE)),
    "pdtrc": Row((POSITIVE, POSITIVE)),
    "fdtr": Row((POSITIVE, POSITIVE, POSITIVE)),
    "fdtrc": Row((POSITIVE, POSITIVE, POSITIVE)),
    # SciPy's accept integers only; see below.
    "bdtr": Row(
        ((0.3, 3.7), (5.0, 9.0), UNIT), theirs=lambda k, n, q: sp.betaincc(np.floor(k) + 1, n - np.floor(k), q)
    ),
    "bdtrc": Row(
        ((0.3, 3.7), (5.0, 9.0), UNIT), theirs=lambda k, n, q: sp.betainc(np.floor(k) + 1, n - np.floor(k), q)
    ),
    "nbdtr": Row(((0.3, 3.7), POSITIVE, UNIT), theirs=lambda k, n, q: sp.betainc(n, np.floor(k) + 1, q)),
    "nbdtrc": Row(((0.3, 3.7), POSITIVE, UNIT), theirs=lambda k, n, q: sp.betaincc(n, np.floor(k) + 1, q)),
    "binom": Row((ANY, POSITIVE)),
    "gammaincinv": Row((POSITIVE, UNIT), "igamma_inverse igamma_by_a"),
    "gammainccinv": Row((POSITIVE, UNIT), "igammac_inverse"),
    "betaincinv": Row((POSITIVE, POSITIVE, UNIT), "betainc_inverse betainc_by_parameters"),
    "betainccinv": Row((POSITIVE, POSITIVE, UNIT), "betaincc_inverse"),
    "chdtri": Row((POSITIVE, UNIT)),
    "gdtrix": Row((POSITIVE, POSITIVE, UNIT)),
    "fdtri": Row(((2.0, 9.0), (2.0, 9.0), UNIT)),
    "pdtri": Row(((0.3, 5.7), UNIT), theirs=lambda k, y: sp.pdtri(np.floor(k), y), frozen=(0,)),
    "bdtri": Row(
        ((0.3, 3.7), (5.0, 9.0), UNIT),
        theirs=lambda k, n, y: sp.betainccinv(np.floor(k) + 1, n - np.floor(k), y),
        frozen=(0,),
    ),
    "nbdtri": Row(
        ((0.3, 3.7), POSITIVE, UNIT), theirs=lambda k, n, y: sp.betaincinv(n, np.floor(k) + 1, y), frozen=(0,)
    ),
    "stdtr": Row((POSITIVE, ANY), "student betainc_by_parameters"),
    "stdtrit": Row(((2.0, 9.0), UNIT), "student_inverse"),
    "ndtri_exp": Row(((-900.0, -0.01),), "log_ndtr_inverse erfcx"),
    "inv_boxcox1p": Row((POSITIVE, POSITIVE)),
}
#: Those with tests of their own below, and those of ``funcgrad.numpy``.
ELSEWHERE = {"gammasgn", "wofz", "logsumexp", "softmax", "log_softmax"}
CASES = {name for row in TABLE.values() for name in row.meets.split()} | {
    "wofz",
    "gamma_sample_slope",
    "orthogonal_polynomial",
}


def _call(name: str) -> Callable[..., Any]:
    if name == "multigammaln":
        return lambda a: special.multigammaln(a, 3)
    return lambda *xs: getattr(special, name)(*TABLE[name].first, *xs)


def _questions(f: Callable[..., Any], live: list[int]) -> Callable[..., list[Any]]:
    """Values, tangents, cotangents and second derivatives of ``f``, in one program."""

    def moving(xs: tuple[Any, ...]) -> Callable[..., Any]:
        def g(*moved: Any) -> Any:
            every = list(xs)
            for i, x in zip(live, moved, strict=True):
                every[i] = x
            found = f(*every)
            return sum(found) if isinstance(found, tuple) else found

        return g

    def slope(xs: tuple[Any, ...], *moved: Any) -> Any:
        return fg.jvp(moving(xs), moved, tuple(fnp.ones_like(m) for m in moved))[1]

    def everything(*xs: Any) -> list[Any]:
        at = tuple(xs[i] for i in live)
        ones = tuple(fnp.ones_like(m) for m in at)
        values = f(*xs)
        first = slope(xs, *at)
        back = fg.vjp(moving(xs), *at)[1](fnp.ones_like(first))

        def pulled(*moved: Any) -> Any:
            return sum(fg.vjp(moving(xs), *moved)[1](fnp.ones_like(first)))

        second = fg.jvp(pulled, at, ones)[1]
        again = sum(fg.vjp(lambda *m: slope(xs, *m), *at)[1](fnp.ones_like(first)))
        return [*(values if isinstance(values, tuple) else [values]), first, sum(back), second, again]

    return everything


@pytest.mark.parametrize("name", TABLE)
@given(st.integers(0, 99))
@examples(1)
def test_function(name: str, seed: int) -> None:
    row = TABLE[name]
    rng = np.random.default_rng(seed)
    xs = [rng.uniform(*d, size=24) for d in row.domains]
    f = _call(name)
    live = [i for i in range(len(xs)) if i not in row.frozen]
    everything = _questions(f, live)
    met = {equation.primitive.name for equation in fg.trace(everything, *xs).equations}
    assert set(row.meets.split()) <= met
    step = 1e-6
    ask = fg.jit(fg.vmap(everything))
    ends = [[x + s * step * (i in live) for i, x in enumerate(xs)] for s in (0, 1, -1)]
    *values, first, back, second, again = [np.asarray(v) for v in ask(*[np.concatenate(e) for e in zip(*ends)])]
    here, up, down = (slice(24 * i, 24 * i + 24) for i in range(3))
    wanted = (row.theirs or getattr(sp, name))(*row.first, *xs)
    for got, want in zip(values, wanted if isinstance(wanted, tuple) else [wanted], strict=True):
        np.testing.assert_allclose(got[here], want, rtol=row.tolerance, atol=row.tolerance)
    total = sum(values)
    for label, got, of in (
        ("jvp", first, total),
        ("vjp", back, total),
        ("second", second, first),
        ("again", again, first),
    ):
        difference = (of[up] - of[down]) / (2 * step)
        scale = 1 + np.abs(difference) + np.abs(of[here])
        assert np.max(np.abs(got[here] - difference) / scale) < DIFFERENCED / 10, label


def test_every_function_is_in_the_table() -> None:
    public = {n for n, v in vars(special).items() if callable(v) and not n.startswith("_")}
    assert public == {*TABLE, *ELSEWHERE}


def test_distributions_of_whole_numbers() -> None:
    k, n = (grid.ravel().astype(float) for grid in np.meshgrid(np.arange(-1, 6), np.arange(1, 6)))
    for name, least in (("bdtr", -1), ("bdtrc", -1), ("nbdtr", 0), ("nbdtrc", 0)):
        some = k >= least
        wanted = getattr(sp, name)(k[some], n[some].astype(int), 0.3)  # SciPy warns about a float
        np.testing.assert_allclose(getattr(special, name)(k[some], n[some], 0.3), wanted, rtol=MANY)


def test_binomial_coefficients_of_whole_numbers() -> None:
    n, k = (grid.ravel().astype(float) for grid in np.meshgrid(np.arange(-3, 8), np.arange(-3, 10)))
    inside = n >= 0
    np.testing.assert_allclose(special.binom(n, k)[inside], sp.binom(n, k)[inside], rtol=MANY)
    assert np.isnan(special.binom(n, k)[~inside]).all()
    # Where it is 0 its slope is not.
    step = 1e-6
    for x, y in ((2.0, 4.0), (3.0, -2.0)):
        difference = (sp.binom(x, y + step) - sp.binom(x, y - step)) / (2 * step)
        found = fg.grad(special.binom, 1)(np.float64(x), np.float64(y))
        np.testing.assert_allclose(found, difference, rtol=DIFFERENCED / 100)


def test_edges_of_small_functions() -> None:
    whole = np.arange(-360.0, 361.0, 30.0)
    for name in ("sindg", "cosdg"):
        np.testing.assert_allclose(getattr(special, name)(whole), getattr(sp, name)(whole), rtol=FEW)
    np.testing.assert_array_equal(special.tandg(whole[::6]), np.zeros(5))
    delta, r = np.array([-1.0, 0.0, 0.0, 2.0, 2.0]), np.array([1.0, 1.0, 0.0, -2.0, 1e-9])
    for name in ("huber", "pseudo_huber"):
        np.testing.assert_allclose(getattr(special, name)(delta, r), getattr(sp, name)(delta, r), rtol=FEW)
    p = np.array([1.0, 0.0, 1e-20, 5e-300, -1.0])
    np.testing.assert_allclose(special.ellipkm1(p), sp.ellipkm1(p), rtol=FEW)
    for name, x in (("chdtr", (2.0, -1.0)), ("chdtrc", (2.0, -1.0)), ("loggamma", (-0.5,)), ("loggamma", (-1.5,))):
        assert np.isnan(getattr(sp, name)(*x)) and np.isnan(getattr(special, name)(*x))
    assert special.cosm1(np.float64(1e-9)) == sp.cosm1(1e-9)


@pytest.mark.parametrize("name", TABLE)
def test_single_precision(name: str) -> None:
    row = TABLE[name]
    rng = np.random.default_rng(1)
    xs = [rng.uniform(*d, size=16).astype(np.float32) for d in row.domains]
    got, wanted = _call(name)(*xs), (row.theirs or getattr(sp, name))(*row.first, *[x.astype(float) for x in xs])
    for a, b in zip(*[v if isinstance(v, tuple) else (v,) for v in (got, wanted)], strict=True):
        assert a.dtype == np.float32
        np.testing.assert_allclose(a, b, rtol=3 * CONDITIONED32, atol=2 * MANY32)


# ---------------------------------------------------------------- edges

EDGES: dict[str, list[tuple[Any, ...]]] = {
    "gamma": [(0.0,), (-1.0,), (np.inf,)],
    "rgamma": [(0.0,), (-1.0,), (np.inf,)],
    "gammasgn": [(-0.5,), (-1.5,), (3.0,), (np.nan,)],
    "gammainc": [(1.0, 0.0), (2.0, np.inf)],
    "betainc": [(1.0, 2.0, 0.0), (1.0, 2.0, 1.0)],
    "betaincc": [(2.0, 3.0, 1e-12)],
    "entr": [(0.0,), (-1.0,), (np.nan,)],
    "rel_entr": [(0.0, 0.0), (0.0, 2.0), (1.0, 0.0), (-1.0, 1.0), (np.nan, 1.0)],
    "kl_div": [(0.0, 2.0), (1.0, 0.0)],
    "xlogy": [(0.0, 0.0), (0.0, np.inf), (0.0, np.nan), (2.0, 0.0)],
    "xlog1py": [(0.0, -1.0), (0.0, np.nan)],
    "i1": [(0.0,)],
    "k0": [(0.0,), (-1.0,), (900.0,)],
    "y0": [(0.0,), (-1.0,)],
    "expi": [(0.0,), (np.inf,), (-np.inf,)],
    "exp1": [(0.0,), (np.inf,)],
    "exprel": [(0.0,), (1e-12,)],
    "erfcx": [(19.9,), (20.1,), (26.6,), (1e5,)],
    "log_ndtr": [(-1e4,), (-37.55,), (40.0,)],
    "logit": [(0.0,), (1.0,)],
    "gammaincinv": [(2.0, 0.0), (2.0, 1.0), (2.0, 1.5), (0.0, 0.3), (0.05, 1e-10), (2e4, 1e-300)],
    "gammainccinv": [(2.0, 0.0), (2.0, 1.0), (0.01, 0.3), (2e4, 1e-300), (3.0, 1e-200)],
    "betaincinv": [(1.0, 2.0, 0.0), (1.0, 2.0, 1.0), (1.0, 2.0, -0.1), (0.1, 3.0, 1e-20), (900.0, 40.0, 1e-100)],
    "betainccinv": [(3.0, 0.5, 1e-20), (900.0, 40.0, 1e-100)],
    "stdtr": [(3.0, np.inf), (3.0, -np.inf), (3.0, -1e6), (1e4, 1e-3), (0.3, -1e-9)],
    "stdtrit": [(3.0, 0.5), (3.0, 1.0), (0.5, 1e-30), (40.0, 0.5000001)],
    "ndtri_exp": [(0.0,), (-np.inf,), (1.0,), (-1e-300,), (-1e10,), (-706.4,), (-0.5,)],
    "comb": [(3.0, 5.0), (3.0, -1.0), (5.0, 0.0)],
    "factorial": [(-3.0,), (0.0,)],
    "erfcinv": [(1e-200,), (0.0,), (2.0,)],
    "fresnel": [(0.0,), (np.inf,)],
    "hyp1f1": [(1.0, 2.0, -60.0)],
    "hyp2f1": [(1.0, 2.0, 3.0, -40.0)],
}


@pytest.mark.parametrize("name", EDGES)
def test_edges(name: str) -> None:
    for xs in EDGES[name]:
        with np.errstate(all="ignore"):
            wanted = getattr(sp, name)(*xs)
        got = getattr(special, name)(*[np.float64(x) for x in xs])
        np.testing.assert_allclose(got, wanted, rtol=CONDITIONED, err_msg=f"{name}{xs}")


@pytest.mark.parametrize(
    ("f", "x", "wanted"),
    [
        (special.i1, 0.0, 0.5),
        (special.j1, 0.0, 0.5),
        (special.exprel, 0.0, 0.5),
        (special.spence, 1.0, -1.0),
        (special.rgamma, -2.0, 2.0),
        (lambda x: special.xlogy(x, np.float64(0.5)), 0.0, np.log(0.5)),
        (lambda y: special.xlogy(np.float64(0.0), y), 0.0, 0.0),
        (lambda a: special.gammainc(a, np.float64(2.0)), 1.0, None),
    ],
)
def test_derivatives_at_edges(f: Callable[[Any], Any], x: float, wanted: float | None) -> None:
    got = fg.grad(f)(np.float64(x))
    if wanted is None:
        step = 1e-6
        wanted = float(f(np.float64(x + step)) - f(np.float64(x - step))) / (2 * step)
    np.testing.assert_allclose(got, wanted, rtol=DIFFERENCED / 10, atol=MANY)


# ---------------------------------------------------------------- complex numbers


@given(st.integers(0, 99))
@examples(1)
def test_complex_error_functions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    z = rng.normal(size=20) * 2 + 1j * rng.normal(size=20) * 2
    for name in ("erf", "erfc", "erfcx", "wofz"):
        f, theirs = getattr(special, name), getattr(sp, name)
        np.testing.assert_allclose(f(z), theirs(z), rtol=CONDITIONED, atol=CONDITIONED)
        # It is holomorphic: the tangent in any direction is the derivative times the direction.
        step = 1e-6
        difference = (theirs(z + step) - theirs(z - step)) / (2 * step)
        (tangent,) = [fg.jvp(f, (z,), (np.full_like(z, 1j),))[1]]
        np.testing.assert_allclose(
            tangent, 1j * difference, rtol=DIFFERENCED, atol=DIFFERENCED * np.abs(difference).max()
        )


# ---------------------------------------------------------------- logsumexp


@pytest.mark.parametrize("axis", [None, 0, (0, 1)])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("weighted", ["", "positive", "some zero", "signed"])
def test_logsumexp(axis: Any, keepdims: bool, weighted: str) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(3, 4)) * 100, rng.normal(size=(3, 4))
    given: dict[str, Any] = {
        "": {},
        "positive": {"b": np.abs(b)},
        "some zero": {"b": np.where(b < -0.5, 0, np.abs(b))},
        "signed": {"b": b, "return_sign": True},
    }[weighted]
    got = special.logsumexp(a, axis=axis, keepdims=keepdims, **given)
    wanted = sp.logsumexp(a, axis=axis, keepdims=keepdims, **given)
    for x, y in zip(*[v if weighted == "signed" else (v,) for v in (got, wanted)], strict=True):
        np.testing.assert_allclose(x, y, rtol=MANY)

    def total(v: Any) -> Any:
        found = special.logsumexp(v, axis=axis, **given)
        return fnp.sum(found[0] if weighted == "signed" else found)

    step = 1e-6
    direction = rng.normal(size=a.shape)
    difference = float(total(a + step * direction) - total(a - step * direction)) / (2 * step)
    np.testing.assert_allclose(np.sum(np.asarray(fg.grad(total)(a)) * direction), difference, rtol=10 * DIFFERENCED)


def test_logsumexp_is_accurate_for_small_terms() -> None:
    for a in ([0.0, -40.0], [-1e-3, -1e-3 - 45.0, -60.0], [0.0, 0.0, -50.0]):
        x = np.array(a)
        np.testing.assert_allclose(special.logsumexp(x), sp.logsumexp(x), rtol=FEW)
        np.testing.assert_allclose(fg.grad(special.logsumexp)(x), sp.softmax(x), rtol=FEW)
        np.testing.assert_allclose(
            fg.hessian(special.logsumexp)(x)[0, 1], -sp.softmax(x)[0] * sp.softmax(x)[1], rtol=FEW
        )
    assert np.isnan(special.logsumexp(np.zeros(2), b=np.array([1.0, -2.0])))
    assert special.logsumexp(np.array([np.inf, 1.0])) == np.inf


# ---------------------------------------------------------------- refusals


def test_missing_higher_derivatives_raise() -> None:
    def thrice(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return fg.grad(fg.grad(fg.grad(f)))

    for f in (
        lambda a: special.gammainc(a, np.float64(1.0)),
        lambda a: special.betainc(a, np.float64(1.0), np.float64(0.5)),
        lambda a: special.hyp1f1(a, np.float64(1.0), np.float64(0.5)),
    ):
        with pytest.raises(NonDifferentiableError, match="two are known"):
            thrice(f)(np.float64(1.5))
    with pytest.raises(NonDifferentiableError, match="by its order is not known"):
        fg.grad(lambda v: special.ive(v, np.float64(1.0)))(np.float64(1.5))


def test_arguments_that_do_not_fit() -> None:
    with pytest.raises(TypeError, match="gammaln: takes real arrays, got c64"):
        special.gammaln(1j)
    with pytest.raises(TypeError, match="takes 2 positional arguments"):
        special.beta(1.0)
    with pytest.raises(ValueError, match="do not broadcast"):
        special.beta(np.ones(2), np.ones(3))
    with pytest.raises(ValueError, match="polygamma: n must be at least 0, got -1"):
        special.polygamma(-1, 1.0)
    with pytest.raises(ValueError, match="multigammaln: d must be at least 1, got 0"):
        special.multigammaln(1.0, 0)
    with pytest.raises(ValueError, match="expn: n must be at least 0, got -1"):
        special.expn(-1, 1.0)
    with pytest.raises(TypeError, match="jn: n must be an int"):
        special.jn(0.5, 1.0)
    with pytest.raises(TypeError, match="igamma"):
        p.igamma.output_types([ArrayType((), np.dtype(np.int32))] * 2, {})


def test_the_slope_of_gamma_samples() -> None:
    a, x = np.array([0.7, 2.0, 9.0]), np.array([0.5, 2.5, 7.0])
    # Along it the distribution function is constant.
    slope = np.asarray(p.gamma_sample_slope(a, x))
    step = 1e-6
    moved = sp.gammainc(a + step, x + step * slope) - sp.gammainc(a - step, x - step * slope)
    np.testing.assert_allclose(moved / (2 * step), 0, atol=DIFFERENCED / 100)
    # And so is its derivative: compared with differences of slopes.
    got = fg.grad(lambda v: p.gamma_sample_slope(v, x).sum())(a)
    wanted = (np.asarray(p.gamma_sample_slope(a + step, x)) - np.asarray(p.gamma_sample_slope(a - step, x))) / (
        2 * step
    )
    np.testing.assert_allclose(got, wanted, rtol=DIFFERENCED)


@pytest.mark.parametrize(
    ("family", "theirs"),
    [
        ("chebyshev_t", sp.eval_chebyt), ("chebyshev_u", sp.eval_chebyu), ("hermite_h", sp.eval_hermite),
        ("hermite_he", sp.eval_hermitenorm), ("laguerre_l", sp.eval_laguerre), ("legendre_p", sp.eval_legendre),
    ],
)  # fmt: skip
def test_orthogonal_polynomials(family: str, theirs: Callable[..., Any]) -> None:
    x, n = np.linspace(-1.5, 1.5, 7)[:, None], np.arange(6.0)
    got = orthogonal_polynomial(x, n, family=family)
    np.testing.assert_allclose(got, theirs(n.astype(int), x), rtol=MANY, atol=MANY)
    assert (np.asarray(orthogonal_polynomial(x, np.array([-1.0]), family=family)) == 0).all()
    with pytest.raises(NonDifferentiableError, match="orthogonal polynomials"):
        fg.grad(lambda v: orthogonal_polynomial(v, np.float64(2), family=family))(np.float64(0.5))


def test_the_other_chebyshev_polynomials() -> None:
    # By their definition: as functions of an angle, quotients of cosines and of sines of half angles.
    angle = np.linspace(0.2, 2.9, 7)
    for n in range(5):
        third = np.cos((n + 0.5) * angle) / np.cos(angle / 2)
        fourth = np.sin((n + 0.5) * angle) / np.sin(angle / 2)
        for family, wanted in (("chebyshev_v", third), ("chebyshev_w", fourth)):
            got = orthogonal_polynomial(np.cos(angle), np.float64(n), family=family)
            np.testing.assert_allclose(got, wanted, rtol=CONDITIONED)
