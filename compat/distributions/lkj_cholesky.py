"""The LKJ distribution of correlation matrices."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from compat._core.tensor.namespace import torch
from compat.distributions import constraints
from compat.distributions.beta import Beta
from compat.distributions.distribution import Distribution
from compat.distributions.utils import broadcast_all

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """The Cholesky factor of a correlation matrix of density proportional to ``det(matrix) ** (concentration - 1)``.

    Drawn by the onion method (D. Lewandowski et al., "Generating random correlation matrices based on vines and
    extended onion method", 2009).

    Args:
        dim: the number of variables.
        concentration: 1 gives a uniform distribution, larger values are closer to the identity.

    Raises:
        ValueError: for a ``dim`` below two.

    Example:
        >>> LKJCholesky(3, 0.5).sample().shape
        torch.Size([3, 3])
    """

    arg_constraints: ClassVar[Any] = {"concentration": constraints.positive}
    support = constraints.corr_cholesky
    _expands_ = ("concentration", "_beta")
    _keeps_ = ("dim",)

    def __init__(self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None):
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        marginal = self.concentration + 0.5 * (dim - 2)
        row = torch.arange(dim - 1, dtype=self.concentration.dtype, device=self.concentration.device)
        row = torch.cat([row.new_zeros((1,)), row])
        self._beta = Beta(row + 0.5, marginal.unsqueeze(-1) - 0.5 * row)
        super().__init__(self.concentration.size(), (dim, dim), validate_args)

    def sample(self, sample_shape: Any = ()) -> Any:
        squared = self._beta.sample(sample_shape).unsqueeze(-1)
        shape = self._extended_shape(sample_shape)
        normal = torch.randn(shape, dtype=squared.dtype, device=squared.device).tril(-1)
        direction = normal / normal.norm(dim=-1, keepdim=True)
        direction[..., 0, :].fill_(0.0)
        rows = torch.sqrt(squared) * direction
        rest = torch.clamp(1 - torch.sum(rows**2, dim=-1), min=torch.finfo(rows.dtype).tiny).sqrt()
        return rows + torch.diag_embed(rest)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        n = self.dim - 1
        order = torch.arange(2, self.dim + 1, device=self.concentration.device)
        order = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - order
        found = torch.sum(order * value.diagonal(dim1=-1, dim2=-2)[..., 1:].log(), dim=-1)
        alpha = self.concentration + 0.5 * n
        scale = 0.5 * n * math.log(math.pi) + torch.mvlgamma(alpha - 0.5, n) - torch.lgamma(alpha) * n
        return found - scale
