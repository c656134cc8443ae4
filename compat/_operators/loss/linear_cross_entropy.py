"""``linear_cross_entropy``."""

from __future__ import annotations

from math import prod
from typing import Any

from compat._core.tensor.registry import function
from compat._core.tensor.tensor import Tensor
from compat._operators.linalg.matmul import linear
from compat._operators.loss.nll import cross_entropy


def _check(input: Tensor, weight: Tensor, bias: Tensor | None, target: Tensor, ignore_index: int | None) -> None:
    if input.dim() not in (1, 2):
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {input.dim()}")
    if weight.dim() < 2:
        raise RuntimeError(f"expected linear_weight with dimensionality at least 2, got {weight.dim()}")
    if input.shape[-1] != weight.shape[-1]:
        raise RuntimeError(
            "expected equal input and linear_weight last dimensions (in_features), got "
            f"{input.shape[-1]} and {weight.shape[-1]}, respectively"
        )
    if weight.dim() > 2 and input.dim() == 1:
        raise RuntimeError(
            f"K-dimensional loss defined by linear_weight shape {tuple(weight.shape)} requires batched input, (N, "
            f"{weight.shape[-1]}), got unbatched input with shape {tuple(input.shape)}"
        )
    if bias is not None and bias.shape != weight.shape[:-1]:
        raise RuntimeError(f"expected linear_bias shape {tuple(weight.shape[:-1])}, got {tuple(bias.shape)}")
    if target.is_floating_point() and ignore_index is not None:
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")


@function("F.linear_cross_entropy")
def linear_cross_entropy(
    input: Tensor, linear_weight: Tensor, target: Tensor, *, linear_bias: Tensor | None = None,
    weight: Tensor | None = None, reduction: str = "mean", ignore_index: int | None = None,
    label_smoothing: float = 0.0, options: Any = None,
) -> Tensor:  # fmt: skip
    """``cross_entropy(linear(input, linear_weight, linear_bias), target)``.

    Args:
        input: ``(N, F)``, or without ``N``.
        linear_weight: ``(C, F)``, or ``(C, d1, ..., F)`` for a loss with additional dimensions.
        target: classes, ``(N, d1, ...)``; or probabilities, ``(N, C, d1, ...)``.
        linear_bias: ``(C, d1, ...)``.
        weight, reduction, label_smoothing: as for ``cross_entropy``.
        ignore_index: a class to ignore; by default -100.
        options: a ``LinearCrossEntropyOptions``; ignored.

    Raises:
        RuntimeError: if sizes or dtypes do not match.

    Example:
        >>> x, w = torch.ones(2, 3), torch.zeros(4, 3)
        >>> torch.nn.functional.linear_cross_entropy(x, w, torch.tensor([0, 3]))
        tensor(1.3863)
    """
    _check(input, linear_weight, linear_bias, target, ignore_index)
    classes, *additional, features = linear_weight.shape
    if additional:
        linear_weight = linear_weight.reshape(classes * prod(additional), features)
        linear_bias = None if linear_bias is None else linear_bias.flatten()
    scores: Any = linear(input, linear_weight, linear_bias)
    scores = scores.view(*scores.shape[:-1], classes, *additional)
    ignored = -100 if ignore_index is None else ignore_index
    return cross_entropy(
        scores, target, weight, ignore_index=ignored, reduction=reduction, label_smoothing=label_smoothing
    )
