"""``torch.utils._foreach_utils``: checks for multi-tensor implementations of optimizers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compat._core.types.device import device as Device

__all__: list[str] = []


def _get_foreach_kernels_supported_devices() -> list[str]:
    """The types of devices with foreach kernels."""
    return ["cuda", "xpu", "mtia"]


def _get_fused_kernels_supported_devices() -> list[str]:
    """The types of devices with fused optimizer kernels."""
    return ["mps", "cuda", "xpu", "hpu", "cpu", "mtia"]


def _device_has_foreach_support(device: Device) -> bool:
    """Whether a device has foreach kernels."""
    return device.type in (*_get_foreach_kernels_supported_devices(), "cpu")


def _has_foreach_support(tensors: Sequence[Any], device: Device) -> bool:
    """Whether tensors are on devices with foreach kernels."""
    return _device_has_foreach_support(device)


def _group_tensors_by_device_and_dtype(
    tensorlistlist: Sequence[Sequence[Any]], with_indices: bool = False
) -> dict[tuple[Any, Any], tuple[list[list[Any]], list[int]]]:
    """Groups tensors by the device and dtype of those in the first list.

    Args:
        tensorlistlist: lists of the same length; all but the first may contain None.
        with_indices: whether to return indices.

    Returns:
        By device and dtype the parts of the lists, and indices or an empty list.

    Example:
        >>> from compat.utils._foreach_utils import _group_tensors_by_device_and_dtype
        >>> groups = _group_tensors_by_device_and_dtype([[torch.ones(1), torch.ones(1, dtype=torch.int64)]], True)
        >>> [(str(kind), indices) for (_, kind), (_, indices) in groups.items()]
        [('torch.float32', [0]), ('torch.int64', [1])]
    """
    found: dict[tuple[Any, Any], tuple[list[list[Any]], list[int]]] = {}
    for n, row in enumerate(zip(*tensorlistlist)):
        lists, indices = found.setdefault((row[0].device, row[0].dtype), ([[] for _ in tensorlistlist], []))
        for column, value in zip(lists, row):
            column.append(value)
        if with_indices:
            indices.append(n)
    return found
