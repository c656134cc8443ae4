"""The deprecated name of ``torch.distributed.device_mesh``."""

from compat.distributed.device_mesh import DeviceMesh, init_device_mesh

__all__ = ["DeviceMesh", "init_device_mesh"]
