"""``torch.overrides``: for types and functions that take part in ``__torch_function__``."""

from compat.torch_function import (
    BaseTorchFunctionMode,
    TorchFunctionMode,
    enable,
    enable_reentrant_dispatch,
    get_default_nowrap_functions,
    get_overridable_functions,
    handle_torch_function,
    has_torch_function,
    has_torch_function_unary,
    has_torch_function_variadic,
    is_tensor_like,
    is_tensor_method_or_property,
    resolve_name,
    wrap_torch_function,
)

__all__ = [
    "BaseTorchFunctionMode",
    "TorchFunctionMode",
    "enable_reentrant_dispatch",
    "get_default_nowrap_functions",
    "get_overridable_functions",
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "resolve_name",
    "wrap_torch_function",
]

# Who imports this has types that are no tensors, and whose definition nobody notices.
enable()
