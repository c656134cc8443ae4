"""``torch.nn.functional``: layers as functions.

The operations themselves are declared in ``compat._operators`` and found here under their public names.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from compat._core.tensor.registry import lookups as _lookups

_published, __dir__ = _lookups("nn.functional", globals())


def __getattr__(name: str) -> Any:
    if name == "grad":  # torch.nn.grad, which few programs need
        return import_module("compat.nn.grad")
    return _published(name)
