"""Every function of the libraries beside funcgrad.numpy, row by row: values, derivatives of both orders and modes."""

from __future__ import annotations

import inspect
from types import ModuleType

import pytest

import funcgrad as fg
from funcgrad.scipy.stats import declare
from tests.funcgrad.library_rows import DECLARED, JAX_S, OURS, ROWS, THEIRS
from tests.funcgrad.table import check_row

# Not in JAX, or not with these arguments, or without a derivative.
NOT_JAX_S = {
    "linalg.eig", "linalg.expm", "linalg.lu", "linalg.solve_triangular", "la.coshm", "la.cosm", "la.eigvalsh",
    "la.funm", "la.lstsq", "la.norm", "la.pinv", "la.polar", "la.sinhm", "la.sinm", "la.solve_banded",
    "la.solve_banded both ways", "la.solve_sylvester", "la.solve_toeplitz", "la.solveh_banded",
    "la.solveh_banded lower", "la.sqrtm", "la.svdvals", "la.tanhm", "la.tanm",
    "stats.multivariate_normal.entropy", "stats.t.cdf", "stats.t.logcdf", "stats.t.sf", "stats.t.logsf",
    "stats.beta.cdf", "stats.beta.sf", "stats.poisson.sf", "stats.uniform.sf", "stats.laplace.sf",
    "la.eigh in a metric", "la.solve of the transpose",
}  # fmt: skip
# Composed of others, or slow to compile: their primitives' tables test second derivatives.
FIRST_ONLY = {n for n in ROWS if n.endswith(("sf", "logcdf"))} | {"stats.beta.cdf", "stats.t.cdf", "stats.chi2.cdf"}


@pytest.mark.parametrize("name", ROWS)
def test_values_and_derivatives(name: str) -> None:
    # A few functions with derivatives of their own: outside ``jit``, where nothing waits for XLA.
    outside = name.split(".")[1] in DECLARED
    jax = None if name in NOT_JAX_S else JAX_S
    check_row(ROWS[name], OURS, THEIRS, jax, by_value=outside, second=name not in FIRST_ONLY)


# ---------------------------------------------------------------- completeness

LIBRARIES = {"linalg": fg.linalg, "fft": fg.fft, "la": fg.scipy.linalg, "signal": fg.scipy.signal}
DISTRIBUTIONS = {n: m for n, m in vars(fg.scipy.stats).items() if isinstance(m, ModuleType)}


@pytest.mark.parametrize("library", [*LIBRARIES, "stats"])
def test_every_public_function_has_a_row(library: str) -> None:
    if library in LIBRARIES:
        module = LIBRARIES[library]
        public = {f"{library}.{n}" for n in module.__all__ if not inspect.isclass(getattr(module, n))}
    else:
        public = {
            f"stats.{d}.{n}"
            for d, module in DISTRIBUTIONS.items()
            for n, f in vars(module).items()
            if inspect.isfunction(f) and f.__module__ == module.__name__ and not n.startswith("_")
        }
    assert sorted(public - {name.split()[0] for name in ROWS}) == []


def test_every_declaration_is_tested() -> None:
    kinds = declare._Distribution
    assert {n for n, v in vars(fg.scipy.stats).items() if isinstance(v, kinds)} == set(DECLARED)
