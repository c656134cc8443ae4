"""Storages as elements of a dtype, such as ``torch.FloatStorage``: deprecated views of ``UntypedStorage``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from compat._core.memory.storage import UntypedStorage, new_storage, unknown_storage
from compat._core.memory.storage_base import Moves
from compat._core.memory.strided_access import elements_of
from compat._core.memory.strides import Base
from compat._core.types import dtype as dtypes
from compat._core.types.device import META, available
from compat._core.types.dtype import dtype as Dtype
from compat._core.types.errors import TYPED_STORAGE, warn


class _OfDtype(type):
    """The metaclass of ``FloatStorage`` and the others: their instances are the typed storages of a dtype."""

    dtype: Dtype | None

    def __instancecheck__(cls, instance: Any) -> bool:
        return type.__instancecheck__(TypedStorage, instance) and cls.dtype in (None, instance.dtype)

    def __call__(cls, *args: Any, **named: Any) -> TypedStorage:
        wrong = next((name for name in ("dtype", "device") if cls.dtype is not None and name in named), None)
        if wrong is not None:
            raise RuntimeError(f"{cls}.__new__ {_FORMS}\nKeyword argument '{wrong}' cannot be specified")
        made: TypedStorage = type.__call__(TypedStorage, *args, **{"dtype": cls.dtype, **named})
        return made


_FORMS = (
    "received an invalid combination of arguments. Expected one of:\n * no arguments\n * (int size)\n * (Sequence data)"
    "\n * (*, UntypedStorage wrap_storage)"
)


@cache
def warn_typed() -> None:
    """Warns once per process that typed storages are deprecated."""
    warn(TYPED_STORAGE)


def _storage_of(args: Sequence[Any], dtype: Dtype, device: Any) -> UntypedStorage:
    given = args[0] if args else 0
    if len(args) > 1 or not isinstance(given, (int, np.integer, Sequence)):
        raise TypeError(f"<class 'torch.{_NAMES[dtype]}'>.__new__ {_FORMS}")
    array = np.array(given, dtype.numpy) if isinstance(given, Sequence) else np.zeros(given.__index__(), dtype.numpy)
    if device is not None and available(device) is META:
        return unknown_storage(Base(array.shape, dtype, device=META))
    return new_storage(array, dtype)


class TypedStorage(Moves, metaclass=_OfDtype):
    """A storage interpreted as elements of a dtype.

    Called with a size, or with the elements; ``wrap_storage`` is an untyped storage to wrap.

    Attributes:
        dtype: the dtype of its elements.
    """

    dtype: Any = None

    def __init__(self, *args: Any, wrap_storage: Any = None, dtype: Any = None, device: Any = None):
        self.dtype = dtype or dtypes.get_default_dtype()
        self._storage: UntypedStorage = wrap_storage
        if wrap_storage is None:
            self._storage = _storage_of(args, self.dtype, device)
        self.device = self._storage.device

    def is_shared(self) -> bool:
        return self._storage.is_shared()

    @classmethod
    def from_file(cls, filename: Any, shared: bool = False, size: int = 0) -> TypedStorage:
        """A storage of the first ``size`` elements of a file; if ``shared``, writes go to the file."""
        from compat._core.memory.mmap_storage import storage_of_file

        dtype = cls._wanted("from_file")
        return TypedStorage(wrap_storage=storage_of_file(filename, shared, size, dtype), dtype=dtype)

    @classmethod
    def from_buffer(cls, buffer: Any, byte_order: str | None = None, count: int = -1, offset: int = 0) -> TypedStorage:
        """A storage with a copy of an object's buffer; elements of several bytes need a byte order."""
        dtype = cls._wanted("from_buffer")
        made = UntypedStorage.from_buffer(buffer, byte_order, count, offset, dtype=dtype)
        return TypedStorage(wrap_storage=made, dtype=dtype)

    @classmethod
    def _wanted(cls, what: str) -> Dtype:
        if cls.dtype is None:
            raise RuntimeError(f"{what}: only supported on subclasses of torch.storage._LegacyStorage")
        return cls.dtype

    @classmethod
    def _over(cls, storage: Any) -> TypedStorage:
        return TypedStorage(wrap_storage=storage, dtype=cls.dtype or dtypes.get_default_dtype())

    def _again(self, storage: Any) -> TypedStorage:
        return TypedStorage(wrap_storage=storage, dtype=self.dtype)

    @classmethod
    def _itemsize(cls) -> int:
        return (cls.dtype or dtypes.get_default_dtype()).itemsize

    @property
    def filename(self) -> str | None:
        """The path of the mapped file; None for other storages."""
        return self._storage.filename

    @property
    def _cdata(self) -> int:
        return self._storage._cdata

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes()

    def pickle_storage_type(self) -> str:
        """The name of its class without the module."""
        return _NAMES[self.dtype]

    @property
    def _untyped_storage(self) -> UntypedStorage:
        return self._storage

    def untyped(self) -> UntypedStorage:
        """The storage itself."""
        return self._storage

    def data_ptr(self) -> int:
        """The storage's address."""
        return self._storage.data_ptr()

    def nbytes(self) -> int:
        """Its size in bytes."""
        return self._storage.nbytes()

    def element_size(self) -> int:
        """The size of an element in bytes."""
        return self.dtype.itemsize

    def size(self) -> int:
        """Its size in elements."""
        return self._storage.nbytes() // self.dtype.itemsize

    __len__ = size

    def resizable(self) -> bool:
        """Whether its size may change."""
        return self._storage.resizable()

    def resize_(self, size: int) -> None:
        """Resizes it to ``size`` elements."""
        self._storage.resize_(size * self.dtype.itemsize)

    def _elements(self) -> np.ndarray:
        self._storage.check_values()
        return self._storage.bytes().view(self.dtype.numpy)

    def tolist(self) -> list[Any]:
        """Its elements."""
        return self._elements().tolist()

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        return self.tolist()[self._place(index)]

    def _place(self, index: Any) -> int:
        if not isinstance(index, int):
            raise RuntimeError(f"can't index a {type(self)} with {type(index)}")
        if not -self.size() <= index < self.size():
            raise IndexError(f"index {index} out of range for storage of size {self.size()}")
        return index

    def __setitem__(self, index: Any, value: Any) -> None:
        if self.device is META:
            return
        place = index if isinstance(index, slice) else self._place(index)

        def change(contents: np.ndarray) -> np.ndarray:
            elements_of(contents, self.dtype.numpy)[place] = value
            return contents

        self._storage.change_bytes(change)

    def fill_(self, value: Any) -> TypedStorage:
        """Sets every element to ``value``; returns the storage."""
        self[:] = value
        return self

    def copy_(self, source: TypedStorage, non_blocking: bool = False) -> TypedStorage:
        """Writes the bytes of another storage; returns the storage."""
        self._storage.copy_(source._storage)
        return self

    def clone(self) -> TypedStorage:
        """Another storage with the same elements."""
        return TypedStorage(wrap_storage=self._storage.clone(), dtype=self.dtype)

    __copy__ = clone

    def type(self, dtype: Any = None) -> str:
        """The name of its class, ``torch.FloatStorage``."""
        return f"torch.{_NAMES[self.dtype]}"

    def __repr__(self) -> str:
        lines = "..." if self.device is META else " " + "\n ".join(str(x) for x in self.tolist())
        return f"{lines}\n[torch.storage.TypedStorage(dtype={self.dtype}, device={self.device}) of size {self.size()}]"


