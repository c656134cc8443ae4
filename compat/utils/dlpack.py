"""``torch.utils.dlpack``: zero-copy exchange of tensors between libraries."""

from compat._operators.create.dlpack import DLDeviceType
from compat._operators.create.from_buffer import from_dlpack, to_dlpack

__all__ = ["DLDeviceType", "from_dlpack", "to_dlpack"]
