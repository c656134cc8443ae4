"""How operators that move, pick and join elements are written in ONNX."""

from __future__ import annotations

from typing import Any

import numpy as np

from compat.onnx._builder import Builder
from compat.onnx._table import Value, aten

_END = np.iinfo(np.int64).max


@aten("view", "_unsafe_view", "reshape", "_reshape_alias")
def _view(b: Builder, node: Any, x: Value, size: Any, *rest: Any) -> str:
    shape = [int(n) for n in size]
    return b.op("Reshape", x.name, b.ints(*shape), allowzero=1 if 0 in shape else None)


@aten("unsqueeze")
def _unsqueeze(b: Builder, node: Any, x: Value, dim: int) -> str:
    return b.op("Unsqueeze", x.name, b.ints(dim))


@aten("squeeze")
def _squeeze(b: Builder, node: Any, x: Value, dim: Any = None) -> str:
    dims = range(x.tensor.dim()) if dim is None else [dim] if isinstance(dim, int) else dim
    ones = [d for d in dims if x.tensor.dim() and x.tensor.shape[d] == 1]
    return b.op("Squeeze", x.name, b.ints(*ones)) if ones else x.name


@aten("permute")
def _permute(b: Builder, node: Any, x: Value, dims: Any) -> str:
    return b.op("Transpose", x.name, perm=[d % x.tensor.dim() for d in dims])


@aten("transpose", "t")
def _transpose(b: Builder, node: Any, x: Value, first: int = 0, second: int = 1) -> str:
    order = list(range(x.tensor.dim()))
    if len(order) < 2:
        return x.name
    order[first], order[second] = order[second], order[first]
    return b.op("Transpose", x.name, perm=order)


@aten("expand")
def _expand(b: Builder, node: Any, x: Value, size: Any, **rest: Any) -> str:
    return b.op("Expand", x.name, b.ints(*[1 if n == -1 else int(n) for n in size]))


@aten("repeat")
def _repeat(b: Builder, node: Any, x: Value, repeats: Any) -> str:
    name = x.name
    if len(repeats) > x.tensor.dim():
        shape = [1] * (len(repeats) - x.tensor.dim()) + list(x.tensor.shape)
        name = b.op("Reshape", name, b.ints(*shape))
    return b.op("Tile", name, b.ints(*repeats))


@aten("select")
def _select(b: Builder, node: Any, x: Value, dim: int, index: int) -> str:
    return b.op("Gather", x.name, b.constant(index, np.int64), axis=dim)


