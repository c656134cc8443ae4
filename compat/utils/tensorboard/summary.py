"""TensorBoard summaries: tagged values as protocol buffers."""

from __future__ import annotations

import io
import json
import wave
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from compat._core.tensor.tensor import Tensor
from compat._core.types.dtype import bfloat16

__all__ = [
    "audio", "custom_scalars", "histogram", "histogram_raw", "hparams", "image", "make_np", "mesh", "pr_curve",
    "scalar", "text", "video",
]  # fmt: skip


def _proto() -> Any:
    from tensorboard.compat.proto import summary_pb2

    return summary_pb2


def make_np(x: Any) -> np.ndarray:
    """Converts a tensor, number, list or array to an array.

    Raises:
        NotImplementedError: for arguments of other types.
    """
    if isinstance(x, Tensor):
        x = x.detach()
        return (x.float() if x.dtype is bfloat16 else x).numpy(force=True)
    if isinstance(x, (list, np.ndarray)) or np.isscalar(x):
        return np.atleast_1d(np.asarray(x))
    raise NotImplementedError(f"Got {type(x)}, but numpy array or torch tensor are expected.")


def scalar(tag: str, scalar_value: Any, new_style: bool = False, double_precision: bool = False) -> Any:
    """The summary of a scalar.

    Raises:
        AssertionError: for several elements.
    """
    array = make_np(scalar_value)
    if array.size != 1:
        raise AssertionError(
            "Tensor should contain one element (0 dimensions). "
            f"Was given size: {array.size} and {array.ndim} dimensions."
        )
    value, pb = float(array.reshape(())), _proto()
    if not (new_style or double_precision):
        return pb.Summary(value=[pb.Summary.Value(tag=tag, simple_value=value)])
    return _tensor_summary(tag, "DT_FLOAT", "scalars", float_val=[value])


def _tensor_summary(
    tag: str, kind: str, plugin: str, content: bytes = b"", shape: Sequence[int] = (), **values: Any
) -> Any:
    from tensorboard.compat.proto.tensor_pb2 import TensorProto
    from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto

    pb = _proto()
    sizes = TensorShapeProto(dim=[TensorShapeProto.Dim(size=n) for n in shape])
    data = pb.SummaryMetadata.PluginData(plugin_name=plugin, content=content)
    metadata = pb.SummaryMetadata(plugin_data=data)
    tensor = TensorProto(dtype=kind, tensor_shape=sizes, **values)
    return pb.Summary(value=[pb.Summary.Value(tag=tag, metadata=metadata, tensor=tensor)])


def histogram(name: str, values: Any, bins: Any, max_bins: int | None = None) -> Any:
    """The summary of a histogram of values.

    Args:
        bins: a rule of ``numpy.histogram``, or the bin edges.
        max_bins: neighbouring bins are merged until there are at most this many.

    Raises:
        ValueError: if there are no values.
    """
    array = make_np(values).astype(float).reshape(-1)
    if not array.size:
        raise ValueError("The input has no element.")
    counts, limits = np.histogram(array, bins=bins)
    if max_bins is not None and len(counts) > max_bins:
        step = len(counts) // max_bins
        counts = np.add.reduceat(counts, np.arange(0, len(counts), step))
        limits = np.append(limits[:-1:step], limits[-1])
    # Empty bins at either end are omitted, except for one.
    filled = np.flatnonzero(counts)
    start, end = filled[0], filled[-1] + 1
    counts = np.concatenate([[0], counts[start:end]]) if start == 0 else counts[start - 1 : end]
    edges = limits[max(start, 0) : end + 1]
    return histogram_raw(
        name, array.min(), array.max(), array.size, array.sum(), np.dot(array, array), edges.tolist(), counts.tolist()
    )


def histogram_raw(
    name: str, min: float, max: float, num: float, sum: float, sum_squares: float, bucket_limits: Sequence[float],
    bucket_counts: Sequence[float],
) -> Any:  # fmt: skip
    """The summary of a precomputed histogram."""
    pb = _proto()
    proto = pb.HistogramProto(
        min=min, max=max, num=num, sum=sum, sum_squares=sum_squares, bucket_limit=bucket_limits, bucket=bucket_counts
    )
    return pb.Summary(value=[pb.Summary.Value(tag=name, histo=proto)])


