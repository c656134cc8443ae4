"""ONNX translations of indexing, shape and joining operators."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from compat._core.dispatch.overrides import unwatched
from compat._core.tensor.registry import names_of
from compat._core.types import dtype as dtypes
from compat.onnx._builder import Builder, Size, as_array, fixed
from compat.onnx._table import Value, aten

_END = np.iinfo(np.int64).max


@aten("view", "_unsafe_view", "reshape", "_reshape_alias")
def _view(b: Builder, node: Any, x: Value, size: Any, *rest: Any) -> str:
    return b.op("Reshape", x.name, b.ints(*size), allowzero=1 if 0 in size else None)


@aten("unsqueeze")
def _unsqueeze(b: Builder, node: Any, x: Value, dim: int) -> str:
    return b.op("Unsqueeze", x.name, b.ints(dim))


@aten("squeeze")
def _squeeze(b: Builder, node: Any, x: Value, dim: Any = None) -> str:
    dims = range(x.tensor.dim()) if dim is None else [dim] if isinstance(dim, int) else dim
    ones = [d for d in dims if x.tensor.dim() and x.shape[d] == 1]
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
    return b.op("Expand", x.name, b.ints(*[1 if n == -1 else n for n in size]))


@aten("repeat")
def _repeat(b: Builder, node: Any, x: Value, repeats: Any) -> str:
    name = x.name
    if len(repeats) > x.tensor.dim():
        shape = [1] * (len(repeats) - x.tensor.dim()) + x.shape
        name = b.op("Reshape", name, b.ints(*shape))
    return b.op("Tile", name, b.ints(*repeats))


@aten("select")
def _select(b: Builder, node: Any, x: Value, dim: int, index: int) -> str:
    return b.op("Gather", x.name, b.integer(index), axis=dim)


@aten("slice")
def _slice(b: Builder, node: Any, x: Value, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> str:
    first, last = 0 if start is None else start, _END if end is None else end
    return b.op("Slice", x.name, b.ints(first), b.ints(last), b.ints(dim), b.ints(step))


@aten("narrow")
def _narrow(b: Builder, node: Any, x: Value, dim: int, start: int, length: int) -> str:
    return _slice(b, node, x, dim, start, start + length)


@aten("split", "split_with_sizes", "chunk", "unsafe_split", "_unsafe_split")
def _split(b: Builder, node: Any, x: Value, size: Any, dim: int = 0, *count: int) -> list[str]:
    return b.split(x.name, [shape[dim] for shape in b.shapes[node]], dim)


@aten("unbind")
def _unbind(b: Builder, node: Any, x: Value, dim: int = 0) -> list[str]:
    return [_select(b, node, x, dim, n) for n in range(fixed(x.shape[dim], "the number of parts"))]


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
    before, after = _padding(x, pad)
    return b.op("Pad", x.name, b.ints(*before, *after), b.like(value, x.tensor))


def _padding(x: Value, pad: Any) -> tuple[list[Any], list[Any]]:
    """The padding before and after each dimension."""
    before: list[Any] = [0] * x.tensor.dim()
    after: list[Any] = [0] * x.tensor.dim()
    for n in range(len(pad) // 2):
        before[-1 - n], after[-1 - n] = pad[2 * n], pad[2 * n + 1]
    return before, after


@aten("reflection_pad1d", "reflection_pad2d", "reflection_pad3d", "replication_pad1d", "replication_pad2d",
      "replication_pad3d")  # fmt: skip
def _edge_pad(b: Builder, node: Any, x: Value, pad: Any) -> str:
    before, after = _padding(x, pad)
    mode = "reflect" if node.target._opname.startswith("reflection") else "edge"
    return b.op("Pad", x.name, b.ints(*before, *after), mode=mode)


@aten("embedding_bag", "_embedding_bag", "_embedding_bag_forward_only")
def _embedding_bag(
    b: Builder, node: Any, weight: Value, indices: Value, offsets: Value, scale_grad: bool = False, mode: int = 0,
    sparse: bool = False, per_sample_weights: Value | None = None, last: bool = False, padding: Any = None,
) -> list[str]:  # fmt: skip
    if padding not in (None, -1):
        raise NotImplementedError("embedding_bag with a padding_idx")
    rows = b.op("Gather", weight.name, indices.name)
    if per_sample_weights is not None:
        rows = b.op("Mul", rows, b.op("Unsqueeze", per_sample_weights.name, b.ints(1)))
    # The bag of a row is the number of bags that begin at or before it, minus one; masks select the rows of each bag.
    count = b.op("Range", b.integer(0), b.integer(indices.shape[0]), b.integer(1))
    starts = offsets.cast(b, "int64")
    begun = b.op("LessOrEqual", b.op("Unsqueeze", starts, b.ints(0)), b.op("Unsqueeze", count, b.ints(1)))
    bag = b.op("ReduceSum", b.op("Cast", begun, to=b.onnx.TensorProto.INT64), b.ints(1), keepdims=1)
    bag = b.op("Expand", b.op("Sub", bag, b.ints(1)), b.ints(indices.shape[0], weight.shape[1]))
    bags = b.shapes[node][0]
    initial = b.op("Expand", b.like(-np.inf if mode == 2 else 0, weight.tensor), b.ints(*bags))
    found = b.op("ScatterElements", initial, bag, rows, axis=0, reduction="max" if mode == 2 else "add")
    if mode == 2:
        found = b.op("Where", b.op("IsInf", found), b.like(0, weight.tensor), found)
    if mode == 1:
        one = b.op("Expand", b.like(1, weight.tensor), b.ints(indices.shape[0], weight.shape[1]))
        none = b.op("Expand", b.like(0, weight.tensor), b.ints(*bags))
        number = b.op("ScatterElements", none, bag, one, axis=0, reduction="add")
        found = b.op("Div", found, b.op("Max", number, b.like(1, weight.tensor)))
    return [found, "", "", ""]


@aten("one_hot")
def _one_hot(b: Builder, node: Any, x: Value, classes: int = -1) -> str:
    return b.op("OneHot", x.name, b.ints(b.shapes[node][0][-1]), b.ints(0, 1))


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
    dims = [d for d, _ in given]
    rest = [d for d in range(x.tensor.dim()) if d not in dims]
    name = x.name if dims == [*range(len(dims))] else b.op("Transpose", x.name, perm=[*dims, *rest])
    columns = [b.op("Unsqueeze", part, b.ints(-1)) for part in _broadcast(b, [i for _, i in given])]
    found = b.op("GatherND", name, b.op("Concat", *columns, axis=-1))
    first = dims[0]
    if first == 0 or dims != [*range(first, first + len(dims))]:
        return found
    # The dimensions of adjacent indices stay at their position.
    count = node.meta["val"].dim() - len(rest)
    places = [*range(count, count + first), *range(count), *range(count + first, count + len(rest))]
    return b.op("Transpose", found, perm=places)


def _broadcast(b: Builder, indices: list[Value]) -> list[str]:
    """Indices broadcast to their common shape."""
    names = [i.cast(b, "int64") for i in indices]
    zeros, *others = [b.op("Sub", name, name) for name in names]
    for other in others:
        zeros = b.op("Add", zeros, other)  # zeros of the common shape
    return [b.op("Add", name, zeros) for name in names]


@aten("index_put")
def _index_put(
    b: Builder, node: Any, x: Value, indices: Any, values: Value, accumulate: bool = False, *rest: Any
) -> str:
    given = [(d, i) for d, i in enumerate(indices) if i is not None]
    if len(given) == 1 and given[0][0] == 0 and given[0][1].tensor.dtype == dtypes.bool_ and not accumulate:
        mask = given[0][1]
        if values.tensor.numel() != 1:
            raise NotImplementedError("index_put with a mask and several values")
        ones = [1] * (x.tensor.dim() - mask.tensor.dim())
        shaped = b.op("Reshape", mask.name, b.ints(*mask.shape, *ones)) if ones else mask.name
        return b.op("Where", shaped, b.op("Reshape", values.to(b, x.tensor), b.ints(1)), x.name)
    if [d for d, _ in given] != list(range(len(given))) or any(i.tensor.dtype == dtypes.bool_ for _, i in given):
        raise NotImplementedError("writing at indices of dimensions that are not the first ones, or at masks")
    columns = [b.op("Unsqueeze", part, b.ints(-1)) for part in _broadcast(b, [i for _, i in given])]
    where = b.op("Concat", *columns, axis=-1)
    shape = b.op("Concat", b.op("Shape", columns[0], end=-1), b.ints(*x.shape[len(given) :]), axis=0)
    new = b.op("Expand", values.to(b, x.tensor), shape)
    return b.op("ScatterND", x.name, where, new, reduction="add" if accumulate else None)


@aten("scatter", "scatter_add")
def _scatter(b: Builder, node: Any, x: Value, dim: int, index: Value, src: Any, **rest: Any) -> str:
    reduce = rest.get("reduce") or ("add" if node.target._opname.startswith("scatter_add") else None)
    reduction = {"add": "add", "multiply": "mul", None: None}[reduce]
    if isinstance(src, Value):
        if list(src.tensor.shape) != list(index.tensor.shape):
            raise NotImplementedError("a source of another shape than the index")
        new = src.to(b, x.tensor)
    else:
        new = b.op("Expand", b.like(src, x.tensor), b.ints(*index.shape))
    return b.op("ScatterElements", x.name, index.name, new, axis=dim, reduction=reduction)


@aten("take")
def _take(b: Builder, node: Any, x: Value, index: Value) -> str:
    return b.op("Gather", b.op("Reshape", x.name, b.ints(-1)), index.name)


@aten("index_add", "index_copy", "index_fill")
def _index_write(b: Builder, node: Any, x: Value, dim: int, index: Value, source: Any, **rest: Any) -> str:
    dim %= max(x.tensor.dim(), 1)
    shape = [*x.shape]
    shape[dim] = index.shape[0] if index.shape else 1
    ones = [-1 if d == dim else 1 for d in range(len(shape))]
    where = b.op("Expand", b.op("Reshape", index.cast(b, "int64"), b.ints(*ones)), b.ints(*shape))
    new = source.to(b, x.tensor) if isinstance(source, Value) else b.like(source, x.tensor)
    if rest.get("alpha", 1) != 1:
        new = b.op("Mul", new, b.like(rest["alpha"], x.tensor))
    reduction = "add" if node.target._opname.startswith("index_add") else None
    return b.op("ScatterElements", x.name, where, b.op("Expand", new, b.ints(*shape)), axis=dim, reduction=reduction)


@aten("nonzero")
def _nonzero(b: Builder, node: Any, x: Value) -> str:
    return b.op("Transpose", b.op("NonZero", x.name), perm=[1, 0])


@aten("tril", "triu")
def _triangle(b: Builder, node: Any, x: Value, diagonal: int = 0) -> str:
    upper = int(node.target._opname.startswith("triu"))
    return b.op("Trilu", x.name, b.constant(diagonal, np.int64), upper=upper)


@aten("roll")
def _roll(b: Builder, node: Any, x: Value, shifts: Any, dims: Any = ()) -> str:
    shifts, dims = [[v] if isinstance(v, int) else list(v) for v in (shifts, dims)]
    if not dims:
        whole = Value(b.op("Reshape", x.name, b.ints(-1)), x.tensor.reshape(-1), [b.product(x.shape)])
        return b.op("Reshape", _roll(b, node, whole, shifts, [0]), b.ints(*x.shape))
    name = x.name
    for shift, dim in zip(shifts, dims):
        n = x.shape[dim]
        shift = shift if isinstance(n, Size) else shift % max(n, 1)
        if shift:
            first = b.op("Slice", name, b.ints(-shift), b.ints(_END), b.ints(dim))
            name = b.op("Concat", first, b.op("Slice", name, b.ints(0), b.ints(-shift), b.ints(dim)), axis=dim)
    return name


@aten("flip")
def _flip(b: Builder, node: Any, x: Value, dims: Any) -> str:
    name = x.name
    for dim in dims:
        name = b.op("Slice", name, b.ints(-1), b.ints(-_END), b.ints(dim), b.ints(-1))
    return name


@aten(
    "as_strided", "diagonal", "diagonal_copy", "diag_embed", "unfold", "im2col", "rot90", "channel_shuffle",
    "native_channel_shuffle", "pixel_unshuffle",
)  # fmt: skip
def _moved(b: Builder, node: Any, x: Value, *args: Any, **kwargs: Any) -> str:
    """Operators that move elements and add zeros, translated by their result for the numbers from 1 on.

    Raises:
        NotImplementedError: for dynamic sizes, other than that of a batch whose rows are moved in the same way.
    """
    result = b.shapes[node][0]
    sizes = [n.example if isinstance(n, Size) else n for n in x.shape]
    rows = sizes[0] if isinstance(x.shape[0], Size) and x.shape[0] == result[0] else 1
    for n in (*x.shape[rows > 1 :], *result[rows > 1 :]):
        fixed(n, f"a size of the tensors of {node.target._opname}")
    with unwatched():
        numbers = names_of("torch")["arange"](1.0, math.prod(sizes) + 1, dtype=dtypes.float64).reshape(sizes)
        if node.target._opname == "as_strided" and not x.tensor.is_contiguous():
            numbers = names_of("torch")["empty_strided"](sizes, x.tensor.stride(), dtype=dtypes.float64).copy_(numbers)
        places = as_array(node.target(numbers, *args, **kwargs)).astype(np.int64).reshape(rows, -1)
    row_size = math.prod(sizes) // rows
    steps = np.arange(rows)[:, None] * row_size
    if (np.where(places > 0, places - steps, 0) != places[0]).any() or places[0].max(initial=0) > row_size:
        raise NotImplementedError("a dynamic first size, with rows whose elements move differently")
    name = b.op("Reshape", x.name, b.ints(*([-1, row_size] if rows > 1 else [1, -1])))
    if (places == 0).any():
        before = b.op("Pad", name, b.ints(0, 1, 0, 0), b.like(0, x.tensor))
        name, places = before, places + 1
    moved = b.op("Gather", name, b.constant(places[0] - 1, np.int64), axis=1)
    return b.op("Reshape", moved, b.ints(*result))


@aten("col2im")
def _col2im(b: Builder, node: Any, x: Value, size: Any, kernel: Any, dilation: Any, padding: Any, stride: Any) -> str:
    return b.op("Col2Im", x.name, b.ints(*size), b.ints(*kernel), dilations=list(dilation), strides=list(stride),
                pads=[*padding, *padding])  # fmt: skip
