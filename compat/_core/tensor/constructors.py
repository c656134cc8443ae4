"""Fast constructors of operations' results: without further calls, since every operation would pay for them."""

from __future__ import annotations

from typing import Any

from compat._core.memory.storage import UntypedStorage, clock
from compat._core.memory.strides import Layout
from compat._core.tensor.tensor import Tensor

_new = object.__new__


def new_tensor(buffer: Any, layout: Layout) -> Tensor:
    """``from_buffer`` outside inference mode."""
    storage = _new(UntypedStorage)
    storage.buffer = buffer
    storage.base = layout.base
    storage.version = 0
    storage.born = clock.now
    t = _new(Tensor)
    t._storage_ = storage
    t._layout_ = layout
    t._offset_ = 0
    t._counter_ = storage
    t._rg_ = False
    t._node_ = None
    t._nr_ = 0
    t._view_ = None
    t._autograd_state_ = None
    return t


def beside(storage: UntypedStorage, layout: Layout, offset: int, counter: Any) -> Tensor:
    """``wrap`` for a storage that another tensor shares, with that tensor's version counter."""
    t = _new(Tensor)
    t._storage_ = storage
    t._layout_ = layout
    t._offset_ = offset
    t._counter_ = counter
    t._rg_ = False
    t._node_ = None
    t._nr_ = 0
    t._view_ = None
    t._autograd_state_ = None
    return t
