"""Statistics of the runtime, and explanations of compilations."""

from __future__ import annotations

import dataclasses
import warnings
import weakref
from collections import deque
from dataclasses import dataclass
from itertools import compress, count
from operator import is_not
from typing import TYPE_CHECKING, Any

from funcgrad.core import caching
from funcgrad.core.caching import Cache, Group
from funcgrad.runtime.process import Lock

if TYPE_CHECKING:
    from funcgrad.runtime.programs import Executable
    from funcgrad.runtime.windows import Window

#: How many structures with the same operations may be compiled, and for how many seconds, before a warning.
MANY, LONG = 32, 20.0


@dataclass
class Stats:
    """Counts since the start, or since ``reset``.

    Attributes:
        windows: windows run.
        operations: operations in them.
        single: operations run alone, without a window.
        compiles: windows compiled whole.
        hits: windows run by a compiled program.
        one_by_one: windows run operation by operation.
        compile_seconds: seconds of compiling windows, in the background too.
        run_seconds: seconds of flushes, including compilations outside the background.
        bytes_out: bytes of the results that compiled windows returned.
        bytes_reused: bytes of donated buffers.
        failures: windows that could not be compiled.
    """

    windows: int = 0
    operations: int = 0
    single: int = 0
    compiles: int = 0
    hits: int = 0
    one_by_one: int = 0
    compile_seconds: float = 0.0
    run_seconds: float = 0.0
    bytes_out: int = 0
    bytes_reused: int = 0
    failures: int = 0

    def as_dict(self) -> dict[str, Any]:
        """The counts by name; ``caches`` has the statistics of ``funcgrad.core.caching.stats``."""
        return {**dataclasses.asdict(self), "caches": caching.stats()}

    def reset(self) -> None:
        """Sets all counts to zero."""
        for field in dataclasses.fields(self):
            setattr(self, field.name, field.default)


stats = Stats()
_lock = Lock()
_recent: deque[weakref.ref[Window]] = deque(maxlen=64)
#: The last new window, and the known one that was most similar to it.
_last: tuple[weakref.ref[Window], weakref.ref[Window] | None] | None = None
#: What ``explain`` says of the last window whose compilation was scheduled since then.
_scheduled = ""
_last_error: BaseException | None = None
_counts: Cache[tuple[str, ...], tuple[int, float]] = Cache(Group("compiled structures by operations", 512))
_warned = False


def reset() -> None:
    """Resets the counts and the known structures."""
    global _last, _scheduled, _last_error, _warned
    stats.reset()
    _recent.clear()
    _counts.clear()
    _last, _scheduled, _last_error, _warned = None, "", None, False


def new_structure(window: Window) -> None:
    """Counts a window whose structure is new. ``explain`` finds the reason."""
    global _last, _scheduled
    with _lock:
        _scheduled = ""
        other = _nearest(window)
        itself = weakref.ref(window)
        _last = itself, None if other is None else weakref.ref(other)
        _recent.append(itself)


def scheduled(window: Window, insisted: bool) -> None:
    """Notes that a known window is going to be compiled: since its runs took long enough, or ``insist`` was called."""
    global _scheduled
    why = "synchronize() was called" if insisted else "that took as long as is worth compiling"
    _scheduled = (
        f" Since then a known one of {_operations(len(window.codes))} was compiled: it had run one by one {window.seen}"
        f" times, and {why}. Its program is used when compiling should have finished, as estimated."
    )


def scheduled_alone(code: Executable) -> None:
    """Notes that a single operation is going to be compiled, since it ran by NumPy for long enough."""
    global _scheduled
    _scheduled = (
        f" Since then the operation {code.program.name} was compiled: it had run by NumPy as long as is worth it."
    )


