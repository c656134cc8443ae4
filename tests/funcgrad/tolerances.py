"""Tolerances of comparisons, by the cause of differences.

Two ways to compute a number round at different places. The difference depends on the dtype, on the number of successive
roundings, and on the condition number, by which the computation amplifies them. A finite difference has an error of the
rounding divided by its step. A wrong result differs by far more than any of these.
"""

from __future__ import annotations

import numpy as np

_EPS, _EPS32 = float(np.finfo(np.float64).eps), float(np.finfo(np.float32).eps)

#: float64: a formula of a few operations; its derivatives and loops; computations as ill-conditioned as small inverses.
FEW, MANY, CONDITIONED = 50 * _EPS, 5_000 * _EPS, 5_000_000 * _EPS
#: The same in float32.
FEW32, MANY32, CONDITIONED32 = 10 * _EPS32, 100 * _EPS32, 2_000 * _EPS32
#: A central difference of float64 values with steps of 1e-6, where values are some thousand times the derivative.
DIFFERENCED = 5_000 * _EPS / 1e-6
