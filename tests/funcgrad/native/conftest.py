"""The kernels, compiled for these tests if possible."""

from __future__ import annotations

import pytest

from funcgrad.native import build, library


@pytest.fixture(scope="session")
def kernels() -> None:
    """Makes this process use the kernels; skips the test if they cannot be compiled."""
    if (file := build.kernels.place()) is None or build.kernels.command(file) is None:
        pytest.skip("no compiler, or a processor that there are no kernels for")
    library.require()
