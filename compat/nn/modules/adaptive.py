"""Adaptive softmax: a hierarchical softmax over many classes."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from compat._core.tensor.tensor import Tensor
from compat.nn import functional as F
from compat.nn.modules.container import ModuleList, Sequential
from compat.nn.modules.linear import Linear
from compat.nn.modules.module import Module

__all__ = ["AdaptiveLogSoftmaxWithLoss"]

_ASMoutput = namedtuple("_ASMoutput", ["output", "loss"])


def _checked(cutoffs: Sequence[int], n_classes: int) -> list[int]:
    values = list(cutoffs)
    if not values:
        raise ValueError("cutoffs should be a sequence of length larger than 0")
    increasing = values == sorted(set(values)) and all(int(c) == c for c in values)
    if not increasing or values[0] <= 0 or values[-1] > n_classes - 1:
        raise ValueError(
            "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each value "
            "is between 1 and n_classes-1"
        )
    return values


def _check_sizes(input: Tensor, target: Tensor) -> None:
    n = target.dim()
    if n > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if n == 1 and input.shape[0] != target.shape[0]:
        raise RuntimeError("Input and target should have the same size in the batch dimension.")
    if input.dim() != n + 1:
        raise RuntimeError(
            f"{n}D target tensor expects {n + 1}D input tensors, but found inputs with size {input.size()}"
        )


class AdaptiveLogSoftmaxWithLoss(Module):
    """The log-softmax over many classes, sorted by frequency, at lower cost than a full one.

    The head has the classes below the first cutoff, and one class for each cluster between two cutoffs; each
    cluster has a separate, smaller projection.

    Args:
        in_features: the size of the input.
        n_classes: the number of classes.
        cutoffs: the first class of each cluster.
        div_value: the factor between the projection sizes of consecutive clusters.
        head_bias: whether the head adds a bias.

    Raises:
        ValueError: for cutoffs that are not increasing, or out of range.

    Source: E. Grave et al., "Efficient softmax approximation for GPUs", ICML 2017.

    Example:
        >>> layer = torch.nn.AdaptiveLogSoftmaxWithLoss(8, 20, [5, 10], div_value=2.0)
        >>> output, loss = layer(torch.ones(3, 8), torch.tensor([1, 7, 15]))
        >>> output.shape, layer.log_prob(torch.ones(3, 8)).shape
        (torch.Size([3]), torch.Size([3, 20]))
    """

    head: Any
    tail: Any

    def __init__(
        self, in_features: int, n_classes: int, cutoffs: Sequence[int], div_value: float = 4.0,
        head_bias: bool = False, device: Any = None, dtype: Any = None,
    ):  # fmt: skip
        super().__init__()
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*_checked(cutoffs, n_classes), n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        factory: dict[str, Any] = dict(device=device, dtype=dtype)
        self.head = Linear(in_features, self.head_size, bias=head_bias, **factory)
        self.tail = ModuleList()
        for i, (low, high) in enumerate(pairwise(self.cutoffs), 1):
            width = int(in_features // div_value**i)
            self.tail.append(
                Sequential(
                    Linear(in_features, width, bias=False, **factory), Linear(width, high - low, bias=False, **factory)
                )
            )

    def reset_parameters(self) -> None:
        """Redraws the parameters."""
        self.head.reset_parameters()
        for first, second in self.tail:
            first.reset_parameters()
            second.reset_parameters()

    def forward(self, input_: Any, target_: Any) -> Any:
        """The log-probability of each target, and their negative mean.

        Args:
            input_: ``(n, in_features)``, or ``(in_features,)``.
            target_: ``(n,)``, or a number: class indices.

        Raises:
            RuntimeError: for mismatched sizes, and targets out of range.
        """
        _check_sizes(input_, target_)
        batched = target_.dim() > 0
        input, target = (input_, target_) if batched else (input_.unsqueeze(0), target_.unsqueeze(0))
        output, columns, used = input.new_zeros(target.shape[0]), target.new_zeros(target.shape[0]), 0
        for i, (low, high) in enumerate(pairwise([0, *self.cutoffs])):
            mask = (target >= low) & (target < high)
            rows = mask.nonzero().squeeze()
            if not rows.numel():
                continue
            used += rows.numel()
            if i == 0:
                columns.index_copy_(0, rows, target[mask])
                continue
            scores = F.log_softmax(self.tail[i - 1](input.index_select(0, rows)), dim=1)
            columns.index_fill_(0, rows, self.shortlist_size + i - 1)
            within_cluster = scores.gather(1, (target[mask] - low).unsqueeze(1))
            output.index_copy_(0, rows, within_cluster.squeeze(1))
        if used != target.shape[0]:
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range "
                f"[{target.min().item()}, {target.max().item()}] were found. "
            )
        head = F.log_softmax(self.head(input), dim=1)
        output += head.gather(1, columns.unsqueeze(1)).squeeze()
        loss = (-output).mean()
        return _ASMoutput(output if batched else output.squeeze(0), loss)

    def _full_(self, input: Any, head_output: Any) -> Any:
        """The logarithms of the probabilities of all classes."""
        out = input.new_empty((head_output.shape[0], self.n_classes))
        head = F.log_softmax(head_output, dim=1)
        out[:, : self.shortlist_size] = head[:, : self.shortlist_size]
        for i, (low, high) in enumerate(pairwise(self.cutoffs)):
            scores = F.log_softmax(self.tail[i](input), dim=1)
            out[:, low:high] = scores + head[:, self.shortlist_size + i].unsqueeze(1)
        return out

    def log_prob(self, input: Any) -> Any:
        """The logarithms of the probabilities of all classes, ``(n, n_classes)`` of ``(n, in_features)``."""
        return self._full_(input, self.head(input))

    def predict(self, input: Any) -> Any:
        """The most probable class of each row."""
        head = self.head(input)
        output = head.argmax(dim=1)
        beyond = output >= self.shortlist_size
        if not beyond.any():
            return output
        if beyond.all():
            return self._full_(input, head).argmax(dim=1)
        output[beyond] = self._full_(input[beyond], head[beyond]).argmax(dim=1)
        return output
