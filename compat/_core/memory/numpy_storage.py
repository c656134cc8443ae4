"""Memory that tensors and NumPy have in common.

A buffer is immutable, so NumPy cannot be let loose on it. ``Tensor.numpy`` and ``torch.from_numpy`` make the storage a
``Hosted`` one instead: its home is memory of NumPy's. Reading the storage gives a buffer with what the memory holds at
that moment, so operations recorded before a write by NumPy do not see it, and later ones do. Writing the storage
writes the memory at once, since NumPy would not ask. When nothing but the storage refers to the memory any more, it is
an ordinary storage again. Ordinary ones know nothing of all this and pay nothing for it: a storage changes its class.

To find out whether the memory has changed, all of it is looked at. A batch of a large array would cost more than the
step that it is for, so what subscripts cut out of large memory is a storage of its own, over that part of the memory,
until its storage offset is read.

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
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from compat._core.memory.shared_memory import Block
from compat._core.memory.storage import UntypedStorage
from compat._core.memory.strided_access import elements_of
from compat._core.memory.strides import Base, Layout, dense_layout, is_dense, layout_of
from compat._core.types.dtype import dtype as Dtype
from funcgrad import runtime
from funcgrad.core.tracing import Tracer
from funcgrad.runtime.process import Lock

_buffer: Any = UntypedStorage.__dict__["buffer"]
#: Held while a storage changes sides.
_lock = Lock()


class Hosted(UntypedStorage):
    """A storage whose contents are those of a NumPy array, its ``_memory``; the buffer is a copy of them."""

    __slots__ = ()
    #: Of shared memory: the buffers read since the last write, except the last one.
    _read: Sequence[weakref.ref[Any]] = ()

    @property
    def buffer(self) -> Any:
        """The contents as they are now."""
        with _lock:
            known = _buffer.__get__(self)
            if self.__class__ is not Hosted:  # another thread found no other reference to the memory
                return known
            memory = self._memory
            if known is None or not _same_bytes(runtime.to_numpy(known), memory):
                self._remember(known)
                known = runtime.from_numpy(memory)
                _buffer.__set__(self, known)
            if _unshared(memory):
                self._settle()
            return known

    @buffer.setter
    def buffer(self, new: Any) -> None:
        taken = runtime.operands(new)
        new = runtime.ready(new)
        with _lock:
            if self.__class__ is Hosted:
                self._take(new, taken)
            _buffer.__set__(self, new)

    def _remember(self, known: Any) -> None:
        """Keeps a buffer in mind that an operation may have, which reads the storage twice: ``x[0] += 1`` does."""
        if known is not None and self.is_shared():
            self.__dict__["_read"] = [weakref.ref(known), *self._read[:3]]

    def _take(self, new: Any, taken: Sequence[Any]) -> None:
        """Writes a buffer into the memory.

        Args:
            taken: the buffers that it was made of, where that is known.
        """
        if isinstance(new, Tracer) or not self._memory.flags.writeable:
            # A tracer has no contents yet, and read-only memory is not written: there the two differ.
            self._settle()
        elif new is None:  # the buffer is released for a while
            return
        elif self.is_shared():
            before = [x for ref in self._read if (x := ref()) is not None and any(x is y for y in taken)]
            known = _buffer.__get__(self)
            _write_changes(self._memory, before if known is None else [known, *before], runtime.to_numpy(new))
            self.__dict__.pop("_read", None)
        else:
            np.copyto(self._memory, runtime.to_numpy(new))

    def give_up(self, buffer: Any) -> Any:
        if self.is_shared():  # a write is detected by comparing with the buffer
            return runtime.from_numpy(runtime.to_numpy(buffer))
        return super().give_up(buffer)

    def _settle(self) -> None:
        """Makes it an ordinary storage. The memory stays where its address was told, so that no other has it."""
        self.__class__ = UntypedStorage  # type: ignore[assignment]
        self.__dict__.pop("_block", None)
        if hasattr(self, "_root"):
            del self._root
        if not hasattr(self, "_address"):
            del self._memory

    def is_shared(self) -> bool:
        return getattr(self, "_root", (self,))[0]._block is not None

    def resizable(self) -> bool:
        return not self.lent and _unshared(self._memory)

    def data_ptr(self) -> int:
        if not hasattr(self, "_address"):
            self._address = self._memory.__array_interface__["data"][0]
        shown = self.__dict__.get("_shown")
        if shown is not None:  # its address was told before its memory became NumPy's, too
            self.show(shown)
        return self._address


_memcmp = (ctypes.cdll.msvcrt if sys.platform == "win32" else ctypes.CDLL(None)).memcmp
_memcmp.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)


def _same_bytes(x: np.ndarray, y: np.ndarray) -> bool:
    """Whether two contiguous arrays hold the same; every use of a shared tensor asks, so it is the C library's."""
    return not _memcmp(x.ctypes.data, y.ctypes.data, x.nbytes)


#: By the size of elements, integers of that size: of floats, NaN and zeros say less than their bits.
_BITS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def _write_changes(memory: np.ndarray, before: Sequence[Any], new: np.ndarray) -> None:
    """Writes an operation's changes into shared memory.

    Args:
        before: the buffers that the operation read, of which one is what it changed; every operation reads what it
            writes.
        new: the result.
    """
    bits = _BITS[min(memory.itemsize, 8)]
    now, there, *were = (
        np.ascontiguousarray(x).reshape(-1).view(bits) for x in (new, memory, *map(runtime.to_numpy, before))
    )
    np.copyto(there, now, where=np.logical_and.reduce([was != now for was in were]) if were else True)


def _references(memory: np.ndarray) -> int:
    """The reference count of the object that owns the memory."""
    return sys.getrefcount(memory.base)


_ALONE = _references(np.empty(1)[...])


def _unshared(memory: np.ndarray) -> bool:
    """Whether the memory has no reference besides this view; unknown for foreign memory."""
    return type(memory.base) is np.ndarray and memory.base.flags.owndata and _references(memory) == _ALONE


# ---------------------------------------------------------------- parts

#: From how many bytes on memory is large.
LARGE = 1 << 16
#: A part is at most this share of the whole.
_SHARE = 4


def is_large(storage: UntypedStorage) -> bool:
    """Whether it is memory shared with NumPy, of a size at which looking at all of it takes time."""
    return storage.__class__ is Hosted and storage._memory.nbytes >= LARGE


def part_of(storage: UntypedStorage, layout: Layout, offset: int) -> tuple[UntypedStorage, Layout, int]:
    """The part of large memory at a layout and offset, as a separate storage if it is small; its layout there."""
    span = 1 + sum((n - 1) * s for n, s in zip(layout.size, layout.stride))
    plain = layout.dtype is layout.base.dtype and layout.numel and not layout.conj and not layout.neg
    if not plain or span * layout.dtype.itemsize * _SHARE > storage._memory.nbytes:
        return storage, layout, offset
    part, inside = storage_over(array_over(storage, layout, offset), layout.dtype)
    part._root = place_of(storage, offset)
    root = part._root[0]
    if root._parts is None:
        root._parts = weakref.WeakSet()
    root._parts.add(part)
    return part, inside, 0


def place_of(storage: UntypedStorage, offset: int) -> tuple[UntypedStorage, int]:
    """The storage that it is a part of, or itself, and where in that an element lies."""
    root, start = getattr(storage, "_root", (storage, 0))
    return root, start + offset


def rejoin(t: Any) -> None:
    """Moves a tensor over a part of a storage to the whole storage."""
    if hasattr(t._storage_, "_root"):
        layout = t._layout_
        t._storage_, t._offset_ = place_of(t._storage_, t._offset_)
        t._layout_ = layout_of(
            t._storage_.base, tuple(layout.size), layout.stride, t._offset_, layout.dtype, layout.conj, layout.neg
        )


# ---------------------------------------------------------------- from tensors


def array_over(storage: UntypedStorage, layout: Layout, offset: int) -> np.ndarray:
    """A tensor's elements as an array over the same memory."""
    dtype = layout.dtype.numpy
    if not layout.numel:
        return np.zeros(layout.size, dtype)
    flat = elements_of(_memory_of(storage), dtype)
    step = layout.dtype.itemsize
    return np.ndarray(tuple(layout.size), dtype, flat, offset * step, [n * step for n in layout.stride])


def lent(storage: UntypedStorage, layout: Layout, offset: int) -> np.ndarray:
    """``array_over``, returned to a caller: the storage keeps its size from now on."""
    place_of(storage, offset)[0].lent = True
    return array_over(storage, layout, offset)


def borrowed(array: np.ndarray, dtype: Dtype) -> tuple[UntypedStorage, Layout]:
    """``storage_over`` an array with other references: the storage keeps its size."""
    storage, layout = storage_over(array, dtype)
    storage.lent = True
    return storage, layout


def _memory_of(storage: UntypedStorage) -> np.ndarray:
    """The memory of a storage, which becomes a hosted one if it is not yet."""
    storage.look()
    if not isinstance(storage, Hosted):
        # A view, so that references to the array that owns the memory can be counted.
        storage._memory = np.array(storage.numpy(), order="C")[...]
        storage.buffer = runtime.ready(storage.buffer)
        storage.__class__ = Hosted
    return storage._memory


# ---------------------------------------------------------------- from other processes' memory


def storage_in(block: Block, base: Base) -> UntypedStorage:
    """A storage whose memory is one that other processes may have, too."""
    storage = UntypedStorage(None, base)
    storage._memory = block.memory.view(base.dtype.numpy).reshape(base.shape)
    storage._block = block
    storage.lent = True
    storage.__class__ = Hosted
    return storage


def move_into(storage: UntypedStorage, block: Block) -> None:
    """Moves the contents of a storage, and of the storages that are parts of it, into other memory."""
    with _lock:
        base, buffer = storage.base, runtime.ready(storage.buffer)
        old = storage._memory if isinstance(storage, Hosted) else None
        memory = block.memory.view(base.dtype.numpy).reshape(base.shape)
        np.copyto(memory, runtime.to_numpy(buffer))
        for part in list(storage._parts or ()):
            if old is not None and hasattr(part, "_root"):
                _move_part(part, old, block)
        storage._memory, storage._block, storage.lent = memory, block, True
        for told in ("_shown", "_seen"):
            storage.__dict__.pop(told, None)
        if hasattr(storage, "_address"):
            del storage._address
        _buffer.__set__(storage, buffer)
        storage.__class__ = Hosted


def _move_part(part: UntypedStorage, old: np.ndarray, block: Block) -> None:
    was = part._memory
    start = was.__array_interface__["data"][0] - old.__array_interface__["data"][0]
    part._memory = np.ndarray(was.shape, was.dtype, block.memory, start, was.strides)
    if hasattr(part, "_address"):
        del part._address


# ---------------------------------------------------------------- from arrays


class _Span:
    """Memory that another array keeps, described for NumPy."""

    def __init__(self, keeper: np.ndarray):
        self.base = keeper
        description = dict(keeper.__array_interface__)
        description["data"] = (description["data"][0], False)
        self.__array_interface__ = description


def writable(array: np.ndarray) -> np.ndarray:
    """An array over the same memory that may be written."""
    return array if array.flags.writeable or not array.size else np.asarray(_Span(array))


def storage_over(array: np.ndarray, dtype: Dtype) -> tuple[UntypedStorage, Layout]:
    """A storage whose memory is an array's, from its first element to its last, and the array's layout in it.

    Args:
        array: with strides that are not negative and multiples of its item size.
        dtype: of its elements.
    """
    stride = tuple(s // array.itemsize for s in array.strides)
    array = np.asarray(array)[...]
    if not array.size:
        base = Base((0,), dtype)
        return UntypedStorage(runtime.from_numpy(array.reshape(-1)), base), layout_of(base, array.shape, stride, 0)
    if is_dense(array.shape, stride):
        order = sorted(range(array.ndim), key=lambda d: -stride[d] if array.shape[d] > 1 else 0)
        layout = dense_layout(array.shape, stride, dtype)
        memory = array.transpose(order).reshape(layout.base.shape)
    else:
        span = 1 + sum((n - 1) * s for n, s in zip(array.shape, stride))
        memory = np.lib.stride_tricks.as_strided(array, (span,), (array.itemsize,), writeable=array.flags.writeable)
        layout = layout_of(Base((span,), dtype), array.shape, stride, 0)
    storage = UntypedStorage(None, layout.base)
    storage._memory = memory
    storage.__class__ = Hosted
    return storage, layout
