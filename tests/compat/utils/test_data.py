"""``utils.data``: data sets, samplers, batches; PyTorch's order for a seed."""

from typing import Any

import pytest

import compat as torch
from tests.compat.scripts import assert_same, cases, observe


@pytest.mark.parametrize(("source", "want"), cases("data"))
def test_golden(source: str, want: dict[str, Any]) -> None:
    assert_same(observe(torch, source), want)
