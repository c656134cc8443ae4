"""Where storages are and may go: what both of their faces, untyped and typed, say of it."""

from __future__ import annotations

from typing import Any

from compat._core.memory.meta import NO_DATA
from compat._core.types.device import CPU, META, available
from compat._core.types.errors import no_sharing


class Moves:
    """What storages inherit of it; they have a ``device``.

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
    is_cuda = is_hpu = is_sparse = is_sparse_csr = False

    def untyped(self) -> Any:
        """The storage as bytes."""
        return self

    def get_device(self) -> None:
        """The number of its device: the CPU has none."""

    def is_shared(self) -> bool:
        """Whether other processes see what is written to it: where it is a file's memory, mapped to be shared."""
        return False

    def is_pinned(self, device: Any = "cuda") -> bool:
        """Whether its memory is pinned for a GPU."""
        return False

    def cpu(self) -> Any:
        """The storage itself.

        Raises:
            NotImplementedError: on the meta device.
        """
        if self.device is META:
            raise NotImplementedError(NO_DATA)
        return self

    def to(self, *, device: Any, non_blocking: bool = False) -> Any:
        """The storage on a device: itself, if it is there.

        Raises:
            AssertionError: for a device that storages do not go to.
            NotImplementedError: from the meta device.
        """
        where = available(device)
        if where is not CPU:
            raise AssertionError(f"{where.type.upper()} device module is not loaded")
        return self.cpu()

    def cuda(self, device: Any = None, non_blocking: bool = False) -> Any:
        """Raises an ``AssertionError``: there is no GPU."""
        return self.to(device="cuda")

    def share_memory_(self) -> Any:
        """Returns the storage if it is shared already.

        Raises:
            RuntimeError: on the meta device.
            NotImplementedError: for any other: its memory cannot become another process's, too.
        """
        if self.device is META:
            raise RuntimeError("_share_fd_: only available on CPU")
        if not self.is_shared():
            raise no_sharing("share_memory_")
        return self

    @classmethod
    def _new_shared(cls, *args: Any, **kwargs: Any) -> Any:
        """Raises a ``NotImplementedError``, as every way to memory of several processes but a file's."""
        raise no_sharing("_new_shared")

    _new_using_fd_cpu = _new_using_filename_cpu = _new_shared_fd_cpu = _new_shared_filename_cpu = _new_shared
    _share_memory_ = share_memory_

    def _share_fd_cpu_(self, *args: Any, **kwargs: Any) -> Any:
        """Raises a ``NotImplementedError``, as ``_new_shared``."""
        raise no_sharing("_share_fd_cpu_")

    _share_filename_cpu_ = _get_shared_fd = _share_fd_cpu_
