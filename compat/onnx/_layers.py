"""ONNX translations of products, convolutions, normalizations, attention and recurrent layers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from compat._core.pytree.trees import tree_leaves
from compat.onnx._builder import Builder, Size, as_array, fixed
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


@aten("addr")
def _addr(b: Builder, node: Any, bias: Value, x: Value, y: Value, beta: Any = 1, alpha: Any = 1) -> str:
    return _combined(
        b, bias, b.op("Mul", b.op("Unsqueeze", x.name, b.ints(1)), b.op("Unsqueeze", y.name, b.ints(0))), beta, alpha
    )


@aten("_linalg_det")
def _det(b: Builder, node: Any, x: Value, *rest: Any) -> list[str]:
    return [b.op("Det", x.name), "", ""]


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


def _per_dimension(value: Any, n: int) -> list[int]:
    return [int(v) for v in ([value] * n if isinstance(value, int) else list(value) * (n if len(value) == 1 else 1))]


def _pooling(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers pooling over the last ``n`` dimensions, which requires a batch dimension."""

    def register(write: Callable[..., Any]) -> Callable[..., Any]:
        def batched(b: Builder, node: Any, x: Value, *args: Any, **kwargs: Any) -> Any:
            n = int(node.target._opname.partition("d")[0][-1] if "adaptive" not in node.target._opname else
                    node.target._opname.removesuffix("_with_indices").removesuffix("_forward")[-2])  # fmt: skip
            if x.tensor.dim() == n + 2:
                return write(b, node, x, n, *args, **kwargs)
            more = Value(b.op("Unsqueeze", x.name, b.ints(0)), x.tensor, [1, *x.shape])
            found = write(b, node, more, n, *args, **kwargs)
            parts = [v and b.op("Squeeze", v, b.ints(0)) for v in (found if isinstance(found, list) else [found])]
            return parts if isinstance(found, list) else parts[0]

        return aten(*names)(batched)

    return register


def _window(n: int, kernel: Any, stride: Any, padding: Any, ceil: bool) -> dict[str, Any]:
    kernel, padding = _per_dimension(kernel, n), _per_dimension(padding, n)
    return dict(
        kernel_shape=kernel, strides=_per_dimension(stride, n) if stride not in (None, []) else kernel,
        pads=[*padding, *padding], ceil_mode=int(ceil),
    )  # fmt: skip


@_pooling("max_pool2d_with_indices", "max_pool2d", "max_pool1d", "max_pool3d", "max_pool3d_with_indices")
def _max_pool(
    b: Builder, node: Any, x: Value, n: int, kernel: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1,
    ceil_mode: bool = False,
) -> Any:  # fmt: skip
    attributes = _window(n, kernel, list(stride), padding, ceil_mode)
    if not node.target._opname.endswith("indices"):
        return b.op("MaxPool", x.name, dilations=_per_dimension(dilation, n), **attributes)
    found, places = b.op("MaxPool", x.name, outputs=2, dilations=_per_dimension(dilation, n), **attributes)
    plane = b.product(x.shape[2:])  # ONNX counts from the first element of the whole tensor
    return [found, b.op("Mod", places, b.integer(plane))]


@_pooling("avg_pool1d", "avg_pool2d", "avg_pool3d")
def _avg_pool(
    b: Builder, node: Any, x: Value, n: int, kernel: Any, stride: Any = (), padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: Any = None,
) -> str:  # fmt: skip
    if divisor_override is not None:
        raise NotImplementedError("avg_pool with a divisor_override")
    attributes = _window(n, kernel, list(stride), padding, ceil_mode)
    return b.op("AveragePool", x.name, count_include_pad=int(count_include_pad), **attributes)


