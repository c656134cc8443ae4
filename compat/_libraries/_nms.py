"""Non-maximum suppression: which of many boxes stay when those that overlap a better one go."""

from __future__ import annotations

import numpy as np

from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor


def _check(boxes: Tensor, scores: Tensor) -> None:
    if boxes.dim() != 2:
        raise RuntimeError(f"boxes should be a 2d tensor, got {boxes.dim()}D")
    if boxes.size(1) != 4:
        raise RuntimeError(f"boxes should have 4 elements in dimension 1, got {boxes.size(1)}")
    if scores.dim() != 1:
        raise RuntimeError(f"scores should be a 1d tensor, got {scores.dim()}D")
    if boxes.size(0) != scores.size(0):
        raise RuntimeError(
            "boxes and scores should have same number of elements in dimension 0, got "
            f"{boxes.size(0)} and {scores.size(0)}"
        )
    if boxes.dtype != scores.dtype:
        raise RuntimeError("dets should have the same type as scores")


def nms(boxes: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """The boxes that overlap no better box that stays by more than a threshold.

    How many those are depends on the values, so that they are computed on the host, one box that stays after another.

    Args:
        boxes: corners ``(x1, y1, x2, y2)``, of shape ``(n, 4)``.
        scores: of shape ``(n,)``.
        iou_threshold: of the intersection over the union.

    Returns:
        The indices of those that stay, the best first, int64.

    Raises:
        RuntimeError: for other shapes, and dtypes that differ.
    """
    _check(boxes, scores)
    corners = boxes.detach().numpy(force=True)
    x1, y1, x2, y2 = corners.T
    areas = (x2 - x1) * (y2 - y1)
    order = np.argsort(-scores.detach().numpy(force=True), kind="stable")
    kept = []
    while order.size:
        best, order = order[0], order[1:]
        kept.append(best)
        width = np.maximum(np.minimum(x2[order], x2[best]) - np.maximum(x1[order], x1[best]), 0)
        height = np.maximum(np.minimum(y2[order], y2[best]) - np.maximum(y1[order], y1[best]), 0)
        shared = width * height
        with np.errstate(divide="ignore", invalid="ignore"):  # two boxes without an area do not overlap
            overlap = shared / (areas[order] + areas[best] - shared)
        order = order[~(overlap > iou_threshold)]
    found: Tensor = names_of("torch")["from_numpy"](np.asarray(kept, dtype=np.int64))
    return found
