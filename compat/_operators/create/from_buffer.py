"""Tensors over existing memory: NumPy arrays, DLPack, buffers."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from compat._core.memory.mmap_storage import storage_of_file
from compat._core.memory.numpy_storage import borrowed
from compat._core.memory.strides import layout_of
from compat._core.operators.composite import OPTIONS, composite
from compat._core.schema.parameter import MISSING
from compat._core.tensor.registry import function, not_overridable
from compat._core.tensor.tensor import Tensor, from_array, wrap
from compat._core.tensor.tracing import tensor_of
from compat._core.types import dtype as dtypes
from compat._core.types.device import CPU, available, place
from compat._core.types.dtype import dtype as Dtype
from compat._core.types.errors import warn
from compat._operators.arguments import missing
from compat._operators.create import dlpack
from compat._operators.create.factories import with_grad
from compat._operators.create.from_data import reject_negative_strides, tensor
from funcgrad.core.tracing import Tracer


@cache
def _warn_read_only(source: str, short: str, consequence: str) -> None:
    """Warns, once per process, that memory is not writable."""
    warn(
        f"The given {source} is not writable, and PyTorch does not support non-writable tensors. This means "
        f"{consequence}. You may want to copy the {short} to protect its data or make it writable before converting it "
        "to a tensor. This type of warning will be suppressed for the rest of this program."
    )


def over_array(array: np.ndarray) -> Tensor:
    """A tensor over the memory of an array.

    Raises:
        TypeError: for a dtype that tensors do not have.
        ValueError: for strides that tensors cannot have, and non-native byte order.
    """
    reject_negative_strides(array)
    if array.size and any(s % array.itemsize for s in array.strides):
        raise ValueError(
            "given numpy array strides not a multiple of the element byte size. Copy the numpy array to reallocate "
            "the memory."
        )
    if not array.dtype.isnative:
        raise ValueError(
            "given numpy array has byte order different from the native byte order. Conversion between byte orders is "
            "currently not supported."
        )
    dtype = dtypes.from_numpy(array.dtype)
    return wrap(*borrowed(array, dtype))


@function("torch.from_numpy")
@not_overridable
def from_numpy(ndarray: np.ndarray, /) -> Tensor:
    """A tensor that shares the memory of a NumPy array.

    A read-only array is never modified: the tensor gets its own memory when it is written.

    Raises:
        TypeError: if it is not an array, or of a dtype that tensors do not have.
        ValueError: for strides that tensors cannot have, and non-native byte order.

    Example:
        >>> import numpy as np
        >>> array = np.zeros(2)
        >>> torch.from_numpy(array).add_(1)
        tensor([1., 1.], dtype=torch.float64)
        >>> array
        array([1., 1.])
    """
    if not isinstance(ndarray, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(ndarray).__name__})")
    made = over_array(ndarray)
    if not ndarray.flags.writeable:
        _warn_read_only("NumPy array", "array", "writing to this tensor will result in undefined behavior")
    return made


@function("torch.frombuffer")
@not_overridable
def frombuffer(buffer: Any, *, dtype: Dtype, count: int = -1, offset: int = 0, requires_grad: bool = False) -> Tensor:
    """A 1-d tensor over memory exposed by an object: a ``bytearray``, an ``array.array``.

    Args:
        buffer: the object.
        dtype: the tensor's dtype.
        count: the number of elements; all, if negative.
        offset: the byte offset of the first one.
        requires_grad: whether it requires grad.

    Raises:
        ValueError: if the object exposes no memory, or not enough.

    Example:
        >>> torch.frombuffer(bytearray(b"abcd"), dtype=torch.uint8, offset=1)
        tensor([ 98,  99, 100], dtype=torch.uint8)
    """
    memory = _bytes_of(buffer)
    _check_buffer_range(len(memory), dtype.itemsize, count, offset)
    if memory.readonly:
        _warn_read_only(
            "buffer",
            "buffer",
            "you can write to the underlying (supposedly non-writable) buffer using the tensor",
        )
    array = np.frombuffer(memory, dtype.numpy, count, offset)
    return with_grad(wrap(*borrowed(array, dtype)), requires_grad)


def _check_buffer_range(length: int, itemsize: int, count: int, offset: int) -> None:
    if not length or not count:
        raise ValueError(f"both buffer length ({length}) and count ({count}) must not be 0")
    if not 0 <= offset < length:
        raise ValueError(
            f"offset ({offset} bytes) must be non-negative and no greater than buffer length ({length} bytes) minus 1"
        )
    if count > 0 and count * itemsize > length - offset:
        raise ValueError(
            f"requested buffer length ({count} * {itemsize} bytes) after offset ({offset} bytes) must not be greater "
            f"than actual buffer length ({length} bytes)"
        )
    if count < 0 and (length - offset) % itemsize:
        raise ValueError(
            f"buffer length ({length - offset} bytes) after offset ({offset} bytes) must be a multiple of element size "
            f"({itemsize})"
        )


@composite(
    f"from_file(str filename, bool? shared=None, int? size=0, *, {OPTIONS}) -> Tensor",
    names="torch.from_file", errors="before",
)  # fmt: skip
def from_file(filename, shared=False, size=0, *, dtype=None, layout=None, device=None, pin_memory=False):
    """A 1-d tensor with the first elements of a file; if ``shared``, writes into the tensor change the file.

    Args:
        filename: the file; with ``shared`` it is created or extended if necessary.
        shared: whether the file is mapped as the tensor's memory.
        size: the number of elements.
        dtype: by default the default floating-point dtype.

    Raises:
        RuntimeError: for a file that cannot be opened, or is too small.
    """
    dtype = dtypes.wanted("from_file", dtype) or dtypes.get_default_dtype()
    storage = storage_of_file(filename, shared, size, dtype)
    return wrap(storage, layout_of(storage.base, (size,), (1,), 0, dtype))


def _bytes_of(buffer: Any) -> memoryview:
    try:
        memory = memoryview(buffer)
    except TypeError:
        raise ValueError("object does not implement Python buffer protocol.") from None
    if not memory.c_contiguous:
        raise RuntimeError("could not retrieve buffer from object")
    return memory.cast("B") if memory.nbytes else memoryview(b"")


@function("torch.as_tensor")
def as_tensor(data: Any = MISSING, dtype: Dtype | None = None, device: Any = None) -> Tensor:
    """``data`` as a tensor: unchanged if it is one of that dtype, over the memory of an array, otherwise a copy.

    Example:
        >>> torch.as_tensor([1.0, 2.0])
        tensor([1., 2.])
    """
    if data is MISSING:
        raise missing("as_tensor", "data")
    where = place(device)
    data = tensor_of(data) if isinstance(data, Tracer) else data
    if isinstance(data, Tensor):
        return data.to(data.device if device is None else where, data.dtype if dtype is None else dtype)
    if isinstance(data, np.ndarray):
        made = from_numpy(data)
        return made.to(where, made.dtype if dtype is None else dtype)
    return tensor(data, dtype=dtype, device=where)


@function("torch.asarray")
def asarray(
    obj: Any = MISSING, *, dtype: Dtype | None = None, device: Any = None, copy: bool | None = None,
    requires_grad: Any = None,
) -> Tensor:  # fmt: skip
    """Any object as a tensor, sharing its memory if possible.

    Args:
        obj: a tensor, an array, an object with ``__dlpack__`` or a capsule of it, an object that exposes memory, or
            nested sequences of numbers.
        dtype: the tensor's dtype.
        device: its device.
        copy: True for a copy, False to raise an error instead of copying.
        requires_grad: whether it requires grad; by default as ``obj``.

    Raises:
        ValueError: if ``copy=False`` is impossible.

    Example:
        >>> x = torch.ones(2)
        >>> torch.asarray(x) is x, torch.asarray(x, copy=True) is x
        (True, False)
    """
    if obj is MISSING:
        raise missing("asarray", "obj")
    where = place(device)
    obj = tensor_of(obj) if isinstance(obj, Tracer) else obj
    aliased = _aliased(obj, dtype, copy)
    if aliased is None:
        if copy is False:
            raise ValueError("can't alias arbitrary sequence into a tensor.")
        made = tensor(obj, dtype=dtype, device=where)
    else:
        made = _as_dtype(aliased, dtype, copy)
        if device is not None or not isinstance(obj, Tensor):
            made = made.to(where)
        if copy and made is aliased:
            made = made.clone()
    if getattr(obj, "requires_grad", False) if requires_grad is None else requires_grad:
        return made if made.requires_grad else with_grad(made, True)
    if made.grad_fn is not None:
        return made.detach()
    return made.requires_grad_(False) if made.requires_grad else made


def _aliased(obj: Any, dtype: Dtype | None, copy: bool | None) -> Tensor | None:
    """A tensor over an object's memory, or None."""
    if isinstance(obj, Tensor):
        return obj
    if isinstance(obj, np.ndarray):
        return from_numpy(obj)
    if isinstance(obj, np.generic):
        if copy is False:
            raise RuntimeError("can't alias NumPy scalars. Either remove copy=False or transform it in a ndarray. ")
        return from_array(np.asarray(obj), dtypes.from_numpy(obj.dtype))
    if hasattr(obj, "__dlpack__") or type(obj).__name__ == "PyCapsule":
        return from_dlpack(obj)
    try:
        memoryview(obj)
    except TypeError:
        return None
    return frombuffer(obj, dtype=dtype or dtypes.get_default_dtype())


