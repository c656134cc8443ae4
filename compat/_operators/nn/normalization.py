"""Normalization: layer, group, batch and instance normalization."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from compat._core.memory.strides import channels_last_strides, is_channels_last
from compat._core.operators.composite import composite
from compat._core.operators.declaration import Arguments, Gradients
from compat._core.operators.op import aten
from compat._core.operators.opmath import single
from compat._core.tensor import capture_checks
from compat._core.tensor.registry import function, names_of
from compat._core.tensor.tensor import Tensor
from compat._core.transforms import vmap_checks
from compat._core.transforms.grad_mode import mode, no_grad
from compat._core.types import dtype
from compat._core.types.errors import lacks, size_text
from compat._operators.create.copy_to_fill import contiguous, suggested_format
from compat._operators.reduction.sum_mean_var import reduce
from funcgrad import numpy as np
from funcgrad.core import dtypes as fdtypes
from funcgrad.core.tracing import type_of
from funcgrad.primitives import elementwise as e
from funcgrad.primitives import reductions as r
from funcgrad.primitives.shape import reshape

Axes = tuple[int, ...]

# ---------------------------------------------------------------- helpers


def _count(x: Any, axes: Axes) -> int:
    return math.prod(type_of(x).shape[a] for a in axes)


def _mean(x: Any, axes: Axes) -> Any:
    return np.divide(reduce(r.reduce_sum, x, axes, True), _count(x, axes))


def _statistics(x: Any, axes: Axes) -> tuple[Any, Any]:
    """The mean and the variance over axes, which are kept with size 1."""
    mean = _mean(x, axes)
    return mean, _mean(e.square(np.subtract(x, mean)), axes)


def _fused(x: Any, mean: Any, inverse: Any) -> Any:
    """``(x - mean) * inverse`` as ``x * inverse - shift``, rounded once, as PyTorch computes it in half precision."""
    shift = np.multiply(mean, inverse)
    x, inverse, shift = (np.astype(v, fdtypes.float64) for v in (x, inverse, shift))  # so that the product is exact
    return np.astype(np.subtract(np.multiply(x, inverse), shift), fdtypes.float32)


def _affine(x: Any, weight: Any, bias: Any) -> Any:
    x = x if weight is None else np.multiply(x, weight)
    return x if bias is None else np.add(x, bias)


def _gradient(ct: Any, x: Any, mean: Any, inverse: Any, axes: Axes, ct_mean: Any, ct_inverse: Any) -> Any:
    """The gradient of ``x``, given those of ``(x - mean) * inverse`` and of the two statistics as separate results.

    The gradients of the statistics make the backward differentiable.
    """
    scaled = np.multiply(np.subtract(x, mean), inverse)
    centred = np.subtract(np.subtract(ct, _mean(ct, axes)), np.multiply(scaled, _mean(np.multiply(ct, scaled), axes)))
    of_inverse = np.multiply(np.multiply(e.square(inverse), scaled), np.divide(ct_inverse, _count(x, axes)))
    return np.add(np.multiply(inverse, centred), np.subtract(np.divide(ct_mean, _count(x, axes)), of_inverse))


def _memory_order(operands: dict[str, Any], types: Sequence[Any]) -> list[Any]:
    """The strides of the results: the first one is channels-last if the input is."""
    layout = operands["input"]
    channels_last = is_channels_last(layout.size, layout.stride) or is_channels_last(layout.size, layout.stride, 5)
    keep = channels_last and not layout.contiguous
    return [channels_last_strides(types[0].shape) if keep else None] + [None] * (len(types) - 1)


def _check_dtypes(input: Tensor, *parameters: Tensor | None) -> None:
    """Checks that the parameters have the dtype of the input, or all float32 for float16 and bfloat16."""
    found = [p.dtype for p in parameters if p is not None]
    if not found:
        return
    if found[0] is input.dtype:
        for d in found:
            if d is not input.dtype:
                raise RuntimeError(f"expected scalar type {input.dtype.scalar_name} but found {d.scalar_name}")
    elif any(d is not dtype.float32 for d in found):
        raise RuntimeError("mixed dtype (CPU): expect parameter to have scalar type of Float")
    elif input.dtype not in (dtype.float16, dtype.bfloat16):
        raise RuntimeError("mixed dtype (CPU): all inputs must share same datatype.")


def _check_floating(kernel: str, input: Tensor) -> None:
    if not input.dtype.is_floating_point:
        raise lacks(kernel, input.dtype)


# ---------------------------------------------------------------- layer normalization


def check_shape(input: Tensor, normalized_shape: tuple[int, ...], prefix: str, **parameters: Tensor | None) -> None:
    """Checks that the last dimensions of a tensor, and the parameters, have the normalized sizes.

    Args:
        prefix: the text before the normalized sizes in messages.

    Raises:
        RuntimeError: if a shape differs.
    """
    if not normalized_shape:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, "
            "but got normalized_shape = []"
        )
    for name, p in parameters.items():
        if p is not None and tuple(p.shape) != normalized_shape:
            raise RuntimeError(
                f"Expected {name} to be of same shape as normalized_shape, but got {name} of shape "
                f"{size_text(p.shape)} and normalized_shape = {size_text(normalized_shape)}"
            )
    if tuple(input.shape[-len(normalized_shape) :]) != normalized_shape:
        raise RuntimeError(
            f"Given normalized_shape={size_text(normalized_shape)}, expected input with shape "
            f"[{prefix}{', '.join(map(str, normalized_shape))}], but got input of size{size_text(input.shape)}"
        )


def _check_layer(input: Tensor, normalized_shape: Any, weight: Any, bias: Any, eps: float) -> None:
    check_shape(input, normalized_shape, "*, ", weight=weight, bias=bias)
    _check_dtypes(input, weight, bias)
    _check_floating("LayerNormKernelImpl", input)


def _last_axes(x: Any, shape: tuple[int, ...]) -> Axes:
    ndim = type_of(x).ndim
    return tuple(range(ndim - len(shape), ndim))


@aten(
    "native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> "
    "(Tensor, Tensor, Tensor)",
    node="NativeLayerNormBackward0", saves="input weight! bias! normalized_shape result1 result2", names="",
    check=_check_layer, gradients=Gradients(detached=(1, 2)),
)  # fmt: skip
def native_layer_norm(input, normalized_shape, weight, bias, eps):
    axes = _last_axes(input, normalized_shape)
    x = single(input)
    mean, variance = _statistics(x, axes)
    inverse = e.rsqrt(np.add(variance, eps))
    standard = np.multiply(np.subtract(x, mean), inverse) if x is input else _fused(x, mean, inverse)
    out = _affine(standard, single(weight), single(bias))
    stats_dtype = type_of(input if weight is None else weight).dtype
    return np.astype(out, type_of(input).dtype), np.astype(mean, stats_dtype), np.astype(inverse, stats_dtype)


@native_layer_norm.backward
def native_layer_norm_backward(ct0, ct1, ct2, input, normalized_shape, weight, bias, result1, result2):
    axes = _last_axes(input, normalized_shape)
    ct, x, mean, inverse = (single(v) for v in (ct0, input, result1, result2))
    ct_normalized = ct if weight is None else np.multiply(ct, single(weight))
    grad = _gradient(ct_normalized, x, mean, inverse, axes, single(ct1), single(ct2))
    # Also for one row the gradient of the bias is a new array.
    rows = (math.prod(type_of(x).shape[: axes[0]]), *normalized_shape)
    scaled = np.multiply(np.subtract(x, mean), inverse)
    grad_weight = None if weight is None else np.sum(np.reshape(np.multiply(ct, scaled), rows), 0)
    return grad, grad_weight, None if bias is None else np.sum(np.reshape(ct, rows), 0)


@composite(
    "native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> (Tensor, "
    "Tensor, Tensor)",
    names="torch.native_layer_norm",
)
def layer_norm_and_statistics(input, normalized_shape, weight, bias, eps):
    """As ``torch.nn.functional.layer_norm``, with the means and the inverses of the standard deviations."""
    out, mean, inverse = native_layer_norm.function(input, tuple(normalized_shape), weight, bias, eps)
    return out, mean.detach(), inverse.detach()


@composite(
    "layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, "
    "bool cudnn_enable=True) -> Tensor",
    names="torch.layer_norm",
)
@function("F.layer_norm")
def layer_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, bias: Tensor | None = None,
    eps: float = 1e-5, cudnn_enable: bool = True,
) -> Tensor:  # fmt: skip
    """Normalizes the last dimensions to mean 0 and standard deviation 1; times ``weight``, plus ``bias``.

    Args:
        normalized_shape: the sizes of the normalized dimensions.
        weight, bias: of that shape.
        eps: a number that is added to the variance.

    Raises:
        RuntimeError: for sizes or dtypes that do not match.

    Example:
        >>> torch.nn.functional.layer_norm(torch.tensor([[1.0, 3.0]]), (2,), eps=0.0)
        tensor([[-1.,  1.]])
    """
    if not isinstance(normalized_shape, (tuple, list)):
        what = type(normalized_shape).__name__
        raise TypeError(f"layer_norm(): argument 'normalized_shape' (position 2) must be tuple of ints, not {what}")
    return native_layer_norm.function(input, tuple(normalized_shape), weight, bias, eps)[0]


# ---------------------------------------------------------------- group normalization


def _grouped(x: Any, N: int, group: int) -> Any:
    return reshape(x, shape=(N, group, type_of(x).size // max(N * group, 1)))


def _by_channel(x: Any, like: Any) -> Any:
    """One value per channel, in a shape that broadcasts against ``like``, (N, C, ...)."""
    return reshape(x, shape=(1, type_of(x).size, *(1,) * (type_of(like).ndim - 2)))


def _check_channels(shape: Sequence[int], num_groups: int, channels: int, weight: Any, bias: Any) -> None:
    if num_groups <= 0:
        raise RuntimeError(f"Expected num groups to be greater than 0, got {num_groups}")
    if channels % num_groups:
        raise RuntimeError(
            "Expected number of channels in input to be divisible by num_groups, but got input of shape "
            f"{size_text(shape)} and num_groups={num_groups}"
        )
    first_shape = (0,) if weight is None else weight.shape  # PyTorch's message has it for the bias, too
    for name, p in (("weight", weight), ("bias", bias)):
        if p is not None and tuple(p.shape) != (channels,):
            raise RuntimeError(
                f"Expected {name} to be a vector of size equal to the number of channels in input, but got {name} of "
                f"shape {size_text(first_shape)} and input of shape {size_text(shape)}"
            )


def _check_group(input: Tensor, weight: Any, bias: Any, N: int, C: int, HxW: int, group: int, eps: float) -> None:
    _check_channels(input.shape, group, C, weight, bias)
    if input.numel() != N * C * HxW:
        raise RuntimeError(
            "Expected X.numel() == N * C * HxW to be true, but got false.  (Could this error message be improved?  If "
            "so, please report an enhancement request to PyTorch.)"
        )
    _check_dtypes(input, weight, bias)
    _check_floating("GroupNormKernelImpl", input)


@aten(
    "native_group_norm(Tensor input, Tensor? weight, Tensor? bias, SymInt N, SymInt C, SymInt HxW, int group, "
    "float eps) -> (Tensor, Tensor, Tensor)",
    node="NativeGroupNormBackward0", saves="input weight! N C HxW group eps result1 result2",
    names="torch.native_group_norm", layout=_memory_order, check=_check_group, out=False,
)  # fmt: skip
def native_group_norm(input, weight, bias, N, C, HxW, group, eps):
    """``group_norm`` of (N, C, ...) with ``HxW`` elements per channel, and the means and the inverses of the standard
    deviations of the groups, (N, group).

    Example:
        >>> out, mean, inverse = torch.native_group_norm(torch.tensor([[1.0, 3.0]]), None, None, 1, 2, 1, 1, 0.0)
        >>> out, mean, inverse
        (tensor([[-1.,  1.]]), tensor([[2.]]), tensor([[1.]]))
    """
    x = single(input)
    mean, variance = _statistics(_grouped(x, N, group), (2,))
    inverse = e.rsqrt(np.add(variance, eps))
    scaled = reshape(np.multiply(np.subtract(_grouped(x, N, group), mean), inverse), shape=type_of(input).shape)
    parts = [None if p is None else _by_channel(single(p), input) for p in (weight, bias)]
    stats_dtype = type_of(input if weight is None else weight).dtype
    stats = [np.astype(reshape(s, shape=(N, group)), stats_dtype) for s in (mean, inverse)]
    return np.astype(_affine(scaled, *parts), type_of(input).dtype), *stats


@native_group_norm.backward
def native_group_norm_backward(ct0, ct1, ct2, input, weight, bias, N, group, result1, result2):
    ct, x = single(ct0), _grouped(single(input), N, group)
    stats = [reshape(single(s), shape=(N, group, 1)) for s in (result1, result2, ct1, ct2)]
    mean, inverse, ct_mean, ct_inverse = stats
    ct_normalized = ct if weight is None else np.multiply(ct, _by_channel(single(weight), input))
    grad = _gradient(_grouped(ct_normalized, N, group), x, mean, inverse, (2,), ct_mean, ct_inverse)
    scaled = reshape(np.multiply(np.subtract(x, mean), inverse), shape=type_of(input).shape)
    axes = _axes_except_channels(input)
    grad_weight = None if weight is None else reduce(r.reduce_sum, np.multiply(ct, scaled), axes, False)
    grad_bias = None if bias is None else reduce(r.reduce_sum, ct, axes, False)
    return reshape(grad, shape=type_of(input).shape), grad_weight, grad_bias


@function("F.group_norm")
def functional_group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """``layer_norm`` of each group of channels of each sample.

    Args:
        input: (N, C, ...).
        num_groups: the number of groups, a divisor of C.
        weight, bias: (C).
        eps: a number that is added to the variance.

    Raises:
        RuntimeError: for sizes or dtypes that do not match.
        ValueError: for groups of one value.

    Example:
        >>> torch.nn.functional.group_norm(torch.tensor([[1.0, 3.0, 5.0, 9.0]]), 2, eps=0.0)
        tensor([[-1.,  1., -1.,  1.]])
    """
    if input.dim() < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.dim()}")
    size = [input.size(0) * input.size(1) // num_groups, num_groups, *input.shape[2:]]
    if math.prod(size) == num_groups:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {size}")
    return group_norm(input, num_groups, weight, bias, eps)


@composite(
    "group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, "
    "bool cudnn_enabled=True) -> Tensor",
    names="torch.group_norm",
)
def group_norm(input, num_groups, weight=None, bias=None, eps=1e-5, cudnn_enabled=True):
    """As ``torch.nn.functional.group_norm``, but groups may have one value.

    Raises:
        RuntimeError: for sizes or dtypes that do not match.
    """
    if input.dim() < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.dim()}")
    n, c, *spatial = input.shape
    _check_channels(input.shape, num_groups, c, weight, bias)
    if not input._layout_.contiguous:
        input = contiguous(input, memory_format=suggested_format(input))
    return native_group_norm.function(input, weight, bias, n, c, math.prod(spatial), num_groups, eps)[0]


# ---------------------------------------------------------------- batch normalization


def _axes_except_channels(x: Any) -> Axes:
    return tuple(d for d in range(type_of(x).ndim) if d != 1)


def _check_batch(input, weight, bias, running_mean, running_var, training, momentum, eps):
    features = input.shape[1] if input.dim() > 1 else 0
    for name, t in (("running_mean", running_mean), ("running_var", running_var)):
        if t is None and not training:
            raise RuntimeError(f"{name} must be defined in evaluation mode")
    named = (("running_mean", running_mean), ("running_var", running_var), ("weight", weight), ("bias", bias))
    for name, t in named:
        if t is not None and t.numel() != features:
            raise RuntimeError(f"{name} should contain {features} elements not {t.numel()}")
    if training and not input.numel():
        size = size_text(input.shape)
        raise RuntimeError(f"input tensor must have at least one element, but got input_sizes = {size}")
    _check_floating("batch_norm", input)
    _check_dtypes(input, weight, bias, running_mean, running_var)


@aten(
    "native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, "
    "bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
    node="NativeBatchNormBackward0", saves="input weight! running_mean! running_var! training eps result1! result2!",
    names="", layout=_memory_order, check=_check_batch, arguments=Arguments(traced="momentum"),
    gradients=Gradients(without="running_mean running_var", constant=(3, 4), detached=(1, 2)),
)  # fmt: skip
def native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps):  # fmt: skip
    x, axes = single(input), _axes_except_channels(input)
    channels = (type_of(input).shape[1],)
    if training:
        mean, variance = _statistics(x, axes)
    else:
        mean, variance = (_by_channel(single(s), input) for s in (running_mean, running_var))
    inverse = e.rsqrt(np.add(variance, eps))
    stats_dtype = type_of(input if weight is None else weight).dtype
    if training:  # PyTorch uses the statistics rounded to the dtype in which they are saved
        mean, inverse = (single(np.astype(s, stats_dtype)) for s in (mean, inverse))
    parts = [None if p is None else _by_channel(single(p), input) for p in (weight, bias)]
    out = np.astype(_affine(np.multiply(np.subtract(x, mean), inverse), *parts), type_of(input).dtype)
    if not training:
        return (out, *[np.zeros((0,), type_of(x).dtype)] * 2)
    stats = [np.astype(reshape(s, shape=channels), stats_dtype) for s in (mean, inverse)]
    if running_mean is None:
        return (out, *stats)
    unbiased = np.multiply(variance, _count(x, axes) / max(_count(x, axes) - 1, 1))
    return out, *stats, *(_updated(s, new, momentum) for s, new in ((running_mean, mean), (running_var, unbiased)))


def _updated(running: Any, new: Any, momentum: Any) -> Any:
    """A running statistic moved towards a new value."""
    new = reshape(new, shape=type_of(running).shape)
    momentum = np.astype(momentum, type_of(new).dtype)
    updated = np.add(np.multiply(np.subtract(1.0, momentum), single(running)), np.multiply(momentum, new))
    return np.astype(updated, type_of(running).dtype)


@native_batch_norm.backward
def native_batch_norm_backward(
    ct0: Any, ct1: Any, ct2: Any, input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any,
    training: bool, eps: float, result1: Any, result2: Any,
) -> Any:  # fmt: skip
    ct, x, axes = single(ct0), single(input), _axes_except_channels(input)
    ct_normalized = ct if weight is None else np.multiply(ct, _by_channel(single(weight), input))
    if training:
        mean, inverse, ct_mean, ct_inverse = (_by_channel(single(s), input) for s in (result1, result2, ct1, ct2))
        grad = _gradient(ct_normalized, x, mean, inverse, axes, ct_mean, ct_inverse)
    else:
        mean = _by_channel(single(running_mean), input)
        inverse = e.rsqrt(np.add(_by_channel(single(running_var), input), eps))
        grad = np.multiply(ct_normalized, inverse)
    scaled = np.multiply(np.subtract(x, mean), inverse)
    grad_weight = None if weight is None else reduce(r.reduce_sum, np.multiply(ct, scaled), axes, False)
    return grad, grad_weight, None if bias is None else reduce(r.reduce_sum, ct, axes, False)


def _batch_norm(
    input: Tensor,
    running_mean: Any,
    running_var: Any,
    weight: Any,
    bias: Any,
    training: bool,
    momentum: float,
    eps: float,
) -> Tensor:
    """Normalizes batches, and updates the running statistics without a version change."""
    for name, running in (("running_mean", running_mean), ("running_var", running_var)):
        if running is not None and mode.grad and running.requires_grad:
            raise RuntimeError(
                f"The function 'native_batch_norm' is not differentiable with respect to argument '{name}'. This input "
                "cannot have requires_grad True."
            )
    if not input.numel():
        out = input.clone()
        out = out if weight is None else out * weight[0]
        return out if bias is None else out + bias[0]
    op = names_of("torch")["native_batch_norm"]  # the function that modes intercept
    normalized: Tensor = op(input, weight, bias, running_mean, running_var, training, momentum, eps)[0]
    return normalized


def _write_statistics(statistics: Sequence[tuple[Tensor, Tensor]]) -> None:
    """Writes running statistics without a version change.

    Raises:
        RuntimeError: for statistics that are shared by the batch elements of a ``vmap``.
    """
    for running, new in statistics:
        if not set(_maps(new)) <= set(_maps(running)):
            raise RuntimeError(_SHARED_STATISTICS)
    for running, new in statistics:
        capture_checks.let(running)
        if _maps(running):
            with no_grad():
                running.copy_(new)
        else:
            running.data.copy_(new)


def _maps(t: Tensor) -> Sequence[Any]:
    """The ``vmap``s that batch a tensor; without reading one that is not traced."""
    return vmap_checks.maps(t._storage_.buffer) if t._layout_.base.traced else ()


_SHARED_STATISTICS = (
    "Batch norm got a batched tensor as input while the running_mean or running_var, which will be updated in place, "
    "were not batched.\nIf you are using a module and do not need eval mode, please set `track_running_stats` to be "
    "False.If you are using a prebuilt module and do not need eval mode, please see the functorch website for "
    "resources on how to patch your module to work with vmap"
)


@composite(
    "native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, "
    "bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
    names="torch.native_batch_norm",
)
def batch_norm_and_statistics(input, weight, bias, running_mean, running_var, training, momentum, eps):
    """As ``torch.nn.functional.batch_norm``, with the means and the inverses of the standard deviations of the batch,
    which are empty unless ``training``."""
    out, mean, inverse, *updated = native_batch_norm.function(
        input, weight, bias, running_mean, running_var, bool(training), float(momentum), eps
    )
    _write_statistics([(r, new) for r, new in zip((running_mean, running_var), updated) if r is not None])
    return out, mean.detach(), inverse.detach()


@composite(
    "_native_batch_norm_legit_functional(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, "
    "Tensor running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
    names="torch._native_batch_norm_legit_functional",
)
def batch_norm_and_new_statistics(input, weight, bias, running_mean, running_var, training, momentum, eps):
    """As ``native_batch_norm``, but it returns the updated running statistics instead of writing them."""
    out, mean, inverse, *updated = native_batch_norm.function(
        input, weight, bias, running_mean, running_var, bool(training), float(momentum), eps
    )
    return out, mean, inverse, *(updated or (running_mean, running_var))


@function("F.batch_norm")
def batch_norm(
    input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None = None,
    bias: Tensor | None = None, training: bool = False, momentum: float = 0.1, eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    """Normalizes channels to mean 0 and standard deviation 1; times ``weight``, plus ``bias``.

    Args:
        input: (N, C, ...).
        running_mean, running_var: (C): the statistics, or, with ``training``, tensors to update.
        weight, bias: (C).
        training: whether to use the statistics of the batch.
        momentum: the weight of the statistics of the batch in the update.
        eps: a number that is added to the variance.

    Raises:
        ValueError: with ``training``, for one value per channel and for ``eps`` that is not positive; else for negative
            ``eps``.
        RuntimeError: for sizes that do not match, and running statistics that are missing or require grad.

    Example:
        >>> torch.nn.functional.batch_norm(torch.tensor([[1.0], [3.0]]), None, None, training=True)
        tensor([[-1.0000],
                [ 1.0000]])
    """
    if training and input.dim() > 1 and input.shape[0] * math.prod(input.shape[2:]) == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {input.size()}")
    if training and eps <= 0.0:
        raise ValueError(f"batch_norm eps must be positive during training, but got {eps}")
    if eps < 0.0:
        raise ValueError(f"batch_norm eps must be non-negative, but got {eps}")
    return _batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


@composite(
    "batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, "
    "bool training, float momentum, float eps, bool cudnn_enabled) -> Tensor",
    names="torch.batch_norm",
)
def batch_norm_positional(input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled=False):
    """As ``torch.nn.functional.batch_norm``, with the arguments in another order."""
    return _batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


# ---------------------------------------------------------------- instance normalization


@function("F.instance_norm")
def instance_norm(
    input: Tensor, running_mean: Tensor | None = None, running_var: Tensor | None = None, weight: Tensor | None = None,
    bias: Tensor | None = None, use_input_stats: bool = True, momentum: float = 0.1, eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    """``batch_norm`` of each sample separately.

    Args:
        use_input_stats: whether to use the statistics of each sample.
        input, running_mean, running_var, weight, bias, momentum, eps: the arguments of ``batch_norm``.

    Raises:
        ValueError: with ``use_input_stats``, for one value per channel of a sample.

    Example:
        >>> torch.nn.functional.instance_norm(torch.tensor([[[1.0, 3.0]]]), eps=0.0)
        tensor([[[-1.,  1.]]])
    """
    if use_input_stats and math.prod(input.shape[2:]) == 1:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {input.size()}")
    n, c, *spatial = input.shape
    means, variances, weights, biases = (
        None if t is None else t.repeat(n) for t in (running_mean, running_var, weight, bias)
    )
    samples_as_channels = input.contiguous().view(1, n * c, *spatial)
    out = _batch_norm(samples_as_channels, means, variances, weights, biases, use_input_stats, momentum, eps)
    if use_input_stats:
        pairs = ((running_mean, means), (running_var, variances))
        _write_statistics([(r, each.view(n, c).mean(0)) for r, each in pairs if r is not None and each is not None])
    return out.view(n, c, *spatial)
