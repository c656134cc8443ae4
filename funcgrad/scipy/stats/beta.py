"""The beta distribution with the parameters ``a`` and ``b``."""

from __future__ import annotations

from funcgrad import special
from funcgrad.scipy.stats.declare import Continuous

_beta = Continuous(
    __name__, {"a": "its shape on the left, positive.", "b": "its shape on the right, positive."}, __doc__,
    lambda z, a, b: special.xlogy(a - 1, z) + special.xlog1py(b - 1, -z) - special.betaln(a, b), (0.0, 1.0),
    cdf=lambda z, a, b: special.betainc(a, b, z), sf=lambda z, a, b: special.betaincc(a, b, z),
)  # fmt: skip

logpdf = _beta.function("logpdf", ">>> print(logpdf(0.5, 1.0, 1.0))\n    0.0")
pdf = _beta.function("pdf", ">>> print(pdf(0.5, 1.0, 1.0))\n    1.0")
cdf = _beta.function("cdf", ">>> print(cdf(0.25, 1.0, 1.0))\n    0.25")
sf = _beta.function("sf", ">>> print(sf(0.25, 1.0, 1.0))\n    0.75")
