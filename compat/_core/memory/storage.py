"""Storages: the memory that a tensor shares with its views."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from compat._core.memory.meta import NO_VALUES, unknown
from compat._core.memory.storage_base import Moves
from compat._core.memory.strides import Base, Layout
from compat._core.types.device import CPU, META, available, device, on
from compat._core.types.dtype import dtype as Dtype
from funcgrad import runtime
from funcgrad.core.tracing import Tracer
from funcgrad.runtime.process import Lock


class _Clock:
    """The number of differentiating transforms that have begun (``compat._core.tensor.capture_checks``)."""

    now = 0


clock = _Clock()
_ticking = Lock()


def begin() -> int:
    """Advances the clock at the entry of a transform, so that storages made later are younger; returns the time."""
    with _ticking:
        clock.now += 1
        return clock.now


class StorageBase(Moves):
    """The base class of untyped storages."""

    __slots__ = ()


StorageBase.__module__ = "torch._C"  # shown in its name


class UntypedStorage(StorageBase):
    """A buffer and its version counter.

    Buffers are immutable arrays, so a write replaces the buffer. Tensors reference the storage, never the buffer, so a
    write is visible through all of them.

    Attributes:
        buffer: the array; a tracer inside a transform.
        base: its shape and dtype.
        version: the number of in-place operations that have written it (``compat._core.tensor.version_counter``).
        born: the number of differentiating transforms that had begun when it was made.
    """

    __slots__ = ("buffer", "base", "version", "born", "_address", "_memory", "_root", "__dict__", "__weakref__")
    #: The block of memory that it shares with other processes (``compat._core.memory.shared_memory``).
    _block: Any = None
    #: Storages over parts of its memory (``compat._core.memory.numpy_storage``).
    _parts: Any = None
    #: Its logical strides inside a transform, if they differ (``compat._core.transforms.logical_strides``).
    placing: Any = None
    #: Whether its memory is, or was, shared with NumPy: then it cannot be resized.
    lent = False
    #: The device that fake tensors over it claim, if it was read from a file under ``FakeTensorMode``.
    fake_device: Any
    buffer: Any
    #: The NumPy array whose memory it shares (``compat._core.memory.numpy_storage``).
    _memory: np.ndarray
    #: For a storage over a part of another one's memory: that storage, and the element at which the part begins.
    _root: tuple[UntypedStorage, int]
    base: Base
    version: int
    born: int

    def __init__(self, buffer: Any = 0, base: Base | None = None, *, device: Any = None):
        if base is None:  # called by programs: with a size in bytes, or the bytes
            buffer, base = _of_bytes(buffer)
            where = CPU if device is None else available(device)
            base = Base(base.shape, base.dtype, device=where)
            buffer = unknown(base) if where is META else on(where, buffer)
        self.buffer = buffer
        self.base = base
        self.version = 0
        self.born = clock.now

    @property
    def filename(self) -> str | None:
        """The path of the mapped file (``compat._core.memory.mmap_storage``); None for other storages."""
        block = self._block
        return None if block is None or block.counted else block.name

    def write(self, buffer: Any) -> None:
        """Replaces the buffer by one of the same shape and dtype."""
        self.buffer = buffer

    def replace(self, read: Any, new: Any, layout: Layout | None = None, offset: int = 0) -> bool:
        """Replaces the buffer by the result of an operation, unless another thread has replaced it meanwhile; returns
        whether it did.

        Args:
            read: the buffer that the operation read.
            new: its result.
            layout: of the elements that it wrote; None for all.
            offset: of those elements.
        """
        done: bool | None = import_module("compat._core.memory.exchange").exchange(self, read, new, None)
        if done is None:  # of another class
            self.write(new)
        return done is not False

    def look(self) -> None:
        """Called before NumPy gets the memory, whose later reads cannot be intercepted; guarded storages override
        it."""

    def give_up(self, buffer: Any) -> Any:
        """Releases the buffer so that a program may donate it; the program's result replaces it.

        Args:
            buffer: the present buffer.

        Returns:
            The buffer that the program may donate.
        """
        self.buffer = None
        return buffer

    @staticmethod
    def from_file(filename: Any, shared: bool = False, nbytes: int = 0) -> UntypedStorage:
        """A storage of the first ``nbytes`` bytes of a file; if ``shared``, writes go to the file."""
        made: UntypedStorage = _mapped().storage_of_file(filename, shared, nbytes, _byte())
        return made

    @staticmethod
    def from_buffer(
        buffer: Any, byte_order: str | None = None, count: int = -1, offset: int = 0, *, dtype: Any = None
    ) -> Any:
        """A storage with a copy of an object's buffer, as elements of ``dtype``."""
        return _mapped().storage_of_bytes(buffer, byte_order, count, offset, dtype or _byte())

    def nbytes(self) -> int:
        """Its size in bytes."""
        return self.base.numel * self.base.dtype.itemsize

    size = nbytes
    __len__ = nbytes

    def __bool__(self) -> bool:
        return True

    def data_ptr(self) -> int:
        """The address at which its bytes can be read, 0 if it is empty; equal for tensors that share a storage.

        Each call copies the bytes there, since a buffer may be on any device and is replaced by each write. The address
        may be reused once the storage is freed.
        """
        if not self.base.numel or self.base.device is META:
            return 0
        memory = self.__dict__.get("_shown")
        if memory is None and hasattr(self, "_address"):  # the address of the memory that it shared with NumPy
            return self._address
        if memory is None or memory.nbytes != self.nbytes():
            memory = self.__dict__["_shown"] = np.empty(self.nbytes(), np.uint8)
            self.__dict__.pop("_seen", None)
            self._address: int = memory.__array_interface__["data"][0]
        self.show(memory)
        return self._address

    def show(self, memory: np.ndarray) -> None:
        """Copies its bytes to ``memory``, unless they are those copied last; does nothing while a trace has no
        values."""
        if runtime.capturing():
            return
        buffer = runtime.ready(self.buffer)
        seen = self.__dict__.get("_seen")
        if not isinstance(buffer, Tracer) and (seen is None or seen() is not buffer):
            np.copyto(memory, self.bytes())
            self.__dict__["_seen"] = weakref.ref(buffer)

    @property
    def _cdata(self) -> int:
        return id(self)

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes()

    @property
    def device(self) -> device:
        """The device of its buffer."""
        return self.base.device

    def numpy(self) -> np.ndarray:
        """The contents in the buffer's shape, read-only.

        Raises:
            NotImplementedError: on the meta device.
        """
        return runtime.to_numpy(self.buffer)

    def bytes(self) -> np.ndarray:
        """The contents as bytes."""
        return np.ascontiguousarray(self.numpy()).reshape(-1).view(np.uint8)

    def check_values(self) -> None:
        """Raises an error for a storage without values.

        Raises:
            NotImplementedError: on the meta device.
        """
        if self.base.device is META:
            raise NotImplementedError(NO_VALUES)

    def tolist(self) -> list[int]:
        """Its bytes."""
        self.check_values()
        return self.bytes().tolist()

    def __getitem__(self, index: Any) -> Any:
        self.check_values()
        if isinstance(index, slice):
            return new_storage(self.bytes()[index], _byte())
        if not -self.nbytes() <= index < self.nbytes():
            raise IndexError(f"index {index} out of range for storage of size {self.nbytes()}")
        return int(self.bytes()[index])

    def __setitem__(self, index: Any, value: Any) -> None:
        if self.base.device is META:
            return

        def change(contents: np.ndarray) -> np.ndarray:
            contents[index] = value
            return contents

        self.change_bytes(change)

    def change_bytes(self, change: Callable[[np.ndarray], np.ndarray]) -> None:
        """Replaces the contents by what a function makes of a copy of them."""
        while True:
            read = self.buffer
            contents = np.array(runtime.to_numpy(read), order="C").reshape(-1).view(np.uint8)
            array = np.ascontiguousarray(change(contents)).view(self.base.dtype.numpy).reshape(self.base.shape)
            if self.replace(read, on(self.base.device, runtime.from_numpy(array))):
                return

    def byteswap(self, dtype: Dtype) -> None:
        """Reverses the bytes of each element of ``dtype``, in place."""
        step = dtype.itemsize // 2 if dtype.is_complex else dtype.itemsize
        self.change_bytes(lambda contents: contents.reshape(-1, step)[:, ::-1].reshape(-1))

    def fill_(self, value: int) -> UntypedStorage:
        """Sets every byte to ``value``; returns the storage."""
        self[:] = value
        return self

    def copy_(self, source: UntypedStorage, non_blocking: bool = False) -> UntypedStorage:
        """Copies the bytes of another storage of at least this size; returns the storage."""
        self.change_bytes(lambda _: source.bytes()[: self.nbytes()].copy())
        return self

    def element_size(self) -> int:
        """Bytes an element: one."""
        return 1

    def clone(self) -> UntypedStorage:
        """Another storage with the same contents."""
        return UntypedStorage(self.buffer, self.base)

    __copy__ = clone

    def resizable(self) -> bool:
        """Whether its size may change: not if its memory is, or was, shared with NumPy."""
        return not self.lent

    def resize_(self, nbytes: int) -> UntypedStorage:
        """Resizes it to ``nbytes``, keeping the contents; added bytes are zero.

        Raises:
            RuntimeError: for a negative size or one that cuts an element.
        """
        itemsize = self.base.dtype.itemsize
        if nbytes < 0 or nbytes % itemsize:
            raise RuntimeError(
                f"resize_: got {nbytes} bytes, wanted a non-negative multiple of the element size {itemsize}"
            )
        self.resize_elements(nbytes // itemsize)
        return self

    def resize_elements(self, numel: int, value: Any = 0) -> None:
        """Replaces its buffer by a flat one of ``numel`` elements; added elements have the given value.

        Raises:
            RuntimeError: if it is not resizable.
        """
        if not self.resizable():
            raise RuntimeError("Trying to resize storage that is not resizable")
        if self.base.device is META:
            self.buffer, self.base = _on_meta(Base((numel,), self.base.dtype))
            return
        old = self.numpy().reshape(-1)
        new = np.full(numel, value, old.dtype)
        new[: min(numel, old.size)] = old[:numel]
        self.base = Base((numel,), self.base.dtype, device=self.base.device)
        self.buffer = on(self.base.device, runtime.from_numpy(new))

    def __repr__(self) -> str:
        lines = "..." if self.base.device is META else " " + "\n ".join(str(x) for x in self.tolist())
        return f"{lines}\n[torch.storage.UntypedStorage(device={self.device}) of size {self.nbytes()}]"

    def __deepcopy__(self, memo: dict) -> UntypedStorage:
        found = memo.get(id(self))
        if found is None:
            found = memo[id(self)] = self.clone()
        return found

    def __reduce__(self) -> tuple:
        if self.base.device is META:
            return unknown_storage, (self.base,)
        return new_storage, (np.asarray(self.numpy()), self.base.dtype, self.base.device)


UntypedStorage.__module__ = "torch.storage"  # shown in its name


def _of_bytes(given: Any) -> tuple[Any, Base]:
    """The buffer and the base of a storage of a given size in bytes, or of given bytes."""
    if isinstance(given, int):
        array = np.zeros(given, np.uint8)
    else:
        wrong = next((x for x in given if not isinstance(x, int)), None)
        if wrong is not None:
            raise RuntimeError(
                f"torch.UntypedStorage(): tried to construct a storage from a sequence ({type(given).__name__}), but "
                f"one of the items was of type {type(wrong).__name__} instead of int"
            )
        array = np.array(given, np.uint8)
    return runtime.from_numpy(array), Base(array.shape, _byte())


def _on_meta(base: Base) -> tuple[Any, Base]:
    base = Base(base.shape, base.dtype, device=META)
    return unknown(base), base


def _byte() -> Dtype:
    from compat._core.types.dtype import uint8

    return uint8


def unknown_storage(base: Base) -> UntypedStorage:
    """A storage on the meta device."""
    return UntypedStorage(unknown(base), base)


def new_storage(array: np.ndarray, dtype: Dtype, device: Any = CPU) -> UntypedStorage:
    """A storage with a copy of a NumPy array, on a device."""
    where = available(device)
    return UntypedStorage(on(where, runtime.from_numpy(array)), Base(array.shape, dtype, device=where))


def __getattr__(name: str) -> Any:
    # The module of the deprecated typed storages imports this one.
    if name not in ("TypedStorage", "_dtype_to_storage_type_map"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("compat._core.memory.typed_storage"), name)


def _mapped() -> Any:
    """The module of memory-mapped storages, which imports this one."""
    return import_module("compat._core.memory.mmap_storage")
