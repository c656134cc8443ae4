"""A module in several processes, which cannot be started here."""

from __future__ import annotations

from typing import Any

from compat.nn.modules.module import Module

__all__ = ["DistributedDataParallel"]


class DistributedDataParallel(Module):
    """A module whose gradients are averaged over processes.

    Args:
        module: the module.
        options: how they are to be averaged.

    Raises:
        ValueError: as no processes have been set up.
    """

    def __init__(self, module: Module, *options: Any, **named: Any):
        super().__init__()
        raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")
