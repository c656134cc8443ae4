"""``torch.autograd.profiler_util``: the events of a profiler, under PyTorch's names."""

from compat.profiler._events import (
    DeviceType,
    EventList,
    FormattedTimesMixin,
    FunctionEvent,
    FunctionEventAvg,
    Interval,
    Kernel,
)
from compat.profiler._table import memory_text as _format_memory
from compat.profiler._table import time_text as _format_time

__all__ = [
    "DeviceType", "EventList", "FormattedTimesMixin", "FunctionEvent", "FunctionEventAvg", "Interval", "Kernel",
    "_format_memory", "_format_time",
]  # fmt: skip
