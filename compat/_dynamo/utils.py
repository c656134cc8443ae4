"""``torch._dynamo.utils``: queries of packages about compilation."""

from __future__ import annotations

import functools
import warnings

__all__ = ["is_compile_supported", "warn_once"]


def is_compile_supported(device_type: str) -> bool:
    """Whether ``torch.compile`` supports a device type: the CPU, by XLA."""
    return device_type == "cpu"


@functools.lru_cache(None)
def warn_once(msg: str, stacklevel: int = 1) -> None:
    """A warning that is shown once for each text."""
    warnings.warn(msg, stacklevel=stacklevel + 1)
