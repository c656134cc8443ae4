"""``torch.nn.attention.bias``: causal masks that need not be materialized."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum, auto
from typing import Any

from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor
from compat._core.types import dtype as dtypes
from compat.nn import functional as F

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(IntEnum):
    """The corner that the diagonal of a causal mask goes through, for unequal numbers of queries and keys."""

    UPPER_LEFT = auto()
    LOWER_RIGHT = auto()


class CausalBias(Tensor):
    """A causal mask for ``scaled_dot_product_attention``.

    Args:
        variant: the corner that the diagonal goes through.
        seq_len_q, seq_len_kv: the numbers of queries and keys.

    Raises:
        ValueError: when used together with ``is_causal``.

    Example:
        >>> causal_lower_right(2, 3)
        tensor([[ True,  True, False],
                [ True,  True,  True]])
    """

    def __init__(self, variant: CausalVariant, seq_len_q: int, seq_len_kv: int):
        self.variant = variant
        self.seq_len_q = seq_len_q
        self.seq_len_kv = seq_len_kv

    def _materialize(self, device: Any = None) -> Tensor:
        shift = self.seq_len_kv - self.seq_len_q if self.variant == CausalVariant.LOWER_RIGHT else 0
        torch = names_of("torch")
        ones = torch["ones"](self.seq_len_q, self.seq_len_kv, device=device, dtype=dtypes.bool_)
        return torch["tril"](ones, diagonal=shift)

    @staticmethod
    def _dispatch(
        query: Tensor, key: Tensor, value: Tensor, attn_mask: CausalBias, dropout_p: float = 0.0,
        is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False,
    ) -> Tensor:  # fmt: skip
        if is_causal:
            raise ValueError("CausalBias should not be used with causal=True")
        upper = attn_mask.variant == CausalVariant.UPPER_LEFT or attn_mask.seq_len_q == attn_mask.seq_len_kv
        mask = None if upper else attn_mask._materialize(query.device)
        return F.scaled_dot_product_attention(
            query, key, value, mask, dropout_p, is_causal=upper, scale=scale, enable_gqa=enable_gqa
        )

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: Sequence[type], args: Any = (), kwargs: Any = None
    ) -> Any:
        if func == F.scaled_dot_product_attention:
            return cls._dispatch(*args, **(kwargs or {}))
        return super().__torch_function__(func, types, args, kwargs or {})  # type: ignore[misc]

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return repr(self._materialize())


def causal_upper_left(*size: int) -> CausalBias:
    """The causal mask whose diagonal begins at the first query and the first key.

    Raises:
        AssertionError: unless there are two sizes, those of queries and keys.
    """
    assert len(size) == 2, "causal_upper_left only supports 2D tensors"
    return CausalBias(CausalVariant.UPPER_LEFT, *size)


def causal_lower_right(*size: int) -> CausalBias:
    """The causal mask whose diagonal ends at the last query and the last key.

    Raises:
        AssertionError: unless there are two sizes, those of queries and keys.
    """
    assert len(size) == 2, "causal_lower_right only supports 2D tensors"
    return CausalBias(CausalVariant.LOWER_RIGHT, *size)