def compiled(window: Window, seconds: float) -> None:
    """Counts a compiled window; warns when a loop compiles at every step."""
    global _warned
    names = tuple(code.program.name for code in window.codes)
    with _lock:
        stats.compiles += 1
        stats.compile_seconds += seconds
        times, total = _counts.get(names) or _counts.again(names) or (0, 0.0)
        times, total = _counts[names] = (times + 1, total + seconds)
        warn = times > MANY and total > LONG and not _warned
        _warned = _warned or warn
    if warn:
        warnings.warn(
            f"a window of {_operations(len(names))} was compiled {times} times, which took {total:.0f} s: {explain()} "
            "Pad to few sizes, or keep results that are no longer needed out of variables.",
            stacklevel=2,
        )


def failed(window: Window, error: BaseException) -> None:
    """Counts a window that could not be compiled."""
    global _last_error
    stats.failures += 1
    _last_error = error


def _nearest(window: Window) -> Window | None:
    """The earlier structure with the longest common prefix; among those, one of the same length and wiring."""
    best, most = None, (-1, False, False)
    for ref in reversed(_recent):
        other = ref()
        if other is None:
            continue
        same_length, same_wires = len(window.codes) == len(other.codes), window.wires == other.wires
        likeness = (_common(window.codes, other.codes), same_length, same_wires)
        if likeness > most:
            best, most = other, likeness
    return best


def _common(a: Any, b: Any) -> int:
    """The length of the common prefix; in C, since windows may be long and all of them new."""
    return next(compress(count(), map(is_not, a, b)), min(len(a), len(b)))


def explain() -> str:
    """Why the last new window was new, as text: the difference from known structures. And why a known one has been
    compiled since then."""
    text = _why_new() + _scheduled
    return text if _last_error is None else f"{text} Compiling a window failed: {_last_error}."


def _why_new() -> str:
    if _last is None:
        return "No window has been run yet."
    window, other = _last[0](), None if _last[1] is None else _last[1]()
    if window is None or (other is None and _last[1] is not None):
        return "The last new window, or the one most similar to it, was released with the functions that it is made of."
    text = f"The last new window has {_operations(len(window.codes))}. "
    return text + ("It is the first." if other is None else f"It is new because {_difference(window, other)}.")


def _operations(number: int) -> str:
    return f"{number} operation{'s' if number != 1 else ''}"


def _text(code: Any) -> str:
    types = ", ".join(map(repr, code.program.input_types))
    return f"{code.program.name}({types})"


def _difference(window: Window, other: Window) -> str:
    at = _common(window.codes, other.codes)
    if at < len(window.codes) and at < len(other.codes):
        new, old = window.codes[at], other.codes[at]
        if new.program.name == old.program.name and new.program.input_types == old.program.input_types:
            return f"operation {at}, {_text(new)}, was called with other arguments, memory layouts or gradients wanted"
        return f"operation {at} is {_text(new)}, where the most similar window before had {_text(old)}"
    if len(window.codes) != len(other.codes):
        more = "more" if len(window.codes) > len(other.codes) else "fewer"
        return f"it has {more} operations than the most similar window before, which had {len(other.codes)}"
    if window.wires != other.wires:
        return _wiring(window, other)
    i = next((i for i, (a, b) in enumerate(zip(window.live, other.live)) if a != b), None)
    if i is None:
        return "the same one was forgotten meanwhile"
    code = _maker(window, i)
    if window.live[i]:
        return f"the result of {_text(code)} is still referenced, which it was not before"
    return f"the result of {_text(code)} is no longer held by anybody, which it was before"


def _wiring(window: Window, other: Window) -> str:
    at = next(i for i, (a, b) in enumerate(zip(window.wires, other.wires)) if a != b)
    for code in window.codes:
        if at < code.buffers:
            break
        at -= code.buffers
    return f"operand {at} of {_text(code)} is another tensor than it was: one from outside, or one used elsewhere too"


def _maker(window: Window, result: int) -> Any:
    for code in window.codes:
        if result < code.results:
            return code
        result -= code.results
    raise IndexError(result)
