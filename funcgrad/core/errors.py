"""The exceptions of funcgrad, and the user's source line for their messages."""

from __future__ import annotations

import linecache
import os
import sys
import sysconfig
from collections.abc import Sequence
from types import CodeType, FrameType
from typing import ClassVar, TypeVar

from funcgrad.core.caching import Cache, Group

_hidden: tuple[str, ...] = (os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep,)
_STANDARD = sysconfig.get_path("stdlib") + os.sep


#: The documentation's page of errors; each entry shows the wrong program and the right one.
DOCUMENTATION = os.environ.get("FUNCGRAD_DOCS_URL", "https://funcgrad.github.io/funcgrad/").rstrip("/")

E = TypeVar("E", bound=BaseException)


def explained(error: E, entry: str, hint: str = "") -> E:
    """Adds a note that links to an entry on the documentation's page of errors; returns the error.

    Args:
        error: the error to raise.
        entry: the anchor of the entry.
        hint: what to write instead, if the message, being another library's, does not say it.

    Example:
        >>> error = explained(ValueError("no"), "derivative-lost", "Say yes.")
        >>> error.__notes__
        ['Say yes. The wrong program and the right one: .../help/errors.html#derivative-lost']
    """
    note = f"The wrong program and the right one: {DOCUMENTATION}/help/errors.html#{entry}"
    error.add_note(f"{hint} {note}" if hint else note)
    return error


class FuncgradError(Exception):
    """Base of the errors that only funcgrad raises.

    Attributes:
        entry: the anchor of its entry on the page of errors, or "".
    """

    entry: ClassVar[str] = ""

    def __init__(self, *args: object, entry: str | None = None) -> None:
        super().__init__(*args)
        self.explained_by = self.entry if entry is None else entry
        if self.explained_by:
            explained(self, self.explained_by)


class ConcretizationError(FuncgradError, TypeError):
    """A Python value was requested from an array that has only a shape and dtype, as under ``jit``."""

    entry = "concretization"


class DerivativeLostError(ConcretizationError):
    """A value that is being differentiated was converted to a Python number, which would lose its derivative."""

    entry = "derivative-lost"


class LeakedTracerError(FuncgradError, RuntimeError):
    """A tracer was used after the transform that made it had returned."""

    entry = "leaked-tracer"


class NonDifferentiableError(FuncgradError, TypeError, NotImplementedError):
    """A primitive without a derivative rule was differentiated."""

    entry = "no-derivative"


class TreeDepthError(FuncgradError, ValueError, RecursionError):
    """Lists, tuples and dicts among arguments or results are nested too deep, or one contains itself."""

    entry = "tree-depth"


class ProgramError(FuncgradError):
    """A ``Program`` is not well formed; raised by the checker."""


def hide_frames_below(folder: str) -> None:
    """Treats files under ``folder`` as library code when a message names the user's line."""
    global _hidden
    _hidden = (*_hidden, os.path.abspath(folder) + os.sep)
    _own.clear()
    _library.clear()


def is_library(filename: str) -> bool:
    """Whether a file is library code, which messages do not show."""
    return filename.startswith((*_hidden, "<frozen")) or f"{os.sep}jax{os.sep}" in filename


def is_installed(filename: str) -> bool:
    """Whether a file belongs to the standard library or an installed package."""
    return filename.startswith(_STANDARD) or bool({"site-packages", "dist-packages"} & set(filename.split(os.sep)))


Source = tuple[CodeType, int]
"""A place in the user's code: a code object and the offset of an instruction in it."""

_FILES = Group("files of code", 4096)
#: Whether messages hide a file, cached by file name.
_own: set[str] = set()
_library: Cache[str, bool] = Cache(_FILES)
_installed: Cache[str, bool] = Cache(_FILES)


def user_location(skip: int = 0) -> Source | None:
    """The innermost user frame's code and position, cheap to compute and store.

    Args:
        skip: number of frames above the caller that are known to be library code.
    """
    frame = sys._getframe(1 + skip)
    while frame is not None:
        code = frame.f_code
        filename = code.co_filename
        if filename not in _own:
            if filename.startswith(_hidden):
                _own.add(filename)
            else:
                hidden = _library.get(filename)
                if hidden is None:
                    hidden = _library[filename] = is_library(filename)
                if not hidden:
                    return code, frame.f_lasti
        frame = frame.f_back  # type: ignore[assignment]
    return None


def file_and_line(source: Source) -> tuple[str, int]:
    """The file name and line number of a location from ``user_location``."""
    code, offset = source
    for start, end, number in code.co_lines():
        if start <= offset < end and number is not None:
            return code.co_filename, number
    return code.co_filename, code.co_firstlineno


def describe_location(source: Source | None) -> str:
    """``file.py:12 (in loss): source line`` for a location from ``user_location``."""
    if source is None:
        return "an unknown line"
    filename, line = file_and_line(source)
    text = linecache.getline(filename, line).strip()
    where = f"{os.path.basename(filename)}:{line} (in {source[0].co_name})"
    return f"{where}: {text}" if text else where


def locate(error: Exception) -> None:
    """Adds the user's current line to an error message that does not name one."""
    source = user_location(1)
    if source is not None and error.args and isinstance(error.args[0], str) and "; at " not in error.args[0]:
        error.args = (f"{error.args[0]}; at {describe_location(source)}", *error.args[1:])


def user_locations(skip: int = 0) -> list[Source]:
    """As ``user_location``; where that is in an installed library, also the line of the user's own code that called it.

    Args:
        skip: as for ``user_location``.
    """
    found: list[Source] = []
    frame: FrameType | None = sys._getframe(1 + skip)
    while frame is not None:
        code = frame.f_code
        filename = code.co_filename
        hidden = _library.get(filename)
        if hidden is None:
            hidden = _library[filename] = is_library(filename)
        if not hidden:
            installed = _installed.get(filename)
            if installed is None:
                installed = _installed[filename] = is_installed(filename)
            if not installed or not found:
                found.append((code, frame.f_lasti))
            if not installed:
                break
        frame = frame.f_back
    return found


def describe_locations(sources: Sequence[Source]) -> str:
    """The result of ``user_locations``, as text."""
    return ", called from ".join(map(describe_location, sources)) if sources else describe_location(None)


def say_where(error: BaseException, what: str) -> None:
    """Adds a note that names the recorded operations during which an error was raised.

    Args:
        what: a sentence without a full stop.
    """
    text = f"{what}; with COMPAT_EAGER=1 in the environment every operation runs at its own line."
    if text not in getattr(error, "__notes__", ()):
        error.add_note(text)


def here() -> str:
    """The user's current line as text; in an installed library, also the line of the user's own code that called it."""
    return describe_locations(user_locations(1))
