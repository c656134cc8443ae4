"""The normal distribution: ``loc`` is the mean, ``scale`` the standard deviation."""

from __future__ import annotations

import math

from funcgrad import special
from funcgrad.numpy import elementwise as n
from funcgrad.scipy.stats.declare import Continuous

_norm = Continuous(
    __name__, {}, __doc__,
    lambda z: n.square(z) * -0.5 - math.log(2 * math.pi) / 2,
    cdf=special.ndtr, sf=lambda z: special.ndtr(-z),
    logcdf=special.log_ndtr, logsf=lambda z: special.log_ndtr(-z),
    ppf=special.ndtri, isf=lambda q: -special.ndtri(q),
)  # fmt: skip

logpdf = _norm.function("logpdf", ">>> print(logpdf(0.0).round(4))\n    -0.9189")
pdf = _norm.function("pdf", ">>> print(pdf(0.0).round(4))\n    0.3989")
cdf = _norm.function("cdf", ">>> print(cdf(0.0))\n    0.5")
logcdf = _norm.function("logcdf", ">>> print(logcdf(-20.0).round(3))\n    -203.917")
sf = _norm.function("sf", ">>> print(sf(0.0))\n    0.5")
logsf = _norm.function("logsf", ">>> print(logsf(20.0).round(3))\n    -203.917")
ppf = _norm.function("ppf", ">>> print(ppf(0.5))\n    0.0")
isf = _norm.function("isf", ">>> print(isf(0.5, loc=1.0))\n    1.0")
