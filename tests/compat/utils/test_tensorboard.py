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
        graphs = [("graph", (event.step, event.graph_def)) for event in events if event.HasField("graph_def")]
        return dict(graphs) | {value.tag: (event.step, value) for event in events for value in event.summary.value}

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


def test_a_graph_has_the_operations_of_a_model_in_the_scopes_of_its_modules(writer_and_values: Any) -> None:
    from tensorboard.compat.proto.graph_pb2 import GraphDef

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.features = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Dropout(0.5))

        def forward(self, x: torch.Tensor, y: torch.Tensor) -> Any:
            return {"sum": torch.relu(self.features(x)) + y * torch.ones(4)}

    net = Net()
    writer, values = writer_and_values
    with writer:
        writer.add_graph(net, (torch.ones(2, 3), torch.ones(4)))
        with pytest.raises(ValueError, match="input_to_model"):
            writer.add_graph(net)
    nodes = {node.name: node for node in GraphDef.FromString(values()["graph"][1]).node}
    layer = "Net/Sequential[features]/Linear[0]"
    assert list(nodes[f"{layer}/linear"].input) == ["input/0", f"{layer}/weight", f"{layer}/bias"]
    assert nodes[f"{layer}/linear"].op == "aten::linear"
    [shape] = nodes[f"{layer}/linear"].attr["_output_shapes"].list.shape
    assert [dim.size for dim in shape.dim] == [2, 4]
    assert list(nodes["Net/relu"].input) == ["Net/Sequential[features]/Dropout[1]/dropout"]
    [last] = nodes["output/0"].input
    assert list(nodes[last].input) == ["Net/relu", "Net/mul"]
    assert all(name in nodes for node in nodes.values() for name in node.input)
    assert net.training and net.features[1].training  # it ran in evaluation mode


def test_embeddings_are_tables_that_the_projector_finds(writer_and_values: Any, tmp_path: Path) -> None:
    from google.protobuf import text_format
    from PIL import Image
    from tensorboard.plugins.projector.projector_config_pb2 import ProjectorConfig

    writer, _ = writer_and_values
    pictures = torch.zeros(3, 1, 2, 2)
    pictures[1] = 1
    with writer:
        writer.add_embedding(torch.arange(6.0).reshape(3, 2), ["a", "b", "c"], pictures, global_step=7, tag="points")
        writer.add_embedding(torch.ones(1, 2), [["x", 1]], metadata_header=["name", "number"])
        with pytest.raises(AssertionError, match="#labels should equal with #data points"):
            writer.add_embedding(torch.ones(2, 2), ["a"])
    config = text_format.Parse((tmp_path / "projector_config.pbtxt").read_text(), ProjectorConfig())
    first, second = config.embeddings
    assert (first.tensor_name, list(first.sprite.single_image_dim)) == ("points:00007", [2, 2])
    assert (tmp_path / first.tensor_path).read_text() == "0.0\t1.0\n2.0\t3.0\n4.0\t5.0\n"
    assert (tmp_path / first.metadata_path).read_text() == "a\nb\nc\n"
    assert (tmp_path / second.metadata_path).read_text() == "name\tnumber\nx\t1\n"
    sprite = np.asarray(Image.open(tmp_path / first.sprite.image_path))[..., 0]
    np.testing.assert_array_equal(sprite, [[0, 0, 255, 255]] * 2 + [[0] * 4] * 2)


def test_meshes_videos_and_charts(writer_and_values: Any) -> None:
    from PIL import Image
    from tensorboard.plugins.custom_scalar.layout_pb2 import Layout
    from tensorboard.plugins.mesh.metadata import parse_plugin_metadata

    writer, values = writer_and_values
    video = torch.tensor([0.0, 1.0]).reshape(1, 2, 1, 1, 1).expand(2, 2, 3, 4, 5)
    with writer:
        writer.add_mesh("solid", torch.ones(1, 4, 3), faces=torch.zeros(1, 2, 3, dtype=torch.int64), global_step=2)
        writer.add_video("film", video, fps=2)
        writer.add_custom_scalars_multilinechart(["a", "b"], "own", "both")
    found = values()
    step, vertices = found["solid_VERTEX"]
    assert step == 2 and list(vertices.tensor.float_val) == [1.0] * 12
    assert list(parse_plugin_metadata(vertices.metadata.plugin_data.content).shape) == [1, 4, 3]
    assert list(found["solid_FACE"][1].tensor.int_val) == [0] * 6 and "solid_COLOR" not in found
    shown = Image.open(io.BytesIO(found["film"][1].image.encoded_image_string))
    assert (shown.n_frames, shown.size, shown.info["duration"]) == (2, (10, 4), 500)
    layout = Layout.FromString(found["custom_scalars__config__"][1].tensor.string_val[0])
    [category] = layout.category
    assert category.title == "own" and list(category.chart[0].multiline.tag) == ["a", "b"]
    with pytest.raises(ValueError, match="Multiline or Margin"):
        writer.add_custom_scalars({"own": {"both": ["Lines", ["a"]]}})
