"""Storages that share their memory with NumPy.

Buffers are immutable, so NumPy cannot write into them. ``Tensor.numpy`` and ``torch.from_numpy`` turn the storage into
a ``Hosted`` one instead, whose contents are those of a NumPy array. A read of the storage returns a buffer with the
array's present contents, so operations recorded before a write by NumPy do not see it, and later ones do. A write of
the storage changes the array at once. When only the storage references the array, it becomes an ordinary storage again.
The storage changes its class, so ordinary storages need no checks.

To detect a write by NumPy, the whole array is compared with the last buffer. For a batch of a large array this would
cost more than the training step, so the result of a subscript of a large array gets a separate storage over that part
of the memory, until its storage offset is read.

Example:
    >>> import numpy as np
    >>> import compat as torch
    >>> array = np.zeros(3, np.float32)
    >>> x = torch.from_numpy(array)
    >>> y = x + 1
    >>> array[0] = 5
    >>> x[1] = 7
    >>> x, array, y
    (tensor([5., 7., 0.]), array([5., 7., 0.], dtype=float32), tensor([1., 1., 1.]))
"""

from __future__ import annotations

import ctypes
import sys
import threading
import weakref
from typing import Any

import numpy as np

from compat._core.memory.exchange import turn
from compat._core.memory.shared_memory import Block
from compat._core.memory.storage import UntypedStorage
from compat._core.memory.strided_access import viewed
from compat._core.memory.strides import Base, Layout, dense_layout, is_dense, layout_of, room
from compat._core.types.dtype import dtype as Dtype
from funcgrad import runtime
from funcgrad.core.tracing import Tracer
from funcgrad.runtime.process import Lock

_buffer: Any = UntypedStorage.__dict__["buffer"]
#: Held while a storage changes its class.
_lock = Lock()


class Hosted(UntypedStorage):
    """A storage whose contents are those of a NumPy array, its ``_memory``; the buffer is a copy of them."""

    __slots__ = ()

    @property
    def buffer(self) -> Any:
        """The present contents."""
        with _lock:
            known = _buffer.__get__(self)
            if self.__class__ is not Hosted:  # another thread found no other reference to the memory
                return known
            memory = self._memory
            alone = _unshared(memory)  # before comparing: another thread may write and drop its array meanwhile
            if known is None or not _same_bytes(runtime.to_numpy(known), memory):
                known = runtime.from_numpy(memory)
                _buffer.__set__(self, known)
            if alone:
                self._settle()
            return known

    @buffer.setter
    def buffer(self, new: Any) -> None:
        new = runtime.ready(new)
        with _lock:
            if self.__class__ is Hosted and self._keeps(new) and new is not None:  # else the buffer is donated
                known = _buffer.__get__(self) if self.is_shared() else None
                _write_changes(self._memory, known, runtime.to_numpy(new))
            _buffer.__set__(self, new)

    def replace(self, read: Any, new: Any, layout: Layout | None = None, offset: int = 0) -> bool:
        """Writes the elements that an operation wrote; others may have been written by NumPy meanwhile, or through
        another storage over the same memory."""
        new = runtime.ready(new)
        if layout is not None and layout.dense and layout.numel * layout.dtype.itemsize == self.nbytes():
            layout = None
        with _lock:
            if self.__class__ is not Hosted:
                return False
            latest = _buffer.__get__(self) is read
            if self._keeps(new):
                known = None if latest and self._undisturbed(read) else read
                _write_changes(self._memory, known, runtime.to_numpy(new), layout, offset)
            if latest:
                _buffer.__set__(self, new)
        return True

    def _undisturbed(self, read: Any) -> bool:
        """Whether the memory surely has the contents of a buffer that was read. Otherwise only changes are written: an
        operation may leave elements of its layout as they were."""
        if self.is_shared():
            return False
        memory = self._memory
        return threading.active_count() == 1 or (memory.nbytes >= LARGE and _same_bytes(runtime.to_numpy(read), memory))

    def _keeps(self, new: Any) -> bool:
        """Whether a new buffer can be written into the memory; otherwise it becomes an ordinary storage: a tracer has
        no contents yet, and read-only memory cannot be written."""
        if isinstance(new, Tracer) or not self._memory.flags.writeable:
            self._settle()
            return False
        return True

    def give_up(self, buffer: Any) -> Any:
        if self.is_shared():  # a write is detected by comparing with the buffer
            return runtime.from_numpy(runtime.to_numpy(buffer))
        return UntypedStorage.give_up(self, buffer)

    def _settle(self) -> None:
        """Makes it an ordinary storage. Memory whose address was read is kept, so that it is not reused."""
        self.__class__ = UntypedStorage  # type: ignore[assignment]
        self.__dict__.pop("_block", None)
        if hasattr(self, "_root"):
            del self._root
        if not hasattr(self, "_address"):
            del self._memory

    def is_shared(self) -> bool:
        return getattr(self, "_root", (self,))[0]._block is not None

    def resizable(self) -> bool:
        with _lock:
            return not self.lent and (self.__class__ is UntypedStorage or _unshared(self._memory))

    def data_ptr(self) -> int:
        with _lock:
            if self.__class__ is not UntypedStorage and not hasattr(self, "_address"):
                self._address = self._memory.__array_interface__["data"][0]
        if not hasattr(self, "_address"):
            return UntypedStorage.data_ptr(self)  # another thread has made it an ordinary one
        shown = self.__dict__.get("_shown")
        if shown is not None:  # the address was read before the memory was shared with NumPy
            self.show(shown)
        return self._address


_memcmp = (ctypes.cdll.msvcrt if sys.platform == "win32" else ctypes.CDLL(None)).memcmp
_memcmp.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)


def _same_bytes(x: np.ndarray, y: np.ndarray) -> bool:
    """Whether two contiguous arrays have the same bytes; by C's ``memcmp``, since each use of a shared tensor
    checks."""
    return not _memcmp(x.ctypes.data, y.ctypes.data, x.nbytes)


#: Unsigned integers by element size: floats are compared by their bits, because of NaN and signed zeros.
_BITS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def _write_changes(
    memory: np.ndarray, before: Any, new: np.ndarray, layout: Layout | None = None, offset: int = 0
) -> None:
    """Writes an operation's changes into memory.

    Args:
        before: the buffer that the operation read; None to write all elements.
        new: its result.
        layout, offset: of the elements that it may have changed; None for all.
    """
    arrays = [memory, new] if before is None else [memory, new, runtime.to_numpy(before)]
    if layout is not None:
        if not layout.numel:
            return
        arrays = [viewed(np.ascontiguousarray(x), layout, offset) for x in arrays]
    if before is None:
        np.copyto(arrays[0], arrays[1])
        return
    for there, now, was in zip(*map(_parts, arrays)):
        np.copyto(there, now, where=was != now)


def _parts(array: np.ndarray) -> list[np.ndarray]:
    """An array's elements as integers; those of complex numbers in two parts."""
    parts = [array.real, array.imag] if array.dtype.kind == "c" else [array]
    return [x.view(_BITS[x.itemsize]) for x in parts]


def _references(memory: np.ndarray) -> int:
    """The reference count of the object that owns the memory."""
    return sys.getrefcount(memory.base)


_ALONE = _references(np.empty(1)[...])


def _unshared(memory: np.ndarray) -> bool:
    """Whether the memory has no reference besides this view; unknown for foreign memory."""
    return type(memory.base) is np.ndarray and memory.base.flags.owndata and _references(memory) == _ALONE


# ---------------------------------------------------------------- parts

#: The size in bytes from which memory counts as large.
LARGE = 1 << 16
#: A part is at most this share of the whole.
_SHARE = 4


def is_large(storage: UntypedStorage) -> bool:
    """Whether a storage shares so much memory with NumPy that comparing all of it takes time."""
    return storage.__class__ is Hosted and storage.nbytes() >= LARGE


def part_of(storage: UntypedStorage, layout: Layout, offset: int) -> tuple[UntypedStorage, Layout, int]:
    """A separate storage over the part of large memory that a layout covers, if that is small; and the layout in it."""
    span = room(layout.size, layout.stride)
    plain = layout.dtype is layout.base.dtype and layout.numel and not layout.conj and not layout.neg
    if not plain or span * layout.dtype.itemsize * _SHARE > storage.nbytes():
        return storage, layout, offset
    part, inside = storage_over(array_over(storage, layout, offset), layout.dtype)
    part._root = place_of(storage, offset)
    root = part._root[0]
    if root._parts is None:
        root._parts = weakref.WeakSet()
    root._parts.add(part)
    return part, inside, 0


def place_of(storage: UntypedStorage, offset: int) -> tuple[UntypedStorage, int]:
    """The storage that this one is a part of, or itself, and an element's offset in it."""
    root, start = getattr(storage, "_root", (storage, 0))
    return root, start + offset


def rejoin(t: Any) -> None:
    """Moves a tensor from a separate storage over a part of the memory to the whole storage."""
    if hasattr(t._storage_, "_root"):
        layout = t._layout_
        t._storage_, t._offset_ = place_of(t._storage_, t._offset_)
        t._layout_ = layout_of(
            t._storage_.base, tuple(layout.size), layout.stride, t._offset_, layout.dtype, layout.conj, layout.neg
        )


# ---------------------------------------------------------------- from tensors


def array_over(storage: UntypedStorage, layout: Layout, offset: int) -> np.ndarray:
    """A tensor's elements as an array over the same memory."""
    if not layout.numel:
        return np.zeros(layout.size, layout.dtype.numpy)
    while True:
        _share(storage)
        with _lock:  # without a reference from outside, another thread may make it an ordinary one again
            if isinstance(storage, Hosted):
                return viewed(storage._memory, layout, offset)


def lent(storage: UntypedStorage, layout: Layout, offset: int) -> np.ndarray:
    """``array_over`` for a caller outside compat: the storage cannot be resized from now on."""
    place_of(storage, offset)[0].lent = True
    return array_over(storage, layout, offset)


def borrowed(array: np.ndarray, dtype: Dtype) -> tuple[UntypedStorage, Layout]:
    """``storage_over`` an array with other references: the storage cannot be resized."""
    storage, layout = storage_over(array, dtype)
    storage.lent = True
    return storage, layout


def _share(storage: UntypedStorage) -> None:
    """Makes a storage a hosted one."""
    storage.look()
    while not isinstance(storage, Hosted):
        read = storage.buffer
        buffer = runtime.ready(read)
        # A view, so that references to the array that owns the memory can be counted.
        memory = np.array(runtime.to_numpy(buffer), order="C")[...]
        with _lock:
            if not isinstance(storage, Hosted):
                _host(storage, memory, read, buffer)


def _host(storage: UntypedStorage, memory: np.ndarray, read: Any, buffer: Any) -> bool:
    """Makes a storage a hosted one over memory with the elements of its buffer, unless that is not ``read`` any more;
    returns whether it did. The caller holds the lock."""
    storage._memory = memory
    done = turn(storage, read, Hosted, buffer)
    if done is None:  # of another class
        storage.buffer = buffer
        storage.__class__ = Hosted
    return done is not False


# ---------------------------------------------------------------- from shared memory


def storage_in(block: Block, base: Base) -> UntypedStorage:
    """A storage over a block of shared memory."""
    storage = UntypedStorage(None, base)
    storage._memory = block.memory.view(base.dtype.numpy).reshape(base.shape)
    storage._block = block
    storage.lent = True
    storage.__class__ = Hosted
    return storage


def move_into(storage: UntypedStorage, block: Block) -> None:
    """Moves the contents of a storage, and of the storages over parts of it, into a block of shared memory."""
    base = storage.base
    memory = block.memory.view(base.dtype.numpy).reshape(base.shape)
    while True:
        read = storage.buffer
        buffer = runtime.ready(read)
        with _lock:
            if isinstance(storage, Hosted):
                old = storage._memory
                np.copyto(memory, old)
                for part in list(storage._parts or ()):
                    if hasattr(part, "_root"):
                        _move_part(part, old, block)
                storage._memory = memory
            else:
                np.copyto(memory, runtime.to_numpy(buffer))
                if not _host(storage, memory, read, buffer):
                    continue
            storage._block, storage.lent = block, True
            for told in ("_shown", "_seen"):
                storage.__dict__.pop(told, None)
            if hasattr(storage, "_address"):
                del storage._address
            return


def _move_part(part: UntypedStorage, old: np.ndarray, block: Block) -> None:
    was = part._memory
    start = was.__array_interface__["data"][0] - old.__array_interface__["data"][0]
    part._memory = np.ndarray(was.shape, was.dtype, block.memory, start, was.strides)
    if hasattr(part, "_address"):
        del part._address


# ---------------------------------------------------------------- from arrays


class _Span:
    """Describes another array's memory, as writable, by the array interface."""

    def __init__(self, keeper: np.ndarray):
        self.base = keeper
        description = dict(keeper.__array_interface__)
        description["data"] = (description["data"][0], False)
        self.__array_interface__ = description


def writable(array: np.ndarray) -> np.ndarray:
    """A writable array over the same memory."""
    return array if array.flags.writeable or not array.size else np.asarray(_Span(array))


def storage_over(array: np.ndarray, dtype: Dtype) -> tuple[UntypedStorage, Layout]:
    """A storage whose memory is an array's, from its first element to its last, and the array's layout in it.

    Args:
        array: with strides that are not negative and multiples of its item size.
        dtype: of its elements.
    """
    stride = tuple([s // array.itemsize for s in array.strides])
    array = np.asarray(array)[...]
    if not array.size:
        base = Base((0,), dtype)
        return UntypedStorage(runtime.from_numpy(array.reshape(-1)), base), layout_of(base, array.shape, stride, 0)
    if is_dense(array.shape, stride):
        layout = dense_layout(array.shape, stride, dtype)
        memory = array
        if not layout.contiguous:
            memory = array.transpose(sorted(range(array.ndim), key=lambda d: -stride[d] if array.shape[d] > 1 else 0))
        memory = memory.reshape(layout.base.shape)
    else:
        span = room(array.shape, stride)
        memory = np.lib.stride_tricks.as_strided(array, (span,), (array.itemsize,), writeable=array.flags.writeable)
        layout = layout_of(Base((span,), dtype), array.shape, stride, 0)
    storage = UntypedStorage(None, layout.base)
    storage._memory = memory
    storage.__class__ = Hosted
    return storage, layout
