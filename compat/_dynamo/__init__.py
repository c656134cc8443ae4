"""``torch._dynamo``: what scripts touch of it."""

from compat._dynamo import config
from compat.compiler import allow_in_graph, disable, reset

__all__ = ["allow_in_graph", "config", "disable", "reset"]
