"""``torch.distributed.optim``: optimizers of parameters in several workers."""

from __future__ import annotations

from compat.distributed.optim.optimizer import DistributedOptimizer

__all__ = ["DistributedOptimizer"]