def _bounds(size: int, parts: int) -> list[tuple[int, int]]:
    """The start and end of the windows of an adaptive pooling."""
    return [(k * size // parts, -(-(k + 1) * size // parts)) for k in range(parts)]


@_pooling(
    "_adaptive_avg_pool2d", "adaptive_avg_pool2d", "_adaptive_avg_pool3d", "adaptive_avg_pool3d", "adaptive_avg_pool1d"
)
def _adaptive(b: Builder, node: Any, x: Value, n: int, size: Any) -> str:
    sizes = [old if new is None else new for old, new in zip(x.shape[2:], [size] if n == 1 else size)]
    if all(k == 1 for k in sizes):
        return b.op("GlobalAveragePool", x.name)
    input_sizes = [fixed(k, "the pooled size") for k in x.shape[2:]]
    if n < 3:  # a product with a matrix for each dimension
        name = x.name
        for axis, (m, k) in enumerate(zip(input_sizes, sizes)):
            matrix = np.zeros((k, m))
            for row, (first, last) in enumerate(_bounds(m, k)):
                matrix[row, first:last] = 1 / (last - first)
            kind = as_array(x.tensor.new_zeros(())).dtype
            last_one = axis == n - 1
            factor = b.constant(matrix.T if last_one else matrix, kind)
            name = b.op("MatMul", name, factor) if last_one else b.op("MatMul", factor, name)
        return name
    if any(m % k for m, k in zip(input_sizes, sizes)):
        raise NotImplementedError(f"adaptive pooling from {input_sizes} to {sizes}, whose windows differ in size")
    kernel = [m // k for m, k in zip(input_sizes, sizes)]
    return b.op("AveragePool", x.name, kernel_shape=kernel, strides=kernel)


@_pooling("adaptive_max_pool2d", "adaptive_max_pool1d", "adaptive_max_pool3d")
def _adaptive_max(b: Builder, node: Any, x: Value, n: int, size: Any) -> list[str]:
    sizes = _per_dimension(size, n)
    input_sizes = [fixed(k, "the pooled size") for k in x.shape[2:]]
    if any(m % k for m, k in zip(input_sizes, sizes)):
        raise NotImplementedError(f"adaptive pooling from {input_sizes} to {sizes}, whose windows differ in size")
    kernel = [m // k for m, k in zip(input_sizes, sizes)]
    found, places = b.op("MaxPool", x.name, outputs=2, kernel_shape=kernel, strides=kernel)
    return [found, b.op("Mod", places, b.integer(b.product(x.shape[2:])))]


@aten(
    "upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d", "upsample_linear1d", "upsample_bilinear2d",
    "upsample_trilinear3d", "upsample_bicubic2d", "_upsample_nearest_exact1d", "_upsample_nearest_exact2d",
    "_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa",
)  # fmt: skip
def _upsample(b: Builder, node: Any, x: Value, size: Any, *rest: Any) -> str:
    mode = next(kind for kind in ("nearest", "linear", "cubic") if kind in node.target._opname)
    aligned = mode != "nearest" and bool(rest) and rest[0] is True
    exact = "exact" in node.target._opname
    where = "align_corners" if aligned else "asymmetric" if mode == "nearest" and not exact else "half_pixel"
    factors = [v for v in tree_leaves(rest) if isinstance(v, float)]
    attributes: dict[str, Any] = dict(mode=mode, coordinate_transformation_mode=where)
    if mode == "nearest":
        attributes["nearest_mode"] = "round_prefer_ceil" if exact else "floor"
    if mode == "cubic":
        attributes["cubic_coeff_a"] = -0.75
    if node.target._opname.endswith("_aa"):
        attributes |= dict(antialias=1, exclude_outside=1)
    # The coordinates are computed from the scale factors if given, else from the sizes.
    absent = "" if b.target >= 13 else b.constant([], np.float32)  # where the inputs are not optional
    if len(factors) == x.tensor.dim() - 2:
        return b.op("Resize", x.name, absent, b.constant([1, 1, *factors], np.float32), **attributes)
    return b.op("Resize", x.name, absent, absent, b.ints(*b.shapes[node][0]), **attributes)


@aten("grid_sampler_2d", "grid_sampler")
def _grid_sample(
    b: Builder, node: Any, x: Value, grid: Value, mode: int = 0, padding: int = 0, aligned: bool = False
) -> str:
    how = "bilinear", "nearest", "bicubic"
    outside = "zeros", "border", "reflection"
    return b.op("GridSample", x.name, grid.name, mode=how[mode], padding_mode=outside[padding],
                align_corners=int(aligned))  # fmt: skip


@aten("pixel_shuffle")
def _pixel_shuffle(b: Builder, node: Any, x: Value, factor: int) -> str:
    return b.op("DepthToSpace", x.name, blocksize=factor, mode="CRD")


# ---------------------------------------------------------------- normalizations


@aten("native_batch_norm", "_native_batch_norm_legit_no_training", "batch_norm")
def _batch_norm(
    b: Builder, node: Any, x: Value, weight: Value | None, bias: Value | None, mean: Value | None, var: Value | None,
    *rest: Any,
) -> list[str]:  # fmt: skip
    training = rest[0] if isinstance(rest[0], bool) else False
    eps = float(next(v for v in reversed(rest) if not isinstance(v, bool)))
    n = x.shape[1]
    if mean is None or var is None:
        axes = [0, *range(2, x.tensor.dim())]
        channels = b.ints(1, n, *[1] * (x.tensor.dim() - 2))
        return [_affine(b, _standard(b, x.name, axes, eps, x), weight, bias, channels), "", ""]
    if training:
        raise NotImplementedError("batch normalization in training: export the model after model.eval()")
    kind = as_array(x.tensor.new_zeros(())).dtype
    scale = weight.name if weight is not None else b.constant(np.ones(fixed(n, "the number of channels")), kind)
    shift = bias.name if bias is not None else b.constant(np.zeros(fixed(n, "the number of channels")), kind)
    found = b.op("BatchNormalization", x.name, scale, shift, mean.name, var.name, epsilon=eps)
    return [found, "", ""]


def _standard(b: Builder, name: str, axes: list[int], eps: float, like: Value) -> str:
    """A value standardized by its mean and standard deviation."""
    deviation = b.op("Sub", name, b.op("ReduceMean", name, b.ints(*axes), keepdims=1))
    var = b.op("ReduceMean", b.op("Mul", deviation, deviation), b.ints(*axes), keepdims=1)
    return str(b.op("Div", deviation, b.op("Sqrt", b.op("Add", var, b.like(eps, like.tensor)))))


def _affine(b: Builder, name: str, weight: Value | None, bias: Value | None, shape: str) -> str:
    """A value times a weight plus a bias, in a shape that broadcasts."""
    for kind, part in (("Mul", weight), ("Add", bias)):
        if part is not None:
            name = b.op(kind, name, b.op("Reshape", part.name, shape))
    return name


@aten("native_layer_norm")
def _layer_norm(
    b: Builder, node: Any, x: Value, shape: Any, weight: Value | None, bias: Value | None, eps: float
) -> list[str]:
    kind = as_array(x.tensor.new_zeros(())).dtype
    scale = weight.name if weight is not None else b.constant(np.ones(tuple(shape)), kind)
    inputs = [x.name, scale, *([] if bias is None else [bias.name])]
    if b.target < 17:  # which has no LayerNormalization
        found = _standard(b, x.name, list(range(-len(shape), 0)), eps, x)
        for operator, part in zip(("Mul", "Add"), inputs[1:]):
            found = b.op(operator, found, part)
        return [found, "", ""]
    return [b.op("LayerNormalization", *inputs, axis=-len(shape), epsilon=float(eps)), "", ""]


@aten("native_group_norm")
def _group_norm(
    b: Builder, node: Any, x: Value, weight: Value | None, bias: Value | None, n: int, c: int, hw: int, groups: int,
    eps: float,
) -> list[str]:  # fmt: skip
    rows = b.op("Reshape", x.name, b.ints(n, groups, -1))
    found = b.op("Reshape", _standard(b, rows, [-1], eps, x), b.ints(*x.shape))
    return [_affine(b, found, weight, bias, b.ints(1, c, *[1] * (x.tensor.dim() - 2))), "", ""]


@aten("_fused_rms_norm", "rms_norm")
def _rms_norm(
    b: Builder, node: Any, x: Value, shape: Any, weight: Value | None = None, eps: float | None = None
) -> Any:
    axes = b.ints(*range(-len(shape), 0))
    epsilon = float(np.finfo(as_array(x.tensor.new_zeros(())).dtype).eps) if eps is None else eps
    square = b.op("ReduceMean", b.op("Mul", x.name, x.name), axes, keepdims=1)
    found = b.op("Div", x.name, b.op("Sqrt", b.op("Add", square, b.like(epsilon, x.tensor))))
    found = found if weight is None else b.op("Mul", found, weight.name)
    return [found, ""] if isinstance(node.meta["val"], tuple) else found


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
    size = q.tensor.shape[-1]
    order = list(range(k.tensor.dim()))
    order[-2:] = order[-1], order[-2]
    factor = b.like(1 / math.sqrt(size) if scale is None else scale, q.tensor)
    scores = b.op("MatMul", b.op("Mul", q.name, factor), b.op("Transpose", k.name, perm=order))
    if is_causal:
        n, m = q.shape[-2], k.shape[-2]
        if isinstance(n, Size) or isinstance(m, Size):
            hidden = b.op("Expand", b.like(-math.inf, q.tensor), b.ints(n, m))
            hidden = b.op("Trilu", hidden, b.integer(1), upper=1)
        else:
            hidden = b.constant(np.triu(np.full((n, m), -np.inf), 1), as_array(q.tensor.new_zeros(())).dtype)
        scores = b.op("Add", scores, hidden)
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
        parts = b.split(value.name, [hidden] * len(_GATES[kind]), 0)
        ordered = [parts[g] for g in _GATES[kind]]
        return b.op("Unsqueeze", ordered[0] if len(ordered) == 1 else b.op("Concat", *ordered, axis=0),
                    b.ints(0))  # fmt: skip

    bias = "" if b_ih is None or b_hh is None else b.op("Concat", gates(b_ih), gates(b_hh), axis=1)
    states = [b.op("Unsqueeze", s.name, b.ints(0)) for s in (h0, c0) if s is not None]
    attributes: dict[str, Any] = dict(hidden_size=hidden, direction="reverse" if reverse else "forward")
    if kind == "GRU":
        attributes["linear_before_reset"] = 1
    if kind == "RNN":
        attributes["activations"] = ["Relu" if cell == 0 else "Tanh"]
    found = b.op(kind, x.name, gates(w_ih), gates(w_hh), bias, "", *states, outputs=1 + len(states), **attributes)
    sequence, *last = found
    return [b.op("Squeeze", sequence, b.ints(1)), *[b.op("Squeeze", s, b.ints(0)) for s in last]]
