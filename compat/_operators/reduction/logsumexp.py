"""``logsumexp``."""

from __future__ import annotations

from typing import Any

from compat._core.operators.op import aten
from compat._core.tensor.tensor import Tensor
from compat._core.types import dtype as dtypes
from compat._operators.reduction.sum_mean_var import axes_of, reduce, restore
from funcgrad import numpy as np
from funcgrad.core import dtypes as fdtypes
from funcgrad.core.tracing import type_of
from funcgrad.numpy.reductions.exponentials import minus_maximum
from funcgrad.primitives import elementwise as e
from funcgrad.primitives import reductions as r
from funcgrad.primitives.shape import reshape


def without_infinity(peak: Any) -> Any:
    """``peak``, and the least number where it is ``-inf``."""
    return np.maximum(peak, float(np.finfo(type_of(peak).dtype).min))


def check_logsumexp(input: Tensor, dim: Any, keepdim: bool = False) -> None:
    """Checks that dimensions to reduce are given.

    Raises:
        RuntimeError: for an empty ``dim`` and a tensor that has dimensions.
    """
    if dim == () and input.dim():
        raise RuntimeError(f"output with shape [] doesn't match the broadcast shape {[1] * input.dim()}")


@aten(
    "logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
    node="LogsumexpBackward0", saves="self result dim keepdim",
    names="torch.logsumexp Tensor.logsumexp special.logsumexp", check=check_logsumexp, out="cast",
)  # fmt: skip
def logsumexp(input, dim, keepdim):
    """``log(sum(exp(input)))`` over dimensions, without overflow; integers are converted to floating-point.

    Example:
        >>> torch.logsumexp(torch.tensor([100.0, 100.0]), 0)
        tensor(100.6931)
    """
    x = input
    if not fdtypes.is_inexact(type_of(x).dtype):
        dtype = dtypes.get_default_dtype().numpy
        assert dtype is not None
        x = np.astype(x, dtype)
    axes = axes_of(x, dim)
    is_complex = fdtypes.is_complex(type_of(x).dtype)
    if 0 in type_of(x).shape:
        return e.log(reduce(r.reduce_sum, e.exp(x), axes, keepdim))
    peak = e.stop_gradient(reduce(r.reduce_max, e.real(x) if is_complex else x, axes, True))
    high = np.astype(e.select(e.is_finite(peak), peak, e.number(0, peak)), type_of(x).dtype)
    shifted = np.subtract(x, high) if is_complex else minus_maximum(x, peak, high)
    total = e.log(reduce(r.reduce_sum, e.exp(shifted), axes, keepdim))
    return e.add(total, reshape(high, shape=type_of(total).shape))


@logsumexp.backward
def logsumexp_backward(ct: Any, input: Any, result: Any, dim: Any) -> Any:
    axes = axes_of(input, dim)
    weight = e.exp(np.conj(np.subtract(input, restore(result, input, axes))))
    return np.multiply(restore(ct, input, axes), weight)
