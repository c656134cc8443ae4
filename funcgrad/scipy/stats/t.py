"""Student's t distribution with ``df`` degrees of freedom."""

from __future__ import annotations

import math
from typing import Any

from funcgrad import special
from funcgrad.numpy import elementwise as n
from funcgrad.scipy.stats.declare import Continuous


def _log_density(z: Any, df: Any) -> Any:
    more = (df + 1) * 0.5
    constant = special.gammaln(more) - (special.gammaln(df * 0.5) + n.log(df * math.pi) * 0.5)
    return constant - more * n.log1p(n.square(z) / df)


def _below(z: Any, df: Any) -> Any:
    # Abramowitz and Stegun, 26.7.1.
    tail = special.betainc(df * 0.5, 0.5, df / (df + n.square(z))) * 0.5
    return n.where(z < 0, tail, 1 - tail)


_t = Continuous(
    __name__, {"df": "the degrees of freedom, positive."}, __doc__,
    _log_density, cdf=_below, sf=lambda z, df: _below(-z, df),
)  # fmt: skip

logpdf = _t.function("logpdf", ">>> print(logpdf(0.0, 1.0).round(4))\n    -1.1447")
pdf = _t.function("pdf", ">>> print(pdf(0.0, 1.0).round(4))\n    0.3183")
cdf = _t.function("cdf", ">>> print(cdf(0.0, 1.0))\n    0.5")
sf = _t.function("sf", ">>> print(sf(0.0, 1.0))\n    0.5")
logcdf = _t.function("logcdf", ">>> print(logcdf(0.0, 1.0).round(4))\n    -0.6931")
logsf = _t.function("logsf", ">>> print(logsf(0.0, 1.0).round(4))\n    -0.6931")
