"""``torch._ops``: the classes of the objects in ``torch.ops``."""

from compat._core.dispatch.overloads import OpOverload, OpOverloadPacket, aten

__all__ = ["HigherOrderOperator", "OpOverload", "OpOverloadPacket", "aten"]


class HigherOrderOperator:
    """An operation that takes functions, for ``isinstance`` checks: ``torch.cond`` and others are plain functions."""
