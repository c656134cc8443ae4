"""The Laplace distribution around ``loc``."""

from __future__ import annotations

import math
from typing import Any

from funcgrad.numpy import elementwise as n
from funcgrad.scipy.stats.declare import Continuous


def _below(z: Any) -> Any:
    tail = n.exp(-n.abs(z)) * 0.5
    return n.where(z < 0, tail, 1 - tail)


_laplace = Continuous(
    __name__, {}, __doc__, lambda z: -(n.abs(z) + math.log(2)), cdf=_below, sf=lambda z: _below(-z)
)  # fmt: skip

logpdf = _laplace.function("logpdf", ">>> print(logpdf(0.0).round(4))\n    -0.6931")
pdf = _laplace.function("pdf", ">>> print(pdf(0.0).round(4))\n    0.5")
cdf = _laplace.function("cdf", ">>> print(cdf(0.0))\n    0.5")
sf = _laplace.function("sf", ">>> print(sf(0.0))\n    0.5")
