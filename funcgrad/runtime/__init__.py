"""Where arrays are computed: compiled executables, windows of deferred operations, and the way in and out for NumPy.

Everything that touches a buffer goes through this package.
"""

from funcgrad.runtime import cache as cache
from funcgrad.runtime.background import wait
from funcgrad.runtime.deferred import (
    Deferred,
    flush,
    flush_all,
    ready,
    record,
    record_all,
    settings,
    type_when_deferred,
)
from funcgrad.runtime.eager import Eager, execute
from funcgrad.runtime.programs import Executable, executable, from_numpy, to_numpy
from funcgrad.runtime.report import explain, stats
from funcgrad.runtime.constants import filled, scalar
from funcgrad.runtime.windows import clear

__all__ = [
    "Deferred", "Eager", "Executable", "clear", "executable", "execute", "explain", "filled", "flush", "flush_all",
    "from_numpy", "ready", "record", "record_all", "scalar", "settings", "stats", "to_numpy", "type_when_deferred",
    "wait",
]  # fmt: skip
