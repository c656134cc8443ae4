"""Fusing batch normalization in evaluation mode into the preceding convolution or linear layer."""

from __future__ import annotations

import copy
from typing import Any

from compat._core.tensor.tensor import Tensor
from compat._operators.create.factories import ones_like, zeros_like
from compat.nn.parameter import Parameter

__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]


def _check(layer: Any, bn: Any) -> None:
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!")


def _check_tracked(bn: Any) -> None:
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("bn.running_mean and bn.running_var must not be None")


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """A convolution equal to ``bn(conv(x))`` in evaluation.

    Args:
        transpose: whether it is a transposed convolution.

    Raises:
        AssertionError: if one of them is in training, or no statistics are tracked.

    Example:
        >>> conv, bn = torch.nn.Conv2d(3, 4, 1).eval(), torch.nn.BatchNorm2d(4).eval()
        >>> x = torch.ones(1, 3, 2, 2)
        >>> torch.allclose(fuse_conv_bn_eval(conv, bn)(x), bn(conv(x)), atol=1e-6)
        True
    """
    _check(conv, bn)
    fused = copy.deepcopy(conv)
    _check_tracked(bn)
    fused.weight, fused.bias = fuse_conv_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias, transpose
    )
    return fused


def fuse_conv_bn_weights(
    conv_w: Any, conv_b: Any, bn_rm: Any, bn_rv: Any, bn_eps: float, bn_w: Any, bn_b: Any, transpose: bool = False
) -> tuple[Any, Any]:
    """Weight and bias of the convolution of ``fuse_conv_bn_eval``.

    Args:
        conv_w, conv_b: weight and bias of the convolution.
        bn_rm, bn_rv, bn_eps, bn_w, bn_b: running mean and variance, ``eps``, weight and bias of the normalization.
        transpose: whether it is a transposed convolution.
    """
    return _fused(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, 1 if transpose else 0)


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """A linear layer equal to ``bn(linear(x))`` in evaluation.

    Raises:
        AssertionError: if one of them is in training, no statistics are tracked, or the features do not match.
    """
    _check(linear, bn)
    if linear.out_features != bn.num_features and bn.num_features != 1:
        raise AssertionError(
            "To fuse, linear.out_features == bn.num_features or bn.num_features == 1, got "
            f"linear.out_features={linear.out_features} and bn.num_features={bn.num_features}"
        )
    fused = copy.deepcopy(linear)
    _check_tracked(bn)
    fused.weight, fused.bias = fuse_linear_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    )
    return fused


def fuse_linear_bn_weights(
    linear_w: Any, linear_b: Any, bn_rm: Any, bn_rv: Any, bn_eps: float, bn_w: Any, bn_b: Any
) -> tuple[Any, Any]:
    """Weight and bias of the layer of ``fuse_linear_bn_eval``; the arguments are as for ``fuse_conv_bn_weights``."""
    return _fused(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, 0)


def _fused(
    weight: Tensor, bias: Tensor | None, mean: Any, variance: Any, eps: float, scale: Any, shift: Any, dim: int
) -> tuple[Any, Any]:
    """Weight and bias with the scale and shift of the normalization applied to each slice along ``dim``."""
    inverse = (variance + eps).rsqrt()
    scale = ones_like(mean) if scale is None else scale
    shift = zeros_like(mean) if shift is None else shift
    shape = [1] * weight.dim()
    shape[dim] = -1
    new_weight = (weight * (scale * inverse).reshape(shape)).to(weight.dtype)
    dtype = weight.dtype if bias is None else bias.dtype
    bias = zeros_like(mean) if bias is None else bias
    new_bias = ((bias - mean) * inverse * scale + shift).to(dtype)
    return Parameter(new_weight, weight.requires_grad), Parameter(new_bias, bias.requires_grad)
