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
    t._storage = storage
    t._layout = layout
    t._offset = 0
    t._counter = storage
    t._rg = False
    t._node = None
    t._nr = 0
    t._view = None
    t._autograd_state = None
    return t


def beside(storage: UntypedStorage, layout: Layout, offset: int, counter: Any) -> Tensor:
    """``wrap`` for a storage that another tensor shares, with that tensor's version counter."""
    t = _new(Tensor)
    t._storage = storage
    t._layout = layout
    t._offset = offset
    t._counter = counter
    t._rg = False
    t._node = None
    t._nr = 0
    t._view = None
    t._autograd_state = None
    return t
