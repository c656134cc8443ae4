"""Probability distributions, each a module of functions with the arguments of ``scipy.stats``.

Example:
    >>> import funcgrad as fg
    >>> from funcgrad.scipy import stats
    >>> print(fg.grad(stats.norm.logpdf)(1.0))
    -1.0
"""

from funcgrad.scipy.stats import (
    beta,
    chi2,
    dirichlet,
    expon,
    gamma,
    laplace,
    multivariate_normal,
    norm,
    poisson,
    t,
    uniform,
)
