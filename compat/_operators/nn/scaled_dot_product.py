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
from compat._operators.reduction.logsumexp import minus_maximum
from compat._operators.reduction.sum_mean_var import accumulated, reduce
from funcgrad import numpy as np
from funcgrad.core import dtypes as fdtypes
from funcgrad.core.tracing import type_of
from funcgrad.primitives import elementwise as e
from funcgrad.primitives import reductions as r
from funcgrad.primitives.contraction import dot as contract
from funcgrad.primitives.shape import cut, reshape

# ---------------------------------------------------------------- softmax


def _exponentials(x: Any, axis: int) -> tuple[Any, Any, Any, Any]:
    """The exponentials of ``x`` less its maxima along an axis, and their sums; zero and 1 where all elements are -inf.

    Returns:
        The exponentials, the sums, the maxima, and the mask of rows of -inf.
    """
    maximum = e.stop_gradient(reduce(r.reduce_max, x, (axis,), True))
    masked = np.equal(maximum, -math.inf)
    weights = e.exp(minus_maximum(x, maximum, np.where(masked, e.number(0, maximum), maximum)))
    total = reduce(r.reduce_sum, weights, (axis,), True)
    return weights, np.where(masked, e.number(1, total), total), maximum, masked


@aten(
    "_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
    node="SafeSoftmaxBackward0", saves="result dim", names="torch._safe_softmax",
)  # fmt: skip
def safe_softmax(input, dim, dtype):
    """``softmax``, zero where all elements along the dimension are ``-inf``."""

    def body(x: Any) -> Any:
        weights, total, _, _ = _exponentials(x, dim)
        return np.divide(weights, total)

    return accumulated(input if dtype is None else np.astype(input, dtype.numpy), body)


@safe_softmax.backward
def safe_softmax_backward(ct: Any, result: Any, dim: Any) -> Any:
    weighted = np.multiply(ct, result)
    return np.subtract(weighted, np.multiply(result, reduce(r.reduce_sum, weighted, (dim,), True)))


# ---------------------------------------------------------------- attention as one operator


def _product(x: Any, y: Any, x_axis: int, y_axis: int) -> Any:
    """The products of matrices with two batch axes, summed over an axis of each."""
    return contract(x, y, contract=((x_axis,), (y_axis,)), batch=((0, 1), (0, 1)))


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


def _scores(heads: _Heads, query: Any, key: Any, mask: Any, causal: bool, scale: float) -> Any:
    """``(n, heads, l, s)``: the scaled products with the mask added."""
    factor = e.number(scale, query)
    product = _product(heads.shared_rows(e.mul(query, factor)), key, 3, 3)
    scores = heads.by_head(product)
    if mask is not None:
        scores = np.add(scores, mask)
    if causal:
        rows, columns = np.arange(heads.l), np.arange(heads.s)
        visible = np.greater_equal(np.expand_dims(rows, 1), np.expand_dims(columns, 0))
        scores = np.where(visible, scores, e.number(-math.inf, scores))
    return scores


def _factor(scale: float | None, width: int) -> float:
    return 1 / math.sqrt(width) if scale is None else scale


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


def _product_by_blocks(scores: Any, y: Any, axis: int, heads: _Heads, dtype: Any, factor: float | None = None) -> Any:
    """``factor`` times the product of scores, summed over queries (axis 2) or keys (axis 3).

    In half precision PyTorch's kernel adds up the products of blocks of queries or keys, and rounds each sum.
    """
    if dtype not in HALVES or heads.rows != heads.l:
        product = _product(scores, y, axis, 2)
        return product if factor is None else np.multiply(product, factor)
    count = type_of(scores).shape[axis]
    block = _query_block(count) if axis == 2 else _KEY_BLOCK
    total: Any = None
    for start in range(0, max(count, 1), block):
        limit = min(start + block, count)
        part = _product(cut(scores, axis, start, limit), cut(y, 2, start, limit), axis, 2)
        part = part if factor is None else np.multiply(part, factor)
        total = _rounded(part if total is None else np.add(total, part), dtype)
    return total


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
    scores = _scores(heads, query, key, attn_mask, is_causal, _factor(scale, heads.e))
    weights, total, maximum, masked = _exponentials(scores, 3)
    # PyTorch's kernel rounds the exponentials to the dtype of the values, but not their sum.
    rounded = np.astype(np.astype(weights, dtype), type_of(value).dtype)
    product = heads.by_head(_product(heads.shared_rows(rounded), value, 3, 2))
    logsumexp = np.where(masked, e.number(0, total), np.add(maximum, e.log(total)))
    output = np.astype(np.divide(product, total), dtype)
    return output, reshape(logsumexp, shape=(heads.n, heads.heads, heads.l))


@flash_attention.backward
def flash_attention_backward(ct0, ct1, query, key, value, attn_mask, is_causal, scale, result0, result1):
    dtype, heads = type_of(query).dtype, _Heads(query, key)
    query, key, value, attn_mask, ct, output = map(single, (query, key, value, attn_mask, ct0, result0))
    factor = _factor(scale, heads.e)
    scores = _scores(heads, query, key, attn_mask, is_causal, factor)
    weights = heads.shared_rows(e.exp(np.subtract(scores, np.expand_dims(result1, 3))))
    rows = heads.shared_rows(ct)
    grad_weights = _product(rows, value, 3, 3)
    inner = reduce(r.reduce_sum, np.multiply(ct, output), (3,), True)
    # The logarithms have a gradient only in the backward of this operator.
    grad_logsumexp = np.expand_dims(np.astype(ct1, type_of(inner).dtype), 3)
    inner, grad_logsumexp = heads.shared_rows(inner), heads.shared_rows(grad_logsumexp)
    grad_scores = np.multiply(weights, np.add(np.subtract(grad_weights, inner), grad_logsumexp))
    after: float | None = factor
    if dtype in HALVES:  # PyTorch's kernel rounds the factors, and scales the products
        weights, grad_scores = (_rounded(x, dtype) for x in (weights, grad_scores))
    else:  # one pass instead of one for each product
        grad_scores, after = np.multiply(grad_scores, factor), None
    grad_value = _product_by_blocks(weights, rows, 2, heads, dtype)
    grad_query = _product_by_blocks(grad_scores, key, 3, heads, dtype, after)
    grad_key = _product_by_blocks(grad_scores, heads.shared_rows(query), 2, heads, dtype, after)
    grads = zip((grad_query, grad_key, grad_value), (query, key, value))
    return tuple(np.astype(reshape(g, shape=type_of(x).shape), dtype) for g, x in grads)


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
