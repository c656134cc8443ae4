"""Test rows of the libraries related to ``funcgrad.numpy``, named ``library.function``, with the tested properties.

A row is a function of a namespace ``xp`` and of arrays. ``xp.np``, ``xp.linalg`` and ``xp.fft`` are NumPy's or
funcgrad's, ``xp.la``, ``xp.signal`` and ``xp.stats`` SciPy's.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
import scipy.signal
import scipy.stats

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad.scipy import stats
from tests.funcgrad.table import Row

RNG = np.random.default_rng(0)
SQUARE = RNG.normal(size=(3, 3)) + 2 * np.eye(3)
PAIR = RNG.normal(size=(2, 2, 2)) + 2 * np.eye(2)
TALL, WIDE = RNG.normal(size=(3, 2)), RNG.normal(size=(2, 3))
SOLVED, V, W = RNG.normal(size=(3, 2)), RNG.normal(size=3), RNG.normal(size=4)
SHARES, WEIGHTS = np.array([0.2, 0.3, 0.5]), np.array([1.5, 2.0, 3.0])
GRID = RNG.normal(size=(2, 3, 4))
WAVES = RNG.normal(size=(3, 4)) + 1j * RNG.normal(size=(3, 4))

OURS = SimpleNamespace(np=fnp, linalg=fg.linalg, fft=fg.fft, la=fg.scipy.linalg, signal=fg.scipy.signal, stats=stats)
BY_SCIPY = {name: getattr(scipy.linalg, name) for name in ("expm", "lu", "solve_triangular")}
THEIRS = SimpleNamespace(
    np=np, fft=np.fft, la=scipy.linalg, signal=scipy.signal, stats=scipy.stats,
    linalg=SimpleNamespace(**{n: getattr(np.linalg, n) for n in dir(np.linalg) if n[0] != "_"}, **BY_SCIPY),
)  # fmt: skip
JAX_S = SimpleNamespace(
    np=jnp, linalg=jnp.linalg, fft=jnp.fft, la=jax.scipy.linalg, signal=jax.scipy.signal, stats=jax.scipy.stats
)


def gram(xp: Any, x: Any) -> Any:
    """A positive definite matrix."""
    return xp.np.matmul(x, xp.np.conj(xp.np.swapaxes(x, -1, -2))) + np.eye(x.shape[-2])


def flat(xp: Any, parts: Any) -> Any:
    """All results concatenated to one vector."""
    return xp.np.concatenate([xp.np.ravel(part) for part in parts])


def unsigned(xp: Any, vectors: Any) -> Any:
    """Vectors whose sign is arbitrary."""
    return xp.np.abs(vectors)


ROWS: dict[str, Row] = {
    "linalg.cholesky": (lambda xp, x: xp.linalg.cholesky(gram(xp, x)), (PAIR,)),
    "linalg.cond": (lambda xp, x: xp.linalg.cond(x), (SQUARE,)),
    "linalg.cross": (lambda xp, x, y: xp.linalg.cross(x, y), (V, SQUARE)),
    "linalg.det": (lambda xp, x: xp.linalg.det(x), (PAIR,)),
    "linalg.diagonal": (lambda xp, x: xp.linalg.diagonal(x, offset=1), (GRID,)),
    "linalg.eig": (lambda xp, x: flat(xp, [unsigned(xp, part) for part in xp.linalg.eig(gram(xp, x))]), (SQUARE,)),
    "linalg.eigh": (
        lambda xp, x: flat(xp, [unsigned(xp, part) for part in xp.linalg.eigh(x + x.mT)]), (SQUARE,),
    ),
    "linalg.eigvals": (lambda xp, x: xp.np.sum(xp.linalg.eigvals(x) ** 3), (SQUARE.astype(complex),)),
    "linalg.eigvalsh": (lambda xp, x: xp.linalg.eigvalsh(gram(xp, x)), (PAIR,)),
    "linalg.expm": (lambda xp, x: xp.linalg.expm(x), (SQUARE * 0.3,)),
    "linalg.inv": (lambda xp, x: xp.linalg.inv(x), (PAIR,)),
    "linalg.lstsq": (lambda xp, x, y: flat(xp, xp.linalg.lstsq(x, y)[::3]), (TALL, V)),
    "linalg.lu": (lambda xp, x: flat(xp, xp.linalg.lu(x)[1:]), (TALL,)),
    "linalg.matmul": (lambda xp, x, y: xp.linalg.matmul(x, y), (WIDE, PAIR[:, 0:1] * np.ones((2, 3, 2)))),
    "linalg.matrix_norm": (lambda xp, x: xp.linalg.matrix_norm(x, ord="nuc"), (PAIR,)),
    "linalg.matrix_power": (lambda xp, x: xp.linalg.matrix_power(x, -3), (PAIR,)),
    "linalg.matrix_rank": (lambda xp, x: xp.linalg.matrix_rank(x), (PAIR,)),
    "linalg.matrix_transpose": (lambda xp, x: xp.linalg.matrix_transpose(x), (GRID,)),
    "linalg.multi_dot": (lambda xp, x, y, z: xp.linalg.multi_dot([x, y, z]), (WIDE, SQUARE, V)),
    "linalg.norm": (lambda xp, x: xp.linalg.norm(x, 3, axis=1), (GRID,)),
    "linalg.norm of a matrix": (lambda xp, x: xp.linalg.norm(x, 2), (SQUARE,)),
    "linalg.outer": (lambda xp, x, y: xp.linalg.outer(x, y), (V, W)),
    "linalg.pinv": (lambda xp, x: xp.linalg.pinv(x), (TALL,)),
    "linalg.qr": (lambda xp, x: flat(xp, xp.linalg.qr(x)), (TALL,)),
    "linalg.slogdet": (lambda xp, x: xp.linalg.slogdet(x)[1], (PAIR,)),
    "linalg.solve": (lambda xp, x, y: xp.linalg.solve(x, y), (SQUARE, SOLVED)),
    "linalg.solve_triangular": (lambda xp, x, y: xp.linalg.solve_triangular(x, y, lower=True), (SQUARE, SOLVED)),
    "linalg.svd": (
        lambda xp, x: flat(xp, [unsigned(xp, part) for part in xp.linalg.svd(x, full_matrices=False)]), (TALL,),
    ),
    "linalg.svdvals": (lambda xp, x: xp.linalg.svdvals(x), (PAIR,)),
    "linalg.tensordot": (lambda xp, x, y: xp.linalg.tensordot(x, y, axes=([1], [0])), (WIDE, SQUARE)),
    "linalg.tensorinv": (lambda xp, x: xp.linalg.tensorinv(x.reshape(4, 2, 2), ind=1), (RNG.normal(size=(4, 4)),)),
    "linalg.tensorsolve": (
        lambda xp, x, y: xp.linalg.tensorsolve(x.reshape(2, 2, 4), y), (RNG.normal(size=(4, 4)), PAIR[0]),
    ),
    "linalg.trace": (lambda xp, x: xp.linalg.trace(x), (GRID,)),
    "linalg.vecdot": (lambda xp, x, y: xp.linalg.vecdot(x, y), (WAVES, WAVES[::-1])),
    "linalg.vector_norm": (lambda xp, x: xp.linalg.vector_norm(x, axis=(0, 2)), (GRID,)),
    "fft.fft": (lambda xp, x: xp.fft.fft(x, 5), (W,)),
    "fft.ifft": (lambda xp, x: xp.fft.ifft(x, axis=0, norm="ortho"), (WAVES,)),
    "fft.fft2": (lambda xp, x: xp.fft.fft2(x), (WAVES,)),
    "fft.ifft2": (lambda xp, x: xp.fft.ifft2(x, (2, 5)), (WAVES,)),
    "fft.fftn": (lambda xp, x: xp.fft.fftn(x, norm="forward"), (GRID,)),
    "fft.ifftn": (lambda xp, x: xp.fft.ifftn(x, axes=(1,)), (GRID,)),
    "fft.rfft": (lambda xp, x: xp.fft.rfft(x, axis=1), (GRID,)),
    "fft.irfft": (lambda xp, x: xp.fft.irfft(x, 7), (WAVES,)),
    "fft.rfft2": (lambda xp, x: xp.fft.rfft2(x), (GRID,)),
    "fft.irfft2": (lambda xp, x: xp.fft.irfft2(x), (WAVES,)),
    "fft.rfftn": (lambda xp, x: xp.fft.rfftn(x), (GRID,)),
    "fft.irfftn": (lambda xp, x: xp.fft.irfftn(x, (3, 5), axes=(0, 1)), (WAVES,)),
    "fft.hfft": (lambda xp, x: xp.fft.hfft(x), (WAVES,)),
    "fft.ihfft": (lambda xp, x: xp.fft.ihfft(x), (GRID,)),
    "fft.fftfreq": (lambda xp: xp.fft.fftfreq(4, 0.5) + np.zeros(4), ()),
    "fft.rfftfreq": (lambda xp: xp.fft.rfftfreq(4, 0.5) + np.zeros(3), ()),
    "fft.fftshift": (lambda xp, x: xp.fft.fftshift(x, axes=(0, 1)), (GRID,)),
    "fft.ifftshift": (lambda xp, x: xp.fft.ifftshift(x), (V,)),
    "la.block_diag": (lambda xp, x, y: xp.la.block_diag(x, y, 1.0), (TALL, V)),
    "la.cho_factor": (lambda xp, x: xp.np.triu(xp.la.cho_factor(gram(xp, x))[0]), (SQUARE,)),
    "la.cho_solve": (lambda xp, x, y: xp.la.cho_solve(xp.la.cho_factor(gram(xp, x)), y), (SQUARE, SOLVED)),
    "la.cholesky": (lambda xp, x: xp.la.cholesky(gram(xp, x), lower=True), (SQUARE,)),
    "la.circulant": (lambda xp, x: xp.la.circulant(x), (V,)),
    "la.det": (lambda xp, x: xp.la.det(x), (SQUARE,)),
    "la.eigh": (lambda xp, x: flat(xp, [unsigned(xp, part) for part in xp.la.eigh(gram(xp, x))]), (SQUARE,)),
    "la.eigh in a metric": (
        lambda xp, x, y: flat(xp, [unsigned(xp, part) for part in xp.la.eigh(x + x.T, gram(xp, y))]),
        (SQUARE, SQUARE.T),
    ),
    "la.eigvalsh": (lambda xp, x: xp.la.eigvalsh(gram(xp, x)), (SQUARE,)),
    "la.expm": (lambda xp, x: xp.la.expm(x), (SQUARE * 0.3,)),
    "la.coshm": (lambda xp, x: xp.la.coshm(x), (SQUARE * 0.3,)),
    "la.cosm": (lambda xp, x: xp.la.cosm(x), (SQUARE * 0.3,)),
    "la.funm": (lambda xp, x: xp.la.funm(x, xp.np.exp) + 0j, (SQUARE * 0.3,)),
    "la.schur": (lambda xp: xp.np.abs(xp.la.schur(SQUARE)[0]), ()),
    "la.schur complex": (lambda xp: xp.np.abs(xp.la.schur(SQUARE - 3 * SQUARE.T, output="complex")[1]), ()),
    "la.sinhm": (lambda xp, x: xp.la.sinhm(x), (SQUARE * 0.3,)),
    "la.sinm": (lambda xp, x: xp.la.sinm(x + 0.1j), (SQUARE * 0.3,)),
    "la.tanhm": (lambda xp, x: xp.la.tanhm(x), (SQUARE * 0.3,)),
    "la.tanm": (lambda xp, x: xp.la.tanm(x), (SQUARE * 0.3,)),
    "la.expm_frechet": (lambda xp, x, y: xp.la.expm_frechet(x, y)[1], (SQUARE * 0.3, SQUARE.T)),
    "la.hankel": (lambda xp, x, y: xp.la.hankel(x, y), (V, W)),
    "la.hilbert": (lambda xp: xp.np.astype(xp.la.hilbert(3), np.float32), ()),
    "la.inv": (lambda xp, x: xp.la.inv(x), (SQUARE,)),
    "la.lstsq": (lambda xp, x, y: xp.la.lstsq(x, y)[0], (TALL, V)),
    "la.lu": (lambda xp, x: flat(xp, xp.la.lu(x, permute_l=True)), (TALL,)),
    "la.lu_factor": (lambda xp, x: xp.la.lu_factor(x)[0], (SQUARE,)),
    "la.lu_solve": (lambda xp, x, y: xp.la.lu_solve(xp.la.lu_factor(x), y, trans=1), (SQUARE, SOLVED)),
    "la.norm": (lambda xp, x: xp.la.norm(x), (SQUARE,)),
    "la.pinv": (lambda xp, x: xp.la.pinv(x), (WIDE,)),
    "la.polar": (lambda xp, x: flat(xp, xp.la.polar(x, side="left")), (SQUARE,)),
    "la.qr": (lambda xp, x: flat(xp, xp.la.qr(x, mode="economic")), (TALL,)),
    "la.solve": (lambda xp, x, y: xp.la.solve(gram(xp, x), y, assume_a="pos"), (SQUARE, V)),
    "la.solve of the transpose": (lambda xp, x, y: xp.la.solve(x, y, transposed=True), (SQUARE, V)),
    "la.solve_banded": (lambda xp, x, y: xp.la.solve_banded((1, 0), x, y), (WIDE + 3, V)),
    "la.solve_banded both ways": (
        lambda xp, x, y: xp.la.solve_banded((1, 2), x, y), (RNG.normal(size=(4, 6)), RNG.normal(size=(6, 2))),
    ),
    "la.solveh_banded": (
        lambda xp, x, y: xp.la.solveh_banded(x + np.array([[0], [0], [9]]), y),
        (RNG.normal(size=(3, 5)), RNG.normal(size=5)),
    ),
    "la.solveh_banded lower": (
        lambda xp, x, y: xp.la.solveh_banded(x + np.array([[9], [0]]), y, lower=True), (WAVES[:2], W),
    ),
    "la.solve_sylvester": (lambda xp, x, y, q: xp.la.solve_sylvester(x, y, q), (SQUARE, PAIR[0], SOLVED)),
    "la.solve_toeplitz": (lambda xp, x, y: xp.la.solve_toeplitz((x, y), y), (V + 3, V)),
    "la.solve_triangular": (lambda xp, x, y: xp.la.solve_triangular(x, y, trans="T", lower=True), (SQUARE, V)),
    "la.sqrtm": (lambda xp, x: xp.la.sqrtm(gram(xp, x)) + 0j, (SQUARE,)),
    "la.svd": (lambda xp, x: xp.la.svd(x, compute_uv=False), (SQUARE,)),
    "la.svdvals": (lambda xp, x: xp.la.svdvals(x), (SQUARE,)),
    "la.toeplitz": (lambda xp, x, y: xp.la.toeplitz(x, y), (V, W)),
    "signal.convolve": (lambda xp, x, y: xp.signal.convolve(x, y, "same"), (W, V)),
    "signal.correlate": (lambda xp, x, y: xp.signal.correlate(x, y, "valid"), (WAVES, WAVES[:2, :2])),
    "signal.fftconvolve": (lambda xp, x, y: xp.signal.fftconvolve(x, y), (TALL, WIDE)),
    "stats.dirichlet.logpdf": (
        lambda xp, x, a: xp.stats.dirichlet.logpdf(x / xp.np.sum(x), a), (SHARES, WEIGHTS),
    ),
    "stats.dirichlet.pdf": (
        lambda xp, x, a: xp.stats.dirichlet.pdf(x / xp.np.sum(x), a), (SHARES, WEIGHTS),
    ),
    "stats.multivariate_normal.logpdf": (
        lambda xp, x, m, c: xp.stats.multivariate_normal.logpdf(x, m, gram(xp, c)), (SOLVED.T, V, SQUARE),
    ),
    "stats.multivariate_normal.pdf": (
        lambda xp, x, m, c: xp.stats.multivariate_normal.pdf(x, m, gram(xp, c)), (V, V[::-1], SQUARE),
    ),
    "stats.multivariate_normal.entropy": (
        lambda xp, c: xp.stats.multivariate_normal.entropy(np.zeros(3), gram(xp, c)), (SQUARE,),
    ),
}  # fmt: skip

# ---------------------------------------------------------------- univariate distributions

N = 4
LOCATION, SCALE = RNG.normal(size=N) * 0.1, RNG.uniform(0.5, 2, N)
X, POSITIVE, UNIT = RNG.normal(size=N) * 2, RNG.uniform(0.5, 4, N), RNG.uniform(0.15, 0.45, N)
A, B, COUNTS = RNG.uniform(0.8, 4, N), RNG.uniform(0.8, 4, N), np.arange(N)

#: The variable, then shape parameters; whether location and scale come last.
PARAMETERS: dict[str, tuple[list[np.ndarray], bool]] = {
    "norm": ([X], True),
    "t": ([X, A + 2], True),
    "gamma": ([POSITIVE, A], True),
    "beta": ([UNIT, A, B], True),
    "chi2": ([POSITIVE, A], True),
    "poisson": ([COUNTS, A], False),
    "expon": ([POSITIVE], True),
    "uniform": ([UNIT], True),
    "laplace": ([X], True),
}
FUNCTIONS = ("pdf", "logpdf", "pmf", "logpmf", "cdf", "logcdf", "sf", "logsf", "ppf", "isf")


def of_distribution(name: str, function: str) -> Callable[..., Any]:
    return lambda xp, *xs: getattr(getattr(xp.stats, name), function)(*xs)


TRIALS, SHARE = np.arange(N) + 2, np.array([0.2, 0.35, 0.5, 0.7])
# Distributions that are declared without a module of their own.
DECLARED: dict[str, tuple[list[np.ndarray], bool]] = {
    "bernoulli": ([np.array([0, 1, 1, 0]), SHARE], False),
    "betabinom": ([COUNTS, TRIALS, A, B], False),
    "binom": ([COUNTS, TRIALS, SHARE], False),
    "cauchy": ([X], True),
    "gennorm": ([X, A], True),
    "geom": ([COUNTS + 1, SHARE], False),
    "gumbel_l": ([X], True),
    "gumbel_r": ([X], True),
    "logistic": ([X], True),
    "nbinom": ([COUNTS, A, SHARE], False),
    "pareto": ([POSITIVE + 2, A], True),
    "truncnorm": ([UNIT / 2, -A, B], True),
    "vonmises": ([X, A], True),
    "wrapcauchy": ([UNIT + 1, SHARE], True),
}


def has(name: str, function: str) -> bool:
    """Whether a distribution has a function of its own, and not one derived from others in the same way for all."""
    distribution = getattr(stats, name)
    if name not in DECLARED:
        return hasattr(distribution, function)
    return function in distribution.formulas or (function in ("logpdf", "logpmf") and hasattr(distribution, function))


for _name, (_shapes, _moved) in {**PARAMETERS, **DECLARED}.items():
    for _function in FUNCTIONS:
        if has(_name, _function):
            _x = UNIT if _function in ("ppf", "isf") else _shapes[0]
            _all = (_x, *_shapes[1:], *([LOCATION, SCALE] if _moved else []))
            ROWS[f"stats.{_name}.{_function}"] = (of_distribution(_name, _function), _all)
