"""``torch.fft``: discrete Fourier transforms.

The operations themselves are declared in ``compat.ops`` and found here under their public names.
"""

from __future__ import annotations

from typing import Any

from compat.registry import names_of


def __getattr__(name: str) -> Any:
    found = names_of("fft").get(name)
    if found is None:
        raise AttributeError(f"module 'torch.fft' has no attribute '{name}'")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *names_of("fft")})
