"""Devices of storages and moves between them, for untyped and typed storages."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

from compat._core.memory import shared_memory
from compat._core.memory.meta import NO_DATA
from compat._core.memory.strides import Base
from compat._core.types.device import CPU, META, available, jax_device
from compat._core.types.device import device as Device
from funcgrad import runtime


class Moves:
    """Mixin of storages, which have a ``device``.

    Example:
        >>> import compat as torch
        >>> storage = torch.ones(2).untyped_storage()
        >>> storage.to(device="cpu") is storage, storage.is_sparse
        (True, False)
        >>> storage.cuda()
        Traceback (most recent call last):
        AssertionError: Torch not compiled with CUDA enabled
    """

    __slots__ = ()
    device: Any
    size: Any
    is_hpu = is_sparse = is_sparse_csr = False

    @property
    def is_cuda(self) -> bool:
        """Whether it is on a GPU."""
        return bool(self.device.type == "cuda")

    def untyped(self) -> Any:
        """The untyped storage."""
        return self

    def get_device(self) -> int | None:
        """The index of its device; None for the CPU."""
        found: int | None = self.device.index
        return found

    def is_pinned(self, device: Any = "cuda") -> bool:
        """Whether its memory is pinned for a GPU."""
        return False

    def cpu(self) -> Any:
        """The storage on the CPU: itself, if it is on it.

        Raises:
            NotImplementedError: on the meta device.
        """
        return self.to(device=CPU)

    def to(self, *, device: Any, non_blocking: bool = False) -> Any:
        """The storage on a device: itself, if it is on it.

        Raises:
            AssertionError: for the meta device.
            NotImplementedError: from the meta device.
        """
        where = available(device)
        if where is META:
            raise AssertionError(f"{where.type.upper()} device module is not loaded")
        if self.device is META:
            raise NotImplementedError(NO_DATA)
        return self if where is self.device else self._again(_moved(self.untyped(), where))

    def cuda(self, device: Any = None, non_blocking: bool = False) -> Any:
        """The storage on a GPU: itself, if it is on it.

        Raises:
            AssertionError: if there is no GPU.
        """
        return self.to(device="cuda" if device is None else device)

    # ------------------------------------------------------------ memory of several processes

    def is_shared(self) -> bool:
        """Whether other processes see writes to it."""
        return False

    def share_memory_(self) -> Any:
        """Moves it into shared memory, unless it is there; returns it.

        Raises:
            RuntimeError: on the meta device.
        """
        _shared().share(self.untyped())
        return self

    _share_memory_ = share_memory_

    @classmethod
    def _new_shared(cls, size: int, *, device: Any = "cpu") -> Any:
        """A new storage in shared memory, of ``size`` bytes, or elements if it is typed."""
        available(device)
        return cls._over(_shared().new_shared(size * cls._itemsize()))

    @classmethod
    def _new_using_fd_cpu(cls, size: int) -> Any:
        """``_new_shared``, in memory identified by a file descriptor."""
        return cls._over(_shared().new_shared(size * cls._itemsize(), shared_memory.anonymous))

    @classmethod
    def _new_using_filename_cpu(cls, size: int) -> Any:
        """``_new_shared``, in memory identified by a name."""
        return cls._over(_shared().new_shared(size * cls._itemsize(), shared_memory.named))

    @classmethod
    def _new_shared_fd_cpu(cls, fd: int, size: int) -> Any:
        """The storage over shared memory, given its descriptor and size."""
        return cls._over(_shared().by_descriptor(fd, _shared().bytes_of(size * cls._itemsize())))

    @classmethod
    def _new_shared_filename_cpu(cls, manager: Any, handle: bytes, size: int) -> Any:
        """The storage over shared memory, given its name and size.

        Args:
            manager: the address of PyTorch's manager process, which removes files; there is none here.
        """
        base = _shared().bytes_of(size * cls._itemsize())
        return cls._over(_shared().by_name(os.fsdecode(handle), base))

    def _share_fd_cpu_(self) -> tuple[int, int]:
        """Moves it into memory identified by a file descriptor; returns the descriptor and the size."""
        return _shared().share_by_descriptor(self.untyped()).descriptor, self.size()

    _get_shared_fd = _share_fd_cpu_

    def _share_filename_cpu_(self) -> tuple[bytes, bytes, int]:
        """Moves it into memory identified by a name; returns an empty manager address, the name and the size."""
        return b"", os.fsencode(_shared().share_by_name(self.untyped()).name), self.size()

    def _shared_incref(self) -> Any:
        """Increments the user count of memory identified by a name; returns the storage."""
        block = self.untyped()._block
        if block is not None and block.counted:
            block.keep()
        return self

    def _shared_decref(self) -> Any:
        """Decrements the user count of memory identified by a name; returns the storage."""
        block = self.untyped()._block
        if block is not None and block.counted:
            block.let_go()
        return self

    @classmethod
    def _over(cls, storage: Any) -> Any:
        """A storage of this class over an untyped one."""
        return storage

    def _again(self, storage: Any) -> Any:
        """A storage of this one's dtype over an untyped one."""
        return storage

    @classmethod
    def _itemsize(cls) -> int:
        return 1


def _moved(storage: Any, where: Device) -> Any:
    base = Base(storage.base.shape, storage.base.dtype, device=where)
    return type(storage)(runtime.moved(storage.buffer, jax_device(where)), base)


def _shared() -> Any:
    """The module of storages in shared memory, which imports this one."""
    return import_module("compat._core.memory.shared_storage")
