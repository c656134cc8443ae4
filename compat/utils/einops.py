"""einops on compat's tensors, without compat being installed as ``torch``: importing this module is enough.

einops finds the library that a tensor is of among the backends it knows. Where compat is installed as ``torch``, that
is its own for PyTorch; this registers the same one for ``compat``. Layers (``einops.layers.torch``) import ``torch``
themselves, and need it to be installed.

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
    """The backend of einops for ``compat``."""

    framework_name = "compat"

    def __init__(self) -> None:
        self.torch = sys.modules["compat"]
