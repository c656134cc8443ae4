"""Tolerances of comparisons, by the cause of differences.

Two ways to compute a number round at different places. What that comes to follows from the dtype, from how many
roundings there are in a row, and from how much larger what is computed makes them, its condition. A difference in place
of a derivative is off by rounding over its step. What is wrong is off by far more than any of these.
"""

from __future__ import annotations

import numpy as np

_EPS, _EPS32 = float(np.finfo(np.float64).eps), float(np.finfo(np.float32).eps)

#: float64: a formula of a few operations; its derivatives and loops; what is conditioned like small matrices' inverses.
FEW, MANY, CONDITIONED = 50 * _EPS, 5_000 * _EPS, 5_000_000 * _EPS
#: The same in float32.
FEW32, MANY32, CONDITIONED32 = 10 * _EPS32, 100 * _EPS32, 2_000 * _EPS32
#: A central difference of float64 values in steps of 1e-6, where values are some thousand times the derivative.
DIFFERENCED = 5_000 * _EPS / 1e-6
