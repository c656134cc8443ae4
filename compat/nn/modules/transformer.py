"""Transformers: stacks of attention and feed-forward layers.

Source: A. Vaswani et al., "Attention is all you need", NeurIPS 2017; with ``norm_first``, R. Xiong et al., "On layer
normalization in the transformer architecture", ICML 2020.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

from compat._core.tensor.tensor import Tensor
from compat._core.types.errors import warn
from compat._operators.create.factories import full
from compat._operators.nn.multi_head import canonical_mask, none_or_dtype
from compat.nn import functional as F
from compat.nn import init
from compat.nn.modules._multihead_attention import MultiheadAttention, is_recorded
from compat.nn.modules.activation import GELU, ReLU
from compat.nn.modules.container import ModuleList
from compat.nn.modules.dropout import Dropout
from compat.nn.modules.linear import Linear
from compat.nn.modules.module import Module
from compat.nn.modules.normalization import LayerNorm
from compat.nn.modules.utils import requalified

__all__ = [
    "Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder", "TransformerEncoderLayer",
]  # fmt: skip

# ---------------------------------------------------------------- masks


def _causal_mask(size: int, device: Any = None, dtype: Any = None) -> Tensor:
    """``-inf`` above the diagonal, zero elsewhere."""
    return full((size, size), -math.inf, dtype=dtype, device=device).triu(1)


def _length(x: Tensor, batch_first: bool) -> int:
    return x.shape[1 if x.dim() == 3 and batch_first else 0]


def _is_causal(mask: Any, hint: bool | None, size: int) -> bool:
    """Whether a mask is causal: by the hint, or, without one, by its elements."""
    if hint is not None or mask is None:
        return hint is True
    causal = _causal_mask(size, dtype=mask.dtype)
    return mask.shape == causal.shape and bool((mask == causal).all())


# ---------------------------------------------------------------- layers


def _get_activation_fn(given: str | Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    if not isinstance(given, str):
        return given
    if given not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {given}")
    return getattr(F, given)


@requalified("__init__")
class _Layer(Module):
    """Base of encoder and decoder layers: self-attention and the feed-forward network.

    Each attention, and the feed-forward network, has a separate normalization and dropout, numbered from 1.

    Attributes:
        _attentions_: the names of its attentions.
    """

    self_attn: Any
    activation: Callable[[Tensor], Tensor]
    _attentions_: tuple[str, ...]

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1, activation: Any = F.relu,
        layer_norm_eps: float = 1e-5, batch_first: bool = False, norm_first: bool = False, bias: bool = True,
        device: Any = None, dtype: Any = None,
    ):  # fmt: skip
        common: dict[str, Any] = dict(bias=bias, device=device, dtype=dtype)
        super().__init__()
        for name in self._attentions_:
            setattr(self, name, MultiheadAttention(d_model, nhead, dropout=dropout, batch_first=batch_first, **common))
        self.linear1 = Linear(d_model, dim_feedforward, **common)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, **common)
        self.norm_first = norm_first
        numbers = range(1, len(self._attentions_) + 2)
        for i in numbers:
            setattr(self, f"norm{i}", LayerNorm(d_model, eps=layer_norm_eps, **common))
        for i in numbers:
            setattr(self, f"dropout{i}", Dropout(dropout))
        self.activation = _get_activation_fn(activation)

    def _attended_(
        self, attention: Any, drop: Any, x: Tensor, memory: Tensor, mask: Any, padding: Any, is_causal: bool
    ) -> Tensor:
        output, _ = attention(
            x, memory, memory, attn_mask=mask, key_padding_mask=padding, is_causal=is_causal, need_weights=False
        )
        return drop(output)

    def _sa_block(self, x: Tensor, mask: Tensor | None, padding: Tensor | None, is_causal: bool = False) -> Tensor:
        return self._attended_(self.self_attn, self.dropout1, x, x, mask, padding, is_causal)

    def _ff_block(self, x: Tensor) -> Tensor:
        drop = getattr(self, f"dropout{len(self._attentions_) + 1}")
        return drop(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerEncoderLayer(_Layer):
    """Self-attention, then a feed-forward network; each with a residual connection.

    Args:
        d_model: the size of the input and the output.
        nhead: the number of heads.
        dim_feedforward: the size between the two linear maps.
        dropout: the probability of dropping, in training.
        activation: between the linear maps: ``"relu"``, ``"gelu"`` or a function.
        layer_norm_eps: the ``eps`` of the normalizations.
        batch_first: whether the batch is the first dimension, not the second.
        norm_first: whether to normalize before the attention and the network, not after the sums.
        bias: whether linear maps and normalizations have a bias.

    Example:
        >>> layer = torch.nn.TransformerEncoderLayer(8, 2, dim_feedforward=16)
        >>> layer(torch.ones(5, 3, 8)).shape
        torch.Size([5, 3, 8])
    """

    _attentions_ = ("self_attn",)

    @property
    def activation_relu_or_gelu(self) -> int:
        """1 for ReLU, 2 for GELU, 0 for any other activation."""
        if self.activation == F.relu or isinstance(self.activation, ReLU):
            return 1
        return 2 if self.activation == F.gelu or isinstance(self.activation, GELU) else 0

    def __getstate__(self) -> dict[str, Any]:
        # PyTorch's is an instance attribute, which it expects in a pickled layer.
        return {**self.__dict__, "activation_relu_or_gelu": self.activation_relu_or_gelu}

    def forward(
        self, src: Tensor, src_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:  # fmt: skip
        """The output, of the size of ``src``; masks as for ``MultiheadAttention``."""
        padding = canonical_mask(
            src_key_padding_mask, "src_key_padding_mask", none_or_dtype(src_mask), "src_mask", src.dtype
        )
        mask = canonical_mask(src_mask, "src_mask", None, "", src.dtype)
        if self.norm_first:
            x = src + self._sa_block(self.norm1(src), mask, padding, is_causal)
            return x + self._ff_block(self.norm2(x))
        x = self.norm1(src + self._sa_block(src, mask, padding, is_causal))
        return self.norm2(x + self._ff_block(x))

    def _tensors_(self) -> list[Any]:
        """The tensors that PyTorch's fused operator for this layer takes."""
        attention = self.self_attn
        layers = (self.norm1, self.norm2, self.linear1, self.linear2)
        return [
            attention.in_proj_weight, attention.in_proj_bias, attention.out_proj.weight, attention.out_proj.bias,
            *[p for layer in layers for p in (layer.weight, layer.bias)],
        ]  # fmt: skip


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to the memory, then a feed-forward network; each with a residual connection.

    Args:
        d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias: as for
            ``TransformerEncoderLayer``.

    Example:
        >>> layer = torch.nn.TransformerDecoderLayer(8, 2, dim_feedforward=16)
        >>> layer(torch.ones(5, 3, 8), torch.ones(7, 3, 8)).shape
        torch.Size([5, 3, 8])
    """

    _attentions_ = ("self_attn", "multihead_attn")

    def forward(
        self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False, memory_is_causal: bool = False,
    ) -> Tensor:  # fmt: skip
        """The output, of the size of ``tgt``; masks as for ``MultiheadAttention``."""
        of_self = (tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        of_memory = (memory_mask, memory_key_padding_mask, memory_is_causal)
        if self.norm_first:
            x = tgt + self._sa_block(self.norm1(tgt), *of_self)
            x = x + self._mha_block(self.norm2(x), memory, *of_memory)
            return x + self._ff_block(self.norm3(x))
        x = self.norm1(tgt + self._sa_block(tgt, *of_self))
        x = self.norm2(x + self._mha_block(x, memory, *of_memory))
        return self.norm3(x + self._ff_block(x))

    def _mha_block(
        self, x: Tensor, memory: Tensor, mask: Tensor | None, padding: Tensor | None, is_causal: bool = False
    ) -> Tensor:
        return self._attended_(self.multihead_attn, self.dropout2, x, memory, mask, padding, is_causal)


# ---------------------------------------------------------------- stacks


def _copies(layer: Module, count: int) -> ModuleList:
    return ModuleList([copy.deepcopy(layer) for _ in range(count)])


def _no_padding_skipped(layer: Any) -> str:
    """The reason why padding is not skipped with such layers; empty if PyTorch skips it."""
    if not isinstance(layer, TransformerEncoderLayer):
        return "encoder_layer was not TransformerEncoderLayer"
    attention = layer.self_attn
    reasons = (
        (layer.norm_first, "norm_first was True"),
        (
            not attention.batch_first,
            "self_attn.batch_first was not True(use batch_first for better inference performance)",
        ),
        (not attention._qkv_same_embed_dim, "self_attn._qkv_same_embed_dim was not True"),
        (attention.in_proj_bias is None, "self_attn was passed bias=False"),
        (not layer.activation_relu_or_gelu, "activation_relu_or_gelu was not True"),
        (layer.norm1.eps != layer.norm2.eps, "norm1.eps was not equal to encoder_layer.norm2.eps"),
        (attention.num_heads % 2 == 1, "self_attn.num_heads is odd"),
    )
    return next((f"encoder_layer.{why}" for holds, why in reasons if holds), "")


class TransformerEncoder(Module):
    """A stack of encoder layers.

    Args:
        encoder_layer: the layer to copy.
        num_layers: the number of layers.
        norm: a module applied to the output.
        enable_nested_tensor: whether, in inference, the output is zero at the padding.
        mask_check: whether to do so only if the padding of every sequence is at its end.

    Example:
        >>> layer = torch.nn.TransformerEncoderLayer(8, 2, dim_feedforward=16, batch_first=True)
        >>> torch.nn.TransformerEncoder(layer, 2)(torch.ones(3, 5, 8)).shape
        torch.Size([3, 5, 8])
    """

    def __init__(
        self, encoder_layer: Any, num_layers: int, norm: Module | None = None, enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ):  # fmt: skip
        super().__init__()
        self.layers = _copies(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        self.use_nested_tensor = enable_nested_tensor
        self.mask_check = mask_check
        why = _no_padding_skipped(encoder_layer)
        if enable_nested_tensor and why:
            warn(f"enable_nested_tensor is True, but self.use_nested_tensor is False because {why}")
            self.use_nested_tensor = False

    def forward(
        self, src: Tensor, mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:  # fmt: skip
        """The output, of the size of ``src``; masks as for ``MultiheadAttention``."""
        padding = canonical_mask(src_key_padding_mask, "src_key_padding_mask", none_or_dtype(mask), "mask", src.dtype)
        mask = canonical_mask(mask, "mask", None, "", src.dtype)
        skipped = self._skipped_(src, mask, padding)
        causal = _is_causal(mask, is_causal, _length(src, self.layers[0].self_attn.batch_first))
        output = src
        for layer in self.layers:
            output = layer(output, src_mask=mask, is_causal=causal, src_key_padding_mask=padding)
        if skipped is not None:
            output = output.masked_fill(skipped.unsqueeze(-1), 0.0)
        return output if self.norm is None else self.norm(output)

    def _skipped_(self, src: Tensor, mask: Any, padding: Any) -> Any:
        """The padding that PyTorch skips, where the output is zero."""
        first = self.layers[0]
        if not self.use_nested_tensor or first.training or src.dim() != 3 or padding is None or mask is not None:
            return None
        if is_recorded([src, *first._tensors_()]):
            return None
        hidden = padding != 0
        if self.mask_check:  # computed as a tensor, so that it can be traced
            hidden = hidden & ~(hidden[:, :-1] & ~hidden[:, 1:]).any()
        return hidden


class TransformerDecoder(Module):
    """A stack of decoder layers, all of which attend to the same memory.

    Args:
        decoder_layer: the layer to copy.
        num_layers: the number of layers.
        norm: a module applied to the output.

    Example:
        >>> layer = torch.nn.TransformerDecoderLayer(8, 2, dim_feedforward=16)
        >>> torch.nn.TransformerDecoder(layer, 2)(torch.ones(5, 3, 8), torch.ones(7, 3, 8)).shape
        torch.Size([5, 3, 8])
    """

    def __init__(self, decoder_layer: Any, num_layers: int, norm: Module | None = None):
        super().__init__()
        self.layers = _copies(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None, memory_is_causal: bool = False,
    ) -> Tensor:  # fmt: skip
        """The output, of the size of ``tgt``; masks as for ``MultiheadAttention``."""
        causal = _is_causal(tgt_mask, tgt_is_causal, _length(tgt, self.layers[0].self_attn.batch_first))
        output = tgt
        for layer in self.layers:
            output = layer(
                output, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=causal,
                memory_is_causal=memory_is_causal,
            )  # fmt: skip
        return output if self.norm is None else self.norm(output)


class Transformer(Module):
    """An encoder and a decoder that attends to its output.

    Args:
        d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias: as for
            ``TransformerEncoderLayer``.
        num_encoder_layers, num_decoder_layers: the numbers of layers.
        custom_encoder, custom_decoder: modules to use instead.

    Example:
        >>> model = torch.nn.Transformer(8, 2, 1, 1, dim_feedforward=16, batch_first=True)
        >>> model(torch.ones(3, 7, 8), torch.ones(3, 5, 8)).shape
        torch.Size([3, 5, 8])
    """

    def __init__(
        self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6, num_decoder_layers: int = 6,
        dim_feedforward: int = 2048, dropout: float = 0.1, activation: Any = F.relu,
        custom_encoder: Any = None, custom_decoder: Any = None, layer_norm_eps: float = 1e-5,
        batch_first: bool = False, norm_first: bool = False, bias: bool = True, device: Any = None, dtype: Any = None,
    ):  # fmt: skip
        super().__init__()
        of_layer = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias)
        factory: dict[str, Any] = dict(device=device, dtype=dtype)

        def stack(kind: Any, layer: Any, count: int) -> Any:
            norm = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **factory)
            return kind(layer(*of_layer, **factory), count, norm)

        if custom_encoder is None:
            custom_encoder = stack(TransformerEncoder, TransformerEncoderLayer, num_encoder_layers)
        self.encoder = custom_encoder
        if custom_decoder is None:
            custom_decoder = stack(TransformerDecoder, TransformerDecoderLayer, num_decoder_layers)
        self.decoder = custom_decoder
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def forward(
        self, src: Tensor, tgt: Tensor, src_mask: Tensor | None = None, tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None, tgt_is_causal: bool | None = None, memory_is_causal: bool = False,
    ) -> Tensor:  # fmt: skip
        """The decoder's output, of the size of ``tgt``; masks as for ``MultiheadAttention``.

        Raises:
            RuntimeError: if the batches of ``src`` and ``tgt`` differ, or a size is not ``d_model``.
        """
        batch = 0 if self.batch_first else 1
        if src.dim() == 3 and src.shape[batch] != tgt.shape[batch]:
            raise RuntimeError("the batch number of src and tgt must be equal")
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        return self.decoder(
            tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )  # fmt: skip

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """The causal mask: ``-inf`` above the diagonal.

        Example:
            >>> Transformer.generate_square_subsequent_mask(2)
            tensor([[0., -inf],
                    [0., 0.]])
        """
        return _causal_mask(sz, device, dtype)

    def _reset_parameters(self) -> None:
        for p in self.parameters():
            if p.dim() > 1:
                init.xavier_uniform_(p)
