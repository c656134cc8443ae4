"""Views, parts and concatenations of nested tensors."""

from __future__ import annotations

from typing import Any

from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import array_of, from_array
from compat._core.types.errors import wrap_dim
from compat.nested._internal.nested_tensor import (
    NestedTensor,
    functions_of,
    jagged,
    lengths,
    like,
    padded,
    sequences,
)
from compat.nested._internal.ragged_size import RaggedSize

by_name = functions_of(NestedTensor)


def _inner(name: str, t: NestedTensor, dim: int) -> int:
    """The dimension of the values for a dimension other than the batch and the ragged one."""
    dim = wrap_dim(dim, t.dim())
    if dim == 0:
        raise RuntimeError(f"{name}(): not supported for NestedTensor on dim=0")
    if dim == t.ragged:
        raise RuntimeError(f"{name}(): not supported for NestedTensor on ragged dim")
    return dim - 1


@by_name("unbind")
def unbind(func: Any, t: NestedTensor, dim: int = 0) -> Any:
    """The sequences as dense tensors."""
    if wrap_dim(dim, t.dim()) != 0:
        raise RuntimeError("unbind(): only supported for NestedTensor on dim=0")
    return sequences(t)


@by_name("__iter__")
def iterated(func: Any, t: NestedTensor) -> Any:
    """The sequences as dense tensors."""
    return iter(sequences(t))


@by_name("select")
def select(func: Any, t: NestedTensor, dim: int, index: Any) -> Any:
    """A sequence, or the slice at one index of another dimension."""
    if wrap_dim(dim, t.dim()) == 0:
        return sequences(t)[index]
    inner = _inner("select", t, dim)
    return like(t, t.elements.select(inner, index), t.ragged - (inner < t.ragged - 1))


@by_name("__getitem__")
def subscript(func: Any, t: NestedTensor, index: Any) -> Any:
    """A sequence, a part of one, or an index of the last dimensions after an ellipsis."""
    given = index if isinstance(index, tuple) else (index,)
    first, rest = given[0], given[1:]
    if isinstance(first, int):
        found = sequences(t)[first]
        return found[rest] if rest else found
    if first is Ellipsis and len(rest) <= t.dim() - 1 - t.ragged:
        return like(t, t.elements[(Ellipsis, *rest)])
    raise RuntimeError("slice(): not supported for NestedTensor on dim=0")


@by_name("transpose", "swapaxes", "swapdims")
def transpose(func: Any, t: NestedTensor, dim0: int, dim1: int) -> Any:
    """Exchanges two dimensions."""
    dim0, dim1 = wrap_dim(dim0, t.dim()), wrap_dim(dim1, t.dim())
    if dim0 == dim1:
        return like(t, t.elements)
    if 0 in (dim0, dim1):
        raise ValueError("Transpose is not supported on the batch dimension for jagged NT")
    ragged = {dim0: dim1, dim1: dim0}.get(t.ragged, t.ragged)
    return like(t, t.elements.transpose(dim0 - 1, dim1 - 1), ragged)


@by_name("permute")
def permute(func: Any, t: NestedTensor, *dims: Any) -> Any:
    """Permutes the dimensions, of which the batch stays first."""
    order = [wrap_dim(d, t.dim()) for d in (dims[0] if len(dims) == 1 else dims)]
    if order[0] != 0:
        raise ValueError("Permute is not supported on the batch dimension for jagged NT")
    return like(t, t.elements.permute([d - 1 for d in order[1:]]), order.index(t.ragged))


@by_name("unsqueeze")
def unsqueeze(func: Any, t: NestedTensor, dim: int) -> Any:
    """Inserts a dimension of size 1."""
    dim = wrap_dim(dim, t.dim() + 1)
    if dim == 0:
        raise RuntimeError("unsqueeze(): not supported for NestedTensor on dim=0")
    return like(t, t.elements.unsqueeze(dim - 1), t.ragged + (dim <= t.ragged))


@by_name("squeeze")
def squeeze(func: Any, t: NestedTensor, dim: int) -> Any:
    """Removes a dimension of size 1."""
    inner = _inner("squeeze", t, dim)
    if t.elements.shape[inner] != 1:
        return like(t, t.elements)
    return like(t, t.elements.squeeze(inner), t.ragged - (inner < t.ragged - 1))


@by_name("view", "reshape")
def reshape(func: Any, t: NestedTensor, *size: Any) -> Any:
    """Reshapes the dimensions other than the batch and the ragged one; the latter is given by its symbol or -1."""
    wanted = list(size[0] if len(size) == 1 and isinstance(size[0], (tuple, list)) else size)
    candidates = [i for i, n in enumerate(wanted) if isinstance(n, RaggedSize) or n == -1]
    if len(wanted) < 2 or wanted[0] not in (len(t), -1) or not any(candidates):
        raise RuntimeError(f"{func.__name__}(): cannot view shape {tuple(t.shape)} as {tuple(wanted)}")
    ragged = next((i for i in candidates if isinstance(wanted[i], RaggedSize)), next(i for i in candidates if i))
    inner = [t.elements.shape[t.ragged - 1] if i == ragged else n for i, n in enumerate(wanted)][1:]
    return like(t, func(t.elements, inner), ragged)


