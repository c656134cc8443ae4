"""ONNX translations of reductions, softmax, sorting and cumulative sums."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from compat._core.types import dtype as dtypes
from compat.onnx._builder import Builder, fixed
from compat.onnx._table import Value, aten


def _axes(x: Value, dim: Any) -> list[int]:
    return list(range(x.tensor.dim())) if dim is None or dim == [] else [dim] if isinstance(dim, int) else list(dim)


def _reduction(name: str, kind: str) -> None:
    @aten(name)
    def write(b: Builder, node: Any, x: Value, dim: Any = None, keepdim: bool = False, **rest: Any) -> str:
        result = node.meta["val"]
        given = x.to(b, result if not isinstance(result, tuple) else result[0])
        found: str = b.op(kind, given, b.ints(*_axes(x, dim)), keepdims=int(keepdim))
        return found


for _name, _kind in {
    "sum": "ReduceSum", "mean": "ReduceMean", "prod": "ReduceProd", "amax": "ReduceMax", "amin": "ReduceMin",
    "logsumexp": "ReduceLogSumExp",
}.items():  # fmt: skip
    _reduction(_name, _kind)


def _truth(name: str, kind: str) -> None:
    @aten(name)
    def write(b: Builder, node: Any, x: Value, dim: Any = None, keepdim: bool = False) -> str:
        numbers = b.op("Cast", x.cast(b, "bool"), to=b.onnx.TensorProto.INT32)
        found: str = b.op("Cast", b.op(kind, numbers, b.ints(*_axes(x, dim)), keepdims=int(keepdim)),
                          to=b.onnx.TensorProto.BOOL)  # fmt: skip
        return found


_truth("any", "ReduceMax")
_truth("all", "ReduceMin")


@aten("max", "min")
def _extreme(b: Builder, node: Any, x: Value, dim: Any = None, keepdim: bool = False) -> Any:
    kind = node.target._opname.capitalize()
    if isinstance(dim, Value):
        like = node.meta["val"]
        return b.op(kind, x.to(b, like), dim.to(b, like))
    if dim is None:
        return b.op(f"Reduce{kind}", x.name, keepdims=0)
    index = b.op(f"Arg{kind}", x.name, axis=dim, keepdims=int(keepdim))
    return [b.op(f"Reduce{kind}", x.name, b.ints(dim), keepdims=int(keepdim)), index]


@aten("argmax", "argmin")
def _arg(b: Builder, node: Any, x: Value, dim: Any = None, keepdim: bool = False) -> str:
    kind = "ArgMax" if node.target._opname == "argmax" else "ArgMin"
    name = x.name if dim is not None else b.op("Reshape", x.name, b.ints(-1))
    return b.op(kind, name, axis=dim or 0, keepdims=int(keepdim))


@aten("var", "var_mean", "std", "std_mean")
def _var(b: Builder, node: Any, x: Value, dim: Any = None, correction: Any = 1, keepdim: bool = False) -> Any:
    axes = _axes(x, dim)
    mean = b.op("ReduceMean", x.name, b.ints(*axes), keepdims=1)
    difference = b.op("Sub", x.name, mean)
    count = b.op("Sub", b.like(b.product(x.shape[a] for a in axes), x.tensor), b.like(correction, x.tensor))
    total = b.op("ReduceSum", b.op("Mul", difference, difference), b.ints(*axes), keepdims=int(keepdim))
    found = b.op("Div", total, count)
    if node.target._opname.startswith("std"):
        found = b.op("Sqrt", found)
    if not node.target._opname.endswith("_mean"):
        return found
    return [found, mean if keepdim else b.op("Squeeze", mean, b.ints(*axes))]


@aten("cumsum")
def _cumsum(b: Builder, node: Any, x: Value, dim: int, **rest: Any) -> str:
    return b.op("CumSum", x.to(b, node.meta["val"]), b.constant(dim, np.int64))


@aten("topk")
def _topk(b: Builder, node: Any, x: Value, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    return b.op("TopK", x.name, b.ints(k), outputs=2, axis=dim, largest=int(largest), sorted=int(sorted))


def _over_dim(b: Builder, kind: str, x: Value, dim: int) -> str:
    """A softmax; before version 13 of ONNX's operators it can only be that of the last dimension."""
    last = x.tensor.dim() - 1
    if last >= 0 and dim % (last + 1) == last:
        return str(b.op(kind, x.name, axis=-1))
    if b.target >= 13 or last < 0:
        return str(b.op(kind, x.name, axis=dim))
    order = list(range(last + 1))
    order[dim], order[last] = order[last], order[dim]
    return str(b.op("Transpose", b.op(kind, b.op("Transpose", x.name, perm=order), axis=-1), perm=order))


