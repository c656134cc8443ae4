"""Embeddings."""

from __future__ import annotations

from typing import Any

from compat._core.tensor.tensor import Tensor
from compat._core.transforms.grad_mode import no_grad
from compat.nn import functional as F
from compat.nn import init
from compat.nn.modules.module import Module
from compat.nn.modules.utils import empty
from compat.nn.parameter import Parameter

__all__ = ["Embedding"]


class Embedding(Module):
    """A table of vectors, looked up by index.

    Args:
        num_embeddings: the number of vectors.
        embedding_dim: the size of a vector.
        padding_idx: the index of a vector that gets no gradient and is initialized to zero.
        max_norm: longer vectors are rescaled to this norm when they are looked up.
        norm_type: the order of that norm.
        scale_grad_by_freq: whether to divide gradients by the number of lookups of a vector.
        sparse: whether the gradient of ``weight`` is a sparse tensor, with the rows that were looked up.

    Attributes:
        weight: of shape (num_embeddings, embedding_dim), at first normally distributed.

    Raises:
        AssertionError: if ``padding_idx`` is out of range.

    Example:
        >>> torch.nn.Embedding(10, 3)(torch.tensor([[1, 2], [4, 5]])).shape
        torch.Size([2, 2, 3])
    """

    weight: Any

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: Any = None,
    ):
        super().__init__()
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise AssertionError("Padding_idx must be within num_embeddings")
        if _weight is not None and list(_weight.shape) != [num_embeddings, embedding_dim]:
            raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = padding_idx if padding_idx is None or padding_idx >= 0 else num_embeddings + padding_idx
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.sparse = sparse
        given = _weight if _weight is not None else empty((num_embeddings, embedding_dim), device, dtype)
        self.weight = Parameter(given, requires_grad=not _freeze)
        if _weight is None:
            self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws the weight again."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx].fill_(0)

    def forward(self, input: Tensor) -> Tensor:
        return F.embedding(
            input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse
        )

    def extra_repr(self) -> str:
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        defaults = {"padding_idx": None, "max_norm": None, "norm_type": 2, "scale_grad_by_freq": False}
        for name, default in defaults.items():
            value = getattr(self, name)
            if value != default:
                text += f", {name}={value}"
        return text + (", sparse=True" if self.sparse else "")

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Embedding:
        """A table that begins with the rows of a matrix; with ``freeze`` they get no gradient.

        Raises:
            AssertionError: unless ``embeddings`` has two dimensions.
        """
        if embeddings.dim() != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        rows, columns = embeddings.shape
        return cls(
            rows,
            columns,
            padding_idx,
            max_norm,
            norm_type,
            scale_grad_by_freq,
            sparse,
            _weight=embeddings,
            _freeze=freeze,
        )
