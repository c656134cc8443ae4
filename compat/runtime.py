"""Control of execution: deferred in windows, or eager.

Operations are recorded and run together when a value is needed: by ``item``, ``tolist``, ``numpy``, ``print``, ``bool``
and other conversions, at the end of an optimizer's step, and when very many are recorded. A repeated window becomes one
compiled program. Results do not depend on it; ``COMPAT_EAGER=1`` in the environment, or ``eager()``, runs every
operation immediately.

Example:
    >>> from compat import runtime
    >>> x = torch.ones(3)
    >>> runtime.synchronize()    # nothing is left of earlier operations
    >>> before = runtime.stats()["operations"]
    >>> y = (x + 1) * 2          # recorded
    >>> y.tolist()               # run
    [4.0, 4.0, 4.0]
    >>> runtime.stats()["operations"] - before
    2
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from funcgrad import runtime as _runtime
from funcgrad.core.errors import hide_frames_below
from funcgrad.runtime import report as _report

__all__ = ["eager", "explain", "flush", "reset_stats", "stats", "synchronize"]


def flush() -> None:
    """Runs the operations that this thread has recorded; does not wait for them."""
    _runtime.flush()


def synchronize() -> None:
    """Runs the operations that all threads have recorded, and waits until requested windows are compiled.

    Windows seen so far are compiled at their next occurrence, however small: after three runs with ``synchronize``
    after each, further runs use the compiled programs. Not small windows that run because Python reads one of their
    values: NumPy has computed it before XLA's thread would answer.
    """
    _runtime.flush_all()
    _runtime.insist()
    _runtime.wait()


def stats() -> dict[str, Any]:
    """Statistics since the start or ``reset_stats``: counts, seconds and bytes by name.

    Windows run (``windows``), ``operations`` in them, operations run alone (``single``); windows compiled
    (``compiles``), run by a compiled program (``hits``), run operation by operation (``one_by_one``);
    ``compile_seconds``, ``run_seconds``; bytes of results (``bytes_out``) and of donated buffers (``bytes_reused``);
    failed compilations (``failures``). ``caches`` maps each cache to its number of entries, its ``limit``, and its
    ``evictions`` since the start.
    """
    return _report.stats.as_dict()


def reset_stats() -> None:
    """Resets the statistics."""
    _report.reset()


def explain() -> str:
    """Why the last new window was new, as text."""
    return _report.explain()


@contextmanager
def eager() -> Iterator[None]:
    """Context in which every operation runs immediately."""
    _runtime.flush()
    before = _runtime.settings.limit
    _runtime.settings.limit = 1
    try:
        yield
    finally:
        _runtime.settings.limit = before


# Messages name the user's line.
hide_frames_below(os.path.dirname(__file__))

if os.environ.get("COMPAT_EAGER", "0") not in ("", "0"):
    _runtime.settings.limit = 1
