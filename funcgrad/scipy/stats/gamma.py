"""The gamma distribution with the parameter ``a``."""

from __future__ import annotations

import numpy as np

from funcgrad import special
from funcgrad.scipy.stats.declare import Continuous

_gamma = Continuous(
    __name__, {"a": "its shape, positive."}, __doc__,
    lambda z, a: special.xlogy(a - 1, z) - (z + special.gammaln(a)), (0.0, np.inf),
    cdf=lambda z, a: special.gammainc(a, z), sf=lambda z, a: special.gammaincc(a, z),
)  # fmt: skip

logpdf = _gamma.function("logpdf", ">>> print(logpdf(2.0, 1.0))\n    -2.0")
pdf = _gamma.function("pdf", ">>> print(pdf(0.0, 1.0))\n    1.0")
cdf = _gamma.function("cdf", ">>> print(cdf(0.0, 1.0))\n    0.0")
sf = _gamma.function("sf", ">>> print(sf(0.0, 1.0))\n    1.0")
logcdf = _gamma.function("logcdf", ">>> print(logcdf(1.0, 1.0).round(4))\n    -0.4587")
logsf = _gamma.function("logsf", ">>> print(logsf(1.0, 1.0))\n    -1.0")
