"""Errors of communication between processes."""

from __future__ import annotations


class DistError(RuntimeError):
    """Base of the errors of communication."""


class DistBackendError(DistError):
    """A collective failed; the message names the missing ranks."""


class DistNetworkError(DistError):
    """Another process cannot be reached."""


class DistStoreError(DistError):
    """A key-value store timed out."""


class QueueEmptyError(DistStoreError):
    """A queue of a store is empty."""


for _error in (DistError, DistBackendError, DistNetworkError, DistStoreError, QueueEmptyError):
    _error.__module__ = "torch.distributed"