@by_name("view_as", "reshape_as")
def reshape_as(func: Any, t: Any, other: Any) -> Any:
    """Reshapes to the size of another tensor."""
    return getattr(t, func.__name__.removesuffix("_as"))(*other.shape)


@by_name("expand")
def expand(func: Any, t: NestedTensor, *size: Any) -> Any:
    """Expands dimensions of size 1."""
    wanted = list(size[0] if len(size) == 1 and isinstance(size[0], (tuple, list)) else size)
    inner = [-1 if i == t.ragged else n for i, n in enumerate(wanted)][1:]
    return like(t, t.elements.expand(inner))


@by_name("unflatten")
def unflatten(func: Any, t: NestedTensor, dim: int, sizes: Any) -> Any:
    """Splits a dimension into several."""
    inner = _inner("unflatten", t, dim)
    return like(t, t.elements.unflatten(inner, sizes), t.ragged + (len(sizes) - 1) * (inner < t.ragged - 1))


@by_name("flatten")
def flatten(func: Any, t: NestedTensor, start_dim: int = 0, end_dim: int = -1) -> Any:
    """Flattens several dimensions into one."""
    start, end = wrap_dim(start_dim, t.dim()), wrap_dim(end_dim, t.dim())
    if start == 0:
        raise RuntimeError("flatten(): not supported for NestedTensor on dim=0")
    if start <= t.ragged <= end:
        raise RuntimeError("flatten(): not supported for NestedTensor on ragged dim")
    return like(t, t.elements.flatten(start - 1, end - 1), t.ragged - (end - start) * (end < t.ragged))


@by_name("chunk", "split", "narrow", "unsafe_chunk", "unsafe_split")
def cut(func: Any, t: NestedTensor, *args: Any, dim: int = 0, **named: Any) -> Any:
    """Parts along a dimension that is not ragged."""
    name = func.__name__
    if name == "narrow":
        dim, args = args[0], args[1:]
        return like(t, t.elements.narrow(_inner(name, t, dim), *args, **named))
    if len(args) > 1:
        dim = args[1]
    if wrap_dim(dim, t.dim()) == 0 and name == "chunk":
        return _chunks(t, int(args[0]))
    return tuple(like(t, part) for part in func(t.elements, args[0], _inner(name, t, dim), **named))


def _chunks(t: NestedTensor, count: int) -> tuple[NestedTensor, ...]:
    """Chunks along the batch dimension."""
    per = -(-len(t) // count)
    starts, counts = array_of(t.starts), array_of(lengths(t))
    found = []
    for first in range(0, len(t), per):
        last = min(first + per, len(t))
        begin, end = int(starts[first]), int(starts[last])
        part = t.elements.narrow(t.ragged - 1, begin, end - begin)
        kept = None if t.counts is None else from_array(counts[first:last].copy())
        found.append(jagged(part, from_array(starts[first : last + 1] - begin), kept, t.ragged))
    return tuple(found)


@by_name("cat", "concat", "concatenate")
def cat(func: Any, tensors: Any, dim: int = 0) -> Any:
    """Concatenates along a dimension other than the batch and the ragged one."""
    first = next(t for t in tensors if isinstance(t, NestedTensor))
    inner = _inner(func.__name__, first, dim)
    if not all(isinstance(t, NestedTensor) and t.symbol == first.symbol for t in tensors):
        raise RuntimeError("cat(): expected nested tensors with the same offsets")
    return like(first, names_of("torch")["cat"]([t.elements for t in tensors], inner))


@by_name("stack")
def stack(func: Any, tensors: Any, dim: int = 0) -> Any:
    """Stacks along a new dimension."""
    first = next(t for t in tensors if isinstance(t, NestedTensor))
    if wrap_dim(dim, first.dim() + 1) == 0:
        raise RuntimeError("stack(): not supported for NestedTensor on dim=0")
    return cat(func, [unsqueeze(func, t, dim) for t in tensors], dim)


@by_name("to_padded_tensor")
def to_padded_tensor(func: Any, t: NestedTensor, padding: float, output_size: Any = None) -> Any:
    """A dense tensor of the padded sequences."""
    if output_size is not None and len(output_size) != t.dim():
        raise RuntimeError(f"to_padded_tensor(): output_size has {len(output_size)} dimensions, expected {t.dim()}")
    return padded(t, padding, None if output_size is None else int(output_size[t.ragged]))


@by_name("requires_grad_")
def requires_grad_(func: Any, t: NestedTensor, requires_grad: bool = True) -> Any:
    """Sets whether the values require grad."""
    t.elements.requires_grad_(requires_grad)
    return t
