"""GPUs and the current GPU."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from compat._core.types.device import accelerators, available, current_index, no_cuda, set_current
from compat._core.types.device import device as _Device
from funcgrad import runtime


def is_available() -> bool:
    """Whether JAX has a GPU. Without an installed GPU plugin this does not initialize JAX's backends."""
    return bool(accelerators("cuda"))


def is_initialized() -> bool:
    """Whether GPUs are in use: JAX initializes all of them."""
    return is_available()


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether GPUs support bfloat16: XLA does on all of them, by float32 if necessary."""
    return is_available()


def device_count() -> int:
    """The number of GPUs."""
    return len(accelerators("cuda"))


def check_available() -> None:
    """Checks that there is a GPU.

    Raises:
        AssertionError: otherwise; the message says what to install.
    """
    if not is_available():
        raise no_cuda()


def current_device() -> int:
    """The index of the current GPU.

    Raises:
        AssertionError: if there is none.
    """
    check_available()
    return current_index("cuda")


def index_of(device: Any) -> int:
    """The index of the GPU ``device``; by default the current one.

    Raises:
        ValueError: for a device of another type.
    """
    if isinstance(device, int):
        return device
    if device is None:
        return current_index("cuda")
    found = _Device(device)
    if found.type != "cuda":
        raise ValueError(f"Expected a cuda device, but got: {device}")
    return current_index("cuda") if found.index is None else found.index


def jax_device(device: Any) -> Any:
    """The JAX device of a GPU.

    Raises:
        AssertionError: if there is none.
        ValueError: for an index out of range.
    """
    check_available()
    found = available(_Device("cuda", index_of(device)))
    return accelerators("cuda")[found.index or 0]


def set_device(device: Any) -> None:
    """Sets the current GPU; a negative index is ignored.

    Raises:
        ValueError: for a device of another type, and an index out of range.
        AssertionError: if there is no GPU.
    """
    index = index_of(device)
    if index >= 0:
        jax_device(index)
        set_current("cuda", index)


class device(AbstractContextManager):
    """A context manager that sets the current GPU.

    Args:
        device: the GPU; a negative index is ignored.

    Raises:
        RuntimeError: on entry, if there is no GPU.
    """

    __module__ = "compat.cuda"

    def __init__(self, device: Any):
        self.idx = index_of(device)
        self.prev_idx = -1

    def __enter__(self) -> None:
        if self.idx >= 0:
            if not is_available():
                raise RuntimeError("PyTorch was compiled without CUDA support")
            self.prev_idx = current_index("cuda")
            set_device(self.idx)

    def __exit__(self, *exc: object) -> None:
        if self.prev_idx >= 0:
            set_current("cuda", self.prev_idx)


class _CudaDeviceProperties(NamedTuple):
    """Properties of a GPU.

    Attributes:
        name: the device's name.
        major, minor: its compute capability; zeros if JAX does not report it.
        total_memory: the bytes that JAX may use, by default three quarters of its memory; zero if unknown.
        multi_processor_count: the number of multiprocessors; zero if unknown.
    """

    name: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int


def get_device_name(device: Any = None) -> str:
    """The name of a GPU.

    Raises:
        AssertionError: if there is none.
    """
    return str(jax_device(device).device_kind)


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """The compute capability of a GPU, (major, minor).

    Raises:
        AssertionError: if there is none.
    """
    major, _, minor = str(getattr(jax_device(device), "compute_capability", "0.0")).partition(".")
    return int(major), int(minor or 0)


def get_device_properties(device: Any = None) -> _CudaDeviceProperties:
    """The properties of a GPU.

    Raises:
        AssertionError: if there is none.
    """
    found = jax_device(device)
    room, cores = runtime.memory_stats(found).get("bytes_limit", 0), int(getattr(found, "core_count", 0) or 0)
    return _CudaDeviceProperties(found.device_kind, *get_device_capability(device), room, cores)


def get_arch_list() -> list[str]:
    """The architectures that code is compiled for: those of the GPUs present."""
    return sorted({"sm_{}{}".format(*get_device_capability(i)) for i in range(device_count())})


def get_gencode_flags() -> str:
    """The compiler flags for these architectures."""
    kinds = [name.removeprefix("sm_") for name in get_arch_list()]
    return " ".join(f"-gencode compute=compute_{kind},code=sm_{kind}" for kind in kinds)


def can_device_access_peer(device: Any, peer_device: Any) -> bool:
    """Whether a GPU can read another one's memory: JAX copies between any two."""
    return jax_device(device) is not jax_device(peer_device)
