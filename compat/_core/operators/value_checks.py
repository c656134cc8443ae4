"""Checks of operands' values, for errors such as an index out of bounds or an invalid class.

Computed values are checked before the operation, even if other operands are deferred: an invalid target from a file
raises an error at once. Deferred values are results of recorded operations, and waiting for them would end the window.
Results of a few small operations are predicted (``funcgrad.runtime.foreseen``); all others are checked once they are
computed, where Python needs a value or two windows later. The error names the line of the operation; with
``COMPAT_EAGER=1`` it is raised there.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from compat._core.memory import strided_access
from compat._core.memory.storage import UntypedStorage
from compat._core.tensor.tensor import Tensor, array_of, wrap
from compat._core.tensor.tracing import tensor_of
from compat._core.transforms import vmap_checks
from compat._core.types.errors import lead
from funcgrad import runtime
from funcgrad.core.errors import Source, describe_locations, file_and_line, user_locations
from funcgrad.core.tracing import Tracer


class Inspection:
    """A check of values, which is called again when a call is replayed (``compat._compile``).

    Args:
        function, args, kwargs: the check and its arguments. It gets only the sizes and dtypes of tensors whose values
            it does not read.
        seen: the tensors whose values it reads.
        sources: the program's location when it recorded the operation.
    """

    __slots__ = ("function", "args", "kwargs", "seen", "sources")

    def __init__(
        self,
        function: Callable[..., None],
        args: Sequence[Any],
        kwargs: dict[str, Any],
        seen: Sequence[Tensor],
        sources: Sequence[Source],
    ):
        self.function, self.kwargs, self.sources = function, kwargs, sources
        self.seen = [_kept(t) for t in seen]
        places = {id(t): i for i, t in enumerate(seen)}
        self.args = [_described(a, places) for a in args]

    def now(self) -> _Late:
        """The check of the tensors' present values."""
        return self.on([_kept(t) for t in self.seen])

    def on(self, seen: Sequence[Tensor]) -> _Late:
        """The check of other tensors."""
        return _Late(partial(self.function, *[_filled(a, seen) for a in self.args], **self.kwargs), self.sources)


class _Local(threading.local):
    collected: list[Inspection] | None = None
    #: The tensors whose values a collected check has read.
    seen: list[Tensor] | None = None
    #: Whether a check waits for deferred values.
    waits = True


_local = _Local()


class _NotThere(Exception):
    """Raised if a check needs values that are not computed yet."""


class _Late:
    """A check that is called once values are computed: its error names the line that recorded the operation.

    Args:
        inspection: the check.
        sources: the program's location when it recorded the operation.
    """

    __slots__ = ("inspection", "sources")

    def __init__(self, inspection: Callable[[], None], sources: Sequence[Source]):
        self.inspection, self.sources = inspection, sources

    def __call__(self) -> None:
        try:
            self.inspection()
        except Exception as error:
            lead(error)
            now = user_locations(1)
            if error.args and [*map(file_and_line, now)] != [*map(file_and_line, self.sources)]:
                where = describe_locations(self.sources)
                error.args = (
                    f"{error.args[0]}\nThe operation was recorded at {where}, and its operands' values looked at when "
                    "they were computed; with COMPAT_EAGER=1 in the environment this error is raised at that line.",
                    *error.args[1:],
                )
            raise


@contextmanager
def inspections() -> Iterator[list[Inspection]]:
    """Context that collects checks."""
    before, _local.collected = _local.collected, []
    try:
        yield _local.collected
    finally:
        _local.collected = before


