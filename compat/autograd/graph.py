"""``torch.autograd.graph``: nodes and edges, and hooks on them and on saved tensors."""

from compat._core.autograd.graph import (
    GradientEdge,
    Node,
    _AllowMutationOnSavedContext,
    _MultiHandle,
    allow_mutation_on_saved_tensors,
    disable_saved_tensors_hooks,
    get_gradient_edge,
    increment_version,
    region_activation_memory_budget,
    register_multi_grad_hook,
    save_on_cpu,
    saved_tensors_hooks,
    set_override_stale_capture_stream,
    set_warn_on_accumulate_grad_stream_mismatch,
)

__all__ = [
    "GradientEdge",
    "Node",
    "_AllowMutationOnSavedContext",
    "_MultiHandle",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "region_activation_memory_budget",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
    "set_override_stale_capture_stream",
    "set_warn_on_accumulate_grad_stream_mismatch",
]
