"""Non-maximum suppression of boxes."""

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
    """The boxes that are kept: those whose overlap with all better kept boxes is at most a threshold.

    Their number depends on the values, so they are computed on the host, one kept box at a time.

    Args:
        boxes: corners ``(x1, y1, x2, y2)``, of shape ``(n, 4)``.
        scores: of shape ``(n,)``.
        iou_threshold: the threshold of the intersection over the union.

    Returns:
        The indices of the kept boxes in order of descending score, int64.

    Raises:
        RuntimeError: for other shapes, and different dtypes.
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
        with np.errstate(divide="ignore", invalid="ignore"):  # boxes without area do not overlap
            overlap = shared / (areas[order] + areas[best] - shared)
        order = order[~(overlap > iou_threshold)]
    found: Tensor = names_of("torch")["from_numpy"](np.asarray(kept, dtype=np.int64))
    return found
