"""Losses of distances, rankings, margins and likelihoods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compat._core.tensor.tensor import Tensor
from compat.nn import functional as F
from compat.nn.modules.distance import PairwiseDistance
from compat.nn.modules.loss import _Loss, _WeightedLoss
from compat.nn.modules.utils import requalified

__all__ = [
    "CTCLoss", "CosineEmbeddingLoss", "GaussianNLLLoss", "HingeEmbeddingLoss", "MarginRankingLoss",
    "MultiLabelMarginLoss", "MultiLabelSoftMarginLoss", "MultiMarginLoss", "PoissonNLLLoss", "SoftMarginLoss",
    "TripletMarginLoss", "TripletMarginWithDistanceLoss",
]  # fmt: skip


@requalified("__init__")
class _MarginLoss(_Loss):
    def __init__(
        self,
        margin: float = 0.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ):
        super().__init__(size_average, reduce, reduction)
        self.margin = margin


class CosineEmbeddingLoss(_MarginLoss):
    """``1 - cos`` for pairs of vectors with target 1, ``max(0, cos - margin)`` for those with -1.

    Args:
        margin: the bound of the cosine of pairs with target -1.
        reduction: ``"mean"``, ``"sum"``, or ``"none"`` for one loss per pair.

    Example:
        >>> torch.nn.CosineEmbeddingLoss()(torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]]), torch.tensor([1]))
        tensor(1.)
    """

    __module__ = "compat.nn.modules.loss"

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.cosine_embedding_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class MarginRankingLoss(_MarginLoss):
    """``max(0, -target * (input1 - input2) + margin)``.

    Args:
        margin: the margin of the ranking.
        reduction: ``"mean"``, ``"sum"``, or ``"none"`` for one loss per pair.

    Example:
        >>> torch.nn.MarginRankingLoss(0.5)(torch.tensor([1.0]), torch.tensor([2.0]), torch.tensor([1.0]))
        tensor(1.5000)
    """

    __module__ = "compat.nn.modules.loss"

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.margin_ranking_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class HingeEmbeddingLoss(_MarginLoss):
    """The input, a distance, where the target is 1; ``max(0, margin - input)`` where it is -1.

    Args:
        margin: the bound of the distance of elements with target -1.
        reduction: ``"mean"``, ``"sum"``, or ``"none"`` for one loss per element.

    Example:
        >>> torch.nn.HingeEmbeddingLoss()(torch.tensor([0.25, 0.25]), torch.tensor([1.0, -1.0]))
        tensor(0.5000)
    """

    __module__ = "compat.nn.modules.loss"

    def __init__(
        self,
        margin: float = 1.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ):
        super().__init__(margin, size_average, reduce, reduction)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.hinge_embedding_loss(input, target, margin=self.margin, reduction=self.reduction)


class GaussianNLLLoss(_Loss):
    """The negative log-likelihood of normal distributions.

    Args:
        full: whether to add the constant term.
        eps: the lower bound of the variance.

    Example:
        >>> torch.nn.GaussianNLLLoss()(torch.tensor([1.0]), torch.tensor([2.0]), torch.tensor([1.0]))
        tensor(0.5000)
    """

    __module__ = "compat.nn.modules.loss"

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean"):
        super().__init__(None, None, reduction)
        self.full = full
        self.eps = eps

    def forward(self, input: Tensor, target: Tensor, var: Tensor | float) -> Tensor:
        return F.gaussian_nll_loss(input, target, var, full=self.full, eps=self.eps, reduction=self.reduction)


class PoissonNLLLoss(_Loss):
    """The negative log-likelihood of Poisson distributions.

    Args:
        log_input: whether the input is the logarithm of the rate.
        full: whether to add an approximation of the log-factorial of the target.
        eps: added to the rate before its logarithm is taken.

    Example:
        >>> torch.nn.PoissonNLLLoss()(torch.tensor([0.0]), torch.tensor([1.0]))
        tensor(1.)
    """

    __module__ = "compat.nn.modules.loss"

    def __init__(
        self, log_input: bool = True, full: bool = False, size_average: bool | None = None, eps: float = 1e-8,
        reduce: bool | None = None, reduction: str = "mean",
    ):  # fmt: skip
        super().__init__(size_average, reduce, reduction)
        self.log_input = log_input
        self.full = full
        self.eps = eps

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:
        return F.poisson_nll_loss(
            log_input, target, log_input=self.log_input, full=self.full, eps=self.eps, reduction=self.reduction
        )


class MultiMarginLoss(_WeightedLoss):
    """The mean over the other classes of ``max(0, margin - (score of the target - score)) ** p``.

    Args:
        p: 1 or 2.
        weight: the weights of the target classes.

    Raises:
        ValueError: for an unsupported ``p``.

    Example:
        >>> torch.nn.MultiMarginLoss()(torch.tensor([[0.25, 0.5]]), torch.tensor([0]))
        tensor(0.6250)
    """

    __module__ = "compat.nn.modules.loss"

    def __init__(
        self, p: int = 1, margin: float = 1.0, weight: Tensor | None = None, size_average: bool | None = None,
        reduce: bool | None = None, reduction: str = "mean",
    ):  # fmt: skip
        super().__init__(weight, size_average, reduce, reduction)
        if p not in (1, 2):
            raise ValueError("only p == 1 and p == 2 supported")
        if weight is not None and weight.dim() != 1:
            raise ValueError(f"MultiMarginLoss: expected weight to be None or 1D tensor, got {weight.dim()}D instead")
        self.p = p
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multi_margin_loss(
            input, target, p=self.p, margin=self.margin, weight=self.weight, reduction=self.reduction
        )


class MultiLabelMarginLoss(_Loss):
    """The sum of ``max(0, 1 - (score of a target - score of another class))``, over the number of classes.

    Args:
        reduction: ``"mean"``, ``"sum"``, or ``"none"`` for one loss per sample.

    Example:
        >>> torch.nn.MultiLabelMarginLoss()(torch.tensor([[0.25, 0.5]]), torch.tensor([[0, -1]]))
        tensor(0.6250)
    """

    __module__ = "compat.nn.modules.loss"

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_margin_loss(input, target, reduction=self.reduction)


class MultiLabelSoftMarginLoss(_WeightedLoss):
    """The mean over the classes, the last dimension, of the binary cross entropy of the sigmoid of the input.

    Args:
        weight: the weights of the classes.
        reduction: ``"mean"``, ``"sum"``, or ``"none"`` for one loss per sample.

    Example:
        >>> torch.nn.MultiLabelSoftMarginLoss()(torch.zeros(1, 2), torch.tensor([[0.0, 1.0]]))
        tensor(0.6931)
    """

    __module__ = "compat.nn.modules.loss"

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_soft_margin_loss(input, target, weight=self.weight, reduction=self.reduction)


class SoftMarginLoss(_Loss):
    """``log(1 + exp(-target * input))``.

    Args:
        reduction: ``"mean"``, ``"sum"``, or ``"none"`` for one loss per element.

    Example:
        >>> torch.nn.SoftMarginLoss()(torch.tensor([0.0]), torch.tensor([1.0]))
        tensor(0.6931)
    """

    __module__ = "compat.nn.modules.loss"

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.soft_margin_loss(input, target, reduction=self.reduction)


def _check_margin(name: str, margin: float) -> None:
    if margin <= 0:
        raise ValueError(f"{name}: expected margin to be greater than 0, got {margin} instead")


class TripletMarginLoss(_Loss):
    """``max(0, |anchor - positive| - |anchor - negative| + margin)``.

    Args:
        margin: the minimum difference of the distances.
        p: the order of the norm.
        eps: added to the differences.
        swap: whether to use the distance of positive and negative, if it is the smaller one.

    Raises:
        ValueError: unless the margin is positive.

    Example:
        >>> torch.nn.TripletMarginLoss()(torch.zeros(1, 2), torch.zeros(1, 2), torch.tensor([[3.0, 4.0]]))
        tensor(0.)
    """

    __module__ = "compat.nn.modules.loss"

    def __init__(
        self, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6, swap: bool = False,
        size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean",
    ):  # fmt: skip
        super().__init__(size_average, reduce, reduction)
        _check_margin("TripletMarginLoss", margin)
        self.margin = margin
        self.p = p
        self.eps = eps
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_loss(
            anchor, positive, negative, margin=self.margin, p=self.p, eps=self.eps, swap=self.swap,
            reduction=self.reduction,
        )  # fmt: skip


class TripletMarginWithDistanceLoss(_Loss):
    """``TripletMarginLoss`` with any distance; by default ``PairwiseDistance``.

    Raises:
        ValueError: unless the margin is positive.
    """

    __module__ = "compat.nn.modules.loss"

    def __init__(
        self, *, distance_function: Callable[[Tensor, Tensor], Tensor] | None = None, margin: float = 1.0,
        swap: bool = False, reduction: str = "mean",
    ):  # fmt: skip
        super().__init__(reduction=reduction)
        _check_margin("TripletMarginWithDistanceLoss", margin)
        self.distance_function: Any = PairwiseDistance() if distance_function is None else distance_function
        self.margin = margin
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_with_distance_loss(
            anchor, positive, negative, distance_function=self.distance_function, margin=self.margin, swap=self.swap,
            reduction=self.reduction,
        )  # fmt: skip


class CTCLoss(_Loss):
    """The connectionist temporal classification loss: minus the log-probability of labels without alignment.

    Args:
        blank: the index of the blank label.
        zero_infinity: whether infinite losses, of inputs shorter than their targets, are set to zero.

    Example:
        >>> guesses = torch.zeros(3, 1, 2).log_softmax(2)
        >>> torch.nn.CTCLoss()(guesses, torch.tensor([[1]]), torch.tensor([3]), torch.tensor([1]))
        tensor(0.2877)
    """

    __module__ = "compat.nn.modules.loss"

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False):
        super().__init__(reduction=reduction)
        self.blank = blank
        self.zero_infinity = zero_infinity

    def forward(self, log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any) -> Tensor:
        return F.ctc_loss(
            log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction, self.zero_infinity
        )
