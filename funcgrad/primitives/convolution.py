"""The convolution (cross-correlation, as in all of deep learning), with strides, padding, dilations and groups.

Both transposes are convolutions with permuted axis roles (``Layout``), so nothing is transposed except when groups
change sides. In the notation of ``geometry``, along one spatial axis

    out[n, o, i] = sum over c, k of  x[n, c, j] * w[o, c, k],     i * stride + k * rhs_dilation - low = j * lhs_dilation

- with respect to ``x``: a sum over o, k of ``ct[n, o, i] * w[o, c, k]``: the kernel, reversed, slides over ct; stride
  and
  lhs_dilation change places, and so do the kernel's two feature axes.
- with respect to ``w``: a sum over n, i of ``x[n, c, j] * ct[n, o, i]``: ct is the kernel that slides over x; stride
  and rhs_dilation are swapped, and so are batch and features of x.

On the CPU ``convolution_cpu`` chooses among several algorithms; elsewhere XLA's convolution is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from jax import lax

from funcgrad.core.ir import ArrayType
from funcgrad.core.precision import of_convolutions
from funcgrad.core.primitive import Primitive
from funcgrad.core.tracing import type_of
from funcgrad.primitives import convolution_cpu
from funcgrad.primitives.geometry import Axis, Pairs, check_window, sliding
from funcgrad.primitives.platforms import by_platform
from funcgrad.primitives.shape import Dims, reshape, reverse, transpose, zeros


class Layout(NamedTuple):
    """The axis roles: of the input (batch, feature, *spatial), the kernel (out, in, *spatial), the output."""

    x: Dims
    w: Dims
    out: Dims


def channels_first(spatial: int) -> Layout:
    """The layout of PyTorch: batch, feature, spatial; kernels out, in, spatial.

    Example:
        >>> channels_first(1)
        Layout(x=(0, 1, 2), w=(0, 1, 2), out=(0, 1, 2))
    """
    dims = tuple(range(spatial + 2))
    return Layout(dims, dims, dims)


def channels_last(spatial: int) -> Layout:
    """The layout of JAX and TensorFlow: batch, spatial, feature; kernels spatial, in, out.

    Example:
        >>> channels_last(1)
        Layout(x=(0, 2, 1), w=(2, 1, 0), out=(0, 2, 1))
    """
    inner = tuple(range(1, spatial + 1))
    x = (0, spatial + 1, *inner)
    return Layout(x, (spatial + 1, spatial, *range(spatial)), x)


class Config(NamedTuple):
    """The parameters of a convolution; all but ``groups`` and ``layout`` have an entry per spatial axis."""

    strides: Dims
    padding: Pairs
    lhs_dilation: Dims
    rhs_dilation: Dims
    groups: int
    layout: Layout

    def axes(self, x: Dims, w: Dims) -> list[Axis]:
        """The spatial axes, for an input and a kernel of these shapes."""
        sizes, window = [x[d] for d in self.layout.x[2:]], [w[d] for d in self.layout.w[2:]]
        return sliding(sizes, window, self.strides, self.padding, self.lhs_dilation, self.rhs_dilation)


def _infer(x: ArrayType, w: ArrayType, *, config: Config) -> ArrayType:
    layout, groups = config.layout, config.groups
    if x.dtype != w.dtype:
        raise TypeError(f"conv: input and kernel must have one dtype, got {x} and {w}")
    if x.ndim != w.ndim or x.ndim < 2:
        raise ValueError(f"conv: input and kernel must have the same number of axes, two at least, got {x} and {w}")
    for name, dims in layout._asdict().items():
        if sorted(dims) != list(range(x.ndim)):
            raise ValueError(f"conv: layout.{name} {dims} must name each axis once; input {x}, kernel {w}")
    batch, features = (x.shape[d] for d in layout.x[:2])
    outputs, per_group = (w.shape[d] for d in layout.w[:2])
    if groups < 1 or features != groups * per_group:
        raise ValueError(
            f"conv: an input with {features} features does not fit {groups} groups of a kernel with {per_group} "
            f"features: input {x}, kernel {w}, {layout}"
        )
    if outputs % groups:
        raise ValueError(f"conv: the kernel's {outputs} outputs do not split into {groups} groups: {w}, {layout}")
    spatial = [w.shape[d] for d in layout.w[2:]]
    check_window("conv", f"input {x} and kernel {w}", spatial, **dict(zip(Config._fields[:4], config[:4], strict=True)))
    shape = [0] * x.ndim
    for d, n in zip(layout.out, [batch, outputs, *[a.out for a in config.axes(x.shape, w.shape)]], strict=True):
        shape[d] = n
    return ArrayType(tuple(shape), x.dtype, x.weak and w.weak)


def _lower(x: Any, w: Any, *, config: Config) -> Any:
    def on_cpu(x: Any, w: Any) -> Any:
        return convolution_cpu.lower(x, w, config.layout, tuple(config.axes(x.shape, w.shape)), config.groups)

    return by_platform(x, w, cpu=on_cpu, default=partial(_by_xla, config=config))


def _by_xla(x: Any, w: Any, *, config: Config) -> Any:
    return lax.conv_general_dilated(
        x,
        w,
        config.strides,
        config.padding,
        config.lhs_dilation,
        config.rhs_dilation,
        lax.ConvDimensionNumbers(*config.layout),
        feature_group_count=config.groups,
        precision=of_convolutions(),
    )


# ---------------------------------------------------------------- transposes


def _transpose_x(ct: Any, x: ArrayType, w: Any, *, config: Config) -> Any:
    if 0 in type_of(ct).shape:
        return zeros(x)
    layout, axes = config.layout, config.axes(x.shape, type_of(w).shape)
    out, into, *spatial = layout.w
    kernel = reverse(_regroup(w, config.groups, source=out, target=into), axes=tuple(spatial))
    swapped = config._replace(
        strides=config.lhs_dilation,
        lhs_dilation=config.strides,
        padding=tuple(a.back_to_input() for a in axes),
        layout=Layout(x=layout.out, w=(into, out, *spatial), out=layout.x),
    )
    return conv(ct, kernel, config=swapped)


def _transpose_w(ct: Any, x: Any, w: ArrayType, *, config: Config) -> Any:
    if 0 in type_of(ct).shape or 0 in type_of(x).shape:
        return zeros(w)
    layout, axes = config.layout, config.axes(type_of(x).shape, w.shape)
    # XLA's batch groups do the same without moving x, and run a hundred times slower on the CPU (measured).
    image = _regroup(x, config.groups, source=layout.x[1], target=layout.x[0])
    swapped = config._replace(
        strides=config.rhs_dilation,
        rhs_dilation=config.strides,
        padding=tuple(a.back_to_window() for a in axes),
        layout=Layout(_flipped(layout.x), _flipped(layout.out), _flipped(layout.w)),
    )
    return conv(image, ct, config=swapped)


def _flipped(dims: Dims) -> Dims:
    return (dims[1], dims[0], *dims[2:])


def _regroup(x: Any, groups: int, source: int, target: int) -> Any:
    """Moves the leading factor ``groups`` of axis ``source`` to the front of axis ``target``."""
    if groups == 1:
        return x
    shape = type_of(x).shape
    split = reshape(x, shape=(*shape[:source], groups, shape[source] // groups, *shape[source + 1 :]))
    order = [d for d in range(len(shape) + 1) if d != source]
    order.insert(order.index(target + (target > source)), source)
    result = list(shape)
    result[source] //= groups
    result[target] *= groups
    return reshape(transpose(split, permutation=tuple(order)), shape=tuple(result))


# ---------------------------------------------------------------- batching


def _fold(x: Any, dim: int, axis: int, groups: int) -> Any:
    """``x`` with its batch axis ``dim`` merged into axis ``axis``, inside its ``groups``."""
    shape = type_of(x).shape
    at = axis + (axis >= dim)
    split = (*shape[:at], groups, shape[at] // groups, *shape[at + 1 :])
    batch = dim + (dim > at)
    order = [d for d in range(len(split)) if d != batch]
    order.insert(order.index(at) + 1, batch)
    result = [n for d, n in enumerate(shape) if d != dim]
    result[axis] *= shape[dim]
    return reshape(transpose(reshape(x, shape=split), permutation=tuple(order)), shape=tuple(result))


def _unfold(x: Any, size: int, axis: int, groups: int) -> Any:
    """The inverse of ``_fold``, with the batch axis in front."""
    shape = type_of(x).shape
    each = shape[axis] // size
    split = reshape(x, shape=(*shape[:axis], groups, size, each // groups, *shape[axis + 1 :]))
    order = (axis + 1, *[d for d in range(len(shape) + 2) if d != axis + 1])
    return reshape(transpose(split, permutation=order), shape=(size, *shape[:axis], each, *shape[axis + 1 :]))


def _batch(size: int, operands: Sequence[Any], dims: Sequence[int | None], *, config: Config) -> tuple[Any, int]:
    (x, w), (dx, dw), layout, groups = operands, dims, config.layout, config.groups
    if size == 0:
        types = [type_of(v).without_axis(d) for v, d in zip(operands, dims, strict=True)]
        out = conv.output_types(types, {"config": config})[0]
        return zeros(out.with_shape((0, *out.shape))), 0
    if dw is None:
        # As more images.
        assert dx is not None
        out = conv(_fold(x, dx, layout.x[0], 1), w, config=config)
        return _unfold(out, size, layout.out[0], 1), 0
    if dx is None:
        # As more outputs.
        out = conv(x, _fold(w, dw, layout.w[0], groups), config=config)
        return _unfold(out, size, layout.out[1], groups), 0
    # A batched kernel: each batch element becomes a group.
    x, w = _fold(x, dx, layout.x[1], 1), _fold(w, dw, layout.w[0], 1)
    out = conv(x, w, config=config._replace(groups=size * groups))
    return _unfold(out, size, layout.out[1], 1), 0


conv = Primitive(
    "conv", infer=_infer, lower=_lower, transpose=(_transpose_x, _transpose_w), bilinear=True, batch=_batch
)


# ---------------------------------------------------------------- with default parameters


def convolve(
    x: Any,
    w: Any,
    *,
    strides: Dims | int = 1,
    padding: Pairs | int = 0,
    lhs_dilation: Dims | int = 1,
    rhs_dilation: Dims | int = 1,
    groups: int = 1,
    batch_groups: int = 1,
    layout: Layout | None = None,
) -> Any:
    """The convolution with parameters given per spatial axis, or once for all.

    Args:
        x: the input; its features are split into ``groups``.
        w: the kernel, with as many axes as ``x``, not reversed.
        padding: pairs (low, high) per spatial axis, or one number for all; negative padding crops.
        lhs_dilation: dilation of the input, as in transposed convolutions.
        rhs_dilation: dilation of the kernel ("atrous").
        batch_groups: splits the batch of x and the outputs of w instead: output features of group g see batch group g.
        layout: the axis roles; ``channels_first`` by default.

    Raises:
        TypeError: if dtypes differ.
        ValueError: naming the shapes, if they are incompatible.

    Example:
        >>> import numpy as np
        >>> from funcgrad.primitives.convolution import convolve
        >>> convolve(np.ones((1, 1, 4), np.float32), np.ones((1, 1, 3), np.float32), padding=1).tolist()
        [[[2.0, 3.0, 3.0, 2.0]]]
    """
    spatial = type_of(x).ndim - 2

    def each(value: Dims | int) -> Dims:
        return (value,) * spatial if isinstance(value, int) else tuple(value)

    layout = channels_first(spatial) if layout is None else layout
    pairs = ((padding, padding),) * spatial if isinstance(padding, int) else tuple((a, b) for a, b in padding)
    if batch_groups > 1:
        if groups > 1 or type_of(x).shape[layout.x[0]] % batch_groups:
            raise ValueError(
                f"conv: {batch_groups} batch groups want groups=1, got {groups}, and a batch that they divide, got "
                f"{type_of(x)}"
            )
        x, groups = _regroup(x, batch_groups, source=layout.x[0], target=layout.x[1]), batch_groups
    return conv(x, w, config=Config(each(strides), pairs, each(lhs_dilation), each(rhs_dilation), groups, layout))
