"""TensorBoard's own reader reads what the writer has written."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import compat as torch

WITHOUT = """
import sys
sys.modules["tensorboard"] = None
import compat.utils.tensorboard
"""


def test_without_the_package_the_error_names_it() -> None:
    run = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=False)
    assert "writes by the package tensorboard, which is not installed: pip install tensorboard" in run.stderr


@pytest.fixture
def writer_and_values(tmp_path: Path) -> Any:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
    from tensorboard.compat.proto.event_pb2 import Event

    from compat.utils.tensorboard import SummaryWriter

    def values() -> dict[str, Any]:
        files = tmp_path.rglob("events*")
        events = [Event.FromString(raw) for path in files for raw in RawEventFileLoader(str(path)).Load()]
        return {value.tag: (event.step, value) for event in events for value in event.summary.value}

    return SummaryWriter(tmp_path), values


def test_values_are_read_back(writer_and_values: Any) -> None:
    writer, values = writer_and_values
    with writer:
        writer.add_scalar("loss", torch.tensor(0.5), 3)
        writer.add_histogram("weights", torch.tensor([-1.0, 0.0, 0.0, 2.0]), 1)
        writer.add_text("note", "hello")
        writer.add_scalars("both", {"a": 1.0}, 2)
        writer.add_hparams({"lr": 0.1, "deep": True}, {"accuracy": 0.9}, run_name="run")
        writer.add_pr_curve("curve", torch.tensor([0, 1]), torch.tensor([0.2, 0.9]), num_thresholds=3)
    found = values()
    assert found["loss"][0] == 3 and found["loss"][1].simple_value == 0.5
    histogram = found["weights"][1].histo
    assert (histogram.min, histogram.max, histogram.num, histogram.sum, histogram.sum_squares) == (-1, 2, 4, 1, 5)
    assert sum(histogram.bucket) == 4 and len(histogram.bucket) == len(histogram.bucket_limit)
    assert found["note/text_summary"][1].tensor.string_val == [b"hello"]
    assert found["both"][1].simple_value == 1 and found["accuracy"][1].simple_value == pytest.approx(0.9)
    # True and false positives and negatives, precision, recall; at thresholds of 0, 0.5 and 1.
    curve = np.array(found["curve"][1].tensor.float_val).reshape(6, 3)
    np.testing.assert_allclose(curve, [[1, 1, 0], [1, 0, 0], [0, 1, 1], [0, 0, 1], [0.5, 1, 0], [1, 1, 0]])
    with pytest.raises(AssertionError, match="one element"):
        writer.add_scalar("loss", torch.ones(2))


def test_images_are_a_grid(writer_and_values: Any) -> None:
    from PIL import Image

    writer, values = writer_and_values
    with writer:
        writer.add_images("digits", torch.arange(2.0).view(2, 1, 1, 1).expand(2, 1, 2, 3))
    shown = Image.open(io.BytesIO(values()["digits"][1].image.encoded_image_string))
    np.testing.assert_array_equal(np.asarray(shown)[..., 0], [[0, 0, 0, 255, 255, 255]] * 2)
