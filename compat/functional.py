"""``torch.functional``: the operations that PyTorch implements in Python, under their second address."""

from __future__ import annotations

from typing import Any

from compat._core.tensor.namespace import torch
from compat._core.types.errors import no_attribute

_NAMES = (
    "atleast_1d", "atleast_2d", "atleast_3d", "block_diag", "broadcast_shapes", "broadcast_tensors", "cartesian_prod",
    "cdist", "chain_matmul", "einsum", "istft", "lu", "meshgrid", "norm", "pca_lowrank", "split", "stft",
    "svd_lowrank", "tensordot", "unique", "unique_consecutive", "unravel_index",
)  # fmt: skip
__all__ = list(_NAMES)


def __getattr__(name: str) -> Any:
    # Looked up at each access: a dispatch mode replaces an operation's function.
    if name not in _NAMES:
        raise no_attribute(__name__, name)
    return getattr(torch, name)
