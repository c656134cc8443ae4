"""``torch._C``: the few of its names that programs use."""  # noqa: N999 (PyTorch's name)

from types import ModuleType
from typing import Any

from compat._core.random.generator import Generator
from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor
from compat._core.tensor.torch_function import (
    DisableTorchFunction,
    DisableTorchFunctionSubclass,
    _disabled_torch_function_impl,
    _is_torch_function_all_disabled,
    _is_torch_function_enabled,
    _len_torch_function_stack,
)
from compat._core.transforms import level_stack
from compat._core.transforms.grad_mode import is_grad_enabled
from compat.nn.modules.utils import parse_to

__all__ = [
    "DisableTorchFunction",
    "DisableTorchFunctionSubclass",
    "Generator",
    "_are_functorch_transforms_active",
    "_disabled_torch_function_impl",
    "_is_torch_function_all_disabled",
    "_is_torch_function_enabled",
    "_len_torch_function_stack",
    "is_grad_enabled",
]

globals().update(names_of("_C"))


def _are_functorch_transforms_active() -> bool:
    """Whether a transform of ``torch.func`` is running in this thread."""
    return bool(level_stack.state.levels)


def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
    """The device, the dtype, whether to wait, and the memory format that arguments of ``to`` say."""
    said = parse_to(args, kwargs)
    return said.device, said.dtype, said.non_blocking, said.memory_format


#: The class of the class of tensors.
_TensorMeta = type(Tensor)

_nn = ModuleType("torch._C._nn")
vars(_nn).update(names_of("_C._nn"), _parse_to=_parse_to)
