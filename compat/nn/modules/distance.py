"""Distances of vectors, and bilinear maps."""

from __future__ import annotations

import math
from typing import Any

from compat._core.tensor.tensor import Tensor
from compat.nn import functional as F
from compat.nn import init
from compat.nn.modules.module import Module
from compat.nn.modules.utils import empty
from compat.nn.parameter import Parameter

__all__ = ["Bilinear", "CosineSimilarity", "PairwiseDistance"]


class PairwiseDistance(Module):
    """The norms of the differences of vectors.

    Args:
        p: the order of the norm.
        eps: added to the differences, so that none is zero.
        keepdim: whether to keep the last dimension with size 1.

    Example:
        >>> torch.nn.PairwiseDistance()(torch.zeros(1, 2), torch.tensor([[3.0, 4.0]]))
        tensor([5.0000])
    """

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False):
        super().__init__()
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


class CosineSimilarity(Module):
    """The cosine of the angle between vectors.

    Args:
        dim: the dimension of the vectors.
        eps: the lower bound of the norms.

    Example:
        >>> torch.nn.CosineSimilarity(dim=0)(torch.tensor([1.0, 0.0]), torch.tensor([1.0, 1.0]))
        tensor(0.7071)
    """

    def __init__(self, dim: int = 1, eps: float = 1e-8):
        super().__init__()
        self.dim = dim
        self.eps = eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.cosine_similarity(x1, x2, self.dim, self.eps)


class Bilinear(Module):
    """``y[k] = x1 @ weight[k] @ x2 + bias[k]`` over the last dimension.

    Args:
        in1_features, in2_features: the sizes of the inputs.
        out_features: the size of the output.
        bias: whether to add a bias.

    Attributes:
        weight: of shape (out_features, in1_features, in2_features), at first uniform within ``1 / sqrt(in1_features)``.
        bias: of shape (out_features,), likewise.

    Raises:
        ValueError: unless ``in1_features`` is positive.

    Example:
        >>> torch.nn.Bilinear(2, 3, 4)(torch.ones(5, 2), torch.ones(5, 3)).shape
        torch.Size([5, 4])
    """

    __module__ = "compat.nn.modules.linear"

    weight: Any
    bias: Any

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ):
        super().__init__()
        if in1_features <= 0:
            raise ValueError(f"in1_features must be > 0, but got {in1_features}")
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        self.weight = Parameter(empty((out_features, in1_features, in2_features), device, dtype))
        self.register_parameter("bias", Parameter(empty((out_features,), device, dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws the parameters again."""
        bound = 1 / math.sqrt(self.weight.shape[1])
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )
