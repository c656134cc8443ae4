"""Checks of whether all values of a parameter or a sample satisfy a constraint."""

from __future__ import annotations

from typing import Any

import numpy as np

from compat._core.dispatch.dispatcher import active
from compat._core.tensor.namespace import torch
from compat._core.tensor.tensor import Tensor, array_of
from compat._core.tensor.torch_function import local
from compat._core.types import dtype as dtypes
from compat._core.types.device import CPU
from compat.distributions.constraints import Constraint
from funcgrad import runtime

#: The maximum number of elements that NumPy checks, in microseconds; recording the operations of a check, and running
#: them in a separate window, takes ten times as long.
SMALL = 1 << 12
#: The dtypes that NumPy compares, adds and divides as the operators do.
_DTYPES = (dtypes.float32, dtypes.float64, dtypes.int64)


def satisfied(constraint: Constraint, value: Any) -> bool:
    """Whether all values, under ``vmap`` of all batch elements, satisfy a constraint.

    Args:
        value: a tensor, or an object with its methods.
    """
    if _is_small(value) and _takes_arrays(constraint, value.dtype is dtypes.int64):
        with np.errstate(all="ignore"):
            found = constraint.check(array_of(value))
            return bool(found if found.ndim == 0 else found.all())
    return bool(torch._is_all_true(constraint.check(value)))


def _is_small(value: Any) -> bool:
    """Whether a value is a small tensor whose operations no mode, trace or transform intercepts."""
    if active.modes or local.modes or value.__class__ is not Tensor or runtime.capturing():
        return False
    layout = value._layout_
    base = layout.base
    return layout.numel <= SMALL and layout.dtype in _DTYPES and base.device is CPU and not base.traced


def _takes_arrays(constraint: Constraint, integers: bool) -> bool:
    """Whether a constraint checks NumPy arrays as it checks tensors."""
    if not getattr(constraint.check, "of_arrays", False):
        return False
    inner = constraint.__dict__.get("base_constraint")
    if inner is not None:
        return _takes_arrays(inner, integers)
    bounds = [getattr(constraint, name) for name in getattr(constraint, "_bounds", ())]
    return all(type(b) is int or (type(b) is float and not integers) for b in bounds)
