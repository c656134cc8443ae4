"""Scaled dot-product attention."""

from __future__ import annotations

import math
from typing import Any

from compat._core.memory.strides import broadcast_size
from compat._core.operators.composite import composite
from compat._core.operators.declaration import Gradients
from compat._core.operators.op import aten
from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor
from compat._core.types import dtype as dtypes
from compat._core.types.errors import cpp_name
from compat._operators.create.factories import full, ones, zeros
from compat._operators.linalg.matmul import matmul
from compat._operators.nn.attention_backends import chosen
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

# ---------------------------------------------------------------- the softmax of rows of -inf


@aten(
    "_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
    node="SafeSoftmaxBackward0", saves="result dim", names="torch._safe_softmax",
)  # fmt: skip
def safe_softmax(input, dim, dtype):
    """``softmax``, zero where all elements along the dimension are ``-inf``."""

    def body(x: Any) -> Any:
        high = e.stop_gradient(reduce(r.reduce_max, x, (dim,), True))
        hidden = np.equal(high, -math.inf)
        weights = e.exp(minus_maximum(x, np.where(hidden, e.number(0, high), high)))
        total = reduce(r.reduce_sum, weights, (dim,), True)
        return np.divide(weights, np.where(hidden, e.number(1, total), total))

    return accumulated(input if dtype is None else np.astype(input, dtype.numpy), body)


@safe_softmax.backward
def safe_softmax_backward(ct: Any, result: Any, dim: Any) -> Any:
    weighted = np.multiply(ct, result)
    return np.subtract(weighted, np.multiply(result, reduce(r.reduce_sum, weighted, (dim,), True)))


# ---------------------------------------------------------------- attention as a single operation


def _product(x: Any, y: Any, x_axis: int, y_axis: int) -> Any:
    """The products of two batches of matrices, summed over an axis of each."""
    return contract(x, y, contract=((x_axis,), (y_axis,)), batch=((0,), (0,)))


