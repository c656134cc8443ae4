"""``torch.cuda`` where there is no GPU: it says so, and raises PyTorch's errors where one would be needed.

Example:
    >>> import compat as torch
    >>> torch.cuda.is_available(), torch.cuda.device_count()
    (False, 0)
    >>> torch.cuda.synchronize()
    Traceback (most recent call last):
    AssertionError: Torch not compiled with CUDA enabled
"""

from __future__ import annotations

from collections import OrderedDict
from contextlib import AbstractContextManager
from typing import Any

import compat.cuda.amp
import compat.cuda.nvtx
from compat._core.stubs import answering, refusing
from compat._core.types.device import device as _Device
from compat._operators.create.legacy_constructors import OF_CUDA

globals().update(OF_CUDA)  # FloatTensor and its kin
_ABSENT = "Torch not compiled with CUDA enabled"

for _name in (
    "synchronize", "current_device", "current_stream", "default_stream", "get_device_name", "get_device_properties",
    "get_device_capability", "get_rng_state", "initial_seed", "init", "ipc_collect", "mem_get_info",
    "can_device_access_peer", "set_per_process_memory_fraction",
):  # fmt: skip
    globals()[_name] = refusing(_name, AssertionError, _ABSENT)

is_available = answering("is_available", lambda: False, "there is no GPU")
is_initialized = answering("is_initialized", lambda: False, "no GPU is in use")
is_bf16_supported = answering("is_bf16_supported", lambda: False, "no GPU computes in bfloat16")
device_count = answering("device_count", lambda: 0, "there is no GPU")
get_arch_list = answering("get_arch_list", list, "there is code for no kind of GPU")
get_gencode_flags = answering("get_gencode_flags", str, "there is code for no kind of GPU")
get_rng_state_all = answering("get_rng_state_all", list, "no GPU has random numbers")
memory_stats = answering("memory_stats", OrderedDict, "no GPU has memory")
empty_cache = answering("empty_cache", lambda: None, "there is nothing to let go")

for _name in (
    "memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved", "memory_cached",
    "max_memory_cached",
):  # fmt: skip
    globals()[_name] = answering(_name, lambda: 0, "no GPU has memory")

# Seeds and states are for the GPUs there are, as PyTorch keeps them until one is used: none.
for _name in ("seed", "seed_all", "set_rng_state", "set_rng_state_all"):
    globals()[_name] = answering(_name, lambda: None, "no GPU has random numbers")


def manual_seed(seed: int) -> None:
    """Seeds the current GPU's random numbers: there are none.

    Raises:
        ValueError: if it is no number.
    """
    int(seed)


def manual_seed_all(seed: int) -> None:
    """Seeds all GPUs' random numbers: there are none.

    Raises:
        ValueError: if it is no number.
    """
    int(seed)


def _index(where: Any) -> int:
    if isinstance(where, int):
        return where
    found = _Device(where)
    if found.type != "cuda":
        raise ValueError(f"Expected a cuda device, but got: {where}")
    return 0 if found.index is None else found.index


def set_device(device: Any) -> None:
    """Makes a GPU the current one; a negative number is none.

    Raises:
        ValueError: for a device of another type.
        AssertionError: for a GPU, where there is none.
    """
    if _index(device) >= 0:
        raise AssertionError(_ABSENT)


class device(AbstractContextManager):
    """A ``with`` block in which a GPU is the current one.

    Args:
        device: which; negative for none.

    Raises:
        RuntimeError: at its begin, where there is no GPU.
    """

    def __init__(self, device: Any):
        self.idx = _index(device)
        self.prev_idx = -1

    def __enter__(self) -> None:
        if self.idx >= 0:
            raise RuntimeError("PyTorch was compiled without CUDA support")

    def __exit__(self, *exc: object) -> None:
        return None


class StreamContext(AbstractContextManager):
    """A ``with`` block whose work goes to a stream; without one, nothing is different."""

    def __init__(self, stream: Any):
        self.stream = stream

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc: object) -> None:
        return None


def stream(stream: Any) -> StreamContext:
    """A ``with`` block whose work goes to a stream; None for no other one."""
    return StreamContext(stream)


class Stream:
    """A queue of a GPU's work: there is none to make.

    Raises:
        RuntimeError: always.
    """

    def __init__(self, *args: Any, **kwargs: Any):
        raise RuntimeError("torch.cuda.Stream requires CUDA support")


class Event:
    """A mark in a GPU's work: there is none to make.

    Raises:
        RuntimeError: always.
    """

    def __init__(self, *args: Any, **kwargs: Any):
        raise RuntimeError("Tried to instantiate dummy base class Event")


class CUDAGraph:
    """Recorded work of a GPU: there is none to make.

    Raises:
        RuntimeError: always.
    """

    def __init__(self, *args: Any, **kwargs: Any):
        raise RuntimeError("Tried to instantiate dummy base class CUDAGraph")


class OutOfMemoryError(RuntimeError):
    """A GPU has no memory left."""

    __module__ = "compat"


# With no GPU there is no memory whose peak could be forgotten.
reset_peak_memory_stats = answering("reset_peak_memory_stats", lambda: None, "no GPU has memory")
reset_max_memory_allocated = answering("reset_max_memory_allocated", lambda: None, "no GPU has memory")


class graph(AbstractContextManager):
    """A ``with`` block whose work a ``CUDAGraph`` records: there is none to make.

    Raises:
        RuntimeError: always.
    """

    def __init__(self, cuda_graph: Any, *args: Any, **kwargs: Any):
        raise RuntimeError("Tried to instantiate dummy base class CUDAGraph")

    def __exit__(self, *exc: object) -> None:
        return None


#: Whether a GPU is in use.
_initialized = False
is_current_stream_capturing = refusing(
    "is_current_stream_capturing",
    RuntimeError,
    "Tried to instantiate dummy base class _cuda_isCurrentStreamCapturing",
)
