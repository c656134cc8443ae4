"""Attention: averages of values, weighted by the match of keys and query."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from funcgrad.core import dtypes
from funcgrad.core.tracing import type_of
from funcgrad.nn.fused_attention import attention
from funcgrad.numpy import elementwise as e
from funcgrad.numpy.einsum import einsum
from funcgrad.numpy.promotion import asoperand, astype, promoted
from funcgrad.numpy.reductions import softmax
from funcgrad.numpy.shape import expand_dims, repeat, reshape, squeeze, transpose
from funcgrad.primitives.elementwise import broadcasts
from funcgrad.runtime.call_cache import composite


@composite
def dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    bias: Any = None,
    mask: Any = None,
    *,
    scale: float | None = None,
    is_causal: bool = False,
) -> Any:
    """The averages of ``value`` with weights ``softmax(scale * query . key + bias)``, for each query and head.

    Args:
        query: ``(*, t, heads, d)``; all three floating, with or without a batch axis in front.
        key, value: ``(*, s, groups, d)``: as many heads, or fewer, each shared by several query heads.
        bias: broadcasts to ``(*, heads, t, s)``.
        mask: booleans, False to exclude a key; broadcasts as ``bias`` does. A query with all keys excluded gets the
            plain average.
        scale: by default ``1 / sqrt(d)``.
        is_causal: whether to exclude keys at later positions.

    Returns:
        ``(*, t, heads, d)``. The softmax is computed in float32 at least.

    Raises:
        ValueError: for incompatible shapes.

    Example:
        >>> ones = np.ones((1, 2, 1, 4))
        >>> print(dot_product_attention(ones, ones, np.arange(8.0).reshape(1, 2, 1, 4), is_causal=True)[0, :, 0])
        [[0. 1. 2. 3.]
         [2. 3. 4. 5.]]
    """
    query, key, value = promoted(*(asoperand(x, "dot_product_attention") for x in (query, key, value)), floating=True)
    single = type_of(query).ndim == 3
    query, key, value = (expand_dims(x, 0) if type_of(x).ndim == 3 else x for x in (query, key, value))
    q, k, v = (type_of(x) for x in (query, key, value))
    if not q.ndim == k.ndim == v.ndim == 4 or k.shape[:3] != v.shape[:3] or q.shape[3] != k.shape[3]:
        raise ValueError(f"dot_product_attention: query {q}, key {k} and value {v} do not fit")
    heads, groups = q.shape[2], k.shape[2]
    if q.shape[0] != k.shape[0] or not groups or heads % groups:
        raise ValueError(f"dot_product_attention: {heads} heads of {q} cannot share those of key {k}")
    if groups != heads:
        key, value = (repeat(x, heads // groups, axis=2) for x in (key, value))
    bias = None if bias is None else asoperand(bias, "dot_product_attention")
    factor = 1 / math.sqrt(q.shape[3]) if scale is None else scale
    wide: Any = q.dtype if q.dtype in (dtypes.float32, dtypes.float64) else dtypes.float32
    fits = bias is None or broadcasts(type_of(bias).shape, (q.shape[0], heads, q.shape[1], k.shape[1]))
    if mask is None and wide == q.dtype and fits:
        out = _as_one(query, key, value, bias, factor, is_causal)
        return squeeze(out, 0) if single else out
    scores = einsum("bthd,bshd->bhts", query, key)
    scores = e.multiply(astype(scores, wide), factor)
    if bias is not None:
        scores = e.add(scores, bias)
    if is_causal:
        earlier = np.tril(np.ones(type_of(scores).shape[-2:], bool))
        mask = earlier if mask is None else e.logical_and(mask, earlier)
    if mask is not None:
        # A finite number: minus infinity would give NaN for a query with all keys excluded.
        scores = e.where(mask, scores, float(np.finfo(wide).min))
    weights = softmax(scores, axis=-1)
    out = einsum("bhts,bshd->bthd", astype(weights, v.dtype), value)
    return squeeze(out, 0) if single else out


def _as_one(query: Any, key: Any, value: Any, bias: Any, scale: float, causal: bool) -> Any:
    """Attention as one operation, which takes the heads before the rows."""
    query, key, value = (transpose(x, (0, 2, 1, 3)) for x in (query, key, value))
    if bias is not None:
        bias = astype(bias, type_of(query).dtype)
        shape = type_of(bias).shape
        bias = reshape(bias, (1,) * (4 - len(shape)) + shape)
    rows = type_of(query).shape[2]
    out, _ = attention(query, key, value, bias, scale=scale, causal=causal, queries=rows)
    return transpose(out, (0, 2, 1, 3))
