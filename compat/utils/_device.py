"""``torch.utils._device``: tensor factories, and contexts that set their device."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from compat._core.tensor.registry import names_of
from compat._core.types.device import device as Device
from compat.utils._contextlib import context_decorator

__all__ = ["DeviceContext", "device_decorator", "set_device"]

#: Factories with an argument ``device``, by module.
_CONSTRUCTORS = {
    "torch": (
        "arange as_tensor asarray bartlett_window blackman_window empty empty_permuted empty_strided eye full "
        "hamming_window hann_window kaiser_window linspace logspace ones rand randint randn randperm range "
        "scalar_tensor sparse_bsc_tensor sparse_bsr_tensor sparse_compressed_tensor sparse_coo_tensor "
        "sparse_csc_tensor sparse_csr_tensor tensor tril_indices triu_indices zeros"
    ),
    "fft": "fftfreq rfftfreq",
}  # fmt: skip


@functools.cache
def _device_constructors() -> frozenset[Callable[..., Any]]:
    """The factories that use the default device.

    Example:
        >>> torch.zeros in torch.utils._device._device_constructors()
        True
    """
    return frozenset(names_of(module)[name] for module, names in _CONSTRUCTORS.items() for name in names.split())


class DeviceContext:
    """A context in which tensors are created on a device, like ``with torch.device(...)``.

    Example:
        >>> from compat.utils._device import DeviceContext
        >>> with DeviceContext("meta"):
        ...     torch.zeros(2).device
        device(type='meta')
    """

    def __init__(self, device: Any):
        self.device = Device(device)

    def __enter__(self) -> None:
        self.device.__enter__()

    def __exit__(self, *error: object) -> None:
        self.device.__exit__(*error)


def device_decorator(device: Any, func: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps a function, so that it creates tensors on a device."""
    made: Callable[..., Any] = context_decorator(lambda: DeviceContext(device), func)
    return made


def set_device(device: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """``device_decorator`` as a decorator.

    Example:
        >>> from compat.utils._device import set_device
        >>> set_device("meta")(lambda: torch.ones(1))().device
        device(type='meta')
    """
    return functools.partial(device_decorator, Device(device))
