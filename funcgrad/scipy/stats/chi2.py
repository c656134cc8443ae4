"""The chi-squared distribution with ``df`` degrees of freedom: that of a gamma variable of ``df / 2``, doubled."""

from __future__ import annotations

import math

import numpy as np

from funcgrad import special
from funcgrad.scipy.stats.declare import Continuous

_chi2 = Continuous(
    __name__, {"df": "the degrees of freedom, positive."}, __doc__,
    lambda z, df: special.xlogy(df / 2 - 1, z / 2) - (z / 2 + special.gammaln(df / 2)) - math.log(2), (0.0, np.inf),
    cdf=lambda z, df: special.gammainc(df / 2, z / 2), sf=lambda z, df: special.gammaincc(df / 2, z / 2),
)  # fmt: skip

logpdf = _chi2.function("logpdf", ">>> print(logpdf(2.0, 2.0).round(4))\n    -1.6931")
pdf = _chi2.function("pdf", ">>> print(pdf(0.0, 2.0))\n    0.5")
cdf = _chi2.function("cdf", ">>> print(cdf(0.0, 2.0))\n    0.0")
sf = _chi2.function("sf", ">>> print(sf(0.0, 2.0))\n    1.0")
