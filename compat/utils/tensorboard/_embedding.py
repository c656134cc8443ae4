"""Embeddings for TensorBoard's projector: tables of points with labels and pictures, and the file that lists them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from compat.utils.tensorboard.summary import make_np

__all__ = ["write_embedding"]

#: The largest side of the picture that contains all labels' pictures, in pixels.
_LARGEST = 8192


def write_embedding(
    logdir: str, mat: Any, metadata: Sequence[Any] | None, label_img: Any, step: int | None, tag: str,
    header: Sequence[str] | None,
) -> None:  # fmt: skip
    """Writes an embedding to a folder of its own, and its entry to ``projector_config.pbtxt``.

    Args:
        logdir: the writer's directory.
        mat: (N, D): a point per row.
        metadata: a label per point; with ``header``, the values of its columns.
        label_img: (N, C, H, W): a square picture per point, with values between 0 and 1.
        header: the names of the columns of ``metadata``.

    Raises:
        AssertionError: for a matrix of another number of dimensions, another number of labels or pictures, and
            pictures that are not square or too large.
    """
    points = make_np(mat)
    assert points.ndim == 2, "mat should be 2D, where mat.size(0) is the number of data points"
    folder = Path(f"{step or 0:05}") / quote(str(tag), safe="")
    target = Path(logdir) / folder
    target.mkdir(parents=True, exist_ok=True)
    entry: dict[str, Any] = {"tensor_name": f"{tag}:{step or 0:05}", "tensor_path": str(folder / "tensors.tsv")}
    if metadata is not None:
        assert points.shape[0] == len(metadata), "#labels should equal with #data points"
        _write_table(target / "metadata.tsv", ([] if header is None else [header]) + _rows(metadata, header))
        entry["metadata_path"] = str(folder / "metadata.tsv")
    if label_img is not None:
        pictures = make_np(label_img)
        assert points.shape[0] == pictures.shape[0], "#images should equal with #data points"
        assert pictures.shape[2] == pictures.shape[3], "Image should be square, see tensorflow/tensorboard#670"
        _write_pictures(target / "sprite.png", pictures)
        entry["sprite"] = {"image_path": str(folder / "sprite.png"), "single_image_dim": pictures.shape[:1:-1]}
    _write_table(target / "tensors.tsv", points.tolist())
    _append_entry(Path(logdir) / "projector_config.pbtxt", entry)


def _rows(metadata: Sequence[Any], header: Sequence[str] | None) -> list[Sequence[Any]]:
    return [row if header is not None else [row] for row in metadata]


def _write_table(path: Path, rows: Sequence[Sequence[Any]]) -> None:
    lines = ["\t".join(map(str, row)) + "\n" for row in rows]
    path.write_text("".join(lines), encoding="utf-8")


def _write_pictures(path: Path, pictures: np.ndarray) -> None:
    """Writes pictures as one, in rows of equal length, as the projector cuts it."""
    from PIL import Image

    count, channels, height, width = pictures.shape
    columns = math.ceil(math.sqrt(count))
    assert columns * height <= _LARGEST, "Sprite too large, see label_img shape limits"
    grid = np.zeros((columns * columns, channels, height, width), np.float32)
    grid[:count] = pictures
    whole = grid.reshape(columns, columns, channels, height, width).transpose(0, 3, 1, 4, 2)
    whole = whole.reshape(columns * height, columns * width, channels)
    whole = np.repeat(whole, 3, 2) if channels == 1 else whole
    Image.fromarray(np.clip(whole * 255, 0, 255).astype(np.uint8)).save(path)


def _append_entry(path: Path, entry: dict[str, Any]) -> None:
    from google.protobuf import text_format
    from tensorboard.plugins.projector.projector_config_pb2 import EmbeddingInfo, ProjectorConfig

    config = ProjectorConfig(embeddings=[EmbeddingInfo(**entry)])
    with path.open("a", encoding="utf-8") as file:
        file.write(text_format.MessageToString(config))
