"""``torch.utils.dlpack``: memory lent between libraries."""

from compat.dlpack import DLDeviceType
from compat.ops.from_memory import from_dlpack, to_dlpack

__all__ = ["DLDeviceType", "from_dlpack", "to_dlpack"]
