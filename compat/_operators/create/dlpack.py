"""DLPack capsules, by which libraries share memory; NumPy exports and imports them.

NumPy implements DLPack for its own dtypes, which do not include ``bfloat16``. Memory of that dtype is exported and
imported as ``uint16``, and the type code in the capsule's struct, as DLPack 1.0 defines it, is corrected here.
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

# The offset of the type code in a capsule's struct, by the name of the capsule; the codes.
_CODE_OFFSET = {"dltensor": 20, "dltensor_versioned": 52}
_UNSIGNED, _BFLOAT = 1, 4

_api = ctypes.pythonapi
_api.PyCapsule_GetName.restype = ctypes.c_char_p
_api.PyCapsule_GetName.argtypes = [ctypes.py_object]
_api.PyCapsule_GetPointer.restype = ctypes.c_void_p
_api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


def _type_code(capsule: Any) -> ctypes.c_uint8:
    """The type code in a capsule, which the caller may read or set."""
    name = _api.PyCapsule_GetName(capsule)
    address = _api.PyCapsule_GetPointer(capsule, name)
    return ctypes.c_uint8.from_address(address + _CODE_OFFSET[name.decode()])


def capsule_of(storage: UntypedStorage, layout: Layout, offset: int, max_version: Any) -> Any:
    """The capsule that exports a tensor's memory."""
    if layout.dtype is not dtype.bfloat16:
        return array_over(storage, layout, offset).__dlpack__(max_version=max_version)
    words = layout_of(layout.base, layout.size, layout.stride, offset, dtype.uint16)
    capsule = array_over(storage, words, offset).__dlpack__(max_version=max_version)
    _type_code(capsule).value = _BFLOAT
    return capsule


class _Exporter:
    """An object that exports a given capsule, as ``numpy.from_dlpack`` requires."""

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
        BufferError: for memory that cannot be shared.
    """
    capsule = _exported(source) if hasattr(source, "__dlpack__") else source
    name = "" if type(capsule).__name__ != "PyCapsule" else _api.PyCapsule_GetName(capsule).decode()
    if name not in _CODE_OFFSET:
        raise RuntimeError(
            "from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed only once, so you "
            "might have already constructed a tensor from it once."
        )
    code = _type_code(capsule)
    is_bfloat16 = code.value == _BFLOAT
    if is_bfloat16:
        code.value = _UNSIGNED
    array = np.from_dlpack(_Exporter(capsule))
    if name == "dltensor":
        # The legacy protocol has no read-only flag, and NumPy assumes read-only memory.
        array = writable(array)
    return (array.view(dtype.bfloat16.numpy), dtype.bfloat16) if is_bfloat16 else (array, dtype.from_numpy(array.dtype))


def _exported(source: Any) -> Any:
    kind, _ = source.__dlpack_device__()
    if kind != CPU:
        raise BufferError("a tensor can only share memory on the CPU, by DLPack")
    try:
        return source.__dlpack__(max_version=(1, 0))
    except TypeError:  # an exporter of the protocol without versions
        return source.__dlpack__()
