"""Products of nested tensors with weights and with each other, and attention."""

from __future__ import annotations

from typing import Any

from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor
from compat.nested._internal.nested_tensor import (
    NestedTensor,
    functions_of,
    lengths,
    like,
    padded,
    unpadded,
)

by_name = functions_of(NestedTensor)


@by_name("linear")
def linear(func: Any, input: Any, weight: Any, bias: Any = None) -> Any:
    """A linear map of the last dimension."""
    if not isinstance(input, NestedTensor) or isinstance(weight, NestedTensor):
        raise RuntimeError("linear(): only the input may be a nested tensor")
    if input.ragged == input.dim() - 1:
        raise RuntimeError("linear(): not supported for NestedTensor on ragged dim")
    return like(input, func(input.elements, weight, bias))


@by_name("matmul", "bmm", "__matmul__")
def matmul(func: Any, a: Any, b: Any) -> Any:
    """A product with a dense matrix, with a matrix per sequence, or of two nested tensors along their sequences."""
    inner = isinstance(a, NestedTensor) and isinstance(b, NestedTensor)
    if inner and a.symbol == b.symbol and a.ragged == a.dim() - 1 and b.ragged == b.dim() - 2:
        return padded(a, 0).matmul(padded(b, 0))
    if inner or not isinstance(a, NestedTensor) or a.ragged == a.dim() - 1:
        shapes = [tuple(t.shape) if isinstance(t, NestedTensor) else t.shape for t in (a, b)]
        raise RuntimeError(
            f"matmul(): not supported between inputs of shapes ({', '.join(map(str, shapes[0]))}) and {b.shape}"
        )
    assert isinstance(b, Tensor)
    if b.dim() <= 2:
        return like(a, a.elements.matmul(b))
    return unpadded(padded(a, 0).matmul(b), a)


@by_name("scaled_dot_product_attention")
def attention(
    func: Any, query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0,
    is_causal: bool = False, *, scale: float | None = None, enable_gqa: bool = False,
) -> Any:  # fmt: skip
    """Attention within each sequence, for tensors of shape (batch, heads, ragged, size)."""
    _check_attention(query, key, value, attn_mask)
    if query.dim() == 3:
        one_head = [
            t.transpose(1, 2).unsqueeze(1).transpose(2, 3) if t.ragged == 2 else t.unsqueeze(1)
            for t in (query, key, value)
        ]
        return attention(func, *one_head, None, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa).squeeze(1)
    if query.ragged == 1:
        # The heads of each element attend to each other.
        values = (t.elements for t in (query, key, value))
        return like(query, func(*values, None, dropout_p, is_causal, scale=scale))
    torch = names_of("torch")
    q, k, v = (padded(t, 0) for t in (query, key, value))
    key_index = torch["arange"](k.shape[2])
    mask = (key_index < lengths(key)[:, None])[:, None, None, :]
    if is_causal:
        mask = mask & (key_index <= torch["arange"](q.shape[2])[:, None])
    return unpadded(func(q, k, v, mask, dropout_p, False, scale=scale, enable_gqa=enable_gqa), query)


def _check_attention(query: Any, key: Any, value: Any, mask: Any) -> None:
    for name, t in (("query", query), ("key", key), ("value", value)):
        if not isinstance(t, NestedTensor):
            raise ValueError(
                "Expected query, key, and value to be either all nested or all dense, but got a dense "
                f"{name} of shape {tuple(t.shape)}"
            )
        if t.dim() not in (3, 4):
            raise ValueError(f"Expected {name} to be 3 or 4 dimensional, but got {t.dim()} dimensions")
    if mask is not None:
        raise ValueError("Masks are not yet supported!")
    if key.symbol != value.symbol:
        raise ValueError("Expected key and value to have the same offsets")
    if query.ragged != key.ragged or key.ragged != value.ragged:
        raise ValueError("Expected query, key, and value to have the same ragged dimension")
