"""``torch.cuda``: JAX's GPUs; without any, the behaviour of a PyTorch build without CUDA.

Example:
    >>> torch.cuda.is_available(), torch.cuda.device_count()
    (False, 0)
    >>> torch.cuda.synchronize()
    Traceback (most recent call last):
    AssertionError: Torch not compiled with CUDA enabled
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import compat.cuda.amp
import compat.cuda.nvtx
from compat._operators.create.legacy_constructors import CUDA_TYPES
from compat.cuda import memory as memory, random as random, streams as streams
from compat.cuda._devices import (
    can_device_access_peer,
    check_available,
    current_device,
    device,
    device_count,
    get_arch_list,
    get_device_capability,
    get_device_name,
    get_device_properties,
    get_gencode_flags,
    is_available,
    is_bf16_supported,
    is_initialized,
    set_device,
)
from compat.cuda.memory import (
    OutOfMemoryError,
    empty_cache,
    max_memory_allocated,
    max_memory_cached,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_cached,
    memory_reserved,
    memory_stats,
    memory_summary,
    reset_accumulated_memory_stats,
    reset_max_memory_allocated,
    reset_max_memory_cached,
    reset_peak_memory_stats,
    set_per_process_memory_fraction,
)
from compat.cuda.random import (
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)
from compat.cuda.streams import (
    Event,
    ExternalStream,
    Stream,
    StreamContext,
    current_stream,
    default_stream,
    stream,
    synchronize,
)

globals().update(CUDA_TYPES)  # FloatTensor and the others

#: Whether a GPU is in use.
_initialized = False
_NO_GRAPHS = "CUDAGraph: XLA compiles programs whole; torch.compile does what graphs are for"


def init() -> None:
    """Initializes GPUs.

    Raises:
        AssertionError: if there is none.
    """
    check_available()


_lazy_init = init


def _lazy_call(callable: Any, **kwargs: Any) -> None:
    """Calls a function, which PyTorch does when CUDA is initialized: the devices are there from the start.

    Without a device nothing is called, as in PyTorch.
    """
    if is_available():
        callable()


#: The generators of GPUs; empty until there is one.
default_generators: tuple[Any, ...] = ()


class device_of(device):
    """A ``with`` block in which the GPU of a tensor is the current one; nothing changes for a tensor on the CPU.

    Args:
        obj: the tensor.
    """

    def __init__(self, obj: Any):
        super().__init__(obj.get_device() if obj.is_cuda else -1)


def ipc_collect() -> None:
    """Does nothing: GPU memory is not shared between processes.

    Raises:
        AssertionError: if there is no GPU.
    """
    check_available()


def is_current_stream_capturing() -> bool:
    """Whether a ``CUDAGraph`` is being captured: never.

    Raises:
        RuntimeError: if there is no GPU.
    """
    if not is_available():
        raise RuntimeError("Tried to instantiate dummy base class _cuda_isCurrentStreamCapturing")
    return False


class CUDAGraph:
    """CUDA graphs: not supported.

    Raises:
        RuntimeError: always.
    """

    def __init__(self, *args: Any, **kwargs: Any):
        raise RuntimeError(_NO_GRAPHS if is_available() else "Tried to instantiate dummy base class CUDAGraph")


class graph(AbstractContextManager):
    """A context manager that captures a ``CUDAGraph``: not supported.

    Raises:
        RuntimeError: always.
    """

    def __init__(self, cuda_graph: Any, *args: Any, **kwargs: Any):
        CUDAGraph()

    def __exit__(self, *exc: object) -> None:
        return None
