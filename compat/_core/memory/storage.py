"""Storages: the memory that views of each other share."""

from __future__ import annotations

import weakref
from importlib import import_module
from typing import Any

import numpy as np

from compat._core.memory.meta import NO_VALUES, unknown
from compat._core.memory.storage_base import Moves
from compat._core.memory.strides import Base
from compat._core.types.device import CPU, META, available, device, on
from compat._core.types.dtype import dtype as Dtype
from funcgrad import runtime
from funcgrad.core.tracing import Tracer
from funcgrad.runtime.process import Lock


class _Clock:
    """How many transforms that differentiate have begun (``compat._core.tensor.capture_checks``)."""

    now = 0


clock = _Clock()
_ticking = Lock()


def begin() -> int:
    """Advances the clock as a transform begins, so that storages made later are younger. Returns the time."""
    with _ticking:
        clock.now += 1
        return clock.now


class UntypedStorage(Moves):
    """One buffer, and how often it has been written in place.

    A buffer is an immutable array, so writing means putting another one in its place. Tensors hold the storage, never
    the buffer, and so all of them see it.

    Attributes:
        buffer: the array; or, inside a transform, what is being traced.
        base: its shape and dtype.
        version: how many in-place operations have written it.
        born: how many transforms had begun when it was made.
    """

    __slots__ = ("buffer", "base", "version", "born", "_address", "_memory", "_root", "__dict__", "__weakref__")
    #: The memory that it has in common with other processes (``compat._core.memory.shared_memory``).
    _block: Any = None
    #: The parts of it that are storages of their own (``compat._core.memory.numpy_storage``).
    _parts: Any = None
    #: How it is seen inside a transform, where that is not as it is (``compat._core.transforms.logical_strides``).
    placing: Any = None
    #: Whether its memory is, or was, in common with NumPy: its size stays.
    lent = False
    buffer: Any
    #: What a storage that has its memory in common with NumPy keeps (``compat._core.memory.numpy_storage``).
    _memory: np.ndarray
    #: Of a part of such a storage: the storage, and at which of its elements the part begins.
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
        """The file that it is mapped to (``compat._core.memory.mmap_storage``)."""
        block = self._block
        return None if block is None or block.counted else block.name

    def write(self, buffer: Any) -> None:
        """Puts a buffer of the same shape and dtype in place of the present one."""
        self.buffer = buffer

    def look(self) -> None:
        """Called before memory in common with NumPy is handed out, which nobody sees being read."""

    def give_up(self, buffer: Any) -> Any:
        """Releases the present buffer, until another one is put there, so that a program may take it over.

        Args:
            buffer: it.

        Returns:
            What the program may have.
        """
        self.buffer = None
        return buffer

    @staticmethod
    def from_file(filename: Any, shared: bool = False, nbytes: int = 0) -> UntypedStorage:
        """A storage of so many bytes of a file; if ``shared``, writes go to the file."""
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
        """Where its bytes are to be read, 0 if it is empty. Two tensors have a common storage if these are equal.

        They are copied there when this is called, as a buffer may be anywhere and moves when it is written. Once the
        storage is gone another one may be there.
        """
        if not self.base.numel or self.base.device is META:
            return 0
        memory = self.__dict__.get("_shown")
        if memory is None and hasattr(self, "_address"):  # where its memory was while that was NumPy's, too
            return self._address
        if memory is None or memory.nbytes != self.nbytes():
            memory = self.__dict__["_shown"] = np.empty(self.nbytes(), np.uint8)
            self.__dict__.pop("_seen", None)
            self._address: int = memory.__array_interface__["data"][0]
        self.show(memory)
        return self._address

    def show(self, memory: np.ndarray) -> None:
        """Copies its bytes to where they are read by address, if they are others than were copied last.

        While it has no values, as in a trace, it does not.
        """
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
        """Where its bytes are."""
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
        """Whether it has values.

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
        contents = self.bytes().copy()
        contents[index] = value
        self._write_bytes(contents)

    def _write_bytes(self, contents: np.ndarray) -> None:
        array = contents.view(self.base.dtype.numpy).reshape(self.base.shape)
        self.write(on(self.base.device, runtime.from_numpy(array)))

    def byteswap(self, dtype: Dtype) -> None:
        """Turns the bytes of each element of ``dtype`` round."""
        step = dtype.itemsize // 2 if dtype.is_complex else dtype.itemsize
        self._write_bytes(self.bytes().reshape(-1, step)[:, ::-1].reshape(-1))

    def fill_(self, value: int) -> UntypedStorage:
        """Writes one byte everywhere; returns the storage."""
        self[:] = value
        return self

    def copy_(self, source: UntypedStorage, non_blocking: bool = False) -> UntypedStorage:
        """Writes the bytes of another storage, which has as many or more; returns the storage."""
        _ = self.buffer  # a write is detected by comparing with the contents
        self._write_bytes(source.bytes()[: self.nbytes()].copy())
        return self

    def element_size(self) -> int:
        """Bytes an element: one."""
        return 1

    def clone(self) -> UntypedStorage:
        """Another storage with the same contents."""
        return UntypedStorage(self.buffer, self.base)

    __copy__ = clone

    def resizable(self) -> bool:
        """Whether its size may change: not when NumPy was given its memory, or gave it, and not while others refer to
        it."""
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
        """Makes it a flat buffer of ``numel`` elements, of which those that are added have one value.

        Raises:
            RuntimeError: while others refer to its memory.
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
    """The buffer and its base of a storage of this many bytes, or of these."""
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
    # Typed storages, which are deprecated, are registered here; their module imports this one.
    if name not in ("TypedStorage", "_dtype_to_storage_type_map"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("compat._core.memory.typed_storage"), name)


def _mapped() -> Any:
    """The module of memory-mapped and foreign storages, which imports this one."""
    return import_module("compat._core.memory.mmap_storage")
