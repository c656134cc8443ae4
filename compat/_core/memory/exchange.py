"""Atomic changes of storages: threads write different views of a storage, and no write may be lost.

A write in place reads the buffer, records an operation on it and replaces it by the result. Another thread may have
replaced it in between, so it is replaced only if it is still the one that was read; otherwise the caller repeats the
operation on the present buffer. Nothing is locked while an operation is recorded, since that may run a window, which
may call Python.

Functions return None for storages of other classes than ``UntypedStorage``, which have a ``replace`` of their own.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from compat._core.memory.storage import UntypedStorage
from funcgrad.native.twins import twin
from funcgrad.runtime.process import in_child

#: Held by the functions below; their C twins need no lock. Re-entrant: replacing a buffer may run finalizers.
_changing = threading.RLock()


def exchange(storage: UntypedStorage, read: Any, new: Any, counter: Any) -> bool | None:
    """Replaces the buffer by ``new`` and increments the version if the buffer is still ``read``; returns whether it is.

    Args:
        counter: what counts the versions, or None.
    """
    if storage.__class__ is not UntypedStorage:
        return None
    with _changing:
        if storage.__class__ is not UntypedStorage or storage.buffer is not read:
            return False
        if counter is not None:
            counter.version += 1
        storage.buffer = new
    return True


def exchange_all(
    storages: Sequence[UntypedStorage], read: Sequence[Any], new: Sequence[Any], counters: Sequence[Any],
    leaves: Sequence[Any], grads: Sequence[Any],
) -> bool | None:  # fmt: skip
    """``exchange`` of several storages, and new gradients of leaves that have none: all of them or nothing.

    Args:
        storages: where one occurs twice, its new buffer is the same; each occurrence counts.
        leaves: the ``Autograd`` objects of leaves.
        grads: their gradients.
    """
    with _changing:
        for storage, buffer in zip(storages, read, strict=True):
            if storage.__class__ is not UntypedStorage:
                return None
            if storage.buffer is not buffer:
                return False
        if any(leaf.grad is not None for leaf in leaves):
            return False
        for storage, buffer, counter in zip(storages, new, counters, strict=True):
            if counter is not None:
                counter.version += 1
            storage.buffer = buffer
        for leaf, grad in zip(leaves, grads, strict=True):
            leaf.grad = grad
    return True


def swap(object: Any, name: str, before: Any, after: Any) -> bool:
    """Sets an attribute if it is still ``before``; returns whether it is."""
    with _changing:
        if getattr(object, name) is not before:
            return False
        setattr(object, name, after)
    return True


def turn(storage: UntypedStorage, read: Any, kind: type, buffer: Any) -> bool | None:
    """Changes the class of a storage to ``kind``, and its buffer to ``buffer``, an equal one, if the buffer is still
    ``read``; returns whether it is."""
    if storage.__class__ is not UntypedStorage:
        return None
    with _changing:
        if storage.__class__ is not UntypedStorage or storage.buffer is not read:
            return False
        storage.buffer = buffer
        storage.__class__ = kind
    return True


def bump(counter: Any) -> None:
    """Increments a version."""
    with _changing:
        counter.version += 1


def _renew() -> None:
    global _changing
    _changing = threading.RLock()


in_child(_renew)

_native = twin(Path(__file__).with_suffix(".c"), UntypedStorage=UntypedStorage)
if _native is not None:
    exchange, exchange_all, bump = _native.exchange, _native.exchange_all, _native.bump
    swap, turn = _native.swap, _native.turn
