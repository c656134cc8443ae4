"""Loss functions as modules."""

from __future__ import annotations

from math import prod
from typing import Any

from compat._core.tensor.tensor import Tensor
from compat._operators.loss.reduction_modes import legacy_reduction
from compat.nn import functional as F
from compat.nn.modules.linear import Linear
from compat.nn.modules.linear_cross_entropy_options import LinearCrossEntropyOptions
from compat.nn.modules.module import Module

__all__ = [
    "BCELoss", "BCEWithLogitsLoss", "CrossEntropyLoss", "HuberLoss", "KLDivLoss", "L1Loss", "LinearCrossEntropyLoss",
    "LinearCrossEntropyOptions", "MSELoss", "NLLLoss", "NLLLoss2d", "SmoothL1Loss",
]  # fmt: skip


class _Loss(Module):
    """Base of losses with a reduction over elements.

    Args:
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
        size_average, reduce: deprecated.
    """

    reduction: str

    def __init__(self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"):
        super().__init__()
        if size_average is not None or reduce is not None:
            reduction = legacy_reduction(size_average, reduce)
        self.reduction = reduction


class _WeightedLoss(_Loss):
    """Base of losses with weights."""

    weight: Any

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ):
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


class L1Loss(_Loss):
    """``|input - target|``.

    Args:
        reduction: ``"mean"``, ``"sum"``, or ``"none"`` for one loss per element.

    Example:
        >>> torch.nn.L1Loss()(torch.tensor([1.0, 3.0]), torch.tensor([0.0, 0.0]))
        tensor(2.)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.l1_loss(input, target, reduction=self.reduction)


class MSELoss(_Loss):
    """``(input - target) ** 2``.

    Example:
        >>> torch.nn.MSELoss()(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
        tensor(2.)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.mse_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(_Loss):
    """``(x - y)**2 / (2 * beta)`` where ``|x - y| < beta``, ``|x - y| - beta / 2`` elsewhere.

    Args:
        reduction: ``"mean"``, ``"sum"``, or ``"none"`` for one loss per element.
        beta: the threshold.

    Example:
        >>> torch.nn.SmoothL1Loss()(torch.tensor([0.5, 3.0]), torch.tensor([0.0, 0.0]))
        tensor(1.3125)
    """

    def __init__(
        self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean", beta: float = 1.0
    ):
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(_Loss):
    """``(x - y)**2 / 2`` where ``|x - y| < delta``, ``delta * (|x - y| - delta / 2)`` elsewhere.

    Args:
        reduction: ``"mean"``, ``"sum"``, or ``"none"`` for one loss per element.
        delta: the threshold.

    Example:
        >>> torch.nn.HuberLoss()(torch.tensor([0.5, 3.0]), torch.tensor([0.0, 0.0]))
        tensor(1.3125)
    """

    def __init__(self, reduction: str = "mean", delta: float = 1.0):
        super().__init__(reduction=reduction)
        self.delta = delta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


class NLLLoss(_WeightedLoss):
    """Minus the entry of ``input``, log-probabilities of classes in dimension 1, at index ``target``.

    Args:
        weight: the weights of the classes.
        ignore_index: a target that is ignored.

    Example:
        >>> torch.nn.NLLLoss()(torch.tensor([[-1.0, -2.0], [-3.0, -4.0]]), torch.tensor([0, 1]))
        tensor(2.5000)
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
    ):
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.nll_loss(input, target, weight=self.weight, ignore_index=self.ignore_index, reduction=self.reduction)


class NLLLoss2d(NLLLoss):
    """A deprecated alias of ``NLLLoss`` for images."""


class CrossEntropyLoss(_WeightedLoss):
    """The cross entropy between ``target`` and the softmax of ``input``, logits of classes in dimension 1.

    Args:
        weight: the weights of the classes.
        ignore_index: a target class that is ignored.
        label_smoothing: the probability that is spread evenly over all classes.

    ``target`` contains class indices, or probabilities in the shape of ``input``.

    Example:
        >>> torch.nn.CrossEntropyLoss()(torch.zeros(2, 4), torch.tensor([0, 3]))
        tensor(1.3863)
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ):
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(
            input,
            target,
            weight=self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


class BCELoss(_WeightedLoss):
    """The binary cross entropy of the probabilities ``input`` and ``target``.

    Args:
        weight: the weights of the elements.
        reduction: ``"mean"``, ``"sum"``, or ``"none"`` for one loss per element.

    Example:
        >>> torch.nn.BCELoss()(torch.tensor([0.5]), torch.tensor([1.0]))
        tensor(0.6931)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy(input, target, weight=self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(_Loss):
    """The binary cross entropy of the logits ``input`` and the probabilities ``target``.

    Args:
        weight: the weights of the elements, broadcast.
        pos_weight: the weights of positive targets.

    Example:
        >>> torch.nn.BCEWithLogitsLoss()(torch.tensor([0.0]), torch.tensor([1.0]))
        tensor(0.6931)
    """

    weight: Any
    pos_weight: Any

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
    ):
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(
            input, target, self.weight, pos_weight=self.pos_weight, reduction=self.reduction
        )


class KLDivLoss(_Loss):
    """``target * (log(target) - input)``: ``input``, and with ``log_target`` also ``target``, are log-probabilities.

    Args:
        reduction: ``"batchmean"`` (the definition), ``"mean"`` over all elements, ``"sum"`` or ``"none"``.
        log_target: whether ``target`` contains logarithms.

    Example:
        >>> torch.nn.KLDivLoss(reduction="batchmean")(torch.tensor([[0.25, 0.75]]).log(), torch.tensor([[0.5, 0.5]]))
        tensor(0.1438)
    """

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        log_target: bool = False,
    ):
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class LinearCrossEntropyLoss(_WeightedLoss):
    """The cross entropy of a linear layer's output and targets.

    Args:
        in_features: the size of the input.
        num_classes: the number of classes.
        out_features: the shape of the classified positions of a sample: ``()`` for a single one.
        bias: whether the layer adds a bias.
        reduction, weight, ignore_index, label_smoothing: as for ``CrossEntropyLoss``.
        options: ignored.

    Example:
        >>> loss = torch.nn.LinearCrossEntropyLoss(3, 4)
        >>> loss(torch.zeros(2, 3), torch.tensor([0, 3]))
        tensor(1.3863, grad_fn=<NllLossBackward0>)
    """

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
