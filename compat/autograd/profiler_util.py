"""``torch.autograd.profiler_util``: what a profiler recorded, under PyTorch's names."""

from compat.profiler.events import Average as FunctionEventAvg
from compat.profiler.events import Event as FunctionEvent
from compat.profiler.events import Events as EventList
from compat.profiler.events import time_text as _format_time

__all__ = ["EventList", "FunctionEvent", "FunctionEventAvg", "_format_time"]
