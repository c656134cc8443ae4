"""Distributions and convolutions, beyond the table: other arguments, values outside the support, wrong arguments."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.signal
import scipy.stats

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad.scipy import linalg, signal, stats
from tests.funcgrad.library_rows import DECLARED, FUNCTIONS, PARAMETERS
from tests.funcgrad.oracle import assert_close
from tests.funcgrad.tolerances import CONDITIONED, DIFFERENCED, FEW, FEW32, MANY, MANY32

RNG = np.random.default_rng(0)
CASES = {"schur": 0}
A, X = RNG.uniform(0.8, 4, 8), RNG.normal(size=8) * 2


def _check_derivatives(f: Any, xs: list[Any], skip: int = 0) -> None:
    rng, step = np.random.default_rng(1), 1e-6
    live = xs[skip:]
    directions = [rng.normal(size=np.shape(x)) for x in live]

    def total(*moved: Any) -> Any:
        return fnp.sum(f(*xs[:skip], *moved))

    ends = [float(total(*[x + s * step * d for x, d in zip(live, directions, strict=True)])) for s in (1, -1)]
    got = fg.grad(total, argnums=tuple(range(len(live))))(*live)
    found = sum(np.sum(np.asarray(g) * d) for g, d in zip(got, directions, strict=True))
    np.testing.assert_allclose(found, (ends[0] - ends[1]) / (2 * step), rtol=10 * DIFFERENCED, atol=DIFFERENCED)


@pytest.mark.parametrize("distribution", ["gamma", "beta", "expon", "uniform", "poisson"])
def test_outside_of_the_support(distribution: str) -> None:
    shapes, _ = PARAMETERS[distribution]
    for function in FUNCTIONS[:-2]:
        if hasattr(getattr(stats, distribution), function):
            got = getattr(getattr(stats, distribution), function)(-1.0, *[s[0] for s in shapes[1:]])
            wanted = getattr(getattr(scipy.stats, distribution), function)(-1.0, *[s[0] for s in shapes[1:]])
            np.testing.assert_allclose(got, wanted)


@pytest.mark.parametrize("distribution", ["gamma", "beta", "chi2", "expon", "uniform", "pareto"])
def test_densities_outside_of_the_support_have_derivatives(distribution: str) -> None:
    shapes, _ = {**PARAMETERS, **DECLARED}[distribution]
    density = getattr(stats, distribution).logpdf
    places = [-1.0, *[s[0] for s in shapes[1:]], 0.0, 1.5]
    assert density(*places) == -np.inf
    assert [float(g) for g in fg.grad(density, argnums=tuple(range(len(places))))(*places)] == [0.0] * len(places)
    assert np.isnan(density(np.nan, *places[1:]))


def test_distribution_functions_have_full_signatures() -> None:
    assert str(inspect.signature(stats.beta.logpdf)) == "(x, a, b, loc=0, scale=1)"
    assert str(inspect.signature(stats.poisson.cdf)) == "(k, mu, loc=0)"
    assert stats.t.logpdf.__module__ == "funcgrad.scipy.stats.t"
    assert stats.norm.pdf(scale=2.0, x=1.0) == stats.norm.pdf(1.0, 0.0, 2.0)
    with pytest.raises(TypeError, match=r"gamma\.cdf: a missing"):
        stats.gamma.cdf(1.0)


@pytest.mark.parametrize("name", DECLARED)
def test_declared_distributions(name: str) -> None:
    (x, *shapes), continuous = DECLARED[name]
    ours, theirs = getattr(stats, name), getattr(scipy.stats, name)
    last = {"loc": 0.3, "scale": 2.0} if continuous else {"loc": 1}
    moved = x * 2 + 0.3 if continuous else x + 1
    made = ("pdf", "logcdf", "logsf") if continuous else ("pmf",)
    for function in made:
        if function[3:] in ("", *ours.formulas):
            wanted = getattr(theirs, function)(moved, *shapes, **last)
            np.testing.assert_allclose(
                getattr(ours, function)(moved, *shapes, **last), wanted, rtol=10 * CONDITIONED, atol=FEW
            )
    # Far outside, or between integers.
    for function in {"logpdf", "logpmf", "cdf", "sf"} & {*ours.formulas, "logpdf" if continuous else "logpmf"}:
        for at in (-9.5, 0.5, 30.0):
            wanted = getattr(theirs, function)(at, *[s[0] for s in shapes])
            np.testing.assert_allclose(
                getattr(ours, function)(at, *[s[0] for s in shapes]), wanted, rtol=MANY32, atol=FEW32
            )


def test_arguments_of_declared_distributions() -> None:
    assert repr(stats.binom) == "<distribution binom(n, p, loc)>"
    assert float(stats.binom.pmf(1, p=np.float64(0.5), n=2)) == pytest.approx(0.5, rel=FEW)
    with pytest.raises(TypeError, match=r"binom\.logpmf: p missing"):
        stats.binom.pmf(1, 2)
    with pytest.raises(TypeError, match=r"cauchy\.logpdf: takes loc, scale, got 0 of them and shape"):
        stats.cauchy.pdf(1.0, shape=2)
    with pytest.raises(AttributeError, match=r"vonmises\.cdf: there is no formula"):
        stats.vonmises.cdf(0.0, 1.0)


def test_dirichlet() -> None:
    alpha = A[:3]
    x = RNG.dirichlet(alpha, 5).T
    for function in ("pdf", "logpdf"):
        ours, theirs = (getattr(library.dirichlet, function) for library in (stats, scipy.stats))
        np.testing.assert_allclose(ours(x, alpha), theirs(x, alpha), rtol=CONDITIONED)
        np.testing.assert_allclose(ours(x[:-1], alpha), theirs(x, alpha), rtol=10 * CONDITIONED)
        _check_derivatives(ours, [x, alpha])
    with pytest.raises(ValueError, match="no probability for each"):
        stats.dirichlet.logpdf(x, A)


def _covariance(n: int) -> np.ndarray:
    root = RNG.normal(size=(n, n))
    return root @ root.T + np.eye(n)


def test_multivariate_normal() -> None:
    mean, cov, x = X[:3], _covariance(3), RNG.normal(size=(5, 3))
    ours, theirs = stats.multivariate_normal, scipy.stats.multivariate_normal
    for function in ("pdf", "logpdf"):
        np.testing.assert_allclose(getattr(ours, function)(x, mean, cov), getattr(theirs, function)(x, mean, cov))
    np.testing.assert_allclose(ours.entropy(mean, cov), theirs.entropy(mean, cov))
    np.testing.assert_allclose(ours.logpdf(0.5, 0.1, 2.0), theirs.logpdf(0.5, 0.1, 2.0))

    def symmetric(f: Any) -> Any:
        return lambda *xs: f(*xs[:-1], (xs[-1] + xs[-1].T) / 2)

    _check_derivatives(symmetric(ours.logpdf), [x, mean, cov])
    _check_derivatives(symmetric(ours.entropy), [mean, cov])
    with pytest.raises(ValueError, match="does not fit vectors of 3"):
        ours.logpdf(x, mean, np.eye(2))


def test_a_singular_covariance() -> None:
    cov = np.diag([1.0, 2.0, 0.0])
    x, mean = np.array([0.3, -1.0, 0.0]), np.zeros(3)
    got = stats.multivariate_normal.logpdf(x, mean, cov, allow_singular=True)
    np.testing.assert_allclose(got, scipy.stats.multivariate_normal.logpdf(x, mean, cov, allow_singular=True))
    by_cov = fg.grad(lambda c: stats.multivariate_normal.logpdf(x, mean, c, True))(cov)
    # As on the plane that has all its mass.
    plane = fg.grad(lambda c: stats.multivariate_normal.logpdf(x[:2], mean[:2], c))(cov[:2, :2])
    np.testing.assert_allclose(np.asarray(by_cov)[:2, :2], plane, atol=MANY)


# ---------------------------------------------------------------- convolution


@pytest.mark.parametrize("mode", ["full", "valid", "same"])
@pytest.mark.parametrize("sizes", [((5,), (3,)), ((4, 6), (3, 2)), ((3, 4, 5), (2, 3, 1)), ((3,), (5,))])
def test_convolutions(mode: str, sizes: tuple[Any, Any]) -> None:
    a, b = (RNG.normal(size=s) for s in sizes)
    for name in ("convolve", "correlate", "fftconvolve"):
        ours, theirs = (getattr(library, name) for library in (signal, scipy.signal))
        np.testing.assert_allclose(ours(a, b, mode), theirs(a, b, mode), atol=MANY, err_msg=name)
        _check_derivatives(lambda x, y, f=ours: fnp.sin(f(x, y, mode)), [a, b])


def test_convolution_along_some_axes() -> None:
    a, b = RNG.normal(size=(3, 5, 2)), RNG.normal(size=(2, 3, 4))
    got = np.asarray(signal.convolve(a, b, axes=((1,), (2,)), dot_axes=((0,), (1,))))
    assert got.shape == (2, 2, 8)
    wanted = sum(np.convolve(a[i, :, 1], b[0, i, :]) for i in range(3))
    np.testing.assert_allclose(got[1, 0], wanted)
    outer = np.asarray(signal.convolve(a, b, axes=((), ()), dot_axes=((2,), (0,))))
    np.testing.assert_allclose(outer, np.tensordot(a, b, ((2,), (0,))))


def test_convolutions_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="mode must be"):
        signal.convolve(X, X, "some")
    with pytest.raises(ValueError, match="as many axes"):
        signal.convolve(X, np.ones((2, 2)))
    with pytest.raises(ValueError, match="lie in the other"):
        signal.convolve(np.ones((2, 3)), np.ones((3, 2)), "valid")
    with pytest.raises(ValueError, match="do not pair"):
        signal.convolve(X, X, axes=((0,), ()))


# ---------------------------------------------------------------- functions of matrices


def test_sqrtm_of_real_matrices_is_real_if_possible() -> None:
    x = _covariance(4)
    assert_close(linalg.sqrtm(x), scipy.linalg.sqrtm(x), "positive")
    turn = np.array([[0.0, -1.0], [1.0, 0.0]])
    assert_close(linalg.sqrtm(turn), np.array([[1, -1], [1, 1]]) / np.sqrt(2), "eigenvalues that are a pair")
    assert_close(linalg.sqrtm(-x), scipy.linalg.sqrtm(-x), "negative")
    assert fg.jit(linalg.sqrtm)(x).dtype == np.complex128
    assert fg.grad(lambda x: fnp.sum(linalg.sqrtm(x)))(x).dtype == np.float64


def test_functions_of_matrices() -> None:
    x, y = RNG.normal(size=(4, 4)), _covariance(4)
    assert_close(linalg.funm(x, fnp.exp), scipy.linalg.expm(x), "exp", CONDITIONED)
    assert_close(linalg.funm(y, fnp.log), scipy.linalg.logm(y), "log", CONDITIONED)
    assert_close(linalg.funm(-y, fnp.log), scipy.linalg.logm(-y), "log of negative ones", CONDITIONED)
    assert fg.jit(lambda x: linalg.funm(x, fnp.exp))(x).dtype == np.complex128


def test_schur() -> None:
    x = RNG.normal(size=(4, 4))
    for output in ("real", "complex"):
        t, z = (np.asarray(v) for v in linalg.schur(x, output))
        assert_close(z @ t @ z.conj().T, x.astype(t.dtype), output)
    with pytest.raises(fg.NonDifferentiableError, match="schur"):
        fg.grad(lambda x: fnp.sum(linalg.schur(x)[0]))(x)
    with pytest.raises(ValueError, match="output must be"):
        linalg.schur(x, "upper")


def test_banded_systems() -> None:
    ab, b = RNG.normal(size=(2, 4, 5)), RNG.normal(size=(2, 5, 3))
    wanted = [scipy.linalg.solve_banded((2, 1), a, y) for a, y in zip(ab, b, strict=True)]
    assert_close(linalg.solve_banded((2, 1), ab, b), np.stack(wanted), "a batch", CONDITIONED)
    # A row of zeros at the left needs an interchange.
    swapped = np.array([[0.0, 1.0, 1.0], [0.0, 0.0, 1.0], [1.0, 1.0, 0.0]])
    assert_close(
        linalg.solve_banded((1, 1), swapped, np.ones(3)),
        scipy.linalg.solve_banded((1, 1), swapped, np.ones(3)),
        "zeros",
    )
    with pytest.raises(np.linalg.LinAlgError, match="Singular"):
        linalg.solve_banded((1, 1), np.zeros((3, 4)), np.ones(4))
    with pytest.raises(ValueError, match="do not fit"):
        linalg.solve_banded((1, 1), np.ones((3, 4)), np.ones(5))
    with pytest.raises(ValueError, match="diagonals are wanted"):
        linalg.solve_banded((1, 0), np.ones((3, 4)), np.ones(4))
