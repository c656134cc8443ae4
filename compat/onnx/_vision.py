"""ONNX translations of torchvision's operators."""

from __future__ import annotations

from typing import Any

import numpy as np

from compat.onnx._builder import Builder
from compat.onnx._table import Value, aten


def _column(b: Builder, rois: Value, first: int, last: int) -> str:
    found: str = b.op("Slice", rois.name, b.ints(first), b.ints(last), b.ints(1))
    return found


@aten("roi_align", library="torchvision")
def _roi_align(
    b: Builder, node: Any, x: Value, rois: Value, scale: float, height: int, width: int, ratio: int, aligned: bool
) -> str:
    batch = b.op("Cast", b.op("Squeeze", _column(b, rois, 0, 1), b.ints(1)), to=b.onnx.TensorProto.INT64)
    return b.op(
        "RoiAlign", x.name, _column(b, rois, 1, 5), batch, output_height=height, output_width=width,
        sampling_ratio=max(ratio, 0), spatial_scale=float(scale), mode="avg",
        coordinate_transformation_mode="half_pixel" if aligned else "output_half_pixel",
    )  # fmt: skip


@aten("nms", library="torchvision")
def _nms(b: Builder, node: Any, boxes: Value, scores: Value, threshold: float) -> str:
    kept = b.op(
        "NonMaxSuppression", b.op("Unsqueeze", boxes.name, b.ints(0)), b.op("Unsqueeze", scores.name, b.ints(0, 1)),
        b.ints(np.iinfo(np.int64).max), b.constant([threshold], np.float32),
    )  # fmt: skip
    return b.op("Squeeze", b.op("Slice", kept, b.ints(2), b.ints(3), b.ints(1)), b.ints(1))