@aten("_softmax", "softmax", "_safe_softmax")
def _softmax(b: Builder, node: Any, x: Value, dim: int, *rest: Any) -> str:
    return _over_dim(b, "Softmax", x, dim)


@aten("_log_softmax", "log_softmax")
def _log_softmax(b: Builder, node: Any, x: Value, dim: int, *rest: Any) -> str:
    return _over_dim(b, "LogSoftmax", x, dim)


@aten("sort", "argsort")
def _sort(b: Builder, node: Any, x: Value, *rest: Any, **named: Any) -> Any:
    settings = dict(zip(("stable", "dim", "descending") if node.target._overloadname == "stable" else
                    ("dim", "descending"), rest)) | named  # fmt: skip
    dim = settings.get("dim", -1)
    given = x.cast(b, "int32") if x.tensor.dtype in (dtypes.bool_, dtypes.uint8) else x.name
    found = b.op(
        "TopK", given, b.ints(x.shape[dim]), outputs=2, axis=dim, largest=int(settings.get("descending", False))
    )
    if node.target._opname == "argsort":
        return found[1]
    return [found[0] if given == x.name else b.cast(found[0], x.tensor.dtype), found[1]]


@aten("linalg_vector_norm", "norm")
def _norm(
    b: Builder, node: Any, x: Value, ord: Any = 2, dim: Any = None, keepdim: bool = False, dtype: Any = None
) -> str:
    given, axes = x.to(b, node.meta["val"]), b.ints(*_axes(x, dim))
    ord = 2 if ord is None else ord
    if ord in (1, 2):
        return b.op(f"ReduceL{int(ord)}", given, axes, keepdims=int(keepdim))
    size = b.op("Abs", given)
    if ord in (math.inf, -math.inf):
        return b.op("ReduceMax" if ord > 0 else "ReduceMin", size, axes, keepdims=int(keepdim))
    power = b.op("ReduceSum", b.op("Pow", size, b.like(ord, x.tensor)), axes, keepdims=int(keepdim))
    return b.op("Pow", power, b.like(1 / ord, x.tensor))


@aten("count_nonzero")
def _count_nonzero(b: Builder, node: Any, x: Value, dim: Any = None) -> str:
    return b.op("ReduceSum", b.op("Cast", x.cast(b, "bool"), to=b.onnx.TensorProto.INT64), b.ints(*_axes(x, dim)),
                keepdims=0)  # fmt: skip


@aten("median", "kthvalue")
def _at_rank(b: Builder, node: Any, x: Value, *rest: Any, **named: Any) -> Any:
    if node.target._opname == "median":
        n = fixed(b.product(x.shape) if not rest else x.shape[rest[0]], "the number of elements")
        rank, where = (n - 1) // 2, rest
    else:
        rank, where = rest[0] - 1, rest[1:]
    name = x.name if rest else b.op("Reshape", x.name, b.ints(-1))
    dim, keepdim = (*where, *(-1, False)[len(where) :])[:2]
    found = b.op("TopK", name, b.ints(rank + 1), outputs=2, axis=dim, largest=0)
    parts = [b.op("Gather", part, b.ints(rank) if keepdim else b.integer(rank), axis=dim) for part in found]
    return parts if isinstance(node.meta["val"], tuple) else parts[0]


@aten("aminmax")
def _aminmax(b: Builder, node: Any, x: Value, *, dim: Any = None, keepdim: bool = False) -> list[str]:
    return [b.op(kind, x.name, b.ints(*_axes(x, dim)), keepdims=int(keepdim)) for kind in ("ReduceMin", "ReduceMax")]


@aten("nansum")
def _nansum(b: Builder, node: Any, x: Value, dim: Any = None, keepdim: bool = False, **rest: Any) -> str:
    given = b.op("Where", b.op("IsNaN", x.name), b.like(0, x.tensor), x.name)
    return b.op("ReduceSum", given, b.ints(*_axes(x, dim)), keepdims=int(keepdim))


@aten("dist")
def _dist(b: Builder, node: Any, x: Value, y: Value, p: Any = 2) -> str:
    difference = Value(b.op("Sub", x.name, y.name), x.tensor, x.shape)
    return _norm(b, node, difference, p)


