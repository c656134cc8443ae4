"""``DataParallel``: calls of a module, which PyTorch splits over the GPUs of a process."""

from __future__ import annotations

from typing import Any

from compat.nn.modules.module import Module

__all__ = ["DataParallel", "data_parallel"]


class DataParallel(Module):
    """Calls a module, as PyTorch's ``DataParallel`` does without GPUs.

    Args:
        module: the module to call.
        device_ids, output_device, dim: ignored.

    Attributes:
        module: the module, whose names in ``state_dict()`` have the prefix ``module.``.
        device_ids: an empty list.

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
    """Raises ``RuntimeError``: calls of a module on several GPUs are not supported."""
    raise RuntimeError("device type could not be determined")
