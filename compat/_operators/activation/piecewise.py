"""Piecewise linear activations: ``relu`` and its variants, clamps, shrinkage."""

from __future__ import annotations

from typing import Any

from compat._core.operators.composite import composite
from compat._core.operators.declaration import Dtypes, Overlap
from compat._core.operators.op import pointwise
from compat._core.operators.opmath import SINGLE, in_single, is_half
from compat._core.tensor.registry import function
from compat._core.tensor.tensor import Tensor
from compat._core.types import dtype
from compat._core.types.scalar_conversion import fits, widened
from compat._operators.pointwise.declare import (
    NEGATIVE_LEAK,
    as_dtype_of,
    checks,
    new_or_inplace,
    only_floating,
    refuses,
    without_backward,
    zeros_like,
)
from funcgrad import numpy as np
from funcgrad.primitives import elementwise as e

# ---------------------------------------------------------------- relu and its variants

_no_bools = refuses("", "bool", message="Boolean inputs not supported for relu", error=RuntimeError)
_no_complex = refuses("", "complex", message="clamp is not supported for complex types")


@pointwise(
    "relu(Tensor self) -> Tensor",
    node="ReluBackward0", saves="result", names="torch.relu Tensor.relu torch.relu_ Tensor.relu_ F.relu_",
    dtypes=Dtypes(), check=checks(_no_bools, _no_complex), out=False,
)  # fmt: skip
def relu(input):
    """The elements, or zero where they are negative.

    Args:
        input: a real tensor.

    Raises:
        RuntimeError: for bools.

    Example:
        >>> torch.relu(torch.tensor([-1.0, 2.0]))
        tensor([0., 2.])
    """
    constant = e.stop_gradient(np.where(input < e.number(0, input), zeros_like(input), input))  # -0. stays -0.
    return np.where(input <= e.number(0, input), constant, input)


@relu.backward
def _relu_backward(ct: Any, result: Any) -> Any:
    return np.where(result <= e.number(0, result), zeros_like(ct), ct)


@function("F.relu")
def relu_or_inplace(input: Tensor, inplace: bool = False) -> Tensor:
    """The elements, or zero where they are negative.

    Args:
        input: a real tensor.
        inplace: whether to overwrite ``input``.

    Example:
        >>> torch.nn.functional.relu(torch.tensor([-1.0, 2.0]))
        tensor([0., 2.])
    """
    return new_or_inplace(relu, inplace, input)


def _threshold(input: Any, threshold: Any, value: Any) -> Any:
    # float16 and bfloat16 elements are compared with the threshold unrounded.
    wide = np.astype(input, SINGLE) if is_half(input) else input
    return np.where(wide <= as_dtype_of(threshold, wide), as_dtype_of(value, input), input)


_check_threshold = refuses("threshold_cpu", "bool complex", first=True)
_THRESHOLD_FITS = fits("threshold", widened) | fits("value")


@pointwise(
    "threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor",
    node="ThresholdBackward0", saves="self threshold", names="", dtypes=Dtypes(fits=_THRESHOLD_FITS),
    check=_check_threshold,
)  # fmt: skip
def _threshold_new(input, threshold, value):
    return _threshold(input, threshold, value)


@pointwise(
    "threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor",
    node="ThresholdBackward1", saves="self threshold", names="torch.threshold_ F.threshold_",
    dtypes=Dtypes(fits=_THRESHOLD_FITS), check=_check_threshold, overlap=Overlap(itself=True),
)  # fmt: skip
def _threshold_into(input, threshold, value):
    """``threshold``, in place."""
    return _threshold(input, threshold, value)


