"""Tracebacks that show the user's frames: those of funcgrad, compat and JAX are left out where an error is displayed.

The error itself keeps all of them, so that a debugger sees everything, and calls cost nothing. What displays errors is
asked to leave frames out: Python at the end of a program or of a thread and at its prompt, IPython and notebooks,
and pytest with the plugin ``funcgrad.tools.pytest_plugin``. ``FUNCGRAD_TRACEBACK=full`` in the environment, or
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
#: Between two frames of the library these are part of it, and they run scripts for it.
_BETWEEN = tuple(f"{os.sep}{name}{os.sep}" for name in ("jax", "jaxlib", "numpy"))


class _Settings:
    """What is shown.

    Attributes:
        full: whether all frames are.
    """

    __slots__ = ("full",)

    def __init__(self) -> None:
        self.full = os.environ.get("FUNCGRAD_TRACEBACK", "").lower() == "full"


settings = _Settings()


def hidden(trace: TracebackType | None) -> Iterator[tuple[TracebackType, bool]]:
    """The entries of a traceback, outermost first, each with whether it is left out.

    A frame is, that is of the library, or that it called in Python's standard library, NumPy or JAX.
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
    """A traceback without the library's frames; unchanged where nothing would be left.

    Returns:
        The traceback, and how many frames it leaves out below the user's first one.
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
    """An error, what it came from, and the members of groups, each once."""
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
    """Within it, an error and what it came from have the user's frames alone; gives how many are left out."""
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
    """Writes the line above a traceback that says what it does not show; the last line stays the error's own."""
    if count and sys.stderr is not None:
        frames = f"{count} frame{'s' * (count != 1)} inside funcgrad and compat"
        sys.stderr.write(f"({frames} left out; FUNCGRAD_TRACEBACK=full in the environment shows all.)\n")


def formatted(error: BaseException) -> str:
    """An error with its traceback, as Python would display it, of the user's frames.

    Example:
        >>> try:
        ...     raise ValueError("no")
        ... except ValueError as error:
        ...     print(formatted(error).splitlines()[-1])
        ValueError: no
    """
    with filtered(error):
        return "".join(traceback.format_exception(error))


# ---------------------------------------------------------------- what displays errors

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
    """Has IPython, and so a notebook, leave the frames out, unless the user has set another way to show errors."""
    if shell is None or shell.custom_exceptions:
        return

    def show(shell: Any, kind: type[BaseException], error: BaseException, trace: Any, tb_offset: Any = None) -> None:
        with filtered(error) as count:
            _remark(count)
            shell.showtraceback((kind, error, error.__traceback__), tb_offset=tb_offset)

    shell.set_custom_exc((Exception,), show)


def install() -> None:
    """Has what displays errors in this process leave frames out."""
    sys.excepthook = _excepthook(sys.excepthook)
    threading.excepthook = _threads_hook(threading.excepthook)
    if (ipython := sys.modules.get("IPython")) is not None:
        _in_ipython(ipython.get_ipython())
