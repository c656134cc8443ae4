"""Affine and bilinear maps."""

from __future__ import annotations

import math
from typing import Any

from compat._core.tensor.tensor import Tensor
from compat.nn import functional as F
from compat.nn import init
from compat.nn.modules.module import Module
from compat.nn.modules.utils import empty
from compat.nn.parameter import Parameter

__all__ = ["Bilinear", "Identity", "Linear"]


class Identity(Module):
    """Returns its input; the constructor ignores its arguments.

    Example:
        >>> torch.nn.Identity()(torch.ones(2))
        tensor([1., 1.])
    """

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        return input


class Linear(Module):
    """``y = x @ weight.T + bias`` over the last dimension.

    Args:
        in_features, out_features: the sizes of the input and the output.
        bias: whether to add a bias.

    Attributes:
        weight: of shape (out_features, in_features), initialized uniformly within ``1 / sqrt(in_features)``.
        bias: of shape (out_features,), likewise.

    Example:
        >>> torch.nn.Linear(20, 30)(torch.ones(128, 20)).shape
        torch.Size([128, 30])
    """

    weight: Any
    bias: Any

    def __init__(self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None):
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(empty((out_features, in_features), device, dtype))
        self.register_parameter("bias", Parameter(empty((out_features,), device, dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Redraws the parameters."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class NonDynamicallyQuantizableLinear(Linear):
    """``Linear``, under the name of PyTorch's class for the output projection of ``MultiheadAttention``."""


class Bilinear(Module):
    """``y[k] = x1 @ weight[k] @ x2 + bias[k]`` over the last dimension.

    Args:
        in1_features, in2_features: the sizes of the inputs.
        out_features: the size of the output.
        bias: whether to add a bias.

    Attributes:
        weight: of shape (out_features, in1_features, in2_features), initialized uniformly within
            ``1 / sqrt(in1_features)``.
        bias: of shape (out_features,), likewise.

    Raises:
        ValueError: unless ``in1_features`` is positive.

    Example:
        >>> torch.nn.Bilinear(2, 3, 4)(torch.ones(5, 2), torch.ones(5, 3)).shape
        torch.Size([5, 4])
    """

    weight: Any
    bias: Any

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ):
        super().__init__()
        if in1_features <= 0:
            raise ValueError(f"in1_features must be > 0, but got {in1_features}")
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        self.weight = Parameter(empty((out_features, in1_features, in2_features), device, dtype))
        self.register_parameter("bias", Parameter(empty((out_features,), device, dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Redraws the parameters."""
        bound = 1 / math.sqrt(self.weight.shape[1])
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )
