"""The kernels, compiled for these tests where that is possible."""

from __future__ import annotations

import pytest

from funcgrad.native import build, library


@pytest.fixture(scope="session")
def kernels() -> None:
    """Has this process use the kernels; skips the test where there can be none."""
    if (file := build.kernels.place()) is None or build.kernels.command(file) is None:
        pytest.skip("no compiler, or a processor that there are no kernels for")
    library.require()
