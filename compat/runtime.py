"""How operations are executed: deferred into windows, or at once.

Operations are recorded and run together when a value is needed: by ``item``, ``tolist``, ``numpy``, ``print``,
``bool`` and other conversions, at the end of an optimizer's step, and when very many are recorded. A window that comes
again is one compiled program, soon. Nothing of that can be seen in results; ``COMPAT_EAGER=1`` in the environment, or
``eager()``, runs every operation at once.

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
    """Runs the operations that this thread has recorded; returns before they are computed."""
    _runtime.flush()


def synchronize() -> None:
    """Runs the operations that all threads have recorded, and waits until requested windows are compiled.

    Windows seen so far are compiled when they come again, however small: after three runs with a ``synchronize`` after
    each, what follows runs as it will in the long run.
    """
    _runtime.flush_all()
    _runtime.insist()
    _runtime.wait()


def stats() -> dict[str, Any]:
    """Statistics since the start or ``reset_stats``: counts, seconds and bytes by name.

    ``windows`` run, ``operations`` in them, ``single`` operations run alone; ``compiles`` of whole windows, ``hits`` by
    compiled ones, ``one_by_one`` windows run operation by operation; ``compile_seconds``, ``run_seconds``;
    ``bytes_out`` of results kept and ``bytes_reused`` of buffers given to results; ``failures`` to compile. ``caches``
    says, by name, of everything that is kept to be used again, how many entries there are, how many there may be
    (``limit``), and how many were released since the start (``evictions``).
    """
    return _report.stats.as_dict()


def reset_stats() -> None:
    """Starts counting anew."""
    _report.reset()


def explain() -> str:
    """Why the last new window was not one of those known, in words."""
    return _report.explain()


@contextmanager
def eager() -> Iterator[None]:
    """Context in which every operation runs at once."""
    _runtime.flush()
    before = _runtime.settings.limit
    _runtime.settings.limit = 1
    try:
        yield
    finally:
        _runtime.settings.limit = before


# Messages name the user's line, not ours.
hide_frames_below(os.path.dirname(__file__))

if os.environ.get("COMPAT_EAGER", "0") not in ("", "0"):
    _runtime.settings.limit = 1
