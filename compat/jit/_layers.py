"""Operators of neural networks whose schemas have other arguments than the public functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from compat import ops
from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor
from compat.nn import functional as F
from compat.nn.utils.rnn import pad_sequence

__all__ = ["LAYERS"]

_torch = names_of("torch")


def _convolution(
    x: Tensor, weight: Tensor, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool,
    output_padding: Any, groups: int, *rest: Any,
) -> Any:  # fmt: skip
    place = (x, weight, bias, stride, padding, dilation, transposed, output_padding, groups)
    return ops.aten.convolution.default(*place)


def _convolution_mode(x: Tensor, weight: Tensor, *rest: Any) -> Any:
    return (F.conv1d, F.conv2d, F.conv3d)[weight.dim() - 3](x, weight, *rest)


def _pool(name: str, indices: bool = False) -> Callable[..., Any]:
    function, more = getattr(F, name), {"return_indices": True} if indices else {}
    return lambda x, size, stride=(), *rest: function(x, size, stride or None, *rest, **more)


# ---------------------------------------------------------------- sizes


def _upsampled(mode: str, antialias: bool = False) -> Callable[..., Any]:
    """``upsample_...``: sizes, whether corners are aligned (of the linear and cubic ones), factors."""

    def call(x: Tensor, size: Any, *rest: Any) -> Any:
        corners = None
        if not mode.startswith("nearest"):
            corners, *rest = rest  # type: ignore[assignment]
        factors = [
            f for given in rest if given is not None for f in (given if isinstance(given, (list, tuple)) else [given])
        ]
        if len(factors) == x.dim() - 2:
            size = None
        return F.interpolate(x, size or None, None if size else factors, mode, corners, antialias=antialias)

    return call


_UPSAMPLING = {
    "upsample_nearest1d": _upsampled("nearest"), "upsample_nearest2d": _upsampled("nearest"),
    "upsample_nearest3d": _upsampled("nearest"), "_upsample_nearest_exact1d": _upsampled("nearest-exact"),
    "_upsample_nearest_exact2d": _upsampled("nearest-exact"), "_upsample_nearest_exact3d": _upsampled("nearest-exact"),
    "upsample_linear1d": _upsampled("linear"), "upsample_bilinear2d": _upsampled("bilinear"),
    "upsample_bicubic2d": _upsampled("bicubic"), "upsample_trilinear3d": _upsampled("trilinear"),
    "_upsample_bilinear2d_aa": _upsampled("bilinear", True), "_upsample_bicubic2d_aa": _upsampled("bicubic", True),
}  # fmt: skip


# ---------------------------------------------------------------- losses

#: The arguments of losses, in the schema's order, in which the reduction is a number.
_LOSSES = {
    "mse_loss": "input target reduction", "l1_loss": "input target reduction",
    **dict.fromkeys(("nll_loss", "nll_loss2d", "nll_loss_nd"), "input target weight reduction ignore_index"),
    "cross_entropy_loss": "input target weight reduction ignore_index label_smoothing",
    "smooth_l1_loss": "input target reduction beta", "huber_loss": "input target reduction delta",
    "binary_cross_entropy": "input target weight reduction",
    "binary_cross_entropy_with_logits": "input target weight pos_weight reduction",
    "kl_div": "input target reduction log_target", "hinge_embedding_loss": "input target margin reduction",
    "margin_ranking_loss": "input1 input2 target margin reduction", "soft_margin_loss": "input target reduction",
    "cosine_embedding_loss": "input1 input2 target margin reduction",
    "triplet_margin_loss": "anchor positive negative margin p eps swap reduction",
    "multi_margin_loss": "input target p margin weight reduction", "multilabel_margin_loss": "input target reduction",
    "poisson_nll_loss": "input target log_input full eps reduction",
    "ctc_loss": "log_probs targets input_lengths target_lengths blank reduction zero_infinity",
}  # fmt: skip
_PUBLIC = {"nll_loss2d": "nll_loss", "nll_loss_nd": "nll_loss", "cross_entropy_loss": "cross_entropy"}


def _loss(name: str) -> Callable[..., Any]:
    function, order = getattr(F, _PUBLIC.get(name, name)), _LOSSES[name].split()

    def call(*args: Any, **kwargs: Any) -> Any:
        named = dict(zip(order, args)) | kwargs
        if "reduction" in named:
            named["reduction"] = ("none", "mean", "sum")[named["reduction"]]
        return function(**named)

    return call


# ---------------------------------------------------------------- embeddings


def _embedding_bag(
    weight: Tensor, indices: Tensor, offsets: Tensor, scale: bool = False, mode: int = 0, sparse: bool = False,
    weights: Any = None, last: bool = False, padding: int | None = None,
) -> Any:  # fmt: skip
    return _torch["embedding_bag"](
        weight, indices, offsets, scale, mode, sparse, weights, last, -1 if padding is None else padding
    )


def _renormed(weight: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> Tensor:
    F.embedding(indices, weight.detach(), None, max_norm, norm_type)
    return weight


# ---------------------------------------------------------------- attention


def _attention(
    query: Tensor, key: Tensor, value: Tensor, embed_dim: int, heads: int, in_weight: Tensor, in_bias: Tensor,
    out_weight: Tensor, out_bias: Tensor, mask: Any = None, need_weights: bool = True, average: bool = True,
    mask_type: int | None = None,
) -> tuple[Tensor, Any]:  # fmt: skip
    """Multi-head attention of a batch of sequences; the mask excludes pairs of positions, or elements of sequences."""
    projected = [
        F.linear(x, w, b).unflatten(-1, (heads, -1)).transpose(1, 2)
        for x, w, b in zip((query, key, value), in_weight.chunk(3), in_bias.chunk(3))
    ]
    q, k, v = projected
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is not None:
        left_out = mask[:, None, None, :] if mask_type == 1 else mask
        scores = scores.masked_fill(left_out, -math.inf) if str(mask.dtype) == "torch.bool" else scores + left_out
    weights = F.softmax(scores, -1)
    out = F.linear((weights @ v).transpose(1, 2).flatten(-2), out_weight, out_bias)
    return out, (weights.mean(1) if average else weights) if need_weights else None


def _encoder_layer(
    x: Tensor, embed_dim: int, heads: int, in_weight: Tensor, in_bias: Tensor, out_weight: Tensor, out_bias: Tensor,
    use_gelu: bool, norm_first: bool, eps: float, weight1: Tensor, bias1: Tensor, weight2: Tensor, bias2: Tensor,
    up: Tensor, up_bias: Tensor, down: Tensor, down_bias: Tensor, mask: Any = None, mask_type: int | None = None,
) -> Tensor:  # fmt: skip
    """A layer of a transformer's encoder, in evaluation mode."""

    def attended(y: Tensor) -> Tensor:
        projections = (embed_dim, heads, in_weight, in_bias, out_weight, out_bias)
        return _attention(y, y, y, *projections, mask, False, mask_type=mask_type)[0]

    def fed(y: Tensor) -> Tensor:
        y = F.linear(y, up, up_bias)
        return F.linear(F.gelu(y) if use_gelu else F.relu(y), down, down_bias)

    first, second = (((embed_dim,), weight, bias, eps) for weight, bias in ((weight1, bias1), (weight2, bias2)))
    if norm_first:
        x = x + attended(F.layer_norm(x, *first))
        return x + fed(F.layer_norm(x, *second))
    x = F.layer_norm(x + attended(x), *first)
    return F.layer_norm(x + fed(x), *second)


