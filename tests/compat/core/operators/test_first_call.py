"""How many Python calls the first call of an operator makes."""

from __future__ import annotations

import pytest

from tools.measure_calls import first

#: What ``tools/measure_calls.py`` prints, plus a margin.
MOST = 300


@pytest.mark.parametrize("before", ["", "add"])
def test_the_first_call_of_an_operator_is_cheap(before: str) -> None:
    assert first("atan2", before) <= MOST