def pixels(tensor: Any, dataformats: str) -> np.ndarray:
    """An image as (height, width, channels) bytes; several as one grid.

    Args:
        dataformats: the order of dimensions: letters of ``NCHW``.

    Raises:
        AssertionError: for formats that do not match the tensor.
    """
    array, form = make_np(tensor), dataformats.upper()
    if len(set(form)) != len(form) or set(form) - set("NCHW") or len(form) != array.ndim:
        raise AssertionError(
            "size of input tensor and input format are different. "
            f"tensor shape: {array.shape}, input_format: {dataformats}"
        )
    scale = 255.0 if array.dtype != np.uint8 else 1.0
    if "C" not in form:
        array, form = array[..., None], form + "C"
    if "N" not in form:
        array, form = array[None], "N" + form
    array = array.transpose([form.index(letter) for letter in "NHWC"])
    count, height, width, channels = array.shape
    columns = min(count, 8)
    rows = -(-count // columns)
    grid = np.zeros((rows * height, columns * width, channels), array.dtype)
    for n, one in enumerate(array):
        at = n // columns * height, n % columns * width
        grid[at[0] : at[0] + height, at[1] : at[1] + width] = one
    grid = np.repeat(grid, 3, 2) if channels == 1 else grid
    return np.clip(grid * scale, 0, 255).astype(np.uint8)


def image(tag: str, tensor: Any, rescale: float = 1, dataformats: str = "NCHW") -> Any:
    """The summary of an image, encoded as PNG by Pillow.

    Raises:
        ModuleNotFoundError: without the package ``pillow``.
    """
    from PIL import Image

    array = pixels(tensor, dataformats)
    height, width, channels = array.shape
    shown = Image.fromarray(array)
    if rescale != 1:
        shown = shown.resize((int(width * rescale), int(height * rescale)))
    file = io.BytesIO()
    shown.save(file, format="PNG")
    pb = _proto()
    proto = pb.Summary.Image(height=height, width=width, colorspace=channels, encoded_image_string=file.getvalue())
    return pb.Summary(value=[pb.Summary.Value(tag=tag, image=proto)])


def audio(tag: str, tensor: Any, sample_rate: int = 44100) -> Any:
    """The summary of a sound between -1 and 1, encoded as 16-bit WAV."""
    array = np.clip(make_np(tensor).reshape(-1).astype(np.float64), -1, 1)
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(sample_rate)
        out.writeframes((array * np.iinfo(np.int16).max).astype("<i2").tobytes())
    pb = _proto()
    proto = pb.Summary.Audio(
        sample_rate=sample_rate, num_channels=1, length_frames=array.size, encoded_audio_string=file.getvalue(),
        content_type="audio/wav",
    )  # fmt: skip
    return pb.Summary(value=[pb.Summary.Value(tag=tag, audio=proto)])


def video(tag: str, tensor: Any, fps: float = 4) -> Any:
    """The summary of videos, (N, T, C, H, W), side by side as one GIF, encoded by Pillow.

    Raises:
        AssertionError: for another number of dimensions.
        ModuleNotFoundError: without the package ``pillow``.
    """
    from PIL import Image

    array = make_np(tensor)
    if array.ndim != 5:
        raise AssertionError(f"videos have 5 dimensions, (N, T, C, H, W), not {array.ndim}")
    frames = [pixels(array[:, n], "NCHW") for n in range(array.shape[1])]
    first, *others = [Image.fromarray(frame) for frame in frames]
    file = io.BytesIO()
    first.save(file, format="GIF", save_all=True, append_images=others, duration=1000 / fps, loop=0)
    height, width, channels = frames[0].shape
    pb = _proto()
    proto = pb.Summary.Image(height=height, width=width, colorspace=channels, encoded_image_string=file.getvalue())
    return pb.Summary(value=[pb.Summary.Value(tag=tag, image=proto)])


def mesh(tag: str, vertices: Any, colors: Any = None, faces: Any = None, config: Any = None) -> Any:
    """The summary of a mesh: its vertices, and their colors and the faces between them, if given.

    Args:
        vertices: (B, N, 3).
        colors: (B, N, 3), between 0 and 255.
        faces: (B, M, 3), the numbers of vertices.
        config: the configuration of the viewer's classes, as a dictionary.
    """
    from tensorboard.plugins.mesh import metadata
    from tensorboard.plugins.mesh.plugin_data_pb2 import MeshPluginData

    parts = [("VERTEX", "DT_FLOAT", vertices), ("FACE", "DT_INT32", faces), ("COLOR", "DT_INT32", colors)]
    given = [(MeshPluginData.ContentType.Value(name), kind, x) for name, kind, x in parts if x is not None]
    components = metadata.get_components_bitmask([content for content, _, _ in given])
    values = []
    for content, kind, x in given:
        array = make_np(x)
        described = metadata.create_summary_metadata(
            tag, None, content, components, array.shape, json_config=json.dumps(config or {}, sort_keys=True)
        )
        data = {"float_val" if kind == "DT_FLOAT" else "int_val": array.reshape(-1).tolist()}
        name, plugin = metadata.get_instance_name(tag, content), described.plugin_data
        values += _tensor_summary(name, kind, plugin.plugin_name, plugin.content, array.shape, **data).value
    return _proto().Summary(value=values)


def custom_scalars(layout: Mapping[str, Mapping[str, Sequence[Any]]]) -> Any:
    """The summary of a layout of charts.

    Args:
        layout: for each category, by the charts' names, ``["Multiline", tags]`` or ``["Margin", tags]`` with the tags
            of a scalar, its lower and its upper bound.

    Raises:
        ValueError: for another kind of chart.
    """
    from tensorboard.plugins.custom_scalar import layout_pb2, metadata

    def chart(title: str, kind: str, tags: Sequence[str]) -> Any:
        if kind == "Multiline":
            return layout_pb2.Chart(title=title, multiline=layout_pb2.MultilineChartContent(tag=list(tags)))
        if kind != "Margin":
            raise ValueError(f"add_custom_scalars: a chart is Multiline or Margin, not {kind!r}")
        value, lower, upper = tags
        series = layout_pb2.MarginChartContent.Series(value=value, lower=lower, upper=upper)
        return layout_pb2.Chart(title=title, margin=layout_pb2.MarginChartContent(series=[series]))

    categories = [
        layout_pb2.Category(title=category, chart=[chart(title, *content) for title, content in charts.items()])
        for category, charts in layout.items()
    ]
    content = layout_pb2.Layout(category=categories).SerializeToString()
    return _tensor_summary(metadata.CONFIG_SUMMARY_TAG, "DT_STRING", metadata.PLUGIN_NAME, string_val=[content])


def text(tag: str, string: str) -> Any:
    """The summary of a text, which TensorBoard shows as Markdown."""
    from tensorboard.plugins.text.plugin_data_pb2 import TextPluginData

    content = TextPluginData(version=0).SerializeToString()
    summary = _tensor_summary(
        f"{tag}/text_summary", "DT_STRING", "text", content, (1,), string_val=[string.encode("utf-8")]
    )
    return summary


def pr_curve(tag: str, labels: Any, predictions: Any, num_thresholds: int = 127, weights: Any = None) -> Any:
    """The summary of a precision-recall curve at thresholds between 0 and 1."""
    from tensorboard.plugins.pr_curve.plugin_data_pb2 import PrCurvePluginData

    count = min(num_thresholds, 127)
    truth, guess = make_np(labels).reshape(-1).astype(bool), make_np(predictions).reshape(-1)
    share = np.ones(guess.shape) if weights is None else make_np(weights).reshape(-1)
    buckets = np.floor(guess * (count - 1)).astype(int)
    right, wrong = (
        np.bincount(buckets, weights=share * kind, minlength=count)[::-1].cumsum()[::-1] for kind in (truth, ~truth)
    )
    missed, rest = right[0] - right, wrong[0] - wrong
    precision = right / np.maximum(1e-7, right + wrong)
    recall = right / np.maximum(1e-7, right + missed)
    rows = np.stack([right, wrong, rest, missed, precision, recall])
    content = PrCurvePluginData(version=0, num_thresholds=count).SerializeToString()
    return _tensor_summary(tag, "DT_FLOAT", "pr_curves", content, rows.shape, float_val=rows.reshape(-1).tolist())


def hparams(values: Mapping[str, Any], metrics: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    """The summaries of hyperparameters and metric names: the experiment, a session's start and its end.

    Raises:
        TypeError: for arguments that are not dictionaries.
        ValueError: for values that are not numbers, bools, texts or tensors.
    """
    from tensorboard.plugins.hparams import api_pb2, metadata
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData, SessionEndInfo, SessionStartInfo

    if not isinstance(values, Mapping) or not isinstance(metrics, Mapping):
        raise TypeError("parameter: hparam_dict and metric_dict should be dictionaries, nothing logged.")
    start, infos = SessionStartInfo(), []
    for name, value in values.items():
        given = make_np(value).item() if isinstance(value, Tensor) else value
        info = api_pb2.HParamInfo(name=name)
        if given is None:
            continue
        if isinstance(given, (int, float)):  # bools among them
            start.hparams[name].number_value, info.type = given, api_pb2.DATA_TYPE_FLOAT64
        elif isinstance(given, str):
            start.hparams[name].string_value, info.type = given, api_pb2.DATA_TYPE_STRING
        else:
            raise ValueError("value should be one of int, float, str, bool, or torch.Tensor")
        infos.append(info)
    reported = [api_pb2.MetricInfo(name=api_pb2.MetricName(tag=name)) for name in metrics]
    experiment = api_pb2.Experiment(hparam_infos=infos, metric_infos=reported)
    version = metadata.PLUGIN_DATA_VERSION
    end = SessionEndInfo(status=api_pb2.Status.Value("STATUS_SUCCESS"))
    data = (
        (metadata.EXPERIMENT_TAG, HParamsPluginData(experiment=experiment, version=version)),
        (metadata.SESSION_START_INFO_TAG, HParamsPluginData(session_start_info=start, version=version)),
        (metadata.SESSION_END_INFO_TAG, HParamsPluginData(session_end_info=end, version=version)),
    )
    first, second, third = (_plugin_summary(tag, content.SerializeToString()) for tag, content in data)
    return first, second, third


def _plugin_summary(tag: str, content: bytes) -> Any:
    return _tensor_summary(tag, "DT_FLOAT", "hparams", content, float_val=[0.0])
