"""The Poisson distribution of mean ``mu``."""

from __future__ import annotations

from funcgrad import special
from funcgrad.scipy.stats.declare import Discrete

_poisson = Discrete(
    __name__, {"mu": "its mean, from 0 on."}, __doc__,
    lambda k, mu: special.xlogy(k, mu) - mu - special.gammaln(k + 1),
    cdf=lambda k, mu: special.gammaincc(k + 1, mu), sf=lambda k, mu: special.gammainc(k + 1, mu),
)  # fmt: skip

logpmf = _poisson.function("logpmf", ">>> print(logpmf(0, 2.0))\n    -2.0")
pmf = _poisson.function("pmf", ">>> print(pmf(0, 0.0))\n    1.0")
cdf = _poisson.function("cdf", ">>> print(cdf(0, 1.0).round(4))\n    0.3679")
sf = _poisson.function("sf", ">>> print(sf(0, 1.0).round(4))\n    0.6321")
