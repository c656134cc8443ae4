"""Multi-head attention, with projections of the queries, keys and values."""

from __future__ import annotations

import math
import sys
from typing import Any

from compat._core.tensor.registry import function, names_of
from compat._core.tensor.tensor import Tensor
from compat._core.types import dtype as dtypes
from compat._core.types.errors import warn
from compat._operators.create.factories import zeros, zeros_like
from compat._operators.shape.cat_stack import cat

# ---------------------------------------------------------------- masks


@function("nn.functional._none_or_dtype")
def none_or_dtype(input: Tensor | None) -> dtypes.dtype | None:
    """The dtype of a mask, None for None.

    Raises:
        RuntimeError: for a value that is neither a tensor nor None.
    """
    if input is None:
        return None
    if not isinstance(input, Tensor):
        raise RuntimeError("input to _none_or_dtype() must be None or torch.Tensor")
    return input.dtype


@function("nn.functional._canonical_mask")
def canonical_mask(
    mask: Tensor | None, mask_name: str, other_type: dtypes.dtype | None, other_name: str, target_type: dtypes.dtype,
    check_other: bool = True,
) -> Tensor | None:  # fmt: skip
    """A mask as numbers that are added to scores: a boolean mask becomes ``-inf`` where it is True.

    Args:
        mask_name: the name of the mask in messages.
        other_type: the dtype of another mask, which should have the same dtype.
        other_name: the name of the other mask in messages.
        target_type: the dtype of the numbers that a boolean mask becomes.
        check_other: whether to warn if the dtypes of the masks differ.

    Raises:
        AssertionError: for a mask of integers.
    """
    if mask is None:
        return None
    floating = mask.dtype.is_floating_point
    if not floating and mask.dtype is not dtypes.bool_:
        raise AssertionError(f"only bool and floating types of {mask_name} are supported")
    if check_other and other_type is not None and other_type is not mask.dtype:
        warn(f"Support for mismatched {mask_name} and {other_name} is deprecated. Use same type for both instead.")
    return mask if floating else zeros_like(mask, dtype=target_type).masked_fill_(mask, -math.inf)


def _public(name: str, place: str = "nn.functional") -> Any:
    """A public function as programs find it: overrides and traces see its calls, and profilers may have replaced it."""
    module = sys.modules.get("compat" if place == "torch" else f"compat.{place}")
    return names_of(place)[name] if module is None else getattr(module, name)


def _batched(query: Tensor, key: Tensor, value: Tensor, padding: Any, mask: Any, num_heads: int) -> bool:
    """Whether there is a batch dimension; checks the numbers of dimensions."""
    n = query.dim()
    if n not in (2, 3):
        raise AssertionError(f"query should be unbatched 2D or batched 3D tensor but received {n}-D query tensor")
    start = f"For {'batched (3-D)' if n == 3 else 'unbatched (2-D)'} `query`, expected "
    if key.dim() != n or value.dim() != n:
        raise AssertionError(
            f"{start}`key` and `value` to be {n}-D but found {key.dim()}-D and {value.dim()}-D tensors respectively"
        )
    if padding is not None and padding.dim() != n - 1:
        raise AssertionError(
            f"{start}`key_padding_mask` to be `None` or {n - 1}-D but found {padding.dim()}-D tensor instead"
        )
    if mask is not None and mask.dim() not in (2, 3):
        raise AssertionError(f"{start}`attn_mask` to be `None`, 2-D or 3-D but found {mask.dim()}-D tensor instead")
    shape = (num_heads, query.shape[0], key.shape[0])
    if n == 2 and mask is not None and mask.dim() == 3 and tuple(mask.shape) != shape:
        raise AssertionError(f"Expected `attn_mask` shape to be {shape} but got {mask.shape}")
    return n == 3


