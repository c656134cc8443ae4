"""Every program that any of these tests makes, by tracing or from another program, is checked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from funcgrad.ir import Program


@pytest.fixture(autouse=True, scope="session")
def every_program_is_checked() -> Iterator[None]:
    plain = Program.__init__

    def checking(self: Program, *args: Any, **kwargs: Any) -> None:
        plain(self, *args, **kwargs)
        self.check()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Program, "__init__", checking)
        yield
