"""The exponential distribution, with mean ``loc + scale`` and support from ``loc``."""

from __future__ import annotations

import numpy as np

from funcgrad.numpy import elementwise as n
from funcgrad.scipy.stats.declare import Continuous

_expon = Continuous(
    __name__, {}, __doc__, lambda z: -z, (0.0, np.inf), cdf=lambda z: -n.expm1(-z), sf=lambda z: n.exp(-z)
)

logpdf = _expon.function("logpdf", ">>> print(logpdf(2.0))\n    -2.0")
pdf = _expon.function("pdf", ">>> print(pdf(0.0))\n    1.0")
cdf = _expon.function("cdf", ">>> print(cdf(np.log(2.0)).round(4))\n    0.5")
sf = _expon.function("sf", ">>> print(sf(0.0))\n    1.0")
