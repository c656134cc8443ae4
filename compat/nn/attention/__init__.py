"""``torch.nn.attention``: selecting the backend of attention."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import IntEnum

from compat._operators.nn.attention_backends import allowed

__all__ = ["SDPBackend", "WARN_FOR_UNFUSED_KERNELS", "sdpa_kernel"]

WARN_FOR_UNFUSED_KERNELS = False


class SDPBackend(IntEnum):
    """The backends of attention; a CPU has ``FLASH_ATTENTION`` and ``MATH``."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4

    def __str__(self) -> str:
        return f"SDPBackend.{self.name}"


_NAMES = {
    SDPBackend.CUDNN_ATTENTION: "cudnn",
    SDPBackend.FLASH_ATTENTION: "flash",
    SDPBackend.EFFICIENT_ATTENTION: "mem_efficient",
    SDPBackend.MATH: "math",
    SDPBackend.OVERRIDEABLE: "overrideable",
}


@contextmanager
def sdpa_kernel(backends: SDPBackend | list[SDPBackend], set_priority: bool = False) -> Iterator[dict]:
    """Context in which ``scaled_dot_product_attention`` uses only the given backends.

    Args:
        backends: a backend or a list of backends.
        set_priority: ignored: ``FLASH_ATTENTION`` is preferred wherever it is supported.

    Raises:
        AssertionError: for another type of ``backends``.

    Example:
        >>> q = torch.ones(1, 1, 2, 4, requires_grad=True)
        >>> with sdpa_kernel(SDPBackend.MATH):
        ...     torch.nn.functional.scaled_dot_product_attention(q, q, q).grad_fn.name()
        'UnsafeViewBackward0'
    """
    if not isinstance(backends, (list, SDPBackend)):
        raise AssertionError(
            "Backend must be an instance of SDPBackend or a list of SDPBackend instances, got "
            f"{type(backends).__name__}"
        )
    wanted: Iterable[SDPBackend] = [backends] if isinstance(backends, SDPBackend) else backends
    before = dict(allowed)
    allowed.update({name: backend in wanted for backend, name in _NAMES.items()})
    try:
        yield {}
    finally:
        allowed.update(before)


def _cur_sdpa_kernel_backends(with_priority: bool = False) -> list[SDPBackend]:
    """The allowed backends."""
    return [backend for backend, name in _NAMES.items() if allowed[name]]
