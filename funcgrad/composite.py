"""Functions made of many operations, called on arrays: their operations run together.

Outside every transform an operation runs at once, by an executable compiled for it and for its operands' types. A
function of twenty operations would wait for twenty of them to be compiled, for every new shape. These note their
operations down, as a transform does, and the runtime takes them as one window.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar, cast

from funcgrad import trees
from funcgrad.runtime.deferred import Deferred, flush, local, ready
from funcgrad.tracing import deferring, state

P = ParamSpec("P")
R = TypeVar("R")


def composite(function: Callable[P, R]) -> Callable[P, R]:
    """Has the operations of ``function`` run together when it is called outside every transform; a decorator.

    Within a transform or another such function it is ``function`` itself. Small operations run by NumPy until they were
    met often, so that results may differ by rounding between the first call and the hundredth.
    """
    return _together(function, lambda: None)


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """As ``composite``, where results must be the same each time to the last bit: compiled at the first call."""
    return _together(function, _whole)


def _whole() -> None:
    queue = local.queue
    if local.hold is None and queue.ops:
        queue.whole = True
        try:
            flush()
        finally:
            queue.whole = False


def _together(function: Callable[P, R], run: Callable[[], None]) -> Callable[P, R]:
    @wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        if state.depth or state.deferring or state.floor:
            return function(*args, **kwargs)
        flush()  # what somebody noted down before is no part of it
        with deferring():
            result = function(*args, **kwargs)
            waiting = [x for x in trees.leaves(result) if x.__class__ is Deferred]
            if not any(x.type.weak for x in waiting):
                run()
                return cast(R, trees.map(ready, result)) if waiting else result
        # What comes of Python numbers alone is weak only if each operation runs by itself.
        return function(*args, **kwargs)

    return called
