"""Looking at the values of operands, for errors that depend on them: an index out of bounds, a target of no class.

Values that are there are looked at before the operation, whatever its other operands are: a target that was read from
a file is complained about at once, though the scores are noted down only. Values that are not there are results of
operations that have been noted down. To wait for them would end the window; what comes of a few small operations is
foreseen (``funcgrad.runtime.foreseen``), and all else is looked at when it has been computed, and the error comes then.
``COMPAT_EAGER=1`` brings it to the line that is wrong.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from compat import examples, lens
from compat.arrays import tensor_of
from compat.storage import UntypedStorage
from compat.tensor import Tensor, array_of, wrap
from funcgrad import runtime
from funcgrad.tracing import Tracer

Inspection = tuple[Callable[..., None], Sequence[Any], dict[str, Any]]


class _Local(threading.local):
    collected: list[Inspection] | None = None
    #: Whether values that are not there are waited for.
    waits = True


_local = _Local()


class _NotThere(Exception):
    """An inspection asked for values that are not computed."""


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
    before, _local.waits = _local.waits, False
    try:
        with runtime.looking():
            function(*args, **kwargs)
    except _NotThere:
        if collected is None:
            # Their own memory: what is written into the operands later is none of this operation's business.
            runtime.later(partial(function, *map(_kept, args), **kwargs))
    finally:
        _local.waits = before


def values_of(t: Tensor) -> np.ndarray:
    """What there is to see of an operand's values: under ``vmap`` all examples', none where there are only types."""
    there = runtime.computed(examples.inmost(t._storage.buffer))
    if there is None and not _local.waits:
        there = None if t._layout.base.traced else runtime.foreseen(t._storage.buffer)
        if there is None:
            raise _NotThere
        return lens.to_numpy(there, t._layout, t._offset)
    if not t._layout.base.traced:
        return array_of(t)
    if there is None or isinstance(there, Tracer):
        return np.empty(0, t.dtype.numpy)
    return np.asarray(runtime.ready(examples.inmost(lens.read(t._storage.buffer, t._layout, t._offset))))


def _kept(a: Any) -> Any:
    if isinstance(a, Tensor):
        if a._layout.base.traced:  # read while what traces it is running
            return tensor_of(lens.read(a._storage.buffer, a._layout, a._offset))
        return wrap(UntypedStorage(a._storage.buffer, a._storage.base), a._layout, a._offset)
    return type(a)(map(_kept, a)) if type(a) in (list, tuple) else a