_WITHOUT = (dtypes.uint16, dtypes.uint32, dtypes.uint64, dtypes.complex32)
_NAMES: dict[Dtype, str] = {d: f"{d.scalar_name}Storage" for d in dtypes.ALL if d not in _WITHOUT}


def _conversion(dtype: Dtype) -> Any:
    def convert(self: TypedStorage | UntypedStorage) -> TypedStorage:
        elements = self._elements() if isinstance(self, TypedStorage) else self.bytes()
        return TypedStorage(wrap_storage=new_storage(elements.astype(dtype.numpy), dtype), dtype=dtype)

    name = _NAMES[dtype].removesuffix("Storage")
    convert.__name__ = {"ComplexDouble": "complex_double", "ComplexFloat": "complex_float"}.get(name, name.lower())
    convert.__qualname__ = convert.__name__
    convert.__doc__ = f"Its elements as {dtype}, in a storage of their own."
    return convert


for _dtype in _NAMES:
    _converted = _conversion(_dtype)
    setattr(TypedStorage, _converted.__name__, _converted)
    setattr(UntypedStorage, _converted.__name__, _converted)

#: ``FloatStorage`` and those of other dtypes, by name.
CLASSES = {
    name: _OfDtype(name, (TypedStorage,), {"dtype": dtype, "__module__": "torch", "__doc__": f"Storages of {dtype}."})
    for dtype, name in _NAMES.items()
}
TypedStorage.__module__ = "torch.storage"


def _dtype_to_storage_type_map() -> dict[Dtype, str]:
    return dict(_NAMES)


def class_of(dtype: Dtype) -> Any:
    """The class of a dtype's typed storages, ``FloatStorage`` or another; None if it has none."""
    return CLASSES.get(_NAMES.get(dtype, ""))


def __getattr__(name: str) -> Any:
    if name != "Storage":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return class_of(dtypes.get_default_dtype())  # ``torch.Storage`` depends on the default dtype
