"""A linear layer with its loss."""

from __future__ import annotations

from math import prod
from typing import Any

from compat._core.tensor.tensor import Tensor
from compat.nn import functional as F
from compat.nn.modules.linear import Linear
from compat.nn.modules.linear_cross_entropy_options import LinearCrossEntropyOptions
from compat.nn.modules.loss import _WeightedLoss

__all__ = ["LinearCrossEntropyLoss", "LinearCrossEntropyOptions"]


class LinearCrossEntropyLoss(_WeightedLoss):
    """The cross entropy of a linear layer's output and targets.

    Args:
        in_features: the size of the input.
        num_classes: the number of classes.
        out_features: the shape of the classified positions of a sample: ``()`` for a single one.
        bias: whether the layer adds one.
        reduction, weight, ignore_index, label_smoothing: as for ``CrossEntropyLoss``.
        options: ignored.

    Example:
        >>> loss = torch.nn.LinearCrossEntropyLoss(3, 4)
        >>> loss(torch.zeros(2, 3), torch.tensor([0, 3]))
        tensor(1.3863, grad_fn=<NllLossBackward0>)
    """

    __module__ = "compat.nn.modules.loss"

    def __init__(
        self, in_features: int, num_classes: int, *, out_features: tuple[int, ...] = (), bias: bool = False,
        device: Any = None, dtype: Any = None, reduction: str = "mean", weight: Tensor | None = None,
        ignore_index: int | None = None, label_smoothing: float = 0.0,
        options: LinearCrossEntropyOptions | None = None,
    ):  # fmt: skip
        super().__init__(weight, reduction=reduction)
        self.num_classes = num_classes
        self.out_features = tuple(out_features)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing
        self.options = options
        self.linear = Linear(in_features, num_classes * prod(self.out_features), bias, device, dtype)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        shape = (self.num_classes, *self.out_features)
        bias = None if self.linear.bias is None else self.linear.bias.view(shape)
        return F.linear_cross_entropy(
            input,
            self.linear.weight.view(*shape, -1),
            target,
            linear_bias=bias,
            weight=self.weight,
            reduction=self.reduction,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
            options=self.options,
        )

    def extra_repr(self) -> str:
        return (
            f"in_features={self.linear.in_features}, num_classes={self.num_classes}, out_features={self.out_features}, "
            f"bias={self.linear.bias is not None}, reduction={self.reduction}, ignore_index={self.ignore_index}, "
            f"label_smoothing={self.label_smoothing}, options={self.options}"
        )