def _as_3d(mask: Tensor | None, batch: int, rows: int, columns: int) -> Tensor | None:
    """A mask as a 3-d tensor."""
    if mask is None:
        return None
    shape = (rows, columns) if mask.dim() == 2 else (batch, rows, columns)
    if tuple(mask.shape) != shape:
        raise RuntimeError(f"The shape of the {mask.dim()}D attn_mask is {mask.shape}, but should be {shape}.")
    return mask.unsqueeze(0) if mask.dim() == 2 else mask


def _extended(mask: Tensor | None) -> Tensor | None:
    """A mask extended by a key that is not masked."""
    return None if mask is None else names_of("F")["pad"](mask, (0, 1))


def _with_padding(mask: Tensor | None, padding: Tensor | None, num_heads: int) -> Tensor | None:
    if padding is None:
        return mask
    n, columns = padding.shape
    by_head = padding.view(n, 1, 1, columns).expand(-1, num_heads, -1, -1).reshape(n * num_heads, 1, columns)
    return by_head if mask is None else mask + by_head


# ---------------------------------------------------------------- projections


def _unpacked(packed: Tensor, count: int, width: int) -> list[Tensor]:
    """Projections that were computed as one product, each in memory of its own."""
    parts = packed.unflatten(-1, (count, width)).unsqueeze(0).transpose(0, -2).squeeze(-2).contiguous()
    return [parts[i] for i in range(count)]


def _projected(query: Tensor, key: Tensor, value: Tensor, weight: Tensor | None, bias: Tensor | None) -> list[Tensor]:
    """Queries, keys and values times the parts of one matrix; equal operands are multiplied in one product."""
    if weight is None:
        raise AssertionError("use_separate_proj_weight is False but in_proj_weight is None")
    width = query.shape[-1]
    if key is value and query is key:
        return _unpacked(_public("linear")(query, weight, bias), 3, width)
    if key is value:
        weight_q, weight_kv = weight.split([width, 2 * width])
        bias_q, bias_kv = (None, None) if bias is None else bias.split([width, 2 * width])
        q = _public("linear")(query, weight_q, bias_q)
        return [q, *_unpacked(_public("linear")(key, weight_kv, bias_kv), 2, width)]
    biases = (None,) * 3 if bias is None else bias.chunk(3)
    return [_public("linear")(x, w, b) for x, w, b in zip((query, key, value), weight.chunk(3), biases)]


def _projected_separately(operands: tuple[Tensor, ...], weights: tuple[Any, ...], bias: Tensor | None) -> list[Tensor]:
    """Queries, keys and values times separate matrices."""
    for name, w in zip("qkv", weights):
        if w is None:
            raise AssertionError(f"use_separate_proj_weight is True but {name}_proj_weight is None")
    width = operands[0].shape[-1]
    for name, x, w in zip(("query", "key", "value"), operands, weights):
        shape = (width, x.shape[-1])
        if tuple(w.shape) != shape:
            raise AssertionError(f"expecting {name} weights shape of {shape}, but got {w.shape}")
    biases = (None,) * 3 if bias is None else bias.chunk(3)
    for name, b in zip(("query", "key", "value"), biases):
        if b is not None and tuple(b.shape) != (width,):
            raise AssertionError(f"expecting {name} bias shape of {(width,)}, but got {b.shape}")
    return [_public("linear")(x, w, b) for x, w, b in zip(operands, weights, biases)]


def _with_biases(k: Tensor, v: Tensor, bias_k: Any, bias_v: Any, static_k: Any, static_v: Any) -> tuple[Tensor, Tensor]:
    """The keys and values with an additional learned key and value."""
    for name, static in (("key", static_k), ("value", static_v)):
        if static is not None:
            raise AssertionError(f"bias cannot be added to static {name}.")
    batch = k.shape[1]
    return cat([k, bias_k.repeat(1, batch, 1)]), cat([v, bias_v.repeat(1, batch, 1)])


def _by_head(x: Tensor, static: Tensor | None, name: str, batch: int, width: int) -> Tensor:
    """``static``, or ``(batch * heads, length, width)`` from ``(length, batch, heads * width)``."""
    if static is None:
        return x.view(x.shape[0], batch, width).transpose(0, 1)
    if static.shape[0] != batch:
        raise AssertionError(f"expecting {name}.size(0) of {batch}, but got {static.shape[0]}")
    if static.shape[2] != width:
        raise AssertionError(f"expecting {name}.size(2) of {width}, but got {static.shape[2]}")
    return static


def _with_zero(x: Tensor) -> Tensor:
    return cat([x, zeros(x.shape[0], 1, x.shape[2], dtype=x.dtype)], dim=1)


# ---------------------------------------------------------------- attention


def _attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout_p: float) -> tuple[Tensor, Tensor]:
    """The attended values and the weights, from ``(batch, length, width)``."""
    scaled = q * math.sqrt(1.0 / float(q.shape[-1]))
    k = k.transpose(-2, -1)
    bmm = _public("bmm", "torch")
    scores = bmm(scaled, k) if mask is None else _public("baddbmm", "torch")(mask, scaled, k)
    weights = _public("softmax")(scores, dim=-1)
    if dropout_p > 0.0:
        weights = _public("dropout")(weights, dropout_p)
    return bmm(weights, v), weights


def _check_sizes(
    query: Tensor, key: Tensor, value: Tensor, embed_dim_to_check: int, num_heads: int, separate: bool
) -> None:
    width = query.shape[2]
    if width != embed_dim_to_check:
        raise AssertionError(f"was expecting embedding dimension of {embed_dim_to_check}, but got {width}")
    if width % num_heads:
        raise AssertionError(f"embed_dim {width} not divisible by num_heads {num_heads}")
    if separate and key.shape[:2] != value.shape[:2]:
        raise AssertionError(f"key's sequence and batch dims {key.shape[:2]} do not match value's {value.shape[:2]}")
    if not separate and key.shape != value.shape:
        raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")


