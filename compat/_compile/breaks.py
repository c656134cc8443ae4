"""What ends a graph on purpose: ``torch._dynamo.graph_break``."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module

__all__ = ["graph_break", "handling", "refuse"]


class _Handlers(threading.local):
    def __init__(self) -> None:
        self.stack: list[Callable[[str], None]] = []


_handlers = _Handlers()


@contextmanager
def handling(handler: Callable[[str], None]) -> Iterator[None]:
    """Context in which ``graph_break`` calls a function with its message."""
    _handlers.stack.append(handler)
    try:
        yield
    finally:
        _handlers.stack.pop()


def graph_break(msg: str = "") -> None:
    """Ends the graph of a function that is compiled for a backend of the user's, so that the rest is another one.

    A function that XLA compiles stays one program, and outside a compiled function nothing happens.

    Args:
        msg: the reason, for error messages.

    Raises:
        Unsupported: within ``torch.compile(fullgraph=True)``.

    Example:
        >>> @torch.compile(backend=lambda gm, inputs: print(len(inputs), "input") or gm.forward)
        ... def f(x):
        ...     y = x.sin()
        ...     torch._dynamo.graph_break()
        ...     return y.cos()
        >>> f(torch.zeros(2))
        1 input
        1 input
        tensor([1., 1.])
    """
    if _handlers.stack:
        _handlers.stack[-1](msg)


def refuse(msg: str) -> None:
    """The handler of ``fullgraph=True``.

    Raises:
        Unsupported: always.
    """
    raise import_module("compat._dynamo.exc").Unsupported(
        "Call to `torch._dynamo.graph_break()`\n"
        f"  Explanation: User-inserted graph break. Message: {msg or None}\n"
        "  Hint: Remove the `torch._dynamo.graph_break()` call."
    )