def _stft(x: Tensor, n_fft: int, hop: Any = None, win: Any = None, window: Any = None, *rest: Any) -> Any:
    """``stft``: the arguments ``center`` and ``pad_mode`` may be absent; then nothing is padded."""
    center, pad_mode = False, "reflect"
    if len(rest) > 1 and isinstance(rest[1], str):
        center, pad_mode, *rest = rest  # type: ignore[assignment]
    names = ("normalized", "onesided", "return_complex", "align_to_window")
    return _torch["stft"](x, n_fft, hop, win, window, center, pad_mode, **dict(zip(names, rest)))


#: The operators by name.
LAYERS: dict[str, Callable[..., Any]] = {
    "_convolution": _convolution, "_convolution_mode": _convolution_mode,
    **{f"{kind}_pool{n}d": _pool(f"{kind}_pool{n}d") for kind in ("max", "avg") for n in (1, 2, 3)},
    "max_pool2d_with_indices": _pool("max_pool2d", indices=True),
    "max_pool3d_with_indices": _pool("max_pool3d", indices=True),
    "adaptive_max_pool2d": lambda x, size: F.adaptive_max_pool2d(x, size, return_indices=True),
    "adaptive_max_pool3d": lambda x, size: F.adaptive_max_pool3d(x, size, return_indices=True),
    "batch_norm": lambda x, w, b, m, v, train, momentum, eps, cudnn: F.batch_norm(x, m, v, w, b, train, momentum, eps),
    "instance_norm": lambda x, w, b, m, v, stats, momentum, eps, cudnn:
        F.instance_norm(x, m, v, w, b, stats, momentum, eps),
    "layer_norm": lambda x, shape, w=None, b=None, eps=1e-5, cudnn=True: F.layer_norm(x, shape, w, b, eps),
    "group_norm": lambda x, groups, w=None, b=None, eps=1e-5, cudnn=True: F.group_norm(x, groups, w, b, eps),
    "dropout_": lambda x, p, train: F.dropout(x, p, train, inplace=True), "feature_dropout": F.dropout2d,
    "embedding": lambda weight, index, padding=-1, scale=False, sparse=False: F.embedding(index, weight),
    "embedding_renorm_": _renormed, "embedding_bag": _embedding_bag,
    "gelu": lambda x, approximate="none": F.gelu(x, approximate=approximate),
    "silu_": lambda x: F.silu(x, inplace=True), "hardswish_": lambda x: F.hardswish(x, inplace=True),
    "hardsigmoid_": lambda x: F.hardsigmoid(x, inplace=True), "log_sigmoid": F.logsigmoid,
    "constant_pad_nd": lambda x, pad, value=0: F.pad(x, pad, value=value), "pad_sequence": pad_sequence,
    "scaled_dot_product_attention": lambda q, k, v, mask=None, p=0.0, causal=False, *, scale=None, enable_gqa=False:
        F.scaled_dot_product_attention(q, k, v, mask, p, causal, scale=scale, enable_gqa=enable_gqa),
    "_native_multi_head_attention": _attention, "_transformer_encoder_layer_fwd": _encoder_layer, "stft": _stft,
    **_UPSAMPLING, **{name: _loss(name) for name in _LOSSES},
}  # fmt: skip
