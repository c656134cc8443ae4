"""Attention with several heads."""

from __future__ import annotations

from typing import Any

from compat._core.tensor.tensor import Tensor
from compat._core.transforms.grad_mode import mode
from compat._operators.nn.multi_head import canonical_mask, none_or_dtype
from compat.nn import functional as F
from compat.nn import init
from compat.nn.modules.linear import NonDynamicallyQuantizableLinear
from compat.nn.modules.module import Module
from compat.nn.modules.utils import empty
from compat.nn.parameter import Parameter

__all__ = ["MultiheadAttention"]


_SEPARATE = ("q_proj_weight", "k_proj_weight", "v_proj_weight")


class MultiheadAttention(Module):
    """Attention with several heads, each on its own projection of the queries, keys and values.

    Args:
        embed_dim: the size of the queries and of the output; each head gets ``embed_dim / num_heads`` of it.
        num_heads: the number of heads.
        dropout: the probability with which a weight is dropped, in training.
        bias: whether the projections add one.
        add_bias_kv: whether to append a trained key and value.
        add_zero_attn: whether to append a key and value of zeros.
        kdim, vdim: the sizes of keys and values, by default ``embed_dim``.
        batch_first: whether the batch is the first dimension of the inputs, not the second.

    Attributes:
        in_proj_weight: of shape (3 * embed_dim, embed_dim); with other sizes of keys or values ``q_proj_weight``,
            ``k_proj_weight`` and ``v_proj_weight`` instead.
        in_proj_bias: of shape (3 * embed_dim,).
        out_proj: the projection of the output.

    Raises:
        ValueError: for sizes that are not positive.
        AssertionError: where ``num_heads`` does not divide ``embed_dim``.

    Example:
        >>> attention = torch.nn.MultiheadAttention(8, 2, batch_first=True)
        >>> x = torch.ones(4, 5, 8)
        >>> output, weights = attention(x, x, x)
        >>> output.shape, weights.shape
        (torch.Size([4, 5, 8]), torch.Size([4, 5, 5]))
    """

    __module__ = "compat.nn.modules.activation"

    in_proj_weight: Any
    in_proj_bias: Any
    bias_k: Any
    bias_v: Any

    def __init__(
        self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True, add_bias_kv: bool = False,
        add_zero_attn: bool = False, kdim: int | None = None, vdim: int | None = None, batch_first: bool = False,
        device: Any = None, dtype: Any = None,
    ):  # fmt: skip
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and "
                f"num_heads={num_heads} instead"
            )
        super().__init__()
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError("embed_dim must be divisible by num_heads")
        self._make_weights_(device, dtype)
        in_proj_bias = Parameter(empty((3 * embed_dim,), device, dtype)) if bias else None
        self.register_parameter("in_proj_bias", in_proj_bias)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, device=device, dtype=dtype)
        if add_bias_kv:
            self.bias_k = Parameter(empty((1, 1, embed_dim), device, dtype))
            self.bias_v = Parameter(empty((1, 1, embed_dim), device, dtype))
        else:
            self.bias_k = self.bias_v = None
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _make_weights_(self, device: Any, dtype: Any) -> None:
        if self._qkv_same_embed_dim:
            self.in_proj_weight = Parameter(empty((3 * self.embed_dim, self.embed_dim), device, dtype))
            for name in _SEPARATE:
                self.register_parameter(name, None)
            return
        for name, n in zip(_SEPARATE, (self.embed_dim, self.kdim, self.vdim)):
            self.register_parameter(name, Parameter(empty((self.embed_dim, n), device, dtype)))
        self.register_parameter("in_proj_weight", None)

    def _reset_parameters(self) -> None:
        for name in ("in_proj_weight",) if self._qkv_same_embed_dim else _SEPARATE:
            init.xavier_uniform_(getattr(self, name))
        if self.in_proj_bias is not None:
            init.constant_(self.in_proj_bias, 0.0)
            init.constant_(self.out_proj.bias, 0.0)
        for bias in (self.bias_k, self.bias_v):
            if bias is not None:
                init.xavier_normal_(bias)

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None = None,
        need_weights: bool = True, attn_mask: Tensor | None = None, average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:  # fmt: skip
        """The attended values and the weights.

        Args:
            query: ``(l, n, e)``; with ``batch_first`` ``(n, l, e)``; without batch ``(l, e)``.
            key, value: ``(s, n, kdim)`` and ``(s, n, vdim)``, likewise.
            key_padding_mask: ``(n, s)``: True, or ``-inf``, for keys to ignore.
            need_weights: whether to return the weights; False is faster.
            attn_mask: ``(l, s)`` or ``(n * num_heads, l, s)``: True, or ``-inf``, for disallowed positions.
            average_attn_weights: whether to average the weights over the heads.
            is_causal: a hint that ``attn_mask`` is the causal one.

        Returns:
            The output, of the size of ``query``, and the weights, ``(n, l, s)`` or ``(n, num_heads, l, s)``, or None.
        """
        padding = canonical_mask(
            key_padding_mask, "key_padding_mask", none_or_dtype(attn_mask), "attn_mask", query.dtype
        )
        mask = canonical_mask(attn_mask, "attn_mask", None, "", query.dtype)
        fused = self._is_fused_(query, key, value)
        swapped = self.batch_first and query.dim() == 3
        if swapped:
            query, key, value = _batch_and_length_swapped(query, key, value)
        separate = {} if self._qkv_same_embed_dim else {name: getattr(self, name) for name in _SEPARATE}
        output, weights = F.multi_head_attention_forward(
            query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias, self.bias_k,
            self.bias_v, self.add_zero_attn, self.dropout, self.out_proj.weight, self.out_proj.bias,
            training=self.training, key_padding_mask=padding, need_weights=need_weights, attn_mask=mask,
            use_separate_proj_weight=not self._qkv_same_embed_dim, average_attn_weights=average_attn_weights,
            is_causal=is_causal, **separate,
        )  # fmt: skip
        output = output.transpose(1, 0) if swapped else output
        return output.contiguous() if fused else output, weights

    def _is_fused_(self, query: Tensor, key: Tensor, value: Tensor) -> bool:
        """Whether PyTorch runs its fused operator, whose result is contiguous."""
        plain = self._qkv_same_embed_dim and self.bias_k is None and self.bias_v is None and not self.add_zero_attn
        self_attention = query.dim() == 3 and query is key and key is value
        if self.training or not (plain and self_attention and self.batch_first) or self.num_heads % 2:
            return False
        tensors = (query, self.in_proj_weight, self.in_proj_bias, self.out_proj.weight, self.out_proj.bias)
        return self.in_proj_bias is not None and not is_recorded(tensors)


def is_recorded(tensors: Any) -> bool:
    """Whether operations on these tensors are recorded in a graph."""
    return bool(mode.grad) and any(t is not None and t.requires_grad for t in tensors)


def _batch_and_length_swapped(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, ...]:
    """Transposes batch and length; a tensor that occurs twice remains one."""
    q = query.transpose(1, 0)
    if key is value:
        k = q if query is key else key.transpose(1, 0)
        return q, k, k
    return q, key.transpose(1, 0), value.transpose(1, 0)
