"""``torch.jit._trace``: the classes of traced modules, under the address that programs import them from."""

from compat.jit import TopLevelTracedModule, TracedModule, TracerWarning, is_tracing, trace, trace_module

__all__ = ["TopLevelTracedModule", "TracedModule", "TracerWarning", "is_tracing", "trace", "trace_module"]

#: The names of modules in a trace that PyTorch is recording; none, as a trace is the run of a Python function.
_trace_module_map = None
