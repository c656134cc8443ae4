"""Dropout: randomly zeroing elements in training."""

from __future__ import annotations

from compat._core.tensor.tensor import Tensor
from compat.nn import functional as F
from compat.nn.modules.module import Module
from compat.nn.modules.utils import described

__all__ = ["AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout"]


class _DropoutNd(Module):
    """Keeps each element with probability ``1 - p`` in training and does nothing in evaluation."""

    def __init__(self, p: float = 0.5, inplace: bool = False):
        super().__init__()
        if p < 0 or p > 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace

    def extra_repr(self) -> str:
        return described(self, "p", "inplace")


class Dropout(_DropoutNd):
    """In training sets each element to zero with probability ``p`` and divides the others by ``1 - p``.

    Args:
        p: the probability.
        inplace: whether to overwrite the input.

    Raises:
        ValueError: unless ``p`` is between 0 and 1.

    Example:
        >>> torch.nn.Dropout(0.2).eval()(torch.ones(3))
        tensor([1., 1., 1.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout(input, self.p, self.training, self.inplace)


class Dropout1d(_DropoutNd):
    """Dropout of whole channels of (batch, channels, length) or (channels, length).

    Args:
        p: the probability of zero.
        inplace: whether to overwrite the input.

    Example:
        >>> torch.nn.Dropout1d(0.5)(torch.ones(4, 8, 3)).shape
        torch.Size([4, 8, 3])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(_DropoutNd):
    """Dropout of whole channels of (batch, channels, height, width).

    Args:
        p: the probability of zero.
        inplace: whether to overwrite the input.

    Example:
        >>> torch.nn.Dropout2d(0.5)(torch.ones(4, 8, 3, 3)).shape
        torch.Size([4, 8, 3, 3])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(_DropoutNd):
    """Dropout of whole channels of (batch, channels, depth, height, width).

    Args:
        p: the probability of zero.
        inplace: whether to overwrite the input.

    Example:
        >>> torch.nn.Dropout3d(0.5)(torch.ones(4, 8, 3, 3, 3)).shape
        torch.Size([4, 8, 3, 3, 3])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(_DropoutNd):
    """Dropout that keeps mean 0 and variance 1, for use with ``SELU``.

    Source: G. Klambauer et al., "Self-normalizing neural networks", NeurIPS 2017.

    Args:
        p: the probability of being dropped.
        inplace: whether to overwrite the input.

    Example:
        >>> torch.nn.AlphaDropout(0.5).eval()(torch.ones(2))
        tensor([1., 1.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(_DropoutNd):
    """``AlphaDropout`` of whole channels.

    Args:
        p: the probability of being dropped.
        inplace: whether to overwrite the input.

    Example:
        >>> torch.nn.FeatureAlphaDropout(0.5).eval()(torch.ones(1, 2))
        tensor([[1., 1.]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.feature_alpha_dropout(input, self.p, self.training)
