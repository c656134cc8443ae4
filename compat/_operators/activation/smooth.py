"""Smooth activations: ``elu`` and its variants, ``gelu``, ``silu``, ``mish``, ``softplus``, ``glu`` ..."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from compat._core.memory.strides import elementwise_strides
from compat._core.operators.composite import composite
from compat._core.operators.declaration import Dtypes, Gradients
from compat._core.operators.op import aten, pointwise
from compat._core.operators.opmath import in_single
from compat._core.tensor.registry import function
from compat._core.tensor.tensor import Tensor
from compat._core.types.errors import wrap_dim
from compat._core.types.scalar_conversion import fits, widened
from compat._operators.pointwise.arithmetic import absolute
from compat._operators.pointwise.declare import (
    NEGATIVE_SLOPE,
    as_dtype_of,
    new_or_inplace,
    only_floating,
    refuses,
    without_backward,
)
from compat._operators.pointwise.trigonometry import tanh
from funcgrad import numpy as np
from funcgrad.core.ir import ArrayType
from funcgrad.primitives import elementwise as e

# ---------------------------------------------------------------- exponential


_check_elu = only_floating("elu_cpu")


@pointwise(
    "elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor",
    node="EluBackward0", saves="alpha input_scale scale self", names="",
    dtypes=Dtypes(fits=fits("alpha scale input_scale", widened)), check=_check_elu,
)  # fmt: skip
@in_single
def _elu_new(input, alpha, scale, input_scale):
    down = input <= e.number(0, input)
    safe = np.where(down, input, e.number(0, input))  # without overflow for positive elements, or the derivative is NaN
    return np.where(
        down,
        e.expm1(safe * as_dtype_of(input_scale, input)) * as_dtype_of(alpha, input) * as_dtype_of(scale, input),
        input * as_dtype_of(scale, input),
    )


_elu_into = _elu_new.variant(node="EluBackward1", saves="alpha input_scale result scale")


@_elu_into.backward
@in_single
def _elu_into_backward(ct: Any, result: Any, alpha: Any, scale: Any, input_scale: Any) -> Any:
    inside = ct * as_dtype_of(input_scale, ct) * (result + as_dtype_of(alpha, ct) * as_dtype_of(scale, ct))
    return np.where(result <= e.number(0, result), inside, ct * as_dtype_of(scale, ct))


@function("F.elu")
def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """The elements, or ``alpha * (exp(x) - 1)`` where they are negative.

    Args:
        input: a floating tensor.
        alpha: a number.
        inplace: whether to overwrite ``input``.

    Raises:
        NotImplementedError: for tensors that are not floating.

    Example:
        >>> torch.nn.functional.elu(torch.tensor([0.0, 2.0]))
        tensor([0., 2.])
    """
    return elu_(input, alpha) if inplace else _elu_new.function(input, alpha)


@composite(
    "elu_(Tensor(a!) self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor(a!)",
    names="F.elu_",
)
def elu_(input: Tensor, alpha: float = 1.0, scale: float = 1, input_scale: float = 1) -> Tensor:
    """``elu``, written into the tensor."""
    found = _elu_into.inplace(input, alpha, scale, input_scale)
    return without_backward(found, NEGATIVE_SLOPE.format("elu")) if alpha < 0 else found


_SELU = (1.6732632423543772, 1.0507009873554805)


@composite("selu(Tensor self) -> Tensor", names="torch.selu")
def _selu(input: Tensor) -> Tensor:
    """``scale * elu(input, alpha)`` with the constants that preserve mean 0 and variance 1.

    Source: G. Klambauer et al., "Self-normalizing neural networks", NeurIPS 2017.
    """
    return _elu_new.function(input, *_SELU)


@composite("selu_(Tensor(a!) self) -> Tensor(a!)", names="torch.selu_ F.selu_")
def selu_(input: Tensor) -> Tensor:
    """``selu``, written into the tensor."""
    return _elu_into.inplace(input, *_SELU)


@function("F.selu")
def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """``scale * elu(input, alpha)`` with the constants that preserve mean 0 and variance 1.

    Source: G. Klambauer et al., "Self-normalizing neural networks", NeurIPS 2017.

    Args:
        input: a floating tensor.
        inplace: whether to overwrite ``input``.

    Example:
        >>> torch.nn.functional.selu(torch.tensor([0.0, 1.0]))
        tensor([0.0000, 1.0507])
    """
    return selu_(input) if inplace else _selu(input)


@pointwise(
    "celu(Tensor self, Scalar alpha=1.0) -> Tensor",
    node="CeluBackward0", saves="alpha self", names="", dtypes=Dtypes(fits=fits("alpha", widened)), check=_check_elu,
)  # fmt: skip
@in_single
def _celu_new(input, alpha):
    down = input <= e.number(0, input)
    alpha = as_dtype_of(alpha, input)
    return np.where(down, e.expm1(np.where(down, input, e.number(0, input)) / alpha) * alpha, input)


_celu_into = _celu_new.variant(node="CeluBackward1", saves="alpha result")


@_celu_into.backward
@in_single
def _celu_into_backward(ct: Any, result: Any, alpha: Any) -> Any:
    inside = ct * (result / as_dtype_of(alpha, ct) + e.number(1, ct))
    return np.where(result <= e.number(0, result), inside, ct)


def _check_alpha(alpha: float) -> None:
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")


@function("F.celu")
def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """The elements, or ``alpha * (exp(x / alpha) - 1)`` where they are negative.

    Args:
        input: a floating tensor.
        alpha: a number other than 0.
        inplace: whether to overwrite ``input``.

    Raises:
        RuntimeError: for an ``alpha`` of 0.

    Example:
        >>> torch.nn.functional.celu(torch.tensor([0.0, 2.0]), alpha=2.0)
        tensor([0., 2.])
    """
    _check_alpha(alpha)
    found = new_or_inplace(_celu_new, _celu_into if inplace else False, input, alpha)
    return without_backward(found, NEGATIVE_SLOPE.format("elu")) if inplace and alpha < 0 else found


@composite("celu(Tensor self, Scalar alpha=1.0) -> Tensor", names="torch.celu")
def _celu_function(input: Tensor, alpha: float = 1.0) -> Tensor:
    """``celu`` without ``inplace``."""
    return celu(input, alpha)


@composite("celu_(Tensor(a!) self, Scalar alpha=1.0) -> Tensor(a!)", names="torch.celu_ F.celu_")
def celu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """``celu``, written into the tensor."""
    return celu(input, alpha, inplace=True)


# ---------------------------------------------------------------- smooth


def _check_gelu(input: Tensor, *, approximate: str = "none") -> None:
    if approximate not in ("none", "tanh"):
        raise RuntimeError("approximate argument must be either none or tanh.")
    only_floating("GeluKernelImpl")(input)


@pointwise(
    'gelu(Tensor self, *, str approximate="none") -> Tensor',
    node="GeluBackward0", saves="approximate self", names="F.gelu", dtypes=Dtypes(), check=_check_gelu, out=True,
)  # fmt: skip
@in_single
def gelu(input, *, approximate):
    """``x`` times the probability that a standard normal variable is smaller.

    Source: D. Hendrycks, K. Gimpel, "Gaussian error linear units", 2016.

    Args:
        input: a floating tensor.
        approximate: ``"none"``, or ``"tanh"`` for ``0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x**3)))``.

    Raises:
        RuntimeError: for any other ``approximate``.
        NotImplementedError: for tensors that are not floating.

    Example:
        >>> torch.nn.functional.gelu(torch.tensor([0.0, 1.0]))
        tensor([0.0000, 0.8413])
    """
    half, one = e.number(0.5, input), e.number(1, input)
    if approximate == "none":
        return input * (half * (one + e.erf(input * e.number(math.sqrt(0.5), input))))
    inner = input + e.number(0.044715, input) * (input * input * input)
    return input * (half * (one + e.tanh(inner * e.number(math.sqrt(2 / math.pi), input))))


@pointwise(
    "silu(Tensor self) -> Tensor",
    node="SiluBackward0", saves="self", names="", dtypes=Dtypes(), check=refuses("silu_cpu", "bool integer"),
)  # fmt: skip
@in_single
def _silu(input):
    return input * e.logistic(input)


@function("F.silu")
def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """``x * sigmoid(x)``.

    Args:
        input: a floating or complex tensor.
        inplace: whether to overwrite ``input``.

    Raises:
        NotImplementedError: for integers and bools.

    Example:
        >>> torch.nn.functional.silu(torch.tensor([0.0, 1.0]))
        tensor([0.0000, 0.7311])
    """
    return new_or_inplace(_silu, inplace, input)


def _softplus(x: Any) -> Any:
    """``log(1 + exp(x))`` without overflow."""
    return e.maximum(x, e.number(0, x)) + e.log1p(e.exp(-e.absolute(x)))


@pointwise(
    "mish(Tensor self) -> Tensor",
    node="MishBackward0", saves="self", names="", dtypes=Dtypes(), check=only_floating("mish_cpu"),
)  # fmt: skip
@in_single
def _mish(input):
    return input * e.tanh(_softplus(input))


@_mish.backward
@in_single
def _mish_backward(ct: Any, input: Any) -> Any:
    inner = e.tanh(_softplus(input))
    return ct * (inner + input * e.logistic(input) * (e.number(1, inner) - inner * inner))


@function("F.mish")
def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """``x * tanh(softplus(x))``.

    Source: D. Misra, "Mish: a self regularized non-monotonic activation function", 2019.

    Args:
        input: a floating tensor.
        inplace: whether to overwrite ``input``.

    Raises:
        NotImplementedError: for tensors that are not floating.

    Example:
        >>> torch.nn.functional.mish(torch.tensor([0.0, 1.0]))
        tensor([0.0000, 0.8651])
    """
    return new_or_inplace(_mish, inplace, input)


@pointwise(
    "softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor",
    node="SoftplusBackward0", saves="beta self threshold", names="F.softplus",
    dtypes=Dtypes(fits=fits("beta threshold", widened)), check=only_floating("softplus_cpu"), out=True,
)  # fmt: skip
@in_single
def softplus(input, beta, threshold):
    """``log(1 + exp(beta * x)) / beta``, and ``x`` itself where ``beta * x`` is above ``threshold``.

    Args:
        input: a floating tensor.
        beta, threshold: numbers.

    Raises:
        NotImplementedError: for tensors that are not floating.

    Example:
        >>> torch.nn.functional.softplus(torch.tensor([0.0, 1.0]))
        tensor([0.6931, 1.3133])
    """
    scaled = input * as_dtype_of(beta, input)
    over = scaled > as_dtype_of(threshold, input)
    safe = np.where(over, e.number(0, input), scaled)
    return np.where(over, input, e.log1p(e.exp(safe)) / as_dtype_of(beta, input))


@softplus.backward
@in_single
def _softplus_backward(ct: Any, input: Any, beta: Any, threshold: Any) -> Any:
    scaled = input * as_dtype_of(beta, input)
    return np.where(scaled > as_dtype_of(threshold, input), ct, ct * e.logistic(scaled))


@pointwise(
    "log_sigmoid_forward(Tensor self) -> (Tensor output, Tensor buffer)",
    node="LogSigmoidBackward0", saves="buffer! self", names="", dtypes=Dtypes(), check=only_floating("log_sigmoid_cpu"),
    gradients=Gradients(constant=(1,)),
)  # fmt: skip
@in_single
def _logsigmoid(input):
    small = e.exp(-e.absolute(input))
    return e.minimum(input, e.number(0, input)) - e.log1p(small), small


@_logsigmoid.backward
def _logsigmoid_backward(ct0: Any, input: Any) -> Any:
    zero, one = e.number(0, input), e.number(1, input)
    below = input < zero
    sign = np.where(below, one, e.number(-1, input))
    return _logsigmoid_slope(ct0, np.where(below, one, zero), sign, e.exp(sign * input))


@in_single
def _logsigmoid_slope(ct: Any, most: Any, sign: Any, small: Any) -> Any:
    """The gradient from ``small``, the rounded ``exp(-|x|)``; no other intermediate value is rounded."""
    return ct * (most - sign * (small / (e.number(1, small) + small)))


@composite(names="F.logsigmoid", out=True)
def logsigmoid(input: Tensor) -> Tensor:
    """``log(sigmoid(x))`` without underflow.

    Args:
        input: a floating tensor.

    Raises:
        NotImplementedError: for tensors that are not floating.

    Example:
        >>> torch.nn.functional.logsigmoid(torch.tensor([0.0]))
        tensor([-0.6931])
    """
    found: Tensor = _logsigmoid.function(input)[0]
    return found


@composite(names="F.softsign")
def softsign(input: Tensor) -> Tensor:
    """``x / (1 + |x|)``.

    Args:
        input: a tensor.

    Example:
        >>> torch.nn.functional.softsign(torch.tensor([1.0, -3.0]))
        tensor([ 0.5000, -0.7500])
    """
    return input / (absolute.function(input) + 1)


@composite(names="F.tanhshrink")
def tanhshrink(input: Tensor) -> Tensor:
    """``x - tanh(x)``.

    Args:
        input: a tensor.

    Example:
        >>> torch.nn.functional.tanhshrink(torch.tensor([0.0, 1.0]))
        tensor([0.0000, 0.2384])
    """
    return input - tanh.function(input)


def _check_glu(input: Tensor, dim: int = -1) -> None:
    if not input.dim():
        raise RuntimeError("glu does not support scalars because halving size must be even")
    dim = wrap_dim(dim, input.dim())
    if input.shape[dim] % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {dim} is size {input.shape[dim]}")
    only_floating("glu_cpu")(input)


def _glu_strides(operands: dict[str, Any], types: Sequence[ArrayType]) -> list[Any]:
    """The strides of an elementwise operation on both halves."""
    shape = types[0].shape
    return [elementwise_strides([(shape, operands["input"].stride)] * 2, shape)]


@aten(
    "glu(Tensor self, int dim=-1) -> Tensor",
    node="GluBackward0", saves="dim self", names="F.glu", layout=_glu_strides, check=_check_glu,
)  # fmt: skip
@in_single
def glu(input, dim):
    """The first half along a dimension, times the sigmoid of the second.

    Source: Y. Dauphin et al., "Language modeling with gated convolutional networks", ICML 2017.

    Args:
        input: a floating tensor.
        dim: the dimension, of even size.

    Raises:
        RuntimeError: for a dimension of odd size.
        NotImplementedError: for tensors that are not floating.

    Example:
        >>> torch.nn.functional.glu(torch.tensor([4.0, 0.0]))
        tensor([2.])
    """
    first, second = np.split(input, 2, axis=dim)
    return first * e.logistic(second)


@glu.backward
def _glu_backward(ct: Any, input: Any, dim: int) -> Any:
    first, second = np.split(input, 2, axis=dim)
    gate = e.logistic(second)
    return np.concatenate([gate * ct, _gate_gradient(ct, first, gate)], dim)


@in_single
def _gate_gradient(ct: Any, first: Any, gate: Any) -> Any:
    return (e.number(1, gate) - gate) * gate * first * ct
