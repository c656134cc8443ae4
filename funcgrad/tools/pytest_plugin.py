"""Hides the frames of funcgrad, compat and JAX in pytest's tracebacks; see ``funcgrad.core.traceback``.

Enable it by ``pytest_plugins = ["funcgrad.tools.pytest_plugin"]`` in a ``conftest.py``, or by ``-p`` on the command
line. As an entry point pytest would import and rewrite all of funcgrad for tests that do not use it. ``--full-trace``
or ``FUNCGRAD_TRACEBACK=full`` in the environment show all frames.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: Any, call: Any) -> Iterator[Any]:
    """Marks hidden frames by pytest's ``__tracebackhide__``, before it displays a traceback."""
    traceback: Any = sys.modules.get("funcgrad.core.traceback")  # not if funcgrad was not imported
    if call.excinfo is not None and traceback is not None:
        for entry, left_out in traceback.hidden(call.excinfo.value.__traceback__):
            if left_out:
                entry.tb_frame.f_globals.setdefault("__tracebackhide__", _is_hidden)
    return (yield)


def _is_hidden(excinfo: Any) -> bool:
    return not sys.modules["funcgrad.core.traceback"].settings.full
