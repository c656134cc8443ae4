"""Distances and cosines of vectors."""

from __future__ import annotations

from compat._core.tensor.tensor import Tensor
from compat.nn import functional as F
from compat.nn.modules.module import Module

__all__ = ["CosineSimilarity", "PairwiseDistance"]


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
