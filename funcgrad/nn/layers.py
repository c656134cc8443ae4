"""Neural network functions: activations, convolution, pooling, cross entropy; images are (batch, channels, ...).

They are pure functions of arrays, with parameters as arguments. ``x`` is an array of any shape by default; integers are
converted to floats.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from funcgrad.arguments import validate
from funcgrad.core import dtypes
from funcgrad.core.tracing import type_of
from funcgrad.nn import initializers
from funcgrad.nn.activations import (
    celu,
    glu,
    hard_sigmoid,
    hard_silu,
    hard_swish,
    hard_tanh,
    log_sigmoid,
    mish,
    relu6,
    selu,
    soft_sign,
    squareplus,
)
from funcgrad.nn.attention import dot_product_attention
from funcgrad.numpy import elementwise as e
from funcgrad.numpy import reductions as r
from funcgrad.numpy.elementwise.logarithms import logaddexp
from funcgrad.numpy.indexing.getitem import take_along_axis
from funcgrad.numpy.promotion import asoperand, astype, promoted
from funcgrad.numpy.reductions import log_softmax, softmax
from funcgrad.numpy.shape import expand_dims, moveaxis, reshape, squeeze
from funcgrad.primitives import elementwise as p
from funcgrad.primitives.convolution import convolve
from funcgrad.primitives.shape import full, iota
from funcgrad.primitives.windows import Window, window_max, window_over, window_sum
from funcgrad.runtime.call_cache import composite
from funcgrad.special.logistic import logsumexp

# ---------------------------------------------------------------- activations


def relu(x: Any) -> Any:
    """``max(x, 0)``, with derivative 0 at 0.

    Args:
        x: a real array or number.

    Returns:
        An array of the shape and the dtype of ``x``; integers stay integers.

    Raises:
        TypeError: for operands that are not arrays, or a complex one.

    Example:
        >>> print(relu(np.array([-1.0, 2.0])))
        [0. 2.]
    """
    (x,) = promoted(asoperand(x, "relu"))
    zero = p.number(0, x)
    return p.select(p.le(x, zero), zero, x)


@composite
def leaky_relu(x: Any, negative_slope: Any = 0.01) -> Any:
    """``x`` where positive, ``negative_slope * x`` elsewhere.

    Args:
        x: a real array or number.
        negative_slope: a number, or an array that broadcasts with ``x``.

    Returns:
        An array of the shapes of both broadcast together, in their promoted dtype; float32 for integers and a
        float.

    Raises:
        TypeError: for operands that are not arrays, or a complex one.
        ValueError: for shapes that do not broadcast.

    Example:
        >>> print(leaky_relu(np.array([-1.0, 2.0]), 0.5))
        [-0.5  2. ]
    """
    return e.where(e.greater(x, 0), x, e.multiply(x, negative_slope))


@composite
def elu(x: Any, alpha: Any = 1.0) -> Any:
    """``x`` where positive, ``alpha * (exp(x) - 1)`` elsewhere.

    Args:
        x: a real array or number.
        alpha: a number, or an array that broadcasts with ``x``.

    Returns:
        An array of the shapes of ``x`` and ``alpha`` broadcast together, in their promoted floating dtype.

    Raises:
        TypeError: for operands that are not arrays, or a complex one.
        ValueError: for shapes that do not broadcast.

    Example:
        >>> print(elu(np.array([0.0, 2.0])))
        [0. 2.]
    """
    positive = e.greater(x, 0)
    # The exponential never sees a large x: infinity would give a NaN derivative for the other branch.
    return e.where(positive, x, e.multiply(alpha, e.expm1(e.where(positive, 0.0, x))))


def sigmoid(x: Any) -> Any:
    """``1 / (1 + exp(-x))``.

    Args:
        x: an array or number, complex ones too.

    Returns:
        An array of the shape of ``x``, in its floating dtype; float32 for integers.

    Raises:
        TypeError: for operands that are not arrays.

    Example:
        >>> print(sigmoid(0.0))
        0.5
    """
    (x,) = promoted(asoperand(x, "sigmoid"), floating=True)
    return p.logistic(x)


def silu(x: Any) -> Any:
    """``x * sigmoid(x)``, also called swish.

    Args:
        x: an array or number, complex ones too.

    Returns:
        An array of the shape of ``x``, in its floating dtype; float32 for integers.

    Raises:
        TypeError: for operands that are not arrays.

    Example:
        >>> print(silu(0.0))
        0.0
    """
    (x,) = promoted(asoperand(x, "silu"), floating=True)
    return p.mul(x, p.logistic(x))


swish = silu


@composite
def softplus(x: Any) -> Any:
    """``log(1 + exp(x))`` without overflow.

    Args:
        x: a real array or number.

    Returns:
        An array of the shape of ``x``, in its floating dtype; float32 for integers.

    Raises:
        TypeError: for operands that are not arrays, or a complex one.

    Example:
        >>> print(softplus(1000.0))
        1000.0
    """
    return logaddexp(x, 0.0)


@composite
def gelu(x: Any, approximate: str | bool = "none") -> Any:
    """``x * P(X <= x)`` for a standard normal ``X``.

    Source: Hendrycks and Gimpel, "Gaussian error linear units" (2016).

    Args:
        x: a real array or number; for ``"tanh"`` a complex one, too.
        approximate: ``"none"`` or False, or ``"tanh"`` or True for that paper's approximation.

    Returns:
        An array of the shape of ``x``, in its floating dtype; float32 for integers.

    Raises:
        TypeError: for operands that are not arrays, or a complex one for ``"none"``.
        ValueError: for an unknown ``approximate``.

    Example:
        >>> print(gelu(0.0))
        0.0
    """
    (x,) = promoted(asoperand(x, "gelu"), floating=True)
    half = p.scale(x, 0.5)
    if approximate in ("none", False):
        return p.mul(half, p.erfc(p.scale(x, -math.sqrt(0.5))))
    if approximate not in ("tanh", True):
        raise ValueError(f'gelu: approximate must be "none" or "tanh", got {approximate!r}')
    cubic = p.add(x, p.scale(p.integer_power(x, exponent=3), 0.044715))
    return p.mul(half, p.shift(p.tanh(p.scale(cubic, math.sqrt(2 / math.pi))), 1))


# ---------------------------------------------------------------- convolution and pooling

Spatial = int | Sequence[int]


def _each(value: Spatial, axes: int, name: str, what: str, least: int = 1) -> tuple[int, ...]:
    """One number per spatial axis."""
    values = validate.integers(name, what, value, least)
    values = values if isinstance(value, (Sequence, np.ndarray)) else values * axes
    if len(values) != axes:
        raise ValueError(f"{name}: {what} must be an int or one for each of the {axes} spatial axes, got {value!r}")
    return values


def conv(
    x: Any,
    weight: Any,
    bias: Any = None,
    *,
    stride: Spatial = 1,
    padding: Spatial | str = 0,
    dilation: Spatial = 1,
    groups: int = 1,
) -> Any:
    """The convolution (cross-correlation) of images with kernels, over any number of spatial axes.

    Args:
        x: (batch, channels, ...), or (channels, ...) of a single image; integers are converted to floats, also in
            ``weight``.
        weight: (outputs, channels / groups, ...).
        bias: (outputs,).
        stride: the kernel's step along each spatial axis, or along all.
        padding: zeros at both ends of each spatial axis; ``"valid"`` is none, ``"same"`` preserves the size, with an
            odd zero at the far end.
        dilation: the distance of the kernel's elements.
        groups: the number of groups of outputs and channels, which are convolved separately.

    Returns:
        (batch, outputs, ...), or (outputs, ...) of a single image, in the promoted floating dtype.

    Raises:
        TypeError: for operands that are not arrays, and for numbers that are not integers.
        ValueError: naming incompatible shapes; for an unknown ``padding``, or a number that is too small.

    Example:
        >>> conv(np.ones((2, 3, 8, 8), "float32"), np.ones((5, 3, 3, 3), "float32"), padding=1).shape
        (2, 5, 8, 8)
    """
    x, weight = promoted(asoperand(x, "conv"), asoperand(weight, "conv"), floating=True)
    axes = type_of(weight).ndim - 2
    if type_of(x).ndim == axes + 1 > 0:
        single = conv(expand_dims(x, 0), weight, bias, stride=stride, padding=padding, dilation=dilation, groups=groups)
        return squeeze(single, 0)
    strides, holes = _each(stride, axes, "conv", "stride"), _each(dilation, axes, "conv", "dilation")
    out = convolve(
        x,
        weight,
        strides=strides,
        padding=_conv_padding(padding, type_of(weight).shape[2:], strides, holes),
        rhs_dilation=holes,
        groups=validate.integer("conv", "groups", groups, least=1),
    )
    return out if bias is None else e.add(out, reshape(bias, (-1, *(1,) * axes)))


def _conv_padding(
    padding: Spatial | str, window: Sequence[int], strides: Sequence[int], holes: Sequence[int]
) -> tuple[tuple[int, int], ...]:
    if isinstance(padding, str) and padding == "valid":
        padding = 0
    if not isinstance(padding, str):
        return tuple((n, n) for n in _each(padding, len(window), "conv", "padding", least=0))
    if padding != "same":
        raise ValueError(f'conv: padding must be numbers, "same" or "valid", got {padding!r}')
    if any(s != 1 for s in strides):
        raise ValueError(f'conv: padding="same" wants stride 1, got {tuple(strides)}')
    totals = [d * (k - 1) for d, k in zip(holes, window, strict=True)]
    return tuple((n // 2, n - n // 2) for n in totals)


def _pooling(
    name: str, x: Any, size: Spatial, stride: Spatial | None, padding: Spatial, dilation: Spatial
) -> tuple[Any, Window]:
    """The operand and the window that slides along its spatial axes, all but the first two."""
    (x,) = promoted(asoperand(x, name))
    ndim = type_of(x).ndim
    axes = len(validate.integers(name, "size", size)) if isinstance(size, Sequence) else ndim - 2
    if not 0 < axes < ndim:
        raise ValueError(
            f"{name}: wants (batch, channels, ...) and a window of at most its spatial axes, got {type_of(x)}"
        )
    window, ends = _each(size, axes, name, "size"), _each(padding, axes, name, "padding", least=0)
    if any(2 * n > k for n, k in zip(ends, window, strict=True)):
        raise ValueError(f"{name}: padding {ends} must be at most half of the window {window}")
    return x, window_over(
        ndim,
        tuple(range(ndim - axes, ndim)),
        window,
        window if stride is None else _each(stride, axes, name, "stride"),
        [(n, n) for n in ends],
        _each(dilation, axes, name, "dilation"),
    )


def max_pool(x: Any, size: Spatial, stride: Spatial | None = None, padding: Spatial = 0, dilation: Spatial = 1) -> Any:
    """The maximum of each window; the first of equal elements has the derivative.

    Args:
        x: (batch, channels, ...) of real numbers or bools; (channels, ...) if ``size`` has an entry for each spatial
            axis.
        size: the window's size: an int, or one per spatial axis, as for the others.
        stride: the window's step; by default its size.
        padding: at both ends, of minus infinity.
        dilation: the distance of the window's elements.

    Returns:
        An array of the dtype of ``x``, with one element per window along the spatial axes; empty if no window fits.

    Raises:
        TypeError: for operands that are not arrays, or a complex one.
        ValueError: for padding of more than half a window, a size, stride or dilation that is not positive or not one
            per spatial axis, or too few axes.

    Example:
        >>> print(max_pool(np.array([[[1.0, 3.0, 2.0, 0.0]]]), 2))
        [[[3. 2.]]]
    """
    x, window = _pooling("max_pool", x, size, stride, padding, dilation)
    return window_max(x, window=window)


def avg_pool(
    x: Any, size: Spatial, stride: Spatial | None = None, padding: Spatial = 0, count_include_pad: bool = True
) -> Any:
    """The mean of each window.

    Args:
        x: (batch, channels, ...); (channels, ...) if ``size`` has an entry for each spatial axis.
        size, stride: as for ``max_pool``.
        padding: zeros at both ends.
        count_include_pad: whether padding counts in the mean.

    Returns:
        A floating array (float32 for integers), with one element per window along the spatial axes.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: for padding of more than half a window, a size or stride that is not positive or not one per spatial
            axis, or too few axes.

    Example:
        >>> print(avg_pool(np.array([[[1.0, 3.0, 2.0, 0.0]]]), 2))
        [[[2. 1.]]]
    """
    x, window = _pooling("avg_pool", x, size, stride, padding, 1)
    (x,) = promoted(x, floating=True)
    count = p.number(math.prod(window.size), x)
    if not count_include_pad:
        count = window_sum(full(p.number(1, x), type_of(x).shape), window=window)
    return p.div(window_sum(x, window=window), count)


# ---------------------------------------------------------------- classification


@composite
def one_hot(x: Any, num_classes: int, dtype: Any = float, axis: int = -1) -> Any:
    """Ones at the labels along a new axis of ``num_classes``, zeros elsewhere; all zeros for a label out of range.

    Args:
        x: the labels, integers of any shape.
        num_classes: the number of classes.
        dtype: the dtype of the result.
        axis: the position of the new axis in the result.

    Returns:
        An array of ``dtype``, float32 by default, and of the shape of ``x`` with an additional axis of ``num_classes``.

    Raises:
        TypeError: for labels, or a ``num_classes``, that are not integers.
        ValueError: for a negative ``num_classes``, or an ``axis`` that is not there.

    Example:
        >>> print(one_hot(np.array([0, 2]), 3))
        [[1. 0. 0.]
         [0. 0. 1.]]
    """
    labels = asoperand(x, "one_hot")
    t = type_of(labels)
    if not dtypes.is_integer(t.dtype):
        raise TypeError(f"one_hot: labels must be integers, got {t}")
    count = validate.integer("one_hot", "num_classes", num_classes, least=0)
    numbers = iota(shape=(*t.shape, count), axis=t.ndim, dtype=t.dtype)
    hot = astype(p.eq(expand_dims(labels, -1), numbers), dtypes.canonical(dtype))
    return moveaxis(hot, -1, validate.axis("one_hot", axis, t.ndim + 1))


@composite
def standardize(
    x: Any, axis: Any = -1, mean: Any = None, variance: Any = None, epsilon: float = 1e-5, where: Any = None
) -> Any:
    """``x`` minus its mean, divided by its standard deviation.

    Args:
        x: an array.
        axis: an int, or several, over which mean and variance are taken; None for all.
        mean, variance: arrays or numbers that broadcast with ``x``, instead of those of ``x``.
        epsilon: is added to the variance.
        where: bools that broadcast to ``x``: the elements to include in mean and variance.

    Returns:
        An array of the shape of ``x``, in its floating dtype; float32 for integers.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: for an axis out of range or repeated, or shapes that do not broadcast.

    Example:
        >>> print(standardize(np.array([1.0, 2.0, 3.0])).round(3))
        [-1.225  0.     1.225]
    """
    (x,) = promoted(asoperand(x, "standardize"), floating=True)
    mean = r.mean(x, axis, keepdims=True, where=where) if mean is None else mean
    centred = e.subtract(x, mean)
    if variance is None:
        # Not by abs, which has no derivative at the mean.
        squares = e.real(e.multiply(centred, e.conj(centred)))
        variance = r.mean(squares, axis, keepdims=True, where=where)
    return e.multiply(centred, e.rsqrt(e.add(variance, epsilon)))


@composite
def cross_entropy(
    logits: Any, labels: Any, *, axis: int = -1, label_smoothing: float = 0.0, reduction: str = "mean"
) -> Any:
    """The cross entropy of the softmax of ``logits`` and ``labels``.

    Args:
        logits: unnormalized log probabilities, a floating array with the classes along ``axis``.
        labels: integers, of the shape of ``logits`` without ``axis``; or floating probabilities, of the same
            shape.
        axis: an int.
        label_smoothing: the part of each label that is spread evenly over all classes.
        reduction: ``"mean"``, ``"sum"``, or ``"none"`` for one number per label.

    Returns:
        A floating array of shape ``()``; for ``"none"``, of that of ``logits`` without ``axis``.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: for incompatible shapes, labels of another kind, an axis out of range, or an unknown ``reduction``.
        IndexError: for labels out of range, if they are concrete: NumPy arrays and lists.

    Example:
        >>> print(cross_entropy(np.array([[0.0, 1000.0]]), np.array([1])))
        0.0
    """
    validate.one_of("cross_entropy", "reduction", reduction, ("mean", "sum", "none"))
    label_smoothing = asoperand(label_smoothing, "cross_entropy: label_smoothing")
    (logits,) = promoted(asoperand(logits, "cross_entropy"), floating=True)
    labels = asoperand(labels, "cross_entropy")
    t, given = type_of(logits), type_of(labels)
    axis = validate.axis("cross_entropy", axis, t.ndim)
    chances = log_softmax(logits, axis)
    if dtypes.is_integer(given.dtype):
        if given.shape != (*t.shape[:axis], *t.shape[axis + 1 :]):
            raise ValueError(f"cross_entropy: labels {given} must have the shape of logits {t} without axis {axis}")
        places = np.expand_dims(labels, axis) if isinstance(labels, np.ndarray) else expand_dims(labels, axis)
        loss = e.negative(squeeze(take_along_axis(chances, places, axis), axis))
    elif given.shape == t.shape and dtypes.is_inexact(given.dtype):
        loss = e.negative(r.sum(e.multiply(chances, labels), axis))
    else:
        raise ValueError(
            f"cross_entropy: labels must be integers, or probabilities of the shape of logits {t}, got {given}"
        )
    if label_smoothing:
        even = e.negative(r.mean(chances, axis))
        loss = e.add(e.multiply(1 - label_smoothing, loss), e.multiply(label_smoothing, even))
    return loss if reduction == "none" else r.mean(loss) if reduction == "mean" else r.sum(loss)


__all__ = [
    "avg_pool", "celu", "conv", "cross_entropy", "dot_product_attention", "elu", "gelu", "glu", "hard_sigmoid",
    "hard_silu", "hard_swish", "hard_tanh", "initializers", "leaky_relu", "log_sigmoid", "log_softmax", "logsumexp",
    "max_pool", "mish", "one_hot", "relu", "relu6", "selu", "sigmoid", "silu", "soft_sign", "softmax", "softplus",
    "squareplus", "standardize", "swish",
]  # fmt: skip
