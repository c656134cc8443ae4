"""``torch._dynamo``: what scripts touch of it."""

from compat._dynamo import config
from compat.compiler import disable, reset

__all__ = ["config", "disable", "reset"]
