"""``torch._ops``: the classes of the objects in ``torch.ops``."""

from compat._core.dispatch.overloads import OpOverload, OpOverloadPacket, aten

__all__ = ["OpOverload", "OpOverloadPacket", "aten"]
