"""Weight normalization."""

from __future__ import annotations

from compat._core.operators.composite import composite
from compat._core.operators.declaration import Arguments, Gradients
from compat._core.operators.op import aten
from compat._core.operators.opmath import single
from compat._core.tensor.tensor import Tensor
from compat._operators.tensor.attributes import norm_except_dim
from funcgrad import numpy as np
from funcgrad.core.tracing import type_of


@aten(
    "_weight_norm_interface(Tensor v, Tensor g, int dim=0) -> (Tensor, Tensor)",
    node="WeightNormInterfaceBackward0", saves="dim g! result1! v!", names="torch._weight_norm_interface",
    arguments=Arguments(static="dim"), gradients=Gradients(constant=(1,)),
)  # fmt: skip
def weight_norm_interface(v, g, dim):
    wide = single(v)  # for float16 and bfloat16 the weight is rounded once, and the norm is float32
    axes = tuple(d for d in range(type_of(v).ndim) if d != dim)
    norm = np.sqrt(np.sum(np.multiply(wide, wide), axis=axes, keepdims=True))
    return np.astype(np.multiply(wide, np.divide(single(g), norm)), type_of(v).dtype), norm


@composite("_weight_norm(Tensor v, Tensor g, int dim=0) -> Tensor", names="torch._weight_norm")
def weight_norm(v: Tensor, g: Tensor, dim: int = 0) -> Tensor:
    """``v`` scaled so that its norms are ``g``: ``v * (g / norm_except_dim(v, 2, dim))``.

    Source: T. Salimans and D. P. Kingma, "Weight normalization", NeurIPS 2016.

    Example:
        >>> torch._weight_norm(torch.tensor([[3.0, 4.0]]), torch.tensor([[10.0]]))
        tensor([[6., 8.]])
    """
    if dim in (0, v.dim() - 1):
        return weight_norm_interface.function(v, g, dim)[0]
    return v * (g / norm_except_dim(v, 2, dim))
