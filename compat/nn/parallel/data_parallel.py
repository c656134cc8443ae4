"""``DataParallel``: a module on several devices of one process; without GPUs it calls the module."""

from __future__ import annotations

from typing import Any

from compat.nn.modules.module import Module

__all__ = ["DataParallel", "data_parallel"]


class DataParallel(Module):
    """Splits batches over GPUs; without any it calls the module.

    Args:
        module: the module to call.
        device_ids, output_device, dim: for GPUs.

    Attributes:
        module: the module; so the names in ``state_dict()`` begin with ``module.``.
        device_ids: the GPUs: none.

    Example:
        >>> net = torch.nn.DataParallel(torch.nn.Linear(2, 1))
        >>> list(net.state_dict())
        ['module.weight', 'module.bias']
    """

    def __init__(self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0):
        super().__init__()
        self.module = module
        self.device_ids: list[int] = []

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        return self.module(*inputs, **kwargs)


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Any = None,
    output_device: Any = None,
    dim: int = 0,
    module_kwargs: Any = None,
) -> Any:
    """Calls a module with parts of a batch on several GPUs.

    Raises:
        RuntimeError: always, as there are none.
    """
    raise RuntimeError("device type could not be determined")
