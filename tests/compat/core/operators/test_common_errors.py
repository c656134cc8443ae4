"""The most frequent errors: wrong shapes, dtypes, arguments, graphs. Their messages equal PyTorch's."""

from typing import Any

import pytest

import compat as torch
from tests.compat.scripts import assert_same, cases, observe

FAMILIES = ("mistakes", "mistakes_of_values", "mistakes_of_settings")


@pytest.mark.parametrize(("source", "want"), [c for family in FAMILIES for c in cases(family)])
def test_the_error_is_pytorchs(source: str, want: Any) -> None:
    assert "error" in want
    assert_same(observe(torch, source), want)
