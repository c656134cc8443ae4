"""``SummaryWriter``: writes event files for TensorBoard."""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from compat.utils.tensorboard import summary

__all__ = ["FileWriter", "SummaryWriter"]


class FileWriter:
    """Writes events to a file in a directory.

    Args:
        log_dir: the directory.
        max_queue: the number of events in the queue before they are written.
        flush_secs: the maximum seconds in the queue.
        filename_suffix: the suffix of the file's name.
    """

    def __init__(self, log_dir: str, max_queue: int = 10, flush_secs: int = 120, filename_suffix: str = ""):
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        self.event_writer = EventFileWriter(str(log_dir), max_queue, flush_secs, filename_suffix)

    def get_logdir(self) -> str:
        """The directory."""
        found: str = self.event_writer.get_logdir()
        return found

    def add_event(self, event: Any, step: int | None = None, walltime: float | None = None) -> None:
        """Writes an event."""
        event.wall_time = time.time() if walltime is None else walltime
        if step is not None:
            event.step = int(step)
        self.event_writer.add_event(event)

    def add_summary(self, summary: Any, global_step: int | None = None, walltime: float | None = None) -> None:
        """Writes a summary."""
        from tensorboard.compat.proto.event_pb2 import Event

        self.add_event(Event(summary=summary), global_step, walltime)

    def flush(self) -> None:
        """Writes queued events."""
        self.event_writer.flush()

    def close(self) -> None:
        """Writes queued events and closes the file."""
        self.event_writer.close()

    def reopen(self) -> None:
        """Continues in a new file."""
        self.event_writer.reopen()


def _default_folder(comment: str) -> str:
    return str(Path("runs") / f"{datetime.now().strftime('%b%d_%H-%M-%S')}_{socket.gethostname()}{comment}")


