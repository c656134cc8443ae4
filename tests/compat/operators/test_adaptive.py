"""Adaptive pooling."""

from typing import Any

import pytest

import compat as torch
from tests.compat.facts import assert_same, cases, observe


@pytest.mark.parametrize(("source", "want"), cases("adaptive"))
def test_golden(source: str, want: dict[str, Any]) -> None:
    assert_same(observe(torch, source), want)