@function("F.multi_head_attention_forward")
def multi_head_attention_forward(
    query: Tensor, key: Tensor, value: Tensor, embed_dim_to_check: int, num_heads: int, in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None, bias_k: Tensor | None, bias_v: Tensor | None, add_zero_attn: bool, dropout_p: float,
    out_proj_weight: Tensor, out_proj_bias: Tensor | None, training: bool = True,
    key_padding_mask: Tensor | None = None, need_weights: bool = True, attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False, q_proj_weight: Tensor | None = None, k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None, static_k: Tensor | None = None, static_v: Tensor | None = None,
    average_attn_weights: bool = True, is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:  # fmt: skip
    """Multi-head attention with the projections of queries, keys, values and outputs; see ``nn.MultiheadAttention``.

    Args:
        query: ``(l, n, e)``, or ``(l, e)`` without batch.
        key, value: ``(s, n, ...)``, or ``(s, ...)``.
        embed_dim_to_check: the expected ``e``.
        in_proj_weight: ``(3 * e, e)``; or, with ``use_separate_proj_weight``, ``q_proj_weight``, ``k_proj_weight``
            and ``v_proj_weight``.
        bias_k, bias_v: ``(1, 1, e)``, an additional key and value.
        add_zero_attn: whether to add a key and value of zeros.
        key_padding_mask: ``(n, s)``: True or ``-inf`` for keys to ignore; other numbers are added to the scores.
        attn_mask: ``(l, s)`` or ``(n * num_heads, l, s)``, with the same meaning.
        static_k, static_v: ``(n * num_heads, s, e / num_heads)``, instead of projected ones.
        average_attn_weights: whether the weights are the mean over the heads.
        is_causal: a hint that ``attn_mask`` is the causal mask.

    Returns:
        The output, of the size of ``query``, and the weights, ``(n, l, s)`` or ``(n, num_heads, l, s)``; None instead
        of weights unless ``need_weights``.

    Raises:
        AssertionError: if sizes do not match.
        RuntimeError: for a mask of the wrong size.
    """
    batched = _batched(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        query, key, value = _with_batch(query, key, value)
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    rows, n, width = query.shape
    padding = canonical_mask(key_padding_mask, "key_padding_mask", none_or_dtype(attn_mask), "attn_mask", query.dtype)
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module method "
            "`generate_square_subsequent_mask` to create this mask."
        )
    if is_causal and padding is None and not need_weights:
        mask = None
    else:
        mask = canonical_mask(attn_mask, "attn_mask", None, "", query.dtype)
        is_causal = is_causal and padding is None
    _check_sizes(query, key, value, embed_dim_to_check, num_heads, use_separate_proj_weight)
    if use_separate_proj_weight:
        projections = (q_proj_weight, k_proj_weight, v_proj_weight)
        q, k, v = _projected_separately((query, key, value), projections, in_proj_bias)
    else:
        q, k, v = _projected(query, key, value, in_proj_weight, in_proj_bias)
    batch, per_head = n * num_heads, width // num_heads
    mask = _as_3d(mask, batch, rows, key.shape[0])
    if bias_k is not None and bias_v is not None:
        k, v = _with_biases(k, v, bias_k, bias_v, static_k, static_v)
        mask, padding = _extended(mask), _extended(padding)
    elif bias_k is not None:
        raise AssertionError("bias_k is set but bias_v is None")
    elif bias_v is not None:
        raise AssertionError("bias_v is set but bias_k is None")
    q = _by_head(q, None, "", batch, per_head)
    k, v = _by_head(k, static_k, "static_k", batch, per_head), _by_head(v, static_v, "static_v", batch, per_head)
    if add_zero_attn:
        k, v, mask, padding = _with_zero(k), _with_zero(v), _extended(mask), _extended(padding)
    _check_padding(padding, n, k.shape[1])
    mask = _with_padding(mask, padding, num_heads)
    attend = _with_weights if need_weights else _without_weights
    attended, weights = attend(q, k, v, mask, dropout_p if training else 0.0, is_causal, n, num_heads)
    output = _public("linear")(attended, out_proj_weight, out_proj_bias)
    output = output.view(rows, n, output.shape[1])
    if weights is not None and average_attn_weights:
        weights = weights.mean(dim=1)
    if batched:
        return output, weights
    return output.squeeze(1), None if weights is None else weights.squeeze(0)


def _with_batch(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return query.unsqueeze(1), key.unsqueeze(1), value.unsqueeze(1)


def _check_padding(padding: Tensor | None, n: int, columns: int) -> None:
    if padding is not None and tuple(padding.shape) != (n, columns):
        raise AssertionError(f"expecting key_padding_mask shape of {(n, columns)}, but got {padding.shape}")


def _with_weights(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout_p: float, is_causal: bool, n: int, heads: int
) -> tuple[Tensor, Tensor]:
    """The attended values as rows, ``(l * n, e)``, and the weights."""
    _, rows, per_head = q.shape
    attended, weights = _attention(q, k, v, mask, dropout_p)
    merged = attended.transpose(0, 1).reshape(rows * n, heads * per_head)
    return merged, weights.view(n, heads, rows, k.shape[1])


def _without_weights(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout_p: float, is_causal: bool, n: int, heads: int
) -> tuple[Tensor, None]:
    _, rows, per_head = q.shape
    columns = k.shape[1]
    if mask is not None:
        mask = mask.unsqueeze(0) if mask.shape[0] == 1 else mask.view(n, heads, -1, columns)
    q, k, v = (x.view(n, heads, x.shape[1], per_head) for x in (q, k, v))
    attended = _public("scaled_dot_product_attention")(q, k, v, mask, dropout_p, is_causal)
    return attended.permute(2, 0, 1, 3).reshape(n * rows, heads * per_head), None
