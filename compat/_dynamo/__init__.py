"""``torch._dynamo``: what scripts touch of it."""

from compat._dynamo import config, eval_frame
from compat._dynamo.eval_frame import OptimizedModule
from compat.compiler import _mark, allow_in_graph, assume_constant_result, disable, is_compiling, reset

mark_dynamic = maybe_mark_dynamic = mark_static = mark_static_address = mark_unbacked = _mark

__all__ = [
    "OptimizedModule", "allow_in_graph", "assume_constant_result", "config", "disable", "eval_frame", "is_compiling",
    "mark_dynamic", "mark_static", "mark_static_address", "mark_unbacked", "maybe_mark_dynamic", "reset",
]  # fmt: skip