@composite("threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor", names="torch.threshold", out="own")
@function("F.threshold")
def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """The elements, or ``value`` where they are not above ``threshold``.

    Args:
        input: a real tensor.
        threshold, value: numbers.
        inplace: whether to overwrite ``input``.

    Raises:
        NotImplementedError: for bool and complex tensors.

    Example:
        >>> torch.threshold(torch.tensor([0.5, 2.0]), 1.0, 20.0)
        tensor([20.,  2.])
    """
    return new_or_inplace(_threshold_new, _threshold_into if inplace else False, input, threshold, value)


def _check_hardtanh(input: Tensor, min_val: Any = -1.0, max_val: Any = 1.0) -> None:
    refuses("", "bool", message="Bool inputs not supported for hardtanh", error=RuntimeError)(input)
    _no_complex(input)


@pointwise(
    "hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor",
    node="HardtanhBackward0", saves="max_val min_val self", names="F.hardtanh_",
    dtypes=Dtypes(fits=fits("min_val max_val")), check=_check_hardtanh,
)  # fmt: skip
def _hardtanh(input, min_val, max_val):
    """``hardtanh``, in place."""
    low, high = as_dtype_of(min_val, input), as_dtype_of(max_val, input)
    return np.where(input <= low, low, np.where(input >= high, high, input))


@_hardtanh.backward
def _hardtanh_backward(ct: Any, input: Any, min_val: Any, max_val: Any) -> Any:
    inside = np.logical_and(input > as_dtype_of(min_val, input), input < as_dtype_of(max_val, input))
    return np.where(inside, ct, zeros_like(ct))  # zero for NaN


@function("F.hardtanh")
def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """The elements clamped to between ``min_val`` and ``max_val``.

    Args:
        input: a real tensor.
        min_val, max_val: numbers.
        inplace: whether to overwrite ``input``.

    Raises:
        ValueError: if ``min_val`` is the larger.

    Example:
        >>> torch.nn.functional.hardtanh(torch.tensor([-2.0, 0.5]))
        tensor([-1.0000,  0.5000])
    """
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    if input.dtype is dtype.uint8 and (min_val < 0 or max_val < 0):
        raise RuntimeError("cannot do hardtanh on an unsigned type with negative limits")
    return new_or_inplace(_hardtanh, inplace, input, min_val, max_val)


@function("F.relu6")
def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """The elements clamped to between 0 and 6.

    Args:
        input: a real tensor.
        inplace: whether to overwrite ``input``.

    Example:
        >>> torch.nn.functional.relu6(torch.tensor([-2.0, 9.0]))
        tensor([0., 6.])
    """
    return new_or_inplace(_hardtanh, inplace, input, 0, 6)


_check_leaky = only_floating("leaky_relu_cpu")


@pointwise(
    "leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor",
    node="LeakyReluBackward0", saves="negative_slope self", names="",
    dtypes=Dtypes(fits=fits("negative_slope", widened)), check=_check_leaky,
)  # fmt: skip
@in_single
def _leaky_relu(input, negative_slope):
    return np.where(input > e.number(0, input), input, input * as_dtype_of(negative_slope, input))


_leaky_relu_into = _leaky_relu.variant(node="LeakyReluBackward1", saves="negative_slope result")


@_leaky_relu_into.backward
@in_single
def _leaky_relu_into_backward(ct: Any, negative_slope: Any, result: Any) -> Any:
    return np.where(result > e.number(0, result), ct, ct * as_dtype_of(negative_slope, ct))


@function("F.leaky_relu")
def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """The elements, or ``negative_slope`` times them where they are negative.

    Args:
        input: a floating tensor.
        negative_slope: a number.
        inplace: whether to overwrite ``input``.

    Raises:
        NotImplementedError: for tensors that are not floating.

    Example:
        >>> torch.nn.functional.leaky_relu(torch.tensor([-1.0, 2.0]), 0.1)
        tensor([-0.1000,  2.0000])
    """
    return leaky_relu_(input, negative_slope) if inplace else _leaky_relu.function(input, negative_slope)


