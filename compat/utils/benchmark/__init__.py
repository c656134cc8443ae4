"""``torch.utils.benchmark``: timing of statements, tables of measurements, and random inputs."""

from compat.utils.benchmark import utils
from compat.utils.benchmark.utils.common import (
    Measurement,
    TaskSpec,
    ordered_unique,
    select_unit,
    set_torch_threads,
    trim_sigfig,
    unit_to_english,
)
from compat.utils.benchmark.utils.compare import Colorize, Compare
from compat.utils.benchmark.utils.fuzzer import FuzzedParameter, FuzzedTensor, Fuzzer, ParameterAlias
from compat.utils.benchmark.utils.sparse_fuzzer import FuzzedSparseTensor
from compat.utils.benchmark.utils.timer import Language, Timer, timer

__all__ = [
    "Colorize", "Compare", "FuzzedParameter", "FuzzedSparseTensor", "FuzzedTensor", "Fuzzer", "Language", "Measurement",
    "ParameterAlias", "TaskSpec", "Timer", "ordered_unique", "select_unit", "set_torch_threads", "timer", "trim_sigfig",
    "unit_to_english", "utils",
]  # fmt: skip
