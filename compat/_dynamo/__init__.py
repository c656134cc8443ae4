"""``torch._dynamo``: those of its names that scripts use."""

from compat._dynamo.backends import explain
from compat._dynamo.backends.registry import list_backends, lookup_backend, register_backend
from compat._dynamo import config, eval_frame, exc, utils
from compat._dynamo.eval_frame import OptimizedModule
from compat.compiler import _mark, allow_in_graph, assume_constant_result, disable, is_compiling, reset

nonstrict_trace = allow_in_graph
reset_code_caches = reset
mark_dynamic = maybe_mark_dynamic = mark_static = mark_static_address = mark_unbacked = _mark

__all__ = [
    "OptimizedModule", "allow_in_graph", "assume_constant_result", "config", "disable", "eval_frame", "exc", "explain",
    "is_compiling", "list_backends", "lookup_backend", "register_backend", "utils",
    "mark_dynamic", "mark_static", "mark_static_address", "mark_unbacked", "maybe_mark_dynamic",
    "nonstrict_trace", "reset",
    "reset_code_caches",
]  # fmt: skip
