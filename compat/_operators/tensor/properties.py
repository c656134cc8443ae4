"""Properties of tensors: dtype, device, layout, and predicates about them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compat._core.operators.composite import composite
from compat._core.tensor.registry import publish
from compat._core.tensor.tensor import Tensor
from compat._core.types.device import CPU, META
from compat._core.types.device import device as Device
from compat._core.types.dtype import dtype as Dtype
from compat._core.types.memory_format import strided


def _attribute(name: str) -> Callable[[Callable[[Tensor], Any]], Any]:
    """Makes a function a read-only attribute of tensors."""
    return lambda get: publish(property(get), f"Tensor.{name}")


@_attribute("dtype")
def dtype(self: Tensor) -> Dtype:
    """The dtype of its elements, such as ``torch.float32``."""
    return self._layout_.dtype


@_attribute("device")
def device(self: Tensor) -> Device:
    """The device of its elements."""
    return self._layout_.base.device


@_attribute("layout")
def layout(self: Tensor) -> Any:
    """The memory layout: ``torch.strided``."""
    return strided


@_attribute("nbytes")
def nbytes(self: Tensor) -> int:
    """The size of its elements in bytes."""
    return self._layout_.numel * self._layout_.dtype.itemsize


@_attribute("is_cpu")
def is_cpu(self: Tensor) -> bool:
    """Whether it is on the CPU."""
    return self.device is CPU


@_attribute("is_meta")
def is_meta(self: Tensor) -> bool:
    """Whether it is a meta tensor, with a size and a dtype but no elements."""
    return self.device is META


@composite("get_device(Tensor self) -> int", names="Tensor.get_device", errors="own")
def get_device(self: Tensor) -> int:
    """The index of its device; -1 for the CPU."""
    index = self.device.index
    return -1 if index is None else index


@composite("is_floating_point(Tensor self) -> bool", names="Tensor.is_floating_point", errors="own")
def is_floating_point(self: Tensor) -> bool:
    """Whether its dtype is floating-point."""
    return self._layout_.dtype.is_floating_point


@composite("is_complex(Tensor self) -> bool", names="Tensor.is_complex", errors="own")
def is_complex(self: Tensor) -> bool:
    """Whether its dtype is complex."""
    return self._layout_.dtype.is_complex


@composite("is_signed(Tensor self) -> bool", names="Tensor.is_signed", errors="own")
def is_signed(self: Tensor) -> bool:
    """Whether its dtype is signed."""
    return self._layout_.dtype.is_signed


def _always_false(name: str, predicate: str) -> None:
    publish(property(lambda self: False, doc=f"Whether it {predicate}: always False."), f"Tensor.{name}")


@_attribute("is_cuda")
def is_cuda(self: Tensor) -> bool:
    """Whether it is on a GPU."""
    return self.device.type == "cuda"


@_attribute("is_xla")
def is_xla(self: Tensor) -> bool:
    """Whether it is on an ``xla`` accelerator."""
    return self.device.type == "xla"


for _name, _where in {
    "mps": "an Apple GPU", "xpu": "an Intel GPU", "ipu": "a Graphcore device", "maia": "a Maia device",
    "mtia": "an MTIA device", "vulkan": "a Vulkan device",
}.items():  # fmt: skip
    _always_false(f"is_{_name}", f"is on {_where}")
for _name, _predicate in {
    "is_sparse": "has the layout ``torch.sparse_coo``",
    "is_sparse_csr": "has the layout ``torch.sparse_csr``",
    "is_quantized": "is quantized",
    "is_mkldnn": "has oneDNN's memory layout",
    "is_nested": "is a nested tensor",
}.items():
    _always_false(_name, _predicate)
