"""Which GPUs there are, and which one is current."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from compat._core.types.device import accelerators, available, current_index, no_cuda, set_current
from compat._core.types.device import device as _Device
from funcgrad import runtime


def is_available() -> bool:
    """Whether JAX has a GPU here. Asking starts no runtime of JAX's where no plugin for GPUs is installed."""
    return bool(accelerators("cuda"))


def is_initialized() -> bool:
    """Whether GPUs are in use: JAX takes all there are."""
    return is_available()


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether GPUs compute in bfloat16: XLA does on all of them, with float32's units where there are no others."""
    return is_available()


def device_count() -> int:
    """How many GPUs there are."""
    return len(accelerators("cuda"))


def check_available() -> None:
    """Whether there is a GPU.

    Raises:
        AssertionError: if there is none; the message says what to install.
    """
    if not is_available():
        raise no_cuda()


def current_device() -> int:
    """The number of the current GPU.

    Raises:
        AssertionError: if there is none.
    """
    check_available()
    return current_index("cuda")


def index_of(device: Any) -> int:
    """The number of the GPU that ``device`` names; the current one where it names none.

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
    """The device of JAX's that a GPU is.

    Raises:
        AssertionError: if there is none.
        ValueError: for a number that none has.
    """
    check_available()
    found = available(_Device("cuda", index_of(device)))
    return accelerators("cuda")[found.index or 0]


def set_device(device: Any) -> None:
    """Makes a GPU the current one; a negative number ignored.

    Raises:
        ValueError: for a device of another type, and for a number that no GPU has.
        AssertionError: where there is none.
    """
    index = index_of(device)
    if index >= 0:
        jax_device(index)
        set_current("cuda", index)


class device(AbstractContextManager):
    """A ``with`` block in which a GPU is the current one.

    Args:
        device: which; negative for none.

    Raises:
        RuntimeError: at its begin, where there is no GPU.
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
    """What is known of a GPU.

    Attributes:
        name: what it is called.
        major, minor: its compute capability; zeros where JAX does not know it.
        total_memory: the bytes that JAX's runtime may use of it, by default three quarters of what it has;
            zero where it does not say.
        multi_processor_count: how many multiprocessors it has; zero where JAX does not know it.
    """

    name: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int


def get_device_name(device: Any = None) -> str:
    """What a GPU is called.

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
    """What is known of a GPU.

    Raises:
        AssertionError: if there is none.
    """
    found = jax_device(device)
    room, cores = runtime.memory_stats(found).get("bytes_limit", 0), int(getattr(found, "core_count", 0) or 0)
    return _CudaDeviceProperties(found.device_kind, *get_device_capability(device), room, cores)


def get_arch_list() -> list[str]:
    """The kinds of GPUs that there is code for: XLA compiles for those that are there."""
    return sorted({"sm_{}{}".format(*get_device_capability(i)) for i in range(device_count())})


def get_gencode_flags() -> str:
    """The flags of a compiler for these kinds."""
    kinds = [name.removeprefix("sm_") for name in get_arch_list()]
    return " ".join(f"-gencode compute=compute_{kind},code=sm_{kind}" for kind in kinds)


def can_device_access_peer(device: Any, peer_device: Any) -> bool:
    """Whether a GPU reads another one's memory: JAX copies between any two."""
    return jax_device(device) is not jax_device(peer_device)
