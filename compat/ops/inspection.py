"""Looking at the values of operands, for errors that depend on them: an index out of bounds, a target of no class.

Operands whose values are there are looked at before the operation. Others are results of operations that have been
noted down only: to wait for them would end the window, so they are looked at when they have been computed, and the
error comes then. ``COMPAT_EAGER=1`` brings it to the line that is wrong.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from compat import lens, levels
from compat.arrays import tensor_of
from compat.storage import UntypedStorage
from compat.tensor import Tensor, array_of, wrap
from funcgrad import runtime
from funcgrad.tracing import Tracer

Inspection = tuple[Callable[..., None], Sequence[Any], dict[str, Any]]


class _Local(threading.local):
    collected: list[Inspection] | None = None


_local = _Local()


@contextmanager
def inspections() -> Iterator[list[Inspection]]:
    """Collects what is looked at within it."""
    before, _local.collected = _local.collected, []
    try:
        yield _local.collected
    finally:
        _local.collected = before


def inspect(function: Callable[..., None], args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    """Calls ``function``, which raises if it does not like the values, now or when they are there."""
    collected = _local.collected
    if collected is not None:
        collected.append((function, args, kwargs))
    if all(runtime.computed(levels.inmost(t._storage.buffer)) is not None for t in _tensors(args)):
        with runtime.looking():
            function(*args, **kwargs)
    elif collected is None:
        # Their own memory: what is written into the operands later is none of this operation's business.
        runtime.later(partial(function, *map(_kept, args), **kwargs))


def values_of(t: Tensor) -> np.ndarray:
    """What there is to see of an operand's values: under ``vmap`` all examples', none where there are only types."""
    if not t._layout.base.traced:
        return array_of(t)
    there = runtime.computed(levels.inmost(t._storage.buffer))
    if there is None or isinstance(there, Tracer):
        return np.empty(0, t.dtype.numpy)
    return np.asarray(runtime.ready(levels.inmost(lens.read(t._storage.buffer, t._layout, t._offset))))


def _tensors(args: Sequence[Any]) -> Iterator[Tensor]:
    for a in args:
        if isinstance(a, Tensor):
            yield a
        elif isinstance(a, list | tuple):
            yield from _tensors(a)


def _kept(a: Any) -> Any:
    if isinstance(a, Tensor):
        if a._layout.base.traced:  # read while what traces it is running
            return tensor_of(lens.read(a._storage.buffer, a._layout, a._offset))
        return wrap(UntypedStorage(a._storage.buffer, a._storage.base), a._layout, a._offset)
    return type(a)(map(_kept, a)) if type(a) in (list, tuple) else a