@aten("slice")
def _slice(b: Builder, node: Any, x: Value, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> str:
    first, last = 0 if start is None else start, _END if end is None else end
    return b.op("Slice", x.name, b.ints(first), b.ints(last), b.ints(dim), b.ints(step))


@aten("narrow")
def _narrow(b: Builder, node: Any, x: Value, dim: int, start: int, length: int) -> str:
    return _slice(b, node, x, dim, start, start + length)


@aten("split", "split_with_sizes", "chunk", "unsafe_split")
def _split(b: Builder, node: Any, x: Value, size: Any, dim: int = 0) -> list[str]:
    parts = node.meta["val"]
    sizes = [p.shape[dim] for p in parts]
    found = b.op("Split", x.name, b.ints(*sizes), outputs=len(sizes), axis=dim)
    return [found] if len(sizes) == 1 else found


@aten("unbind")
def _unbind(b: Builder, node: Any, x: Value, dim: int = 0) -> list[str]:
    return [_select(b, node, x, dim, n) for n in range(x.tensor.shape[dim])]


@aten("cat")
def _cat(b: Builder, node: Any, tensors: list[Value], dim: int = 0) -> str:
    taken = [t.to(b, node.meta["val"]) for t in tensors if t.tensor.shape != (0,)]
    return b.op("Concat", *taken, axis=dim)


@aten("stack")
def _stack(b: Builder, node: Any, tensors: list[Value], dim: int = 0) -> str:
    axis = dim % node.meta["val"].dim()
    parts = [b.op("Unsqueeze", t.to(b, node.meta["val"]), b.ints(axis)) for t in tensors]
    return b.op("Concat", *parts, axis=axis)


@aten("constant_pad_nd")
def _pad(b: Builder, node: Any, x: Value, pad: Any, value: Any = 0) -> str:
    before, after = [0] * x.tensor.dim(), [0] * x.tensor.dim()
    for n in range(len(pad) // 2):
        before[-1 - n], after[-1 - n] = pad[2 * n], pad[2 * n + 1]
    return b.op("Pad", x.name, b.ints(*before, *after), b.like(value, x.tensor))


@aten("embedding")
def _embedding(b: Builder, node: Any, weight: Value, indices: Value, *rest: Any) -> str:
    return b.op("Gather", weight.name, indices.name)


@aten("index_select")
def _index_select(b: Builder, node: Any, x: Value, dim: int, index: Value) -> str:
    return b.op("Gather", x.name, index.name, axis=dim)


@aten("gather")
def _gather(b: Builder, node: Any, x: Value, dim: int, index: Value, **rest: Any) -> str:
    return b.op("GatherElements", x.name, index.name, axis=dim)


@aten("index")
def _index(b: Builder, node: Any, x: Value, indices: Any) -> str:
    given = [(d, i) for d, i in enumerate(indices) if i is not None]
    if len(given) == 1:
        dim, index = given[0]
        return b.op("Gather", x.name, index.cast(b, "int64"), axis=dim)
    if [d for d, _ in given] != list(range(len(given))):
        raise NotImplementedError("indices of several dimensions that are not the first ones")
    shape = np.broadcast_shapes(*[tuple(i.tensor.shape) for _, i in given])
    parts = [b.op("Expand", i.cast(b, "int64"), b.ints(*shape)) for _, i in given]
    columns = [b.op("Unsqueeze", part, b.ints(len(shape))) for part in parts]
    return b.op("GatherND", x.name, b.op("Concat", *columns, axis=len(shape)))


@aten("tril", "triu")
def _triangle(b: Builder, node: Any, x: Value, diagonal: int = 0) -> str:
    upper = int(node.target._opname.startswith("triu"))
    return b.op("Trilu", x.name, b.constant(diagonal, np.int64), upper=upper)


@aten("roll")
def _roll(b: Builder, node: Any, x: Value, shifts: Any, dims: Any = ()) -> str:
    name = x.name
    for shift, dim in zip(shifts, dims):
        n = x.tensor.shape[dim]
        order = [(k - shift) % n for k in range(n)]
        name = b.op("Gather", name, b.ints(*order), axis=dim)
    return name


@aten("flip")
def _flip(b: Builder, node: Any, x: Value, dims: Any) -> str:
    name = x.name
    for dim in dims:
        name = b.op("Slice", name, b.ints(-1), b.ints(-_END), b.ints(dim), b.ints(-1))
    return name


def _in_memory(strides: Any) -> list[int]:
    """The dimensions in the order of memory."""
    return sorted(range(len(strides)), key=lambda d: -strides[d])


def _is_dense(size: Any, stride: Any) -> bool:
    expected = 1
    for d in reversed(_in_memory([s if n > 1 else 0 for n, s in zip(size, stride)])):
        if size[d] > 1:
            if stride[d] != expected:
                return False
            expected *= size[d]
    return True


@aten("as_strided")
def _as_strided(b: Builder, node: Any, x: Value, size: Any, stride: Any, offset: Any = None) -> str:
    t = x.tensor
    if t.numel() != int(np.prod(size)) or not _is_dense(t.shape, t.stride()) or not _is_dense(size, stride):
        raise NotImplementedError(
            f"a view of size {list(size)} and stride {list(stride)}, which is not all of a tensor"
        )
    name = b.op("Transpose", x.name, perm=_in_memory(t.stride()))
    order = _in_memory(stride)
    name = b.op("Reshape", name, b.ints(*[size[d] for d in order]))
    return b.op("Transpose", name, perm=[order.index(d) for d in range(len(order))])
