"""The uniform distribution, from ``loc`` to ``loc + scale``."""

from __future__ import annotations

from funcgrad.scipy.stats.declare import Continuous

_uniform = Continuous(
    __name__, {}, __doc__, lambda z: z * 0, (0.0, 1.0), cdf=lambda z: z, sf=lambda z: 1 - z
)  # fmt: skip

logpdf = _uniform.function("logpdf", ">>> print(logpdf(0.5, scale=0.5).round(4))\n    0.6931")
pdf = _uniform.function("pdf", ">>> print(pdf(0.5))\n    1.0")
cdf = _uniform.function("cdf", ">>> print(cdf(0.5))\n    0.5")
sf = _uniform.function("sf", ">>> print(sf(0.25))\n    0.75")
