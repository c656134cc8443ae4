"""A PyTorch on top of funcgrad: ``import compat as torch``.

Tensors, views and in-place operations, the backward graph with PyTorch's nodes, ``nn``, ``optim``; computed by XLA.
"""

from math import e, inf, nan, pi
from typing import Any as _Any

from funcgrad.core import collector as _collector
from funcgrad.runtime import prefer_cpu as _prefer_cpu
from compat import autograd, multiprocessing, random, runtime, types
from compat._core.types import dtype as _dtypes
from compat._absent import missing as _missing
from compat import _module_errors as _naming
from compat._core.tensor import array_type as _array_type
from compat._core.dispatch import dispatcher as _dispatcher  # before what it sees is published
from compat import _threads
from compat._core.config import flags as _switches, precision as _precision
from compat.autograd.anomaly_mode import is_anomaly_check_nan_enabled, is_anomaly_enabled, set_anomaly_enabled
from compat._core.types.device import device
from compat._core.types.dtype import dtype, finfo, get_default_dtype, iinfo, set_default_dtype
from compat._core.types.type_promotion import can_cast, promote_types
from compat._core.types.errors import no_attribute as _no_attribute
from compat._core.types.memory_format import (
    LAYOUTS as _LAYOUTS,
    channels_last,
    channels_last_3d,
    contiguous_format,
    layout,
    memory_format,
    preserve_format,
)
from compat._core.transforms.grad_mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from compat.install import install, uninstall
from compat._core.tensor.registry import exposed as _exposed, names_of as _names_of
from compat._core.types.size import Size
from compat.storage import UntypedStorage
from compat.torch_version import __version__
from compat._core.tensor.tensor import Tensor

_prefer_cpu()  # tensors are on the CPU by default

newaxis = None
legacy_contiguous_format = contiguous_format

# The public functions of the operators, and the dtypes and layouts under all their names.
globals().update(_dtypes.NAMES)
globals().update(_LAYOUTS)
globals().update(_names_of("torch").loaded())

# Rarely used modules are imported lazily, at the first access to them or to one of their names.
_MODULES = frozenset((
    "_C", "__config__", "_custom_ops", "__future__", "_decomp", "_dynamo", "_functorch", "_guards",
    "_higher_order_ops", "_inductor", "_tensor", "_tensor_str", "_utils", "accelerator", "amp", "backends",
    "compiler", "cpu", "cuda", "distributed", "distributions", "export", "fft", "func", "functional", "futures", "fx",
    "hub", "jit", "library", "linalg", "masked", "mps", "nested", "nn", "onnx", "ops", "optim", "overrides",
    "profiler", "quasirandom", "return_types", "serialization", "signal", "sparse", "special", "testing",
    "torch_version", "utils", "version", "xpu",
))  # fmt: skip
_LATER = {
    "DisableTorchFunction": "_core.tensor.torch_function",
    "DisableTorchFunctionSubclass": "_core.tensor.torch_function",
    "Event": "_streams",
    "Future": "futures",
    "GradScaler": "amp",
    "OutOfMemoryError": "cuda",
    "PyTorchFileReader": "_serialization.zip_reader",
    "PyTorchFileWriter": "_serialization.zip_writer",
    "ScriptFunction": "jit",
    "ScriptModule": "jit",
    "Stream": "_streams",
    "Storage": "_core.memory.typed_storage",
    "StorageBase": "_core.memory.storage",
    "autocast": "amp",
    "clear_autocast_cache": "amp.autocast_mode",
    "cond": "_higher_order_ops",
    "get_autocast_dtype": "amp.autocast_mode",
    "get_device_module": "accelerator",
    "is_autocast_cache_enabled": "amp.autocast_mode",
    "autocast_decrement_nesting": "amp.autocast_mode",
    "autocast_increment_nesting": "amp.autocast_mode",
    "get_autocast_cpu_dtype": "amp.autocast_mode",
    "get_autocast_gpu_dtype": "amp.autocast_mode",
    "is_autocast_cpu_enabled": "amp.autocast_mode",
    "set_autocast_cache_enabled": "amp.autocast_mode",
    "set_autocast_dtype": "amp.autocast_mode",
    "set_autocast_enabled": "amp.autocast_mode",
    "is_autocast_enabled": "amp.autocast_mode",
    "torch": "_core.tensor.namespace",
    "while_loop": "_higher_order_ops",
}
_LATER |= dict.fromkeys(("SymBool", "SymFloat", "SymInt", "sym_float", "sym_int", "sym_ite", "sym_max"), "_symint")
_LATER |= dict.fromkeys(("sym_min", "sym_not", "sym_sqrt", "sym_sum"), "_symint")


def __getattr__(name: str) -> _Any:
    if name == "__all__":
        return [n for n in __dir__() if not n.startswith("_")]
    if name in _names_of("torch"):
        globals()[name] = found = _exposed(_names_of("torch")[name], "torch", name)
        return found
    if name not in _MODULES and name not in _LATER:
        stands = _missing("", name)
        if stands is None:
            raise _no_attribute("compat", name)
        return globals().setdefault(name, stands)
    found = _collector.import_lasting(f"compat.{_LATER.get(name, name)}")
    _naming.name_modules()
    return getattr(found, name) if name in _LATER else found


_naming.name_modules()
_naming.seal_attributes()
_collector.imported()


# The mechanism is not an attribute: ``torch`` is this module. Imports find it all the same.
_MECHANISM = frozenset(("_absent", "_addresses", "_compile", "_core", "_module_errors", "_operators", "_serialization"))
for _name in _MECHANISM:
    globals().pop(_name, None)


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES, *_LATER, *_names_of("torch").names()} - _MECHANISM)