def inspect(function: Callable[..., None], args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    """Calls a check, now or once its values are computed."""
    if _local.collected is not None:
        _collect(_local.collected, function, args, kwargs)
        return
    before, _local.waits = _local.waits, False
    try:
        with runtime.looking():
            function(*args, **kwargs)
    except (IndexError, RuntimeError) as error:
        lead(error)
        raise
    except _NotThere:
        # On copies of the tensors, so that later writes into the operands do not matter.
        runtime.later(_Late(partial(function, *map(_kept, args), **kwargs), user_locations(1)))
    finally:
        _local.waits = before


def _collect(
    collected: list[Inspection], function: Callable[..., None], args: Sequence[Any], kwargs: dict[str, Any]
) -> None:
    """Adds a check, and calls it as far as values are computed."""
    seen: list[Tensor] = []
    before, _local.waits, _local.seen = (_local.waits, _local.seen), False, seen
    try:
        with runtime.looking():
            function(*args, **kwargs)
    except Exception:
        if all(_is_there(t) for t in seen):  # else the error may be about a placeholder
            raise
    finally:
        _local.waits, _local.seen = before
    collected.append(Inspection(function, args, kwargs, seen, user_locations(2)))


def _is_there(t: Tensor) -> bool:
    return runtime.computed(vmap_checks.inmost(t._storage_.buffer)) is not None


def values_of(t: Tensor) -> np.ndarray:
    """The values of an operand; under ``vmap`` of all batch elements, and an empty array if there are only types."""
    traced = t._layout_.base.traced
    there = runtime.computed(vmap_checks.inmost(t._storage_.buffer) if traced else t._storage_.buffer)
    if there is not None and not traced and _local.seen is None:
        return array_of(t)
    if _local.seen is not None:
        _local.seen.append(t)
        if there is None:
            return np.empty(0, t.dtype.numpy)
    if there is None and not _local.waits:
        there = None if traced else runtime.foreseen(t._storage_.buffer)
        if there is None:
            raise _NotThere
        return strided_access.to_numpy(there, t._layout_, t._offset_)
    if not traced:
        return array_of(t)
    if there is None or isinstance(there, Tracer):
        return np.empty(0, t.dtype.numpy)
    return np.asarray(
        runtime.ready(vmap_checks.inmost(strided_access.read(t._storage_.buffer, t._layout_, t._offset_)))
    )


def known_within(t: Tensor, low: int, high: int) -> bool:
    """Whether a check has found that all values are in ``range(low, high)``: a buffer's values never change."""
    if _local.seen is not None or not _has_values_of_buffer(t):
        return False
    bounds = getattr(t._storage_.buffer, "within", None)
    return bounds is not None and low <= bounds[0] and bounds[1] <= high


def found_within(t: Tensor, low: int, high: int) -> None:
    """Records that all values of a tensor are in ``range(low, high)``, for ``known_within``."""
    buffer = t._storage_.buffer
    if buffer.__class__ is runtime.Deferred and _has_values_of_buffer(t) and hasattr(buffer, "value"):
        buffer.within = low, high


def _has_values_of_buffer(t: Tensor) -> bool:
    """Whether the values of a tensor are those of its buffer: all of them, of the same dtype and sign."""
    layout = t._layout_
    return layout.whole and layout.base is t._storage_.base and layout.dtype is layout.base.dtype and not layout.neg


def _kept(a: Any) -> Any:
    if isinstance(a, Tensor):
        if a._layout_.base.traced:  # read while its transform is active
            return tensor_of(strided_access.read(a._storage_.buffer, a._layout_, a._offset_))
        return wrap(UntypedStorage(a._storage_.buffer, a._storage_.base), a._layout_, a._offset_)
    return type(a)(map(_kept, a)) if type(a) in (list, tuple) else a


class _Place(int):
    """A placeholder for one of the checked tensors, by its number."""


def _described(a: Any, places: dict[int, int]) -> Any:
    """An argument with placeholders for tensors, for ``_filled``."""
    if isinstance(a, Tensor):
        found = places.get(id(a))
        return (
            _Place(found) if found is not None else wrap(UntypedStorage(None, a._storage_.base), a._layout_, a._offset_)
        )
    return type(a)([_described(x, places) for x in a]) if type(a) in (list, tuple) else a


def _filled(a: Any, seen: Sequence[Tensor]) -> Any:
    if type(a) is _Place:
        return seen[a]
    return type(a)([_filled(x, seen) for x in a]) if type(a) in (list, tuple) else a
