"""``torch.nn.functional``: what layers compute, as functions.

The operations themselves are declared in ``compat.ops`` and found here under their public names.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from compat.registry import names_of


def __getattr__(name: str) -> Any:
    if name == "grad":  # torch.nn.grad, which few programs need
        return import_module("compat.nn.grad")
    found = names_of("nn.functional").get(name)
    if found is None:
        raise AttributeError(f"module 'torch.nn.functional' has no attribute '{name}'")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *names_of("nn.functional")})
