"""Memory lent between libraries: DLPack's capsules, by way of NumPy's.

NumPy speaks the protocol for every dtype that it has. ``bfloat16`` it has not: such memory travels as ``uint16``, and
the type is put right in the capsule, whose first fields are read here as DLPack 1.0 lays them out.
"""

from __future__ import annotations

import ctypes
from enum import IntEnum
from typing import Any

import numpy as np

from compat._core.memory.numpy_storage import array_over, writable
from compat._core.memory.storage import UntypedStorage
from compat._core.memory.strides import Layout, layout_of
from compat._core.types import dtype
from compat._core.types.dtype import dtype as Dtype

#: Kinds of devices, by DLPack's numbers.
DLDeviceType = IntEnum(
    "DLDeviceType",
    {
        "kDLCPU": 1, "kDLCUDA": 2, "kDLCUDAHost": 3, "kDLOpenCL": 4, "kDLVulkan": 7, "kDLMetal": 8, "kDLVPI": 9,
        "kDLROCM": 10, "kDLROCMHost": 11, "kDLExtDev": 12, "kDLCUDAManaged": 13, "kDLOneAPI": 14, "kDLWebGPU": 15,
        "kDLHexagon": 16, "kDLMAIA": 17,
    },
)  # fmt: skip
DLDeviceType.__module__ = "compat.utils.dlpack"
CPU = DLDeviceType(1)

# The offset of the type code in a capsule's struct, and the codes.
_CODE_AT = {"dltensor": 20, "dltensor_versioned": 52}
_UNSIGNED, _BFLOAT = 1, 4

_api = ctypes.pythonapi
_api.PyCapsule_GetName.restype = ctypes.c_char_p
_api.PyCapsule_GetName.argtypes = [ctypes.py_object]
_api.PyCapsule_GetPointer.restype = ctypes.c_void_p
_api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


def _type_code(capsule: Any) -> ctypes.c_uint8:
    """The code of the type in a capsule, to be read or set."""
    name = _api.PyCapsule_GetName(capsule)
    address = _api.PyCapsule_GetPointer(capsule, name)
    return ctypes.c_uint8.from_address(address + _CODE_AT[name.decode()])


def capsule_of(storage: UntypedStorage, layout: Layout, offset: int, max_version: Any) -> Any:
    """The capsule that lends a tensor's memory."""
    if layout.dtype is not dtype.bfloat16:
        return array_over(storage, layout, offset).__dlpack__(max_version=max_version)
    words = layout_of(layout.base, layout.size, layout.stride, offset, dtype.uint16)
    capsule = array_over(storage, words, offset).__dlpack__(max_version=max_version)
    _type_code(capsule).value = _BFLOAT
    return capsule


class _Lent:
    """A capsule in the form that NumPy takes."""

    def __init__(self, capsule: Any):
        self.capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return int(CPU), 0


def array_from(source: Any) -> tuple[np.ndarray, Dtype]:
    """The array over the memory that an object or a capsule exports, and its dtype.

    Raises:
        RuntimeError: for a capsule that was used before.
        BufferError: where the memory cannot be lent.
    """
    capsule = _ask(source) if hasattr(source, "__dlpack__") else source
    name = "" if type(capsule).__name__ != "PyCapsule" else _api.PyCapsule_GetName(capsule).decode()
    if name not in _CODE_AT:
        raise RuntimeError(
            "from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed only once, so you "
            "might have already constructed a tensor from it once."
        )
    code = _type_code(capsule)
    narrow = code.value == _BFLOAT
    if narrow:
        code.value = _UNSIGNED
    array = np.from_dlpack(_Lent(capsule))
    if name == "dltensor":
        # The legacy protocol has no read-only flag, and NumPy assumes read-only memory.
        array = writable(array)
    return (array.view(dtype.bfloat16.numpy), dtype.bfloat16) if narrow else (array, dtype.from_numpy(array.dtype))


def _ask(source: Any) -> Any:
    kind, _ = source.__dlpack_device__()
    if kind != CPU:
        raise BufferError("memory on another device than the CPU cannot be lent to a tensor")
    try:
        return source.__dlpack__(max_version=(1, 0))
    except TypeError:  # an exporter older than versions
        return source.__dlpack__()
