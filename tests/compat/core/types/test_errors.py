"""Errors and warnings that name the user's line."""

from __future__ import annotations

from typing import Any

import pytest

from compat._core.types import errors


def test_warnings_name_the_line_outside_generated_functions() -> None:
    scope: dict[str, Any] = {"__name__": "compat.generated", "warn": errors.warn}
    exec("def generated():\n    warn('careful')", scope)
    with pytest.warns(UserWarning, match="careful") as caught:
        scope["generated"]()
    assert caught[0].filename == __file__
