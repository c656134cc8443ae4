"""``torch._C``: the few of its names that programs use."""  # noqa: N999 (PyTorch's name)

from compat.registry import names_of
from compat.torch_function import DisableTorchFunction, DisableTorchFunctionSubclass, _disabled_torch_function_impl

__all__ = ["DisableTorchFunction", "DisableTorchFunctionSubclass", "_disabled_torch_function_impl"]

globals().update(names_of("_C"))
