"""Reductions of nested tensors over ragged and other dimensions, softmax and normalization."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from compat._core.tensor.overridable_names import without_prefix
from compat._core.types.dtype import bool_, iinfo
from compat._core.types.errors import wrap_dim
from compat.nested._internal.nested_tensor import (
    NestedTensor,
    functions_of,
    lengths,
    like,
    packed,
    padded,
    unpadded,
)

by_name = functions_of(NestedTensor)


def _smallest_value(t: NestedTensor) -> Any:
    if t.dtype.is_floating_point:
        return -math.inf
    return False if t.dtype is bool_ else iinfo(t.dtype).min


def _largest_value(t: NestedTensor) -> Any:
    if t.dtype.is_floating_point:
        return math.inf
    return True if t.dtype is bool_ else iinfo(t.dtype).max


#: The identities of reductions, by function name.
_IDENTITIES: dict[str, Callable[[NestedTensor], Any]] = {
    "sum": lambda t: 0, "mean": lambda t: 0, "prod": lambda t: 1, "any": lambda t: 0, "all": lambda t: 1,
    "amax": _smallest_value, "max": _smallest_value, "argmax": _smallest_value, "logsumexp": _smallest_value,
    "amin": _largest_value, "min": _largest_value, "argmin": _largest_value,
}  # fmt: skip


@by_name(*_IDENTITIES)
def reduce(func: Any, t: NestedTensor, dim: Any = None, keepdim: bool = False, **named: Any) -> Any:
    """A reduction of all elements, along sequences, over all sequences, or over other dimensions."""
    name = without_prefix(func.__name__)
    if isinstance(dim, NestedTensor):
        raise NotImplementedError(f"aten.{name}.other: nested tensors of layout {t.layout} do not support it")
    if dim is None:
        return func(packed(t), **named)
    single = isinstance(dim, int)
    dims = sorted(wrap_dim(d, t.dim()) for d in ([dim] if single else dim))
    _check_dims(name, t, dims)
    if 0 in dims:
        inner = [d - 1 for d in dims if d]
        found = func(packed(t), inner, keepdim, **named)
        return found.unsqueeze(0) if keepdim else found
    if t.ragged in dims:
        return _along_sequences(name, func, t, keepdim, **named)
    values = func(t.elements, dims[0] - 1 if single else [d - 1 for d in dims], keepdim, **named)
    ragged = t.ragged if keepdim else t.ragged - sum(d < t.ragged for d in dims)
    if isinstance(values, tuple):
        return type(values)([like(t, v, ragged) for v in values])
    return like(t, values, ragged)


def _check_dims(name: str, t: NestedTensor, dims: list[int]) -> None:
    if 0 in dims and t.ragged not in dims:
        raise RuntimeError(
            f"{name}(): reducing along the batch dimension but not the ragged dimension is not supported for "
            "nested tensors"
        )
    if t.ragged in dims and 0 not in dims and len(dims) > 1:
        raise RuntimeError(
            f"{name}(): reducing along a ragged and non-batch dimension is not supported for nested tensors"
        )


def _along_sequences(name: str, func: Any, t: NestedTensor, keepdim: bool, **named: Any) -> Any:
    """A reduction along each sequence, to a dense tensor."""
    dense = padded(t, _IDENTITIES[name](t))
    if name != "mean":
        return func(dense, t.ragged, keepdim, **named)
    counts = lengths(t).to(t.dtype)
    total = dense.sum(t.ragged, keepdim=keepdim, **named)
    return total / counts.reshape(-1, *[1] * (total.dim() - 1)).to(total.dtype)


@by_name("softmax", "log_softmax", "_softmax", "_log_softmax")
def softmax(func: Any, t: NestedTensor, dim: int | None = None, *args: Any, **named: Any) -> Any:
    """A softmax along each sequence, or along another dimension."""
    name = without_prefix(func.__name__)
    if dim is None:
        raise RuntimeError(f"{name}(): a dimension is needed for nested tensors")
    dim = wrap_dim(dim, t.dim())
    if dim == 0:
        raise RuntimeError(f"{name}(): not supported when reducing across the batch dimension for NestedTensor")
    if dim != t.ragged:
        return like(t, func(t.elements, dim - 1, *args, **named))
    if name.endswith("log_softmax"):
        raise RuntimeError(f"{name}(): not supported when reducing along the ragged dimension for NestedTensor")
    return unpadded(func(padded(t, -math.inf), dim, *args, **named), t)


@by_name("layer_norm", "rms_norm")
def normalize(func: Any, t: NestedTensor, normalized_shape: Any, *args: Any, **named: Any) -> Any:
    """Normalization over the last dimensions."""
    if len(tuple(normalized_shape)) > t.dim() - 1 - t.ragged:
        size = list(t.elements.shape)
        raise RuntimeError(
            f"Given normalized_shape={list(normalized_shape)}, expected input with shape "
            f"[*, {', '.join(map(str, normalized_shape))}], but got input of size{size}"
        )
    return like(t, func(t.elements, normalized_shape, *args, **named))
