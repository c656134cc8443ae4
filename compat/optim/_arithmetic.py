"""Array functions for the update rules of optimizers."""

from __future__ import annotations

from typing import Any

from compat._operators.pointwise.declare import as_dtype_of
from funcgrad import numpy as np
from funcgrad.core.dtypes import float64


def wide(step: Any) -> Any:
    """A step count, or a learning rate, in float64."""
    return np.astype(step, float64)


def regularized(grad: Any, p: Any, weight_decay: Any, flags: Any) -> Any:
    """The effective gradient: negated to maximize, plus the weight decay.

    Args:
        flags: has ``maximize``, and ``decay``: whether ``weight_decay`` is not zero.
    """
    if flags.maximize:
        grad = -grad
    return grad + as_dtype_of(weight_decay, p) * p if flags.decay else grad
