"""``torch._C``: the few of its names that programs use."""  # noqa: N999 (PyTorch's name)

from compat.registry import names_of
from compat.torch_function import (
    DisableTorchFunction,
    DisableTorchFunctionSubclass,
    _disabled_torch_function_impl,
    _is_torch_function_all_disabled,
    _is_torch_function_enabled,
    _len_torch_function_stack,
)

__all__ = [
    "DisableTorchFunction",
    "DisableTorchFunctionSubclass",
    "_disabled_torch_function_impl",
    "_is_torch_function_all_disabled",
    "_is_torch_function_enabled",
    "_len_torch_function_stack",
]

globals().update(names_of("_C"))
