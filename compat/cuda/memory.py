"""``torch.cuda.memory``: how full GPUs are, as JAX's runtime counts it.

XLA takes most of a GPU's memory when it starts, and gives parts of it to arrays. "Allocated" is what arrays have, and
"reserved" what XLA has taken. What operations that are only recorded will need is not in use yet.
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
    """A GPU has no memory left."""

    __module__ = "compat"


def _counted(device: Any) -> dict[str, int]:
    """What is known of a GPU's memory; nothing where there is none."""
    if not is_available():
        return {}
    runtime.flush_all()
    return runtime.memory_stats(jax_device(device))


def memory_allocated(device: Any = None) -> int:
    """The bytes that arrays take on a GPU; 0 where there is none."""
    return _counted(device).get("bytes_in_use", 0)


def max_memory_allocated(device: Any = None) -> int:
    """The most bytes that arrays have taken on a GPU since the program began; 0 where there is none."""
    found = _counted(device)
    return found.get("peak_bytes_in_use", found.get("bytes_in_use", 0))


def memory_reserved(device: Any = None) -> int:
    """The bytes that XLA has taken of a GPU; 0 where there is none."""
    found = _counted(device)
    return found.get("pool_bytes", found.get("bytes_reserved", 0)) or found.get("bytes_in_use", 0)


def max_memory_reserved(device: Any = None) -> int:
    """The most bytes that XLA has taken of a GPU; 0 where there is none."""
    found = _counted(device)
    return found.get("peak_pool_bytes", 0) or max(memory_reserved(device), max_memory_allocated(device))


def memory_cached(device: Any = None) -> int:
    """The former name of ``memory_reserved``."""
    return memory_reserved(device)


def max_memory_cached(device: Any = None) -> int:
    """The former name of ``max_memory_reserved``."""
    return max_memory_reserved(device)


def memory_stats(device: Any = None) -> OrderedDict[str, int]:
    """What is known of a GPU's memory, under PyTorch's names; empty where there is none."""
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
    """The bytes that are free of those that XLA may use on a GPU, and how many these are.

    Raises:
        AssertionError: if there is no GPU.
        RuntimeError: if its runtime does not say.
    """
    place = jax_device(device)
    runtime.flush_all()
    found = runtime.memory_stats(place)
    if "bytes_limit" not in found:
        raise RuntimeError(f"mem_get_info: the runtime of {place} does not say how much memory it may use")
    return found["bytes_limit"] - found["bytes_in_use"], found["bytes_limit"]


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """What ``memory_stats`` says as a table."""
    rows = memory_stats(device).items()
    return "\n".join(f"{name:32}{value:>20,}" for name, value in rows)


def reset_peak_memory_stats(device: Any = None) -> None:
    """Forgets the most bytes that were taken: XLA cannot, which is said in a warning where there is a GPU."""
    if is_available():
        Once.warn("XLA counts the peak of a GPU's memory from the begin of the program; it cannot be reset.")


reset_max_memory_allocated = reset_max_memory_cached = reset_peak_memory_stats


def reset_accumulated_memory_stats(device: Any = None) -> None:
    """Changes nothing: XLA counts allocations from the begin of the program."""


def empty_cache() -> None:
    """Changes nothing: XLA keeps what it has taken, and arrays without references are freed at once."""


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
    """Says how much of a GPU's memory may be used, which is said before XLA starts.

    Raises:
        AssertionError: if there is no GPU.
        RuntimeError: always where there is one.
    """
    jax_device(device)
    raise RuntimeError(
        "set_per_process_memory_fraction: XLA has started. Set XLA_PYTHON_CLIENT_MEM_FRACTION="
        f"{fraction} in the environment before the program begins."
    )
