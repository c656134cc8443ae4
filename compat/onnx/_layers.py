"""How products, reductions, convolutions, normalizations, attention and recurrent layers are written in ONNX."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from compat.onnx._builder import Builder, as_array
from compat.onnx._table import Value, aten

# ---------------------------------------------------------------- products


@aten("mm", "bmm", "matmul", "mv", "dot")
def _matmul(b: Builder, node: Any, x: Value, y: Value) -> str:
    return b.op("MatMul", x.name, y.name)


def _combined(b: Builder, bias: Value, product: str, beta: Any, alpha: Any) -> str:
    added = bias.name
    if alpha != 1:
        product = b.op("Mul", product, b.like(alpha, bias.tensor))
    if beta != 1:
        added = b.op("Mul", added, b.like(beta, bias.tensor))
    return b.op("Add", product, added)


@aten("addmm", "baddbmm")
def _addmm(b: Builder, node: Any, bias: Value, x: Value, y: Value, beta: Any = 1, alpha: Any = 1) -> str:
    return _combined(b, bias, b.op("MatMul", x.name, y.name), beta, alpha)


@aten("linear")
def _linear(b: Builder, node: Any, x: Value, weight: Value, bias: Value | None = None) -> str:
    product = b.op("MatMul", x.name, b.op("Transpose", weight.name, perm=[1, 0]))
    return product if bias is None else b.op("Add", product, bias.name)


# ---------------------------------------------------------------- reductions


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
    if dim is None:
        return b.op(f"Reduce{kind}", x.name, keepdims=0)
    index = b.op(f"Arg{kind}", x.name, axis=dim, keepdims=int(keepdim))
    return [b.op(f"Reduce{kind}", x.name, b.ints(dim), keepdims=int(keepdim)), index]


@aten("argmax", "argmin")
def _arg(b: Builder, node: Any, x: Value, dim: Any = None, keepdim: bool = False) -> str:
    kind = "ArgMax" if node.target._opname == "argmax" else "ArgMin"
    name = x.name if dim is not None else b.op("Reshape", x.name, b.ints(-1))
    return b.op(kind, name, axis=dim or 0, keepdims=int(keepdim))


@aten("var", "var_mean", "std")
def _var(b: Builder, node: Any, x: Value, dim: Any = None, correction: Any = 1, keepdim: bool = False) -> Any:
    axes = _axes(x, dim)
    mean = b.op("ReduceMean", x.name, b.ints(*axes), keepdims=1)
    away = b.op("Sub", x.name, mean)
    count = math.prod(x.tensor.shape[a] for a in axes) - correction
    total = b.op("ReduceSum", b.op("Mul", away, away), b.ints(*axes), keepdims=int(keepdim))
    found = b.op("Div", total, b.like(count, x.tensor))
    if node.target._opname == "std":
        return b.op("Sqrt", found)
    if node.target._opname == "var":
        return found
    return [found, mean if keepdim else b.op("Squeeze", mean, b.ints(*axes))]


@aten("cumsum")
def _cumsum(b: Builder, node: Any, x: Value, dim: int, **rest: Any) -> str:
    return b.op("CumSum", x.to(b, node.meta["val"]), b.constant(dim, np.int64))


@aten("topk")
def _topk(b: Builder, node: Any, x: Value, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    return b.op("TopK", x.name, b.ints(k), outputs=2, axis=dim, largest=int(largest), sorted=int(sorted))


@aten("_softmax", "softmax", "_safe_softmax")
def _softmax(b: Builder, node: Any, x: Value, dim: int, *rest: Any) -> str:
    return b.op("Softmax", x.name, axis=dim)


@aten("_log_softmax", "log_softmax")
def _log_softmax(b: Builder, node: Any, x: Value, dim: int, *rest: Any) -> str:
    return b.op("LogSoftmax", x.name, axis=dim)


# ---------------------------------------------------------------- convolutions and pooling


@aten("convolution")
def _convolution(
    b: Builder, node: Any, x: Value, weight: Value, bias: Value | None, stride: Any, padding: Any, dilation: Any,
    transposed: bool, output_padding: Any, groups: int,
) -> str:  # fmt: skip
    inputs = [x.name, weight.name, *([] if bias is None else [bias.name])]
    shared: dict[str, Any] = dict(
        strides=list(stride), pads=[*padding, *padding], dilations=list(dilation), group=groups,
        kernel_shape=list(weight.tensor.shape[2:]),
    )  # fmt: skip
    if transposed:
        return b.op("ConvTranspose", *inputs, output_padding=list(output_padding), **shared)
    return b.op("Conv", *inputs, **shared)


def _whole(value: Any, n: int) -> list[int]:
    return [int(v) for v in ([value] * n if isinstance(value, int) else list(value) * (n if len(value) == 1 else 1))]


def _window(x: Value, kernel: Any, stride: Any, padding: Any, ceil: bool) -> dict[str, Any]:
    n = x.tensor.dim() - 2
    kernel, padding = _whole(kernel, n), _whole(padding, n)
    return dict(
        kernel_shape=kernel, strides=_whole(stride, n) if stride not in (None, []) else kernel,
        pads=[*padding, *padding], ceil_mode=int(ceil),
    )  # fmt: skip


@aten("max_pool2d_with_indices", "max_pool2d", "max_pool1d", "max_pool3d_with_indices")
def _max_pool(
    b: Builder, node: Any, x: Value, kernel: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1,
    ceil_mode: bool = False,
) -> Any:  # fmt: skip
    said = _window(x, kernel, list(stride), padding, ceil_mode)
    found = b.op("MaxPool", x.name, dilations=_whole(dilation, x.tensor.dim() - 2), **said)
    return [found, ""] if node.target._opname.endswith("indices") else found


@aten("avg_pool1d", "avg_pool2d", "avg_pool3d")
def _avg_pool(
    b: Builder, node: Any, x: Value, kernel: Any, stride: Any = (), padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: Any = None,
) -> str:  # fmt: skip
    if divisor_override is not None:
        raise NotImplementedError("avg_pool with a divisor_override")
    said = _window(x, kernel, list(stride), padding, ceil_mode)
    return b.op("AveragePool", x.name, count_include_pad=int(count_include_pad), **said)


@aten("_adaptive_avg_pool2d", "adaptive_avg_pool2d", "_adaptive_avg_pool3d", "adaptive_avg_pool1d")
def _adaptive(b: Builder, node: Any, x: Value, size: Any) -> str:
    sizes = _whole(size, x.tensor.dim() - 2)
    here = x.tensor.shape[2:]
    if any(n % k for n, k in zip(here, sizes)):
        raise NotImplementedError(f"adaptive pooling from {list(here)} to {sizes}, whose windows differ in size")
    kernel = [n // k for n, k in zip(here, sizes)]
    return b.op("AveragePool", x.name, kernel_shape=kernel, strides=kernel)


@aten("upsample_nearest2d", "upsample_nearest1d", "upsample_bilinear2d")
def _upsample(b: Builder, node: Any, x: Value, size: Any, *rest: Any) -> str:
    linear = "linear" in node.target._opname
    aligned = linear and rest and rest[0] is True
    where = "align_corners" if aligned else "half_pixel" if linear else "asymmetric"
    shape = b.ints(*node.meta["val"].shape)
    return b.op("Resize", x.name, "", "", shape, mode="linear" if linear else "nearest",
                coordinate_transformation_mode=where, nearest_mode=None if linear else "floor")  # fmt: skip


# ---------------------------------------------------------------- normalizations


@aten("native_batch_norm", "_native_batch_norm_legit_no_training", "batch_norm")
def _batch_norm(
    b: Builder, node: Any, x: Value, weight: Value | None, bias: Value | None, mean: Value, var: Value, *rest: Any
) -> list[str]:
    training = rest[0] if isinstance(rest[0], bool) else False
    if training:
        raise NotImplementedError("batch normalization in training: export the model after model.eval()")
    n = x.tensor.shape[1]
    scale = weight.name if weight is not None else b.constant(np.ones(n), as_array(x.tensor.new_zeros(())).dtype)
    shift = bias.name if bias is not None else b.constant(np.zeros(n), as_array(x.tensor.new_zeros(())).dtype)
    found = b.op("BatchNormalization", x.name, scale, shift, mean.name, var.name, epsilon=float(rest[-1]))
    return [found, "", ""]


@aten("native_layer_norm")
def _layer_norm(
    b: Builder, node: Any, x: Value, shape: Any, weight: Value | None, bias: Value | None, eps: float
) -> list[str]:
    kind = as_array(x.tensor.new_zeros(())).dtype
    scale = weight.name if weight is not None else b.constant(np.ones(tuple(shape)), kind)
    inputs = [x.name, scale, *([] if bias is None else [bias.name])]
    return [b.op("LayerNormalization", *inputs, axis=-len(shape), epsilon=float(eps)), "", ""]


@aten("native_group_norm")
def _group_norm(
    b: Builder, node: Any, x: Value, weight: Value | None, bias: Value | None, n: int, c: int, hw: int, groups: int,
    eps: float,
) -> list[str]:  # fmt: skip
    rows = b.op("Reshape", x.name, b.ints(n, groups, -1))
    mean = b.op("ReduceMean", rows, b.ints(-1), keepdims=1)
    away = b.op("Sub", rows, mean)
    var = b.op("ReduceMean", b.op("Mul", away, away), b.ints(-1), keepdims=1)
    found = b.op("Div", away, b.op("Sqrt", b.op("Add", var, b.like(eps, x.tensor))))
    found = b.op("Reshape", found, b.ints(*x.tensor.shape))
    shape = b.ints(1, c, *[1] * (x.tensor.dim() - 2))
    for kind, part in (("Mul", weight), ("Add", bias)):
        if part is not None:
            found = b.op(kind, found, b.op("Reshape", part.name, shape))
    return [found, "", ""]


# ---------------------------------------------------------------- attention


@aten(
    "_scaled_dot_product_flash_attention_for_cpu", "scaled_dot_product_attention",
    "_scaled_dot_product_attention_math",
)  # fmt: skip
def _attention(
    b: Builder, node: Any, q: Value, k: Value, v: Value, dropout_p: float = 0.0, is_causal: bool = False,
    attn_mask: Value | None = None, scale: Any = None, **rest: Any,
) -> Any:  # fmt: skip
    if dropout_p:
        raise NotImplementedError("attention with dropout: export the model after model.eval()")
    n, size = q.tensor.shape[-2], q.tensor.shape[-1]
    order = list(range(k.tensor.dim()))
    order[-2:] = order[-1], order[-2]
    factor = b.like(1 / math.sqrt(size) if scale is None else scale, q.tensor)
    scores = b.op("MatMul", b.op("Mul", q.name, factor), b.op("Transpose", k.name, perm=order))
    if is_causal:
        kind = as_array(q.tensor.new_zeros(())).dtype
        hidden = np.triu(np.full((n, k.tensor.shape[-2]), -np.inf), 1)
        scores = b.op("Add", scores, b.constant(hidden, kind))
    if attn_mask is not None:
        given = attn_mask.name
        if repr(attn_mask.tensor.dtype) == "torch.bool":
            given = b.op("Where", given, b.like(0, q.tensor), b.like(-math.inf, q.tensor))
        scores = b.op("Add", scores, given)
    found = b.op("MatMul", b.op("Softmax", scores, axis=-1), v.name)
    return [found, ""] if isinstance(node.meta["val"], tuple) else found


# ---------------------------------------------------------------- recurrent layers

#: The order of ONNX's gates in PyTorch's.
_GATES = {"LSTM": (0, 3, 1, 2), "GRU": (1, 0, 2), "RNN": (0,)}


@aten("rnn_layer")
def _rnn_layer(
    b: Builder, node: Any, x: Value, w_ih: Value, w_hh: Value, b_ih: Value | None, b_hh: Value | None,
    w_hr: Value | None, h0: Value, c0: Value | None, lengths: Any, reverse: bool, cell: int, *rest: Any,
) -> Any:  # fmt: skip
    if w_hr is not None or lengths is not None:
        raise NotImplementedError("recurrent layers with projections or with packed sequences")
    kind = {2: "LSTM", 3: "GRU"}.get(cell, "RNN")
    hidden = w_hh.tensor.shape[1]

    def gates(value: Value) -> str:
        parts = b.op("Split", value.name, b.ints(*[hidden] * len(_GATES[kind])), outputs=len(_GATES[kind]), axis=0)
        ordered = [parts] if kind == "RNN" else [parts[g] for g in _GATES[kind]]
        return b.op("Unsqueeze", ordered[0] if len(ordered) == 1 else b.op("Concat", *ordered, axis=0),
                    b.ints(0))  # fmt: skip

    bias = "" if b_ih is None or b_hh is None else b.op("Concat", gates(b_ih), gates(b_hh), axis=1)
    states = [b.op("Unsqueeze", s.name, b.ints(0)) for s in (h0, c0) if s is not None]
    said: dict[str, Any] = dict(hidden_size=hidden, direction="reverse" if reverse else "forward")
    if kind == "GRU":
        said["linear_before_reset"] = 1
    if kind == "RNN":
        said["activations"] = ["Relu" if cell == 0 else "Tanh"]
    found = b.op(kind, x.name, gates(w_ih), gates(w_hh), bias, "", *states, outputs=1 + len(states), **said)
    sequence, *last = found
    return [b.op("Squeeze", sequence, b.ints(1)), *[b.op("Squeeze", s, b.ints(0)) for s in last]]
