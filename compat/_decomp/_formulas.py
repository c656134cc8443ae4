"""The decompositions of operators: functions of tensors, with the parameters of the operators' schemas."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

from compat._core.tensor.namespace import torch
from compat._core.tensor.tensor import Tensor
from compat._core.types import dtype as dtypes

_HALVES = (dtypes.float16, dtypes.bfloat16)


class Formula(NamedTuple):
    """A decomposition.

    Attributes:
        name: the overload, ``"lerp.Scalar"``.
        function: computes it with other operators.
        core: whether PyTorch counts the operator as a core operator, which it decomposes on request only.
    """

    name: str
    function: Callable[..., Any]
    core: bool


FORMULAS: list[Formula] = []


def _of(*names: str, core: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator that lists the decomposition of overloads; it computes float16 and bfloat16 in float32."""

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def widened(*args: Any, **kwargs: Any) -> Any:
            kind = next((a.dtype for a in args if isinstance(a, Tensor) and a.dtype in _HALVES), None)
            if kind is None:
                return function(*args, **kwargs)
            wide = [a.to(dtypes.float32) if isinstance(a, Tensor) and a.dtype in _HALVES else a for a in args]
            found = function(*wide, **kwargs)
            return tuple(x.to(kind) for x in found) if isinstance(found, tuple) else found.to(kind)

        FORMULAS.extend(Formula(name, widened, core) for name in names)
        return widened

    return enter


# ---------------------------------------------------------------- activations


@_of("gelu", core=True)
def _gelu(x: Any, *, approximate: str = "none") -> Any:
    if approximate == "tanh":
        return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))
    return 0.5 * x * (1 + torch.erf(x * math.sqrt(0.5)))


@_of("silu")
def _silu(x: Any) -> Any:
    return x * torch.sigmoid(x)


@_of("hardsigmoid")
def _hardsigmoid(x: Any) -> Any:
    return torch.clamp(x + 3, min=0, max=6) / 6


@_of("hardswish")
def _hardswish(x: Any) -> Any:
    return x * torch.clamp(x + 3, min=0, max=6) / 6


@_of("hardtanh", core=True)
def _hardtanh(x: Any, min_val: Any = -1, max_val: Any = 1) -> Any:
    return torch.clamp(x, min=min_val, max=max_val)


@_of("leaky_relu", core=True)
def _leaky_relu(x: Any, negative_slope: Any = 0.01) -> Any:
    return torch.where(x > 0, x, x * negative_slope)


@_of("elu", core=True)
def _elu(x: Any, alpha: Any = 1, scale: Any = 1, input_scale: Any = 1) -> Any:
    return torch.where(x > 0, x * scale, torch.expm1(x * input_scale) * (alpha * scale))


@_of("celu")
def _celu(x: Any, alpha: Any = 1) -> Any:
    return torch.where(x > 0, x, torch.expm1(x / alpha) * alpha)


@_of("selu")
def _selu(x: Any) -> Any:
    return _elu(x, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946)


@_of("softplus")
def _softplus(x: Any, beta: Any = 1, threshold: Any = 20) -> Any:
    scaled = x * beta
    return torch.where(scaled > threshold, x, torch.log1p(torch.exp(scaled)) / beta)


@_of("mish")
def _mish(x: Any) -> Any:
    return x * torch.tanh(_softplus(x))


@_of("threshold")
def _threshold(x: Any, threshold: Any, value: Any) -> Any:
    return torch.where(x <= threshold, value, x)


@_of("softshrink")
def _softshrink(x: Any, lambd: Any = 0.5) -> Any:
    return torch.where(torch.abs(x) > lambd, x - torch.sign(x) * lambd, x * 0)


@_of("hardshrink")
def _hardshrink(x: Any, lambd: Any = 0.5) -> Any:
    return torch.where(torch.abs(x) <= lambd, 0, x)


@_of("_softmax", core=True)
def _softmax(x: Any, dim: int, half_to_float: bool = False) -> Any:
    shifted = torch.exp(x - torch.amax(x, dim, keepdim=True))
    return shifted / torch.sum(shifted, dim, keepdim=True)


@_of("_log_softmax", core=True)
def _log_softmax(x: Any, dim: int, half_to_float: bool = False) -> Any:
    shifted = x - torch.amax(x, dim, keepdim=True)
    return shifted - torch.log(torch.sum(torch.exp(shifted), dim, keepdim=True))


# ---------------------------------------------------------------- sums of products


@_of("addcmul")
def _addcmul(x: Any, a: Any, b: Any, *, value: Any = 1) -> Any:
    return x + value * a * b


@_of("addcdiv")
def _addcdiv(x: Any, a: Any, b: Any, *, value: Any = 1) -> Any:
    return x + value * (a / b)


@_of("lerp.Scalar", "lerp.Tensor")
def _lerp(x: Any, end: Any, weight: Any) -> Any:
    return x + weight * (end - x)


@_of("rsub.Tensor", "rsub.Scalar")
def _rsub(x: Any, other: Any, alpha: Any = 1) -> Any:
    return other - x * alpha


@_of("addmm", core=True)
def _addmm(x: Any, a: Any, b: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    return _plus(x, torch.mm(a, b), beta, alpha)


@_of("addmv", core=True)
def _addmv(x: Any, a: Any, b: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    return _plus(x, torch.mv(a, b), beta, alpha)


@_of("baddbmm")
def _baddbmm(x: Any, a: Any, b: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    return _plus(x, torch.bmm(a, b), beta, alpha)


def _plus(x: Any, product: Any, beta: Any, alpha: Any) -> Any:
    product = product if alpha == 1 else product * alpha
    if beta == 0:  # even where x is NaN
        return product
    return product + (x if beta == 1 else x * beta)


# ---------------------------------------------------------------- losses, normalization, shapes


def _reduced(x: Any, reduction: int) -> Any:
    return x if reduction == 0 else (torch.mean, torch.sum)[reduction - 1](x)


@_of("mse_loss")
def _mse_loss(x: Any, target: Any, reduction: int = 1) -> Any:
    difference = x - target
    return _reduced(difference * difference, reduction)


@_of("huber_loss")
def _huber_loss(x: Any, target: Any, reduction: int = 1, delta: float = 1.0) -> Any:
    size = torch.abs(x - target)
    return _reduced(torch.where(size <= delta, 0.5 * size * size, delta * (size - 0.5 * delta)), reduction)


@_of("smooth_l1_loss")
def _smooth_l1_loss(x: Any, target: Any, reduction: int = 1, beta: float = 1.0) -> Any:
    size = torch.abs(x - target)
    return _reduced(torch.where(size < beta, 0.5 * size * size / beta, size - 0.5 * beta) if beta else size, reduction)


@_of("native_layer_norm", core=True)
def _native_layer_norm(x: Any, normalized_shape: Any, weight: Any, bias: Any, eps: float) -> Any:
    dims = list(range(x.dim() - len(normalized_shape), x.dim()))
    mean = torch.mean(x, dims, keepdim=True)
    rstd = torch.rsqrt(torch.mean((x - mean) * (x - mean), dims, keepdim=True) + eps)
    found = (x - mean) * rstd
    found = found if weight is None else found * weight
    return (found if bias is None else found + bias), mean, rstd


@_of("t")
def _t(x: Any) -> Any:
    return torch.permute(x, (1, 0) if x.dim() == 2 else tuple(range(x.dim())))
