"""Scaled dot-product attention."""

from __future__ import annotations

import math
from typing import Any

from compat._core.memory.strides import broadcast_size
from compat._core.operators.composite import composite
from compat._core.operators.declaration import Gradients
from compat._core.operators.op import aten
from compat._core.operators.opmath import HALVES, single
from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor
from compat._core.types import dtype as dtypes
from compat._core.types.errors import cpp_name
from compat._operators.create.factories import full, ones, zeros
from compat._operators.linalg.matmul import matmul
from compat._operators.nn.attention_backends import select_backend
from compat._operators.pointwise.scalars import mul_number
from compat._operators.reduction.sum_mean_var import accumulated, reduce
from funcgrad import numpy as np
from funcgrad.core import dtypes as fdtypes
from funcgrad.core.tracing import type_of
from funcgrad.nn.fused_attention import (
    attention,
    attention_cotangents,
    exponentials,
    logarithms_of,
    product,
    scores,
    weights_and_cotangents,
)
from funcgrad.primitives import reductions as r
from funcgrad.primitives.shape import cut, reshape

# ---------------------------------------------------------------- softmax


@aten(
    "_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
    node="SafeSoftmaxBackward0", saves="result dim", names="torch._safe_softmax",
)  # fmt: skip
def safe_softmax(input, dim, dtype):
    """``softmax``, zero where all elements along the dimension are ``-inf``."""

    def body(x: Any) -> Any:
        weights, total, _, _ = exponentials(x, dim)
        return np.divide(weights, total)

    return accumulated(input if dtype is None else np.astype(input, dtype.numpy), body)


@safe_softmax.backward
def safe_softmax_backward(ct: Any, result: Any, dim: Any) -> Any:
    weighted = np.multiply(ct, result)
    return np.subtract(weighted, np.multiply(result, reduce(r.reduce_sum, weighted, (dim,), True)))


# ---------------------------------------------------------------- attention as one operator


def _factor(scale: float | None, width: int) -> float:
    return 1 / math.sqrt(width) if scale is None else scale