def _as_dtype(t: Tensor, dtype: Dtype | None, copy: bool | None) -> Tensor:
    if dtype is None or dtype is t.dtype:
        return t
    if copy is False:
        raise ValueError(f"can't alias tensor with dtype '{t.dtype.scalar_name}' into dtype '{dtype.scalar_name}'.")
    return t.to(dtype)


# ---------------------------------------------------------------- DLPack


@function("torch.from_dlpack")
@not_overridable
def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor over the memory of another library's array.

    Args:
        ext_tensor: an object with ``__dlpack__``, or a capsule of it.
        device: the device of the tensor.
        copy: True for a copy.

    Raises:
        RuntimeError: for a capsule that was consumed before.
        BufferError: if the other library cannot export the memory.

    Example:
        >>> import numpy as np
        >>> torch.from_dlpack(np.arange(3))
        tensor([0, 1, 2])
    """
    if device is not None:
        available(device)
    array, dtype = dlpack.array_from(ext_tensor)
    made = wrap(*borrowed(array, dtype))
    return made.clone() if copy else made


@function("Tensor.__dlpack__")
def to_capsule(
    self: Tensor, *, stream: Any = -1, max_version: Any = None, dl_device: Any = None, copy: bool | None = None
) -> Any:
    """Exports the tensor's memory to another library.

    Raises:
        BufferError: for a tensor that requires grad, or with a lazy conjugation.
        TypeError: for a stream that is not a number.
    """
    if self.requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    if self.is_conj():
        raise BufferError("Can't export tensors with the conjugate bit set")
    if self.device is not CPU:
        raise BufferError(f"Cannot pack tensors on {self.device.type}")
    if stream is not None and not isinstance(stream, int):
        raise TypeError("stream must be ``int`` or ``none``")
    if stream not in (None, -1):
        raise AssertionError("stream should be None on cpu.")
    source = self.clone() if copy or self.is_neg() else self
    return dlpack.capsule_of(source._storage_, source._layout_, source._offset_, max_version)


@function("torch.to_dlpack")
@not_overridable
def to_dlpack(tensor: Tensor, /) -> Any:
    """The tensor's memory as a DLPack capsule, which ``from_dlpack`` of any library consumes."""
    return to_capsule(tensor)


@function("Tensor.__dlpack_device__")
def dlpack_device(self: Tensor) -> tuple[Any, int]:
    """The DLPack device: (device type, device index)."""
    if self.device is not CPU:
        raise ValueError(f"Unknown device type {self.device.type} for Dlpack")
    return dlpack.CPU, 0
