"""Tracebacks without library frames: those of funcgrad, compat and JAX are hidden where an error is displayed.

The exception keeps all frames, so debuggers see everything and calls cost nothing. Only the display is filtered:
Python's excepthooks for programs, threads and the prompt, IPython and notebooks, and pytest with the plugin
``funcgrad.tools.pytest_plugin``. ``FUNCGRAD_TRACEBACK=full`` in the environment, or
``funcgrad.debug.full_tracebacks()``, shows all frames.
"""

from __future__ import annotations

import os
import sys
import sysconfig
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from funcgrad.core.errors import is_library

_STANDARD = sysconfig.get_path("stdlib") + os.sep
#: Packages whose frames are hidden between two library frames, and that run scripts for the user.
_BETWEEN = tuple(f"{os.sep}{name}{os.sep}" for name in ("jax", "jaxlib", "numpy"))


class _Settings:
    """Display settings.

    Attributes:
        full: whether all frames are shown.
    """

    __slots__ = ("full",)

    def __init__(self) -> None:
        self.full = os.environ.get("FUNCGRAD_TRACEBACK", "").lower() == "full"


settings = _Settings()


def hidden(trace: TracebackType | None) -> Iterator[tuple[TracebackType, bool]]:
    """The entries of a traceback, outermost first, each with whether it is hidden.

    Hidden frames are those of the library, and of the standard library, NumPy or JAX when the library called them.
    """
    above = False
    while trace is not None:
        filename = trace.tb_frame.f_code.co_filename
        above = is_library(filename) or (above and _serves(filename))
        yield trace, above
        trace = trace.tb_next


def _serves(filename: str) -> bool:
    if "site-packages" not in filename and filename.startswith(_STANDARD):
        return True
    return any(name in filename for name in _BETWEEN)


def user_frames(trace: TracebackType | None) -> tuple[TracebackType | None, int]:
    """A traceback without library frames; unchanged if no frame would be left.

    Returns:
        The traceback, and the number of frames removed below the user's first one.
    """
    kept: list[TracebackType] = []
    count = 0
    for entry, left_out in hidden(trace):
        if not left_out:
            kept.append(entry)
        elif kept:
            count += 1
    made: TracebackType | None = None
    for entry in reversed(kept):
        made = TracebackType(made, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return (made, count) if kept else (trace, 0)


def _chain(error: BaseException | None, seen: set[int]) -> Iterator[BaseException]:
    """An error, its causes and contexts, and the members of exception groups, each once."""
    if error is None or id(error) in seen:
        return
    seen.add(id(error))
    yield error
    yield from _chain(error.__cause__, seen)
    yield from _chain(error.__context__, seen)
    for member in getattr(error, "exceptions", ()) if isinstance(error, BaseExceptionGroup) else ():
        yield from _chain(member, seen)


@contextmanager
def filtered(error: BaseException | None) -> Iterator[int]:
    """Context in which an error and its causes have only the user's frames; yields the number of hidden frames."""
    before = [(e, e.__traceback__) for e in _chain(error, set())]
    count = 0
    try:
        for e, trace in before if not settings.full else ():
            e.__traceback__, more = user_frames(trace)
            count += more
        yield count
    finally:
        for e, trace in before:
            e.__traceback__ = trace


def _remark(count: int) -> None:
    """Writes the line above a traceback that says how many frames are hidden; the last line stays the error itself."""
    if count and sys.stderr is not None:
        frames = f"{count} frame{'s' * (count != 1)} inside funcgrad and compat"
        sys.stderr.write(f"({frames} left out; FUNCGRAD_TRACEBACK=full in the environment shows all.)\n")


def formatted(error: BaseException) -> str:
    """An error with its traceback, as Python would display it, without library frames.

    Example:
        >>> try:
        ...     raise ValueError("no")
        ... except ValueError as error:
        ...     print(formatted(error).splitlines()[-1])
        ValueError: no
    """
    with filtered(error):
        return "".join(traceback.format_exception(error))


# ---------------------------------------------------------------- display hooks

_Hook = Callable[[type[BaseException], BaseException, TracebackType | None], Any]


def _excepthook(previous: _Hook) -> _Hook:
    def show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        with filtered(error) as count:
            _remark(count)
            previous(kind, error, error.__traceback__)

    return show


def _threads_hook(previous: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def show(args: Any) -> None:
        with filtered(args.exc_value) as count:
            _remark(count)
            trace = args.exc_traceback if args.exc_value is None else args.exc_value.__traceback__
            previous(threading.ExceptHookArgs((args.exc_type, args.exc_value, trace, args.thread)))

    return show


def _in_ipython(shell: Any) -> None:
    """Makes IPython, and so notebooks, hide library frames, unless the user has set another exception handler."""
    if shell is None or shell.custom_exceptions:
        return

    def show(shell: Any, kind: type[BaseException], error: BaseException, trace: Any, tb_offset: Any = None) -> None:
        with filtered(error) as count:
            _remark(count)
            shell.showtraceback((kind, error, error.__traceback__), tb_offset=tb_offset)

    shell.set_custom_exc((Exception,), show)


def install() -> None:
    """Installs the hooks that hide library frames in this process."""
    sys.excepthook = _excepthook(sys.excepthook)
    threading.excepthook = _threads_hook(threading.excepthook)
    if (ipython := sys.modules.get("IPython")) is not None:
        _in_ipython(ipython.get_ipython())
