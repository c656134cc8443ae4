"""``torch.distributed.tensor``: tensors whose parts are in several processes; nothing here makes any."""

from __future__ import annotations

from compat._core.tensor.tensor import Tensor

__all__ = ["DTensor"]


class DTensor(Tensor):
    """The class of tensors in several processes, for programs that ask whether they have one."""
