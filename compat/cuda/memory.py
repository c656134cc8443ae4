"""``torch.cuda.memory``: GPU memory statistics from JAX's runtime.

XLA reserves most of a GPU's memory at the start, and allocates arrays in it. "Allocated" is the memory of arrays,
"reserved" that of XLA. Recorded operations have not allocated memory yet.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from compat._core.types.errors import Once
from compat.cuda._devices import is_available, jax_device
from funcgrad import runtime

__all__ = [
    "OutOfMemoryError", "empty_cache", "max_memory_allocated", "max_memory_cached", "max_memory_reserved",
    "mem_get_info", "memory_allocated", "memory_cached", "memory_reserved", "memory_stats", "memory_summary",
    "reset_accumulated_memory_stats", "reset_max_memory_allocated", "reset_max_memory_cached",
    "reset_peak_memory_stats", "set_per_process_memory_fraction",
]  # fmt: skip


class OutOfMemoryError(RuntimeError):
    """GPU memory is exhausted."""

    __module__ = "compat"


def _counted(device: Any) -> dict[str, int]:
    """A GPU's memory statistics; empty without a GPU."""
    if not is_available():
        return {}
    runtime.flush_all()
    return runtime.memory_stats(jax_device(device))


def memory_allocated(device: Any = None) -> int:
    """The bytes allocated on a GPU; 0 without a GPU."""
    return _counted(device).get("bytes_in_use", 0)


def max_memory_allocated(device: Any = None) -> int:
    """The peak of the bytes allocated on a GPU since the start; 0 without a GPU."""
    found = _counted(device)
    return found.get("peak_bytes_in_use", found.get("bytes_in_use", 0))


def memory_reserved(device: Any = None) -> int:
    """The bytes reserved on a GPU; 0 without a GPU."""
    found = _counted(device)
    return found.get("pool_bytes", found.get("bytes_reserved", 0)) or found.get("bytes_in_use", 0)


def max_memory_reserved(device: Any = None) -> int:
    """The peak of the bytes reserved on a GPU; 0 without a GPU."""
    found = _counted(device)
    return found.get("peak_pool_bytes", 0) or max(memory_reserved(device), max_memory_allocated(device))


def memory_cached(device: Any = None) -> int:
    """The former name of ``memory_reserved``."""
    return memory_reserved(device)


def max_memory_cached(device: Any = None) -> int:
    """The former name of ``max_memory_reserved``."""
    return max_memory_reserved(device)


def memory_stats(device: Any = None) -> OrderedDict[str, int]:
    """A GPU's memory statistics under PyTorch's names; empty without a GPU."""
    found = _counted(device)
    if not found:
        return OrderedDict()
    used = found.get("bytes_in_use", 0)
    values = {
        "allocated_bytes.all.current": used,
        "allocated_bytes.all.peak": found.get("peak_bytes_in_use", used),
        "allocation.all.allocated": found.get("num_allocs", 0),
        "reserved_bytes.all.current": memory_reserved(device),
        "reserved_bytes.all.peak": max_memory_reserved(device),
    }
    return OrderedDict(values)


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """The free and the total bytes that XLA may use on a GPU.

    Raises:
        AssertionError: if there is no GPU.
        RuntimeError: if its runtime has no statistics.
    """
    place = jax_device(device)
    runtime.flush_all()
    found = runtime.memory_stats(place)
    if "bytes_limit" not in found:
        raise RuntimeError(f"mem_get_info: the runtime of {place} does not say how much memory it may use")
    return found["bytes_limit"] - found["bytes_in_use"], found["bytes_limit"]


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """``memory_stats`` as a table."""
    rows = memory_stats(device).items()
    return "\n".join(f"{name:32}{value:>20,}" for name, value in rows)


def reset_peak_memory_stats(device: Any = None) -> None:
    """Resets the peaks: XLA does not support it, so it warns if there is a GPU."""
    if is_available():
        Once.warn("XLA counts the peak of a GPU's memory from the begin of the program; it cannot be reset.")


reset_max_memory_allocated = reset_max_memory_cached = reset_peak_memory_stats


def reset_accumulated_memory_stats(device: Any = None) -> None:
    """Does nothing: XLA counts allocations from the start of the program."""


def empty_cache() -> None:
    """Does nothing: XLA keeps its reserved memory, and unreferenced arrays are freed at once."""


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
    """Sets the fraction of a GPU's memory that may be used: not supported after XLA has started.

    Raises:
        AssertionError: if there is no GPU.
        RuntimeError: always, if there is a GPU.
    """
    jax_device(device)
    raise RuntimeError(
        "set_per_process_memory_fraction: XLA has started. Set XLA_PYTHON_CLIENT_MEM_FRACTION="
        f"{fraction} in the environment before the program begins."
    )
