"""Registers compat's tensors with einops, for programs that do not install compat as ``torch``.

Importing this module registers a backend, einops' for PyTorch. If compat is installed as ``torch``, einops uses that
backend without it. Layers (``einops.layers.torch``) import ``torch``, so they need compat to be installed.

Example:
    >>> import compat.utils.einops
    >>> from einops import rearrange
    >>> rearrange(torch.arange(6), "(rows columns) -> columns rows", rows=2)
    tensor([[0, 3],
            [1, 4],
            [2, 5]])
"""

from __future__ import annotations

import sys

from einops._backends import TorchBackend

__all__ = ["CompatBackend"]


class CompatBackend(TorchBackend):
    """The einops backend for ``compat``."""

    framework_name = "compat"

    def __init__(self) -> None:
        self.torch = sys.modules["compat"]
