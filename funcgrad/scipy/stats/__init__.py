"""Probability distributions, each a module of functions with the arguments of ``scipy.stats``.

``x`` is the argument of a function, ``q`` a probability; ``loc`` and ``scale`` give the distribution of ``loc + scale *
z``, where ``z`` has the standard one. They are arrays that broadcast together, of floating dtype or promoted to one;
parameters of a distribution are named in its module's docstring.

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
from funcgrad.scipy.stats.declared import (
    bernoulli,
    betabinom,
    binom,
    cauchy,
    gennorm,
    geom,
    gumbel_l,
    gumbel_r,
    logistic,
    nbinom,
    pareto,
    truncnorm,
    vonmises,
    wrapcauchy,
)