@aten("cdist", "_cdist_forward", "_euclidean_dist")
def _cdist(b: Builder, node: Any, x: Value, y: Value, p: float = 2.0, *rest: Any) -> str:
    if p != 2:
        raise NotImplementedError(f"cdist with p={p}")
    difference = b.op("Sub", b.op("Unsqueeze", x.name, b.ints(-2)), b.op("Unsqueeze", y.name, b.ints(-3)))
    return b.op("ReduceL2", difference, b.ints(-1), keepdims=0)


@aten("searchsorted", "bucketize")
def _searchsorted(b: Builder, node: Any, first: Value, second: Any, *rest: Any, **named: Any) -> str:
    bounds, given = (first, second) if node.target._opname == "searchsorted" else (second, first)
    if bounds.tensor.dim() != 1 or not isinstance(given, Value):
        raise NotImplementedError("boundaries of more than one dimension, and number arguments")
    right = named.get("right", False) or named.get("side") == "right"
    kind = "LessOrEqual" if right else "Less"
    below = b.op(kind, bounds.to(b, given.tensor), b.op("Unsqueeze", given.name, b.ints(-1)))
    count = b.op("ReduceSum", b.op("Cast", below, to=b.onnx.TensorProto.INT64), b.ints(-1), keepdims=0)
    return str(b.cast(count, node.meta["val"].dtype))


# ---------------------------------------------------------------- losses


def _reduced(b: Builder, name: str, reduction: int) -> str:
    return name if reduction == 0 else str(b.op("ReduceMean" if reduction == 1 else "ReduceSum", name, keepdims=0))


@aten("mse_loss")
def _mse_loss(b: Builder, node: Any, x: Value, y: Value, reduction: int = 1) -> str:
    difference = b.op("Sub", x.name, y.name)
    return _reduced(b, b.op("Mul", difference, difference), reduction)


@aten("smooth_l1_loss", "huber_loss")
def _huber_loss(b: Builder, node: Any, x: Value, y: Value, reduction: int = 1, bound: float = 1.0) -> str:
    difference = b.op("Abs", b.op("Sub", x.name, y.name))
    half, edge = b.like(0.5, x.tensor), b.like(bound, x.tensor)
    near = b.op("Mul", b.op("Mul", difference, difference), half)
    far = b.op("Mul", b.op("Sub", difference, b.op("Mul", edge, half)), edge)
    found = b.op("Where", b.op("Less", difference, edge), near, far)
    if node.target._opname == "smooth_l1_loss":
        found = b.op("Div", found, edge)
    return _reduced(b, found, reduction)


@aten("binary_cross_entropy")
def _bce(b: Builder, node: Any, x: Value, y: Value, weight: Value | None = None, reduction: int = 1) -> str:
    one, lower_bound = b.like(1, x.tensor), b.like(-100, x.tensor)
    first = b.op("Mul", y.name, b.op("Max", b.op("Log", x.name), lower_bound))
    second = b.op("Mul", b.op("Sub", one, y.name), b.op("Max", b.op("Log", b.op("Sub", one, x.name)), lower_bound))
    found = b.op("Neg", b.op("Add", first, second))
    return _reduced(b, found if weight is None else b.op("Mul", found, weight.name), reduction)


@aten("binary_cross_entropy_with_logits")
def _bce_with_logits(
    b: Builder, node: Any, x: Value, y: Value, weight: Value | None = None, positive: Value | None = None,
    reduction: int = 1,
) -> str:  # fmt: skip
    one = b.like(1, x.tensor)
    loss = b.op("Softplus", b.op("Neg", x.name))  # the loss of a target of 1
    if positive is not None:
        factor = b.op("Add", one, b.op("Mul", b.op("Sub", positive.name, one), y.name))
        loss = b.op("Mul", factor, loss)
    found = b.op("Add", b.op("Mul", b.op("Sub", one, y.name), x.name), loss)
    return _reduced(b, found if weight is None else b.op("Mul", found, weight.name), reduction)


@aten("nll_loss_forward", "nll_loss2d_forward", "nll_loss", "nll_loss2d", "nll_loss_nd")
def _nll_loss(
    b: Builder, node: Any, x: Value, target: Value, weight: Value | None = None, reduction: int = 1,
    ignored: int = -100,
) -> Any:  # fmt: skip
    inputs = [x.name, target.name, *([] if weight is None else [weight.name])]
    kind = ("none", "mean", "sum")[reduction]
    found = b.op("NegativeLogLikelihoodLoss", *inputs, ignore_index=ignored, reduction=kind)
    return [found, ""] if isinstance(node.meta["val"], tuple) else found