class _Heads:
    """Conversion of queries, their results and scores to ``(n, key heads, rows, ...)``.

    The rows of heads of the queries that share a head of the keys become rows of one matrix.

    Args:
        query: ``(n, heads, l, e)``.
        key: ``(n, key heads, s, e)``.
    """

    def __init__(self, query: Any, key: Any):
        self.n, self.heads, self.l, self.e = type_of(query).shape
        _, self.shared, self.s, _ = type_of(key).shape
        self.rows = self.l * (self.heads // self.shared)

    def shared_rows(self, x: Any) -> Any:
        return reshape(x, shape=(self.n, self.shared, self.rows, type_of(x).shape[-1]))

    def by_head(self, x: Any) -> Any:
        return reshape(x, shape=(self.n, self.heads, self.l, type_of(x).shape[-1]))

    def parameters(self, scale: float | None, causal: bool) -> dict[str, Any]:
        return {"scale": _factor(scale, self.e), "causal": causal, "queries": self.l}

    def shared_mask(self, mask: Any) -> Any:
        """A mask that broadcasts to ``(n, heads, l, s)``, with four axes, for the rows."""
        if mask is None:
            return None
        shape = type_of(mask).shape
        n, heads, _, keys = shape = (1,) * (4 - len(shape)) + shape
        mask = reshape(mask, shape=shape)
        if heads == 1 or self.heads == self.shared:
            return mask
        mask = np.broadcast_to(mask, (n, heads, self.l, keys))
        return reshape(mask, shape=(n, self.shared, self.rows, keys))


def _like_query(operands: dict[str, Any], types: Any) -> list[Any]:
    """The strides of the query for the output; those of ``(n, l, heads)`` for the logarithms."""
    layout = operands["query"]
    _, heads, rows = types[1].shape
    same = types[0].shape == tuple(layout.size) and layout.dense
    return [tuple(layout.stride) if same else None, (heads * rows, 1, heads)]


#: The numbers of keys and of queries in the blocks of the backward pass of PyTorch's kernel.
_KEY_BLOCK = 512


def _query_block(count: int) -> int:
    return 256 if count >= 768 else 64 if count >= 192 else 32


def _rounded(x: Any, dtype: Any) -> Any:
    """float32 numbers rounded to another dtype, as float32."""
    return np.astype(np.astype(x, dtype), fdtypes.float32)


def _product_by_blocks(scores: Any, y: Any, axis: int, heads: _Heads, dtype: Any, factor: float = 1.0) -> Any:
    """``factor`` times the product of scores, summed over queries (axis 2) or keys (axis 3).

    In half precision PyTorch's kernel adds up the products of blocks of queries or keys, and rounds each sum.
    """
    count, shares = type_of(scores).shape[axis], heads.rows != heads.l  # heads that share keys are not divided
    block = max(count, 1) if shares else _query_block(count) if axis == 2 else _KEY_BLOCK
    total: Any = None
    for start in range(0, max(count, 1), block):
        limit = min(start + block, count)
        part = product(cut(scores, axis, start, limit), cut(y, 2, start, limit), axis, 2)
        part = part if factor == 1.0 else np.multiply(part, factor)
        total = part if total is None else np.add(total, part)
        total = total if shares else _rounded(total, dtype)
    return total


def _half_forward(query: Any, key: Any, value: Any, mask: Any, dtype: Any, params: dict[str, Any]) -> list[Any]:
    """As ``attention``; PyTorch's kernel rounds the exponentials to the dtype of the values, but not their sum."""
    weights, total, maximum, masked = exponentials(scores(query, key, mask, **params), 3)
    found = product(_rounded(weights, dtype), value, 3, 2)
    return [np.divide(found, total), logarithms_of(total, maximum, masked)]


def _half_backward(
    ct: Any, query: Any, key: Any, value: Any, out: Any, logarithms: Any, ct_logarithms: Any, mask: Any,
    heads: _Heads, dtype: Any, params: dict[str, Any],
) -> list[Any]:  # fmt: skip
    """As ``attention_cotangents``; PyTorch's kernel rounds the factors of products, and scales the products."""
    found = scores(query, key, mask, **params)
    exact = weights_and_cotangents(found, ct, value, out, logarithms, ct_logarithms)
    weights, ct_scores = (_rounded(x, dtype) for x in exact)
    return [
        _product_by_blocks(ct_scores, key, 3, heads, dtype, params["scale"]),
        _product_by_blocks(ct_scores, query, 2, heads, dtype, params["scale"]),
        _product_by_blocks(weights, ct, 2, heads, dtype),
    ]


@aten(
    "_scaled_dot_product_flash_attention_for_cpu(Tensor query, Tensor key, Tensor value, float dropout_p=0.0, "
    "bool is_causal=False, *, Tensor? attn_mask=None, float? scale=None) -> (Tensor output, Tensor logsumexp)",
    node="ScaledDotProductFlashAttentionForCpuBackward0",
    saves="query key value attn_mask dropout_p is_causal scale output logsumexp", names="", layout=_like_query,
    gradients=Gradients(without="attn_mask", detached=(1,)),
)  # fmt: skip
def flash_attention(query, key, value, dropout_p, is_causal, *, attn_mask, scale):  # fmt: skip
    dtype, heads = type_of(query).dtype, _Heads(query, key)
    query, key, value, attn_mask = map(single, (query, key, value, attn_mask))
    params = heads.parameters(scale, is_causal)
    operands = (heads.shared_rows(query), key, value, heads.shared_mask(attn_mask))
    if dtype in HALVES:
        output, logsumexp = _half_forward(*operands, dtype, params)
    else:
        output, logsumexp = attention(*operands, **params)
    output = np.astype(heads.by_head(output), dtype)
    return output, reshape(logsumexp, shape=(heads.n, heads.heads, heads.l))


@flash_attention.backward
def flash_attention_backward(ct0, ct1, query, key, value, attn_mask, is_causal, scale, result0, result1):
    dtype, heads = type_of(query).dtype, _Heads(query, key)
    query, key, value, attn_mask, ct, output = map(single, (query, key, value, attn_mask, ct0, result0))
    params = heads.parameters(scale, is_causal)
    # The logarithms have a gradient only in the backward of this operator.
    logarithms, grad_logarithms = (
        reshape(x, shape=(heads.n, heads.shared, heads.rows)) for x in (result1, np.astype(ct1, type_of(result1).dtype))
    )
    rows, output, queries = (heads.shared_rows(x) for x in (ct, output, query))
    operands = (rows, queries, key, value, output, logarithms, grad_logarithms, heads.shared_mask(attn_mask))
    if dtype in HALVES:
        grads = _half_backward(*operands, heads, dtype, params)
    else:
        grads = attention_cotangents(*operands, **params)
    same = zip(grads, (query, key, value))
    return tuple(np.astype(reshape(g, shape=type_of(x).shape), dtype) for g, x in same)


# ---------------------------------------------------------------- attention as a composition


def _additive_mask(query: Tensor, key: Tensor, mask: Tensor | None, causal: bool) -> Tensor | None:
    """The mask that is added to the scores: for booleans 0 where they are True and ``-inf`` elsewhere."""
    if causal:
        if mask is not None:
            raise RuntimeError(
                "_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True"
            )
        mask = ones(query.shape[-2], key.shape[-2], dtype=dtypes.bool_).tril()
    if mask is None or mask.dtype is not dtypes.bool_:
        return mask
    minus_infinity, zero = full((), -math.inf, dtype=query.dtype), zeros((), dtype=query.dtype)
    return names_of("torch")["where"](mask, zero, minus_infinity)


def _composed(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout_p: float, causal: bool, scale: float | None,
    gqa: bool,
) -> Tensor:  # fmt: skip
    dtype = query.dtype
    if dtype in (dtypes.float16, dtypes.bfloat16):
        query, key, value = (t.to(dtypes.float32) for t in (query, key, value))
    if gqa:
        key, value = (_repeated(t, query.shape[-3]) for t in (key, value))
    additive = _additive_mask(query, key, mask, causal)
    factor = _factor(scale, query.shape[-1])
    root = math.sqrt(abs(factor))
    query = mul_number.function(query, -root if factor < 0 else root)
    scores = matmul(query, mul_number.function(key.transpose(-2, -1), root))
    if additive is not None:
        scores = scores + additive
    weights = safe_softmax.function(scores, -1)
    if dropout_p > 0:
        weights = names_of("torch")["dropout"](weights, dropout_p, True)
    result = matmul(weights, value)
    return result if result.dtype is dtype else result.to(dtype)


def _repeated(t: Tensor, heads: int) -> Tensor:
    """The heads of the keys or values, each repeated for the heads of the queries that share it."""
    times = heads // t.shape[-3]
    return t if times == 1 else t.repeat_interleave(times, -3)


# ---------------------------------------------------------------- selection


def _check(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, gqa: bool) -> None:
    if not query.dtype is key.dtype is value.dtype:
        q, k, v = (cpp_name(t.dtype) for t in (query, key, value))
        raise RuntimeError(
            f"Expected query, key, and value to have the same dtype, but got query.dtype: {q} key.dtype: {k} and "
            f"value.dtype: {v} instead."
        )
    if min(query.dim(), key.dim(), value.dim()) < 2:
        raise RuntimeError(
            "Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: "
            f"{query.dim()} key.dim: {key.dim()} and value.dim: {value.dim()} instead."
        )
    if mask is not None and mask.dtype not in (dtypes.bool_, dtypes.float32, query.dtype):
        raise RuntimeError(
            "Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: "
            f"{cpp_name(mask.dtype)} and  query.dtype: {cpp_name(query.dtype)} instead."
        )
    if not query.dtype.is_floating_point:
        raise RuntimeError(f"expected scalar type Float but found {query.dtype.scalar_name}")
    if gqa and min(query.dim(), key.dim(), value.dim()) > 2:
        if any(not t.shape[-3] or query.shape[-3] % t.shape[-3] for t in (key, value)):
            raise RuntimeError("Number of heads in key and value must divide the number of heads in ")


def _is_fused(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout_p: float, gqa: bool) -> bool:
    """Whether PyTorch's fused operator supports the operands."""
    if dropout_p > 0 or not query.dim() == key.dim() == value.dim() == 4:
        return False
    if mask is not None and (mask.requires_grad or mask.dim() not in (2, 4)):
        if mask.dim() < 2:
            raise IndexError("Dimension out of range (expected to be in range of [-1, 0], but got -2)")
        return False
    _, heads, _, width = query.shape
    same_sizes = query.shape[0] == key.shape[0] == value.shape[0] and width == key.shape[3] == value.shape[3]
    same_heads = key.shape[1] == value.shape[1] and (gqa or heads == key.shape[1])
    return same_sizes and same_heads and 0 not in (*query.shape, *key.shape) and key.shape[2] == value.shape[2]


def _float_mask(query: Tensor, key: Tensor, mask: Tensor | None) -> Tensor | None:
    """The mask as numbers that are added to the scores.

    Raises:
        RuntimeError: if its size does not broadcast to that of the scores.
    """
    if mask is None:
        return None
    broadcast_size((*query.shape[:-1], key.shape[-2]), tuple(mask.shape))
    return _additive_mask(query, key, mask, False)


@composite(
    "scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, "
    "float dropout_p=0.0, bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor",
    names="F.scaled_dot_product_attention",
)
def scaled_dot_product_attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0,
    is_causal: bool = False, *, scale: float | None = None, enable_gqa: bool = False,
) -> Tensor:  # fmt: skip
    """``softmax(query @ key.T * scale + mask) @ value``.

    Args:
        query: ``(*, l, e)``.
        key: ``(*, s, e)``.
        value: ``(*, s, v)``.
        attn_mask: broadcastable to ``(*, l, s)``: booleans, False for masked keys, or numbers that are added to the
            scores. A row whose keys are all masked gives zeros.
        dropout_p: the dropout probability of weights.
        is_causal: whether the i-th query attends only to the first i + 1 keys.
        scale: by default ``1 / sqrt(e)``.
        enable_gqa: whether several heads of the queries (dimension -3) may share one of the keys and values.

    Returns:
        ``(*, l, v)``.

    Raises:
        RuntimeError: if sizes or dtypes do not match.

    Example:
        >>> q = torch.zeros(1, 1, 1, 2)
        >>> v = torch.tensor([[[[1.0, 0.0], [3.0, 2.0]]]])
        >>> torch.nn.functional.scaled_dot_product_attention(q, torch.ones(1, 1, 2, 2), v)
        tensor([[[[2., 1.]]]])
    """
    _check(query, key, value, attn_mask, enable_gqa)
    if 0 in (query.shape[-2], key.shape[-2], value.shape[-2]) or not query.numel():
        zero = mul_number.function(query.sum() + key.sum() + value.sum(), 0.0)
        return zeros(*query.shape[:-1], value.shape[-1], dtype=query.dtype) + zero
    if select_backend(_is_fused(query, key, value, attn_mask, dropout_p, enable_gqa)) == "math":
        return _composed(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)
    return flash_attention.function(
        query, key, value, 0.0, is_causal, attn_mask=_float_mask(query, key, attn_mask), scale=scale
    )[0]
