"""``torch.autograd.profiler``: the deprecated form of ``torch.profiler``."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from compat.autograd.profiler_util import EventList, FunctionEvent, FunctionEventAvg
from compat.profiler import profile as _profile
from compat.profiler import record_function

__all__ = ["EventList", "FunctionEvent", "emit_nvtx", "profile", "record_function"]


class profile:
    """A context manager that records ranges and operations.

    Args:
        enabled: whether to record.
        record_shapes: whether the sizes of operands are recorded.
        options: other arguments of PyTorch's profiler, ignored.

    Example:
        >>> with torch.autograd.profiler.profile() as recorded:
        ...     y = torch.ones(2) * 2 + 4
        >>> [event.name for event in recorded.function_events]
        ['aten::ones', 'aten::mul', 'aten::add']
    """

    def __init__(self, enabled: bool = True, *, record_shapes: bool = False, **options: Any):
        self.enabled = enabled
        self.record_shapes = record_shapes
        self._inner = _profile(record_shapes=record_shapes)
        self._ended = False

    def __enter__(self) -> profile | None:
        if not self.enabled:
            return None
        self._inner.start()
        return self

    def __exit__(self, *exc: object) -> None:
        if self.enabled:
            self._inner.stop()
            self._ended = True

    @property
    def function_events(self) -> EventList:
        """The recorded events, sorted by time.

        Raises:
            RuntimeError: if recording has not ended.
        """
        if not self._ended:
            raise RuntimeError("Profiler didn't finish running")
        return self._inner.events()

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        """The recorded events, grouped by name."""
        return self.function_events.key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def table(self, sort_by: str | None = None, row_limit: int = 100, **options: Any) -> str:
        """A table of the recorded events, as text."""
        return self.function_events.table(sort_by, row_limit, **options)

    def total_average(self) -> FunctionEventAvg:
        """The total of all events."""
        return self.function_events.total_average()

    @property
    def self_cpu_time_total(self) -> float:
        """The total self time in microseconds."""
        return self.function_events.self_cpu_time_total

    def export_chrome_trace(self, path: str) -> None:
        """Writes the recorded events to a file for ``chrome://tracing``."""
        self._inner.export_chrome_trace(path)

    def __str__(self) -> str:
        return self.table() if self._ended else "<unfinished torch.autograd.profile>"

    __repr__ = __str__


class emit_nvtx(AbstractContextManager):
    """A context manager that marks operations in a GPU's timeline.

    Raises:
        AssertionError: on entry, as there is no GPU.
    """

    def __init__(self, enabled: bool = True, record_shapes: bool = False):
        self.enabled = enabled
        self.record_shapes = record_shapes

    def __enter__(self) -> emit_nvtx:
        if self.enabled:
            raise AssertionError("Torch not compiled with CUDA enabled")
        return self

    def __exit__(self, *exc: object) -> None:
        return None
