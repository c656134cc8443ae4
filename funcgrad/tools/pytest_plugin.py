"""Has pytest leave the frames of funcgrad, compat and JAX out of tracebacks, as ``funcgrad.core.traceback`` says.

A ``conftest.py`` with ``pytest_plugins = ["funcgrad.tools.pytest_plugin"]`` asks for it, or ``-p`` on the command line.
As an entry point it would have pytest import funcgrad, and rewrite all of its modules, for tests that do not use it.
``--full-trace`` or ``FUNCGRAD_TRACEBACK=full`` in the environment show all frames.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: Any, call: Any) -> Iterator[Any]:
    """Marks the frames that are left out, in the way that pytest asks frames for, before it displays a traceback."""
    traceback: Any = sys.modules.get("funcgrad.core.traceback")  # nothing of it is there if nobody has imported it
    if call.excinfo is not None and traceback is not None:
        for entry, left_out in traceback.hidden(call.excinfo.value.__traceback__):
            if left_out:
                entry.tb_frame.f_globals.setdefault("__tracebackhide__", _is_hidden)
    return (yield)


def _is_hidden(excinfo: Any) -> bool:
    return not sys.modules["funcgrad.core.traceback"].settings.full