class _Heads:
    """Conversion of queries, keys and values to batches of matrices.

    If several heads of the queries share one of the keys, their rows become rows of one matrix.

    Args:
        query: ``(n, heads, l, e)``.
        key: ``(n, key heads, s, e)``.
    """

    def __init__(self, query: Any, key: Any):
        self.n, self.heads, self.l, self.e = type_of(query).shape
        _, self.shared, self.s, _ = type_of(key).shape
        self.batch = self.n * self.shared
        self.rows = self.l * (self.heads // self.shared)

    def of_query(self, x: Any) -> Any:
        return reshape(x, shape=(self.batch, self.rows, self.e))

    def of_key(self, x: Any) -> Any:
        return reshape(x, shape=(self.batch, type_of(x).shape[2], type_of(x).shape[3]))

    def of_scores(self, x: Any) -> Any:
        return reshape(x, shape=(self.batch, self.rows, self.s))

    def by_head(self, x: Any) -> Any:
        return reshape(x, shape=(self.n, self.heads, self.l, type_of(x).shape[-1]))


def _scores(heads: _Heads, query: Any, key: Any, mask: Any, causal: bool, scale: float) -> Any:
    """``(n, heads, l, s)``: the scaled products with the mask added."""
    factor = e.number(scale, query)
    product = _product(e.mul(heads.of_query(query), factor), heads.of_key(key), 2, 2)
    scores = heads.by_head(product)
    if mask is not None:
        scores = np.add(scores, mask)
    if causal:
        rows, columns = np.arange(heads.l), np.arange(heads.s)
        visible = np.greater_equal(np.expand_dims(rows, 1), np.expand_dims(columns, 0))
        scores = np.where(visible, scores, e.number(-math.inf, scores))
    return scores


def _wide(*xs: Any) -> list[Any]:
    """float16 and bfloat16 as float32, since exponentials are summed."""
    return [np.astype(x, fdtypes.float32) if x is not None and type_of(x).dtype in _HALVES else x for x in xs]


def _factor(scale: float | None, width: int) -> float:
    return 1 / math.sqrt(width) if scale is None else scale


def _like_query(operands: dict[str, Any], types: Any) -> list[Any]:
    """The output in the memory format of the query; the logarithms with the heads last."""
    layout = operands["query"]
    _, heads, rows = types[1].shape
    own = tuple(layout.stride) if types[0].shape == tuple(layout.size) and layout.dense else None
    return [own, (heads * rows, 1, heads)]


_HALVES = (fdtypes.float16, fdtypes.bfloat16)
#: The sizes of blocks in which PyTorch's kernel goes back.
_BLOCK_OF_KEYS = 512


def _block_of_queries(count: int) -> int:
    return 256 if count >= 768 else 64 if count >= 192 else 32


def _rounded(x: Any, dtype: Any) -> Any:
    """float32 numbers rounded to another dtype, as float32."""
    return np.astype(np.astype(x, dtype), fdtypes.float32)


def _product_by_blocks(scores: Any, y: Any, axis: int, heads: _Heads, dtype: Any, factor: float | None = None) -> Any:
    """``factor`` times the product of scores, summed over queries (axis 1) or keys (axis 2).

    In half precision PyTorch's kernel adds up the products of blocks of queries or keys, and rounds each sum.
    """
    count, rounds = type_of(scores).shape[axis], dtype in _HALVES and heads.rows == heads.l
    if not rounds:
        whole = _product(scores, y, axis, 1)
        return whole if factor is None else np.multiply(whole, factor)
    block = _block_of_queries(count) if axis == 1 else _BLOCK_OF_KEYS
    total: Any = None
    for start in range(0, max(count, 1), block):
        limit = min(start + block, count)
        part = _product(cut(scores, axis, start, limit), cut(y, 1, start, limit), axis, 1)
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
    query, key, value, attn_mask = _wide(query, key, value, attn_mask)
    scores = _scores(heads, query, key, attn_mask, is_causal, _factor(scale, heads.e))
    high = e.stop_gradient(reduce(r.reduce_max, scores, (3,), True))
    hidden = np.equal(high, -math.inf)
    weights = e.exp(minus_maximum(scores, np.where(hidden, e.number(0, high), high)))
    total = reduce(r.reduce_sum, weights, (3,), True)
    total = np.where(hidden, e.number(1, total), total)
    # PyTorch's kernel rounds the exponentials to the dtype of the values, but not their sum.
    rounded = np.astype(np.astype(weights, dtype), type_of(value).dtype)
    product = heads.by_head(_product(heads.of_scores(rounded), heads.of_key(value), 2, 1))
    logsumexp = np.where(hidden, e.number(0, total), np.add(high, e.log(total)))
    output = np.astype(np.divide(product, total), dtype)
    return output, reshape(logsumexp, shape=(heads.n, heads.heads, heads.l))


@flash_attention.backward
def flash_attention_backward(ct0, ct1, query, key, value, attn_mask, is_causal, scale, result0, result1):
    dtype, heads = type_of(query).dtype, _Heads(query, key)
    query, key, value, attn_mask, ct, output = _wide(query, key, value, attn_mask, ct0, result0)
    factor = _factor(scale, heads.e)
    scores = _scores(heads, query, key, attn_mask, is_causal, factor)
    weights = heads.of_scores(e.exp(np.subtract(scores, np.expand_dims(result1, 3))))
    rows = reshape(ct, shape=(heads.batch, heads.rows, type_of(value).shape[3]))
    towards = _product(rows, heads.of_key(value), 2, 2)
    inner = reshape(reduce(r.reduce_sum, np.multiply(ct, output), (3,), True), shape=(heads.batch, heads.rows, 1))
    # The logarithms are results too, only for this operator's backward.
    through = reshape(np.astype(ct1, type_of(inner).dtype), shape=type_of(inner).shape)
    grad_scores = np.multiply(weights, np.add(np.subtract(towards, inner), through))
    if dtype in _HALVES:  # PyTorch's kernel rounds what it multiplies, and scales the products
        weights, grad_scores = (_rounded(x, dtype) for x in (weights, grad_scores))
    grad_value = _product_by_blocks(weights, rows, 1, heads, dtype)
    grad_query = _product_by_blocks(grad_scores, heads.of_key(key), 2, heads, dtype, factor)
    grad_key = _product_by_blocks(grad_scores, heads.of_query(query), 1, heads, dtype, factor)
    grads = zip((grad_query, grad_key, grad_value), (query, key, value))
    return tuple(np.astype(reshape(g, shape=type_of(x).shape), dtype) for g, x in grads)


# ---------------------------------------------------------------- attention as a composition


def _added_mask(query: Tensor, key: Tensor, mask: Tensor | None, causal: bool) -> Tensor | None:
    """The mask added to the scores: 0 where attention is allowed, ``-inf`` elsewhere; or the given numbers."""
    if causal:
        if mask is not None:
            raise RuntimeError(
                "_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True"
            )
        mask = ones(query.shape[-2], key.shape[-2], dtype=dtypes.bool_).tril()
    if mask is None or mask.dtype is not dtypes.bool_:
        return mask
    none = full((), -math.inf, dtype=query.dtype)
    return names_of("torch")["where"](mask, zeros((), dtype=query.dtype), none)


def _composed(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout_p: float, causal: bool, scale: float | None,
    gqa: bool,
) -> Tensor:  # fmt: skip
    own = query.dtype
    if own in (dtypes.float16, dtypes.bfloat16):
        query, key, value = (t.to(dtypes.float32) for t in (query, key, value))
    if gqa:
        key, value = (_repeated(t, query.shape[-3]) for t in (key, value))
    added = _added_mask(query, key, mask, causal)
    factor = _factor(scale, query.shape[-1])
    root = math.sqrt(abs(factor))
    query = mul_number.function(query, -root if factor < 0 else root)
    scores = matmul(query, mul_number.function(key.transpose(-2, -1), root))
    if added is not None:
        scores = scores + added
    weights = safe_softmax.function(scores, -1)
    if dropout_p > 0:
        weights = names_of("torch")["dropout"](weights, dropout_p, True)
    result = matmul(weights, value)
    return result if result.dtype is own else result.to(own)


def _repeated(t: Tensor, heads: int) -> Tensor:
    """Each head of the keys or values repeated for the heads of the queries that share it."""
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


def _at_once(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout_p: float, gqa: bool
) -> bool:  # fmt: skip
    """Whether PyTorch uses a single operation."""
    if dropout_p > 0 or not query.dim() == key.dim() == value.dim() == 4:
        return False
    if mask is not None and (mask.requires_grad or mask.dim() not in (2, 4)):
        if mask.dim() < 2:
            raise IndexError("Dimension out of range (expected to be in range of [-1, 0], but got -2)")
        return False
    _, heads, _, width = query.shape
    fits = query.shape[0] == key.shape[0] == value.shape[0] and width == key.shape[3] == value.shape[3]
    same = key.shape[1] == value.shape[1] and (gqa or heads == key.shape[1])
    return fits and same and 0 not in (*query.shape, *key.shape) and key.shape[2] == value.shape[2]


def _float_mask(query: Tensor, key: Tensor, mask: Tensor | None) -> Tensor | None:
    """A mask as numbers to add, of a size that broadcasts to the scores."""
    if mask is None:
        return None
    broadcast_size((*query.shape[:-1], key.shape[-2]), tuple(mask.shape))
    if mask.dtype is not dtypes.bool_:
        return mask
    return _added_mask(query, key, mask, False)


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
        attn_mask: broadcastable to ``(*, l, s)``: booleans, False to mask a key, or numbers to add to the scores. A row
            with all keys masked gives zeros.
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
        nothing = mul_number.function(query.sum() + key.sum() + value.sum(), 0.0)
        return zeros(*query.shape[:-1], value.shape[-1], dtype=query.dtype) + nothing
    if chosen(_at_once(query, key, value, attn_mask, dropout_p, enable_gqa)) == "math":
        return _composed(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)
    return flash_attention.function(
        query, key, value, 0.0, is_causal, attn_mask=_float_mask(query, key, attn_mask), scale=scale
    )[0]