class SummaryWriter:
    """Writes scalars, images and texts of a training run for TensorBoard.

    Args:
        log_dir: the directory; by default ``runs/`` with the time and the host's name.
        comment: the suffix of the default directory's name.
        purge_step: TensorBoard discards events from this step on that were written before.
        max_queue, flush_secs, filename_suffix: as for ``FileWriter``.

    The methods ``add_...`` take a tag, a value, the number of the step and the time, by default the current one.
    """

    def __init__(
        self, log_dir: Any = None, comment: str = "", purge_step: int | None = None, max_queue: int = 10,
        flush_secs: int = 120, filename_suffix: str = "",
    ):  # fmt: skip
        self.log_dir = str(log_dir or _default_folder(comment))
        self.purge_step, self.max_queue = purge_step, max_queue
        self.flush_secs, self.filename_suffix = flush_secs, filename_suffix
        self.file_writer: FileWriter | None = None
        self.all_writers: dict[str, FileWriter] | None = None
        #: The default bin edges of histograms: a geometric sequence of ratio 1.1, and its negative.
        above = 1e-12 * 1.1 ** np.arange(np.ceil(np.log(1e32) / np.log(1.1)))
        self.default_bins = [*(-above[::-1]).tolist(), 0.0, *above.tolist()]
        self._get_file_writer()

    def _get_file_writer(self) -> FileWriter:
        if self.all_writers is None or self.file_writer is None:
            self.file_writer = FileWriter(self.log_dir, self.max_queue, self.flush_secs, self.filename_suffix)
            self.all_writers = {self.file_writer.get_logdir(): self.file_writer}
            if self.purge_step is not None:
                from tensorboard.compat.proto.event_pb2 import Event, SessionLog

                self.file_writer.add_event(Event(step=self.purge_step, file_version="brain.Event:2"))
                self.file_writer.add_event(Event(step=self.purge_step, session_log=SessionLog(status=SessionLog.START)))
                self.purge_step = None
        return self.file_writer

    def get_logdir(self) -> str:
        """The directory."""
        return self.log_dir

    def _add(self, values: Any, global_step: Any, walltime: float | None) -> None:
        self._get_file_writer().add_summary(values, global_step, walltime)

    def add_scalar(
        self, tag: str, scalar_value: Any, global_step: Any = None, walltime: float | None = None,
        new_style: bool = False, double_precision: bool = False,
    ) -> None:  # fmt: skip
        """Adds a scalar."""
        self._add(summary.scalar(tag, scalar_value, new_style, double_precision), global_step, walltime)

    def add_scalars(
        self, main_tag: str, tag_scalar_dict: Mapping[str, Any], global_step: Any = None, walltime: float | None = None
    ) -> None:
        """Adds several scalars in one chart: each is written to its own directory."""
        own = self._get_file_writer()
        assert self.all_writers is not None
        for tag, value in tag_scalar_dict.items():
            folder = f"{own.get_logdir()}/{main_tag.replace('/', '_')}_{tag}"
            if folder not in self.all_writers:
                self.all_writers[folder] = FileWriter(folder, self.max_queue, self.flush_secs, self.filename_suffix)
            self.all_writers[folder].add_summary(summary.scalar(main_tag, value), global_step, walltime)

    def add_histogram(
        self, tag: str, values: Any, global_step: Any = None, bins: Any = "tensorflow", walltime: float | None = None,
        max_bins: int | None = None,
    ) -> None:  # fmt: skip
        """Adds the histogram of a tensor."""
        limits = self.default_bins if isinstance(bins, str) and bins == "tensorflow" else bins
        self._add(summary.histogram(tag, values, limits, max_bins), global_step, walltime)

    def add_histogram_raw(
        self, tag: str, min: float, max: float, num: float, sum: float, sum_squares: float, bucket_limits: Any,
        bucket_counts: Any, global_step: Any = None, walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Adds a precomputed histogram.

        Raises:
            ValueError: for different numbers of limits and counts.
        """
        if len(bucket_limits) != len(bucket_counts):
            raise ValueError("len(bucket_limits) != len(bucket_counts), see the document.")
        values = summary.histogram_raw(tag, min, max, num, sum, sum_squares, bucket_limits, bucket_counts)
        self._add(values, global_step, walltime)

    def add_image(
        self, tag: str, img_tensor: Any, global_step: Any = None, walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:  # fmt: skip
        """Adds an image, of bytes, or of floats between 0 and 1."""
        self._add(summary.image(tag, img_tensor, dataformats=dataformats), global_step, walltime)

    def add_images(
        self, tag: str, img_tensor: Any, global_step: Any = None, walltime: float | None = None,
        dataformats: str = "NCHW",
    ) -> None:  # fmt: skip
        """Adds several images, in a grid."""
        self._add(summary.image(tag, img_tensor, dataformats=dataformats), global_step, walltime)

    def add_figure(
        self, tag: str, figure: Any, global_step: Any = None, close: bool = True, walltime: float | None = None
    ) -> None:
        """Adds a figure of Matplotlib, or several in a grid."""
        from matplotlib import pyplot
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        drawn = []
        for one in figure if isinstance(figure, list) else [figure]:
            canvas = FigureCanvasAgg(one)
            canvas.draw()
            drawn.append(np.asarray(canvas.buffer_rgba())[..., :3])
            if close:
                pyplot.close(one)
        self.add_images(tag, np.stack(drawn), global_step, walltime, "NHWC")

    def add_audio(
        self,
        tag: str,
        snd_tensor: Any,
        global_step: Any = None,
        sample_rate: int = 44100,
        walltime: float | None = None,
    ) -> None:
        """Adds a sound, between -1 and 1."""
        self._add(summary.audio(tag, snd_tensor, sample_rate), global_step, walltime)

    def add_text(self, tag: str, text_string: str, global_step: Any = None, walltime: float | None = None) -> None:
        """Adds a text."""
        self._add(summary.text(tag, text_string), global_step, walltime)

    def add_pr_curve(
        self, tag: str, labels: Any, predictions: Any, global_step: Any = None, num_thresholds: int = 127,
        weights: Any = None, walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Adds the precision-recall curve of predictions between 0 and 1."""
        self._add(summary.pr_curve(tag, labels, predictions, num_thresholds, weights), global_step, walltime)

    def add_hparams(
        self, hparam_dict: Mapping[str, Any], metric_dict: Mapping[str, Any], hparam_domain_discrete: Any = None,
        run_name: str | None = None, global_step: Any = None,
    ) -> None:  # fmt: skip
        """Adds the hyperparameters and metrics of a run, in a subdirectory."""
        values = summary.hparams(hparam_dict, metric_dict)
        folder = Path(self._get_file_writer().get_logdir()) / (run_name or str(time.time()))
        with SummaryWriter(folder) as own:
            for one in values:
                own._add(one, None, None)
            for tag, value in metric_dict.items():
                own.add_scalar(tag, value, global_step)

    def add_graph(
        self, model: Any, input_to_model: Any = None, verbose: bool = False, use_strict_trace: bool = True
    ) -> None:
        """Adds the graph of a model's operations, recorded while it runs on ``input_to_model``, in evaluation mode.

        Args:
            model: the model.
            input_to_model: its argument, or a tuple or list of them.
            verbose: whether to print the graph.
            use_strict_trace: accepted, and has no effect: results may be lists and dictionaries.

        Raises:
            ValueError: without ``input_to_model``.
        """
        from tensorboard.compat.proto.event_pb2 import Event

        from compat.utils.tensorboard._pytorch_graph import graph

        if input_to_model is None:
            raise ValueError("add_graph: the argument input_to_model must be given: operations are recorded at a call")
        found = graph(model, input_to_model)
        if verbose:
            print(found)
        self._get_file_writer().add_event(Event(graph_def=found.SerializeToString()))

    def add_video(
        self, tag: str, vid_tensor: Any, global_step: Any = None, fps: float = 4, walltime: float | None = None
    ) -> None:
        """Adds videos, (N, T, C, H, W) of bytes, or of floats between 0 and 1, side by side as one GIF."""
        self._add(summary.video(tag, vid_tensor, fps), global_step, walltime)

    def add_embedding(
        self, mat: Any, metadata: Any = None, label_img: Any = None, global_step: Any = None, tag: str = "default",
        metadata_header: Any = None,
    ) -> None:  # fmt: skip
        """Adds an embedding for the projector: (N, D), a point per row.

        Args:
            mat: the points.
            metadata: a label per point; with ``metadata_header``, the values of its columns.
            label_img: a square picture per point, (N, C, H, W), with values between 0 and 1.
            metadata_header: the names of the columns of ``metadata``.

        Raises:
            AssertionError: for numbers of labels or pictures that differ from the number of points.
        """
        from compat.utils.tensorboard._embedding import write_embedding

        folder = self._get_file_writer().get_logdir()
        write_embedding(folder, mat, metadata, label_img, global_step, tag, metadata_header)

    def add_mesh(
        self, tag: str, vertices: Any, colors: Any = None, faces: Any = None, config_dict: Any = None,
        global_step: Any = None, walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Adds a mesh or a cloud of points: ``vertices`` (B, N, 3), ``colors`` (B, N, 3), ``faces`` (B, M, 3).

        Args:
            config_dict: the configuration of the viewer's classes.
        """
        self._add(summary.mesh(tag, vertices, colors, faces, config_dict), global_step, walltime)

    def add_custom_scalars(self, layout: Mapping[str, Mapping[str, Sequence[Any]]]) -> None:
        """Adds charts of several scalars, in categories.

        Args:
            layout: for each category, by the charts' names, ``["Multiline", tags]`` or ``["Margin", tags]``.
        """
        self._add(summary.custom_scalars(layout), None, None)

    def add_custom_scalars_multilinechart(
        self, tags: Sequence[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """Adds a chart of the scalars with these tags."""
        self.add_custom_scalars({category: {title: ["Multiline", tags]}})

    def add_custom_scalars_marginchart(
        self, tags: Sequence[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """Adds a chart of a scalar between its lower and upper bound.

        Args:
            tags: of the scalar, its lower and its upper bound.

        Raises:
            AssertionError: for another number of tags.
        """
        assert len(tags) == 3, "a margin chart has three tags: of the scalar, its lower and its upper bound"
        self.add_custom_scalars({category: {title: ["Margin", tags]}})

    def flush(self) -> None:
        """Writes queued events."""
        for writer in (self.all_writers or {}).values():
            writer.flush()

    def close(self) -> None:
        """Writes queued events and closes the files."""
        for writer in (self.all_writers or {}).values():
            writer.close()
        self.file_writer = self.all_writers = None

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.close()
