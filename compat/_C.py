"""``torch._C``: the few of its names that programs use."""  # noqa: N999 (PyTorch's name)

import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from compat._absent import answering
from compat._core.memory.storage import StorageBase
from compat._core.random.generator import Generator
from compat._core.tensor.registry import exposed, names_of
from compat._core.tensor.tensor import Tensor
from compat._core.tensor.torch_function import (
    DisableTorchFunction,
    DisableTorchFunctionSubclass,
    _disabled_torch_function_impl,
    _is_torch_function_enabled,
    local,
)
from compat._core.transforms import level_stack
from compat._core.transforms.grad_mode import is_grad_enabled
from compat._core.types.device import device
from compat._dispatch_keys import DispatchKey, DispatchKeySet
from compat._dispatch_keys import ExcludeDispatchKeyGuard as _ExcludeDispatchKeyGuard
from compat._functorch.vmap import _add_batch_dim, _remove_batch_dim
from compat._serialization.zip_reader import PyTorchFileReader
from compat._serialization.zip_writer import PyTorchFileWriter
from compat.func import debug_unwrap
from compat.jit import is_tracing
from compat.jit._graph import Graph, Node, Use, Value
from compat.nn.modules.utils import parse_to
from funcgrad.interpreters.batching import BatchTracer

__all__ = [
    "DisableTorchFunction",
    "DisableTorchFunctionSubclass",
    "DispatchKey",
    "DispatchKeySet",
    "Generator",
    "Graph",
    "Node",
    "PyTorchFileReader",
    "PyTorchFileWriter",
    "StorageBase",
    "Use",
    "Value",
    "_ExcludeDispatchKeyGuard",
    "_are_functorch_transforms_active",
    "_disabled_torch_function_impl",
    "_is_torch_function_all_disabled",
    "_is_torch_function_enabled",
    "_len_torch_function_stack",
    "is_grad_enabled",
]

globals().update(names_of("_C"))
_has_xpu = False
_get_privateuse1_backend_name = answering("_get_privateuse1_backend_name", lambda: "privateuseone", "there is no other")


def _is_tracing() -> bool:
    """Whether ``torch.jit._get_trace_graph`` is recording a call."""
    return is_tracing()


def _are_functorch_transforms_active() -> bool:
    """Whether a transform of ``torch.func`` is running in this thread."""
    return bool(level_stack.state.levels)


def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
    """The device, dtype, ``non_blocking`` and memory format in the arguments of ``to``."""
    said = parse_to(args, kwargs)
    return said.device, said.dtype, said.non_blocking, said.memory_format


#: The class of the class of tensors.
_TensorMeta = type(Tensor)

#: Its submodules are created here: they are not files.
__path__: list[str] = []


def _submodule(name: str) -> ModuleType:
    """An importable module with a given name."""
    made = ModuleType(f"torch._C.{name}")
    made.__spec__ = ModuleSpec(f"compat._C.{name}", None)
    sys.modules[f"compat._C.{name}"] = made
    return made


_nn = _submodule("_nn")
vars(_nn).update({name: exposed(f, "_C._nn", name) for name, f in names_of("_C._nn").items()}, _parse_to=_parse_to)


def _is_batchedtensor(tensor: Tensor) -> bool:
    """Whether the innermost transform around a tensor is ``vmap``."""
    return isinstance(tensor._storage_.buffer, BatchTracer)


def _get_unwrapped(tensor: Tensor) -> Tensor:
    """The value that the innermost transform around a tensor wraps."""
    return debug_unwrap(tensor, recurse=False)


_functorch = _submodule("_functorch")
vars(_functorch).update(
    is_batchedtensor=_is_batchedtensor, get_unwrapped=_get_unwrapped,
    _add_batch_dim=_add_batch_dim, _remove_batch_dim=_remove_batch_dim,
)  # fmt: skip


def _get_accelerator(check: bool | None = None) -> Any:
    """The accelerator; the CPU, as there is none."""
    return device("cpu")


def _get_default_device() -> str:
    """The type of the device on which tensors are made."""
    return str(device("cpu").type)


def _is_alias_of(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors share memory."""
    return a._storage_ is b._storage_


def _is_torch_function_all_disabled() -> bool:
    """Whether ``__torch_function__`` of types and modes is disabled."""
    return local.none


def _len_torch_function_stack() -> int:
    """The number of entered modes."""
    return len(local.modes)


def _is_torch_function_mode_enabled() -> bool:
    """Whether a ``__torch_function__`` mode is active in this thread."""
    return _is_torch_function_enabled() and _len_torch_function_stack() > 0


for _name in (
    "_jit_set_profiling_executor", "_jit_set_profiling_mode", "_jit_override_can_fuse_on_cpu",
    "_jit_override_can_fuse_on_gpu", "_jit_set_texpr_fuser_enabled", "_jit_set_nvfuser_enabled",
    "_jit_set_nvfuser_guard_mode", "_jit_can_fuse_on_cpu", "_jit_can_fuse_on_gpu", "_jit_texpr_fuser_enabled",
):  # fmt: skip
    globals()[_name] = answering(_name, lambda: False, "TorchScript runs as Python, and nothing fuses it")