@composite("leaky_relu_(Tensor(a!) self, Scalar negative_slope=0.01) -> Tensor(a!)", names="F.leaky_relu_")
def leaky_relu_(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """``leaky_relu``, written into the tensor."""
    found = _leaky_relu_into.inplace(input, negative_slope)
    return without_backward(found, NEGATIVE_LEAK) if negative_slope < 0 else found


def _check_prelu(input: Tensor, weight: Tensor) -> None:
    if input.dtype is not weight.dtype:
        raise RuntimeError(
            f"prelu: Type promoting not supported. Got {input.dtype.scalar_name} and {weight.dtype.scalar_name}"
        )
    only_floating("prelu_cpu")(input)


@pointwise(
    "_prelu_kernel(Tensor self, Tensor weight) -> Tensor",
    node="PreluKernelBackward0", saves="self weight!", names="", dtypes=Dtypes(), check=_check_prelu,
)  # fmt: skip
def _prelu_kernel(input, weight):
    return np.where(input > e.number(0, input), input, input * weight)


@composite("prelu(Tensor self, Tensor weight) -> Tensor", names="torch.prelu Tensor.prelu F.prelu")
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """The elements, or ``weight`` times them where they are negative.

    Args:
        input: a floating tensor.
        weight: a single number, or one per channel (dimension 1).

    Raises:
        RuntimeError: for a weight of another dtype, or of incompatible size.

    Example:
        >>> torch.prelu(torch.tensor([-1.0, 2.0]), torch.tensor([0.25]))
        tensor([-0.2500,  2.0000])
    """
    ndim = input.dim()
    if weight.dim() > 1:
        raise RuntimeError(f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {weight.dim()}")
    if input.dtype is not weight.dtype:
        _check_prelu(input, weight)
    if weight.numel() != 1:
        if not ndim:
            raise RuntimeError("Not allow zero-dim input tensor.")
        channels = input.shape[1] if ndim > 1 else 1
        if channels != weight.numel():
            raise RuntimeError(
                "Mismatch of parameter numbers and input channel size. Found parameter numbers = "
                f"{weight.numel()} and channel size = {channels}."
            )
    if ndim != weight.dim():
        weight = weight.reshape(tuple(weight.numel() if d == 1 else 1 for d in range(ndim)))
    return _prelu_kernel.function(input, weight)


# ---------------------------------------------------------------- piecewise linear


@pointwise(
    "hardswish(Tensor self) -> Tensor",
    node="HardswishBackward0", saves="self", names="", dtypes=Dtypes(), check=only_floating("hardswish_cpu"),
)  # fmt: skip
@in_single
def _hardswish(input):
    return input * _shifted_relu6(input) / e.number(6, input)


def _shifted_relu6(x: Any) -> Any:
    """``x + 3`` clamped to between 0 and 6."""
    shifted = x + e.number(3, x)
    rectified = np.where(shifted < e.number(0, x), e.number(0, x), shifted)
    return np.where(rectified > e.number(6, x), e.number(6, x), rectified)


@_hardswish.backward
@in_single
def _hardswish_backward(ct: Any, input: Any) -> Any:
    middle = ct * (input / e.number(3, input) + e.number(0.5, input))
    inside = np.where(input < e.number(3, input), middle, ct)
    return np.where(input <= e.number(-3, input), zeros_like(ct), inside)


@function("F.hardswish")
def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """``x * clamp(x + 3, 0, 6) / 6``.

    Source: A. Howard et al., "Searching for MobileNetV3", ICCV 2019.

    Args:
        input: a floating tensor.
        inplace: whether to overwrite ``input``.

    Raises:
        NotImplementedError: for tensors that are not floating.

    Example:
        >>> torch.nn.functional.hardswish(torch.tensor([-3.0, 3.0]))
        tensor([-0., 3.])
    """
    return new_or_inplace(_hardswish, inplace, input)


@pointwise(
    "hardsigmoid(Tensor self) -> Tensor",
    node="HardsigmoidBackward0", saves="self", names="", dtypes=Dtypes(), check=only_floating("hardsigmoid_cpu"),
)  # fmt: skip
@in_single
def _hardsigmoid(input):
    return _shifted_relu6(input) / e.number(6, input)


@_hardsigmoid.backward
@in_single
def _hardsigmoid_backward(ct: Any, input: Any) -> Any:
    inside = np.logical_and(input > e.number(-3, input), input < e.number(3, input))
    return np.where(inside, ct / e.number(6, ct), zeros_like(ct))


@function("F.hardsigmoid")
def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """``clamp(x + 3, 0, 6) / 6``.

    Args:
        input: a floating tensor.
        inplace: whether to overwrite ``input``.

    Raises:
        NotImplementedError: for tensors that are not floating.

    Example:
        >>> torch.nn.functional.hardsigmoid(torch.tensor([-3.0, 0.0]))
        tensor([0.0000, 0.5000])
    """
    return new_or_inplace(_hardsigmoid, inplace, input)


def _outside(x: Any, lambd: Any) -> Any:
    lambd = as_dtype_of(lambd, x)
    return np.logical_not(np.logical_and(x >= -lambd, x <= lambd))


@pointwise(
    "hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor",
    node="HardshrinkBackward0", saves="lambd self", names="torch.hardshrink Tensor.hardshrink F.hardshrink",
    dtypes=Dtypes(fits=fits("lambd")), check=only_floating("hardshrink_cpu"),
)  # fmt: skip
def hardshrink(input, lambd):
    """The elements, or zero where they are between ``-lambd`` and ``lambd``.

    Args:
        input: a floating tensor.
        lambd: a number.
        out: a tensor to write the result into.

    Raises:
        NotImplementedError: for tensors that are not floating.

    Example:
        >>> torch.nn.functional.hardshrink(torch.tensor([0.25, 2.0]))
        tensor([0., 2.])
    """
    return np.where(_outside(input, lambd), input, zeros_like(input))


@hardshrink.backward
def _shrink_backward(ct: Any, input: Any, lambd: Any) -> Any:
    lambd = as_dtype_of(lambd, input)
    return np.where(np.logical_or(input > lambd, input < -lambd), ct, zeros_like(ct))


@pointwise(
    "softshrink(Tensor self, Scalar lambd=0.5) -> Tensor",
    node="SoftshrinkBackward0", saves="lambd self", names="", dtypes=Dtypes(), check=only_floating("softshrink_check"),
    out=True,
)  # fmt: skip
@in_single
def _softshrink(input, lambd):
    lambd = as_dtype_of(lambd, input)
    return np.where(input > lambd, input - lambd, np.where(input < -lambd, input + lambd, input * e.number(0, input)))


_softshrink.backward(_shrink_backward)


@composite("softshrink(Tensor self, Scalar lambd=0.5) -> Tensor", names="F.softshrink")
def softshrink(input: Tensor, lambd: float = 0.5, *, out: Tensor | None = None) -> Tensor:
    """The elements moved towards zero by ``lambd``, or zero where they are between ``-lambd`` and ``lambd``.

    Args:
        input: a floating tensor.
        lambd: a non-negative number.
        out: a tensor to write the result into.

    Raises:
        RuntimeError: for a negative ``lambd``.
        NotImplementedError: for tensors that are not floating.

    Example:
        >>> torch.nn.functional.softshrink(torch.tensor([0.25, 2.0]))
        tensor([0.0000, 1.5000])
    """
    limit = dtype.finfo(input.dtype).max if input.dtype.is_floating_point else None
    if limit is not None and not 0 <= lambd <= limit:
        raise RuntimeError(
            f"lambda must be in range [0, {limit:g}] for input dtype {input.dtype.scalar_name}, but found {lambd:g}"
        )
    return _softshrink.function(input, lambd) if out is None else _softshrink.function(input, lambd, out=out)
