"""Execution: compiled executables, windows of deferred operations, and conversion from and to NumPy.

Everything that touches a buffer goes through this package.
"""

from funcgrad.native import memory as memory
from funcgrad.runtime import cache as cache, staged_backward as staged_backward
from funcgrad.runtime.placement import (
    accelerators,
    committed_to,
    expected,
    memory_stats,
    moved,
    place_of,
    prefer_cpu,
    put_on,
    simulated,
    synchronize,
)
from funcgrad.runtime.background import wait
from funcgrad.runtime.capture import Capture, Interrupted, Replay, capturing, computed, drawn, opaque
from funcgrad.runtime.deferred import (
    Deferred,
    backward_done,
    catch_up,
    computed_from,
    due,
    flush,
    flush_all,
    later,
    looking,
    ready,
    record,
    record_all,
    settings,
    value_of,
)
from funcgrad.runtime.eager import Eager, execute
from funcgrad.runtime.value_prediction import foreseen
from funcgrad.runtime.programs import Executable, executable, from_numpy, on_host, to_numpy
from funcgrad.runtime.report import explain, stats
from funcgrad.runtime.constants import filled, is_constant, own, scalar, table
from funcgrad.runtime.segment import Joined, Segment, pending_count, segment
from funcgrad.runtime.recording import Recording
from funcgrad.runtime.windows import clear, insist

__all__ = [
    "Capture", "Deferred", "Eager", "Executable", "Interrupted", "Joined", "Recording", "Replay", "Segment",
    "accelerators", "backward_done", "capturing", "catch_up", "clear", "committed_to", "computed", "computed_from",
    "drawn", "due", "executable", "execute", "expected", "explain", "filled", "flush", "flush_all", "foreseen",
    "from_numpy", "insist", "is_constant", "later", "looking", "memory_stats", "moved", "on_host", "opaque", "own",
    "pending_count", "place_of", "prefer_cpu", "put_on", "ready", "record", "record_all", "scalar", "segment",
    "settings", "simulated", "stats", "synchronize", "table", "to_numpy", "value_of", "wait",
]  # fmt: skip
