"""``torch.nn.attention.flex_attention``: attention with a function that modifies scores."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypedDict

from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor
from compat._core.types import dtype as dtypes
from compat.nn.attention._block_mask import (
    BlockMask,
    and_masks,
    create_block_mask,
    create_mask,
    noop_mask,
    or_masks,
    over_indices,
)

__all__ = [
    "AuxOutput", "AuxRequest", "BlockMask", "FlexKernelOptions", "and_masks", "create_block_mask", "create_mask",
    "flex_attention", "noop_mask", "or_masks",
]  # fmt: skip

#: The default block size.
_DEFAULT_SPARSE_BLOCK_SIZE = 128


class FlexKernelOptions(TypedDict, total=False):
    """Settings of PyTorch's kernels for other devices; ignored here."""


class AuxRequest(NamedTuple):
    """The requested auxiliary outputs.

    Attributes:
        lse: the logarithm of the sum of the exponentials of each query's scores.
        max_scores: the greatest score of each query.
    """

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """The auxiliary outputs; None for those not requested."""

    lse: Tensor | None = None
    max_scores: Tensor | None = None


def _check_sizes(query: Tensor, key: Tensor, value: Tensor, masked: bool, gqa: bool) -> None:
    if not query.dim() == key.dim() == value.dim() == 4:
        raise NotImplementedError("NYI: query, key, and value must be 4D tensors")
    batch, heads, _, width = query.shape
    key_batch, key_heads, _, key_width = key.shape
    if width != key_width:
        raise ValueError(
            f"Expect query and key/value to have the same embedding dimension but got E={width} and E={key_width}."
        )
    if not gqa and heads != key_heads:
        raise ValueError(
            f"Expect query and key/value to have the same number of heads but got Hq={heads} and Hkv={key_heads}. Try "
            "setting enable_gqa=True for GQA."
        )
    if heads % key_heads:
        raise ValueError(
            f"Expect number of query heads to be a multiple of kv heads for GQA but got Hq={heads} and Hkv={key_heads}."
        )
    if batch != key_batch and not (masked and key_batch == 1):
        raise ValueError(
            "Expect query and key/value to have the same batch size, or non-none block_mask, but got "
            f"block_mask={'BlockMask' if masked else None}, Bq={batch}, and Bkv={key_batch}."
        )


def _check_mask(block_mask: BlockMask, queries: int, keys: int) -> None:
    lengths = block_mask.seq_lengths
    if lengths == (queries, keys):
        return
    text = f"block_mask was created for block_mask.shape={block_mask.shape} but got q_len={queries} and kv_len={keys}. "
    if lengths[0] > queries or lengths[1] > keys:
        raise ValueError(
            f"{text}As the block mask was created for a larger length than you're using it for, you can either 1. "
            "create a new block mask with the correct length, or 2. 'adjust' the existing block mask to the correct "
            "length by calling block_mask._adjust(q_len, kv_len). This essentially 'crops' the block mask to the upper "
            "left corner, which does not work for all mask_mods!"
        )
    raise ValueError(
        f"{text}As the block mask was created for a smaller length than you're using it for, you likely need to create "
        "a new block mask."
    )


def _modified(scores: Tensor, score_mod: Any, block_mask: BlockMask | None) -> Tensor:
    """The modified scores: ``-inf`` where the mask is false."""
    torch = names_of("torch")
    indices = [torch["arange"](0, n) for n in scores.shape]
    dtype = scores.dtype
    if score_mod is not None:
        scores = over_indices(score_mod, 1)(scores, *indices)
    if block_mask is not None:
        mask = over_indices(block_mask.mask_mod, 0)(*indices)
        scores = torch["where"](mask, scores, torch["full"]((), -math.inf, dtype=dtype))
    return scores.to(dtype)


def _with_dim_order_of(out: Tensor, like: Tensor) -> Tensor:
    """A copy whose dimensions have the order of ``like``'s in memory."""
    order = sorted(range(4), key=lambda d: -like.stride(d))
    return out.permute(order).contiguous().permute([order.index(d) for d in range(4)])


def flex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: Callable[..., Any] | None = None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: FlexKernelOptions | None = None,
    *,
    return_aux: AuxRequest | None = None,
) -> Any:
    """Attention with a function that modifies the scores before the softmax.

    All scores are materialized, as in PyTorch without ``torch.compile``. Unlike PyTorch's, it has gradients on a CPU.

    Args:
        query: ``(B, H, L, E)``.
        key, value: ``(B, H, S, E)``; with ``enable_gqa`` each of their heads may be shared by several of the queries'.
        score_mod: the modified score, of a score and the indices of batch, head, query and key, which are 0-d tensors.
        block_mask: the mask of queries and keys.
        scale: the factor of the scores, ``1 / sqrt(E)`` by default.
        return_lse, return_aux: auxiliary outputs to return.
        kernel_options: ignored.

    Returns:
        ``(B, H, L, E)``, and the requested auxiliary outputs.

    Raises:
        NotImplementedError: for tensors of other than four dimensions.
        ValueError: for sizes that do not match.

    Example:
        >>> q = torch.zeros(1, 1, 3, 2)
        >>> v = torch.tensor([1.0, 2.0, 3.0]).view(1, 1, 3, 1)
        >>> causal = lambda score, b, h, q, kv: torch.where(q >= kv, score, -float("inf"))
        >>> flex_attention(q, q, v, score_mod=causal).flatten()
        tensor([1.0000, 1.5000, 2.0000])
    """
    _check_sizes(query, key, value, block_mask is not None, enable_gqa)
    if block_mask is not None:
        _check_mask(block_mask, query.size(-2), key.size(-2))
    torch = names_of("torch")
    groups = query.size(1) // key.size(1)
    if groups > 1:
        key, value = (t.repeat_interleave(groups, 1) for t in (key, value))
    opmath = dtypes.float64 if query.dtype is dtypes.float64 else dtypes.float32
    factor = 1 / math.sqrt(query.size(-1)) if scale is None else scale
    scores = _modified((query @ key.transpose(-2, -1)).to(opmath) * factor, score_mod, block_mask)
    weights = torch["_safe_softmax"](scores, -1)
    out = _with_dim_order_of(weights.to(query.dtype) @ value, query)
    if not return_lse and return_aux is None:
        return out
    lse = scores.logsumexp(-1)
    if return_aux is None:
        return out, lse
    return out, AuxOutput(lse if return_aux.lse else None, scores.amax(-1) if return_aux.max_scores else None)
