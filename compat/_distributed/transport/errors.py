"""What goes wrong between processes."""

from __future__ import annotations


class DistError(RuntimeError):
    """Something went wrong between processes."""


class DistBackendError(DistError):
    """An exchange failed; the text says which ranks it lacked."""


class DistNetworkError(DistError):
    """Another process cannot be reached."""


class DistStoreError(DistError):
    """A key-value store does not have what was waited for."""


class QueueEmptyError(DistStoreError):
    """A queue of a store is empty."""


for _error in (DistError, DistBackendError, DistNetworkError, DistStoreError, QueueEmptyError):
    _error.__module__ = "torch.distributed"
