"""``nn.utils``, lazy layers, pruning, attention variants, compared with PyTorch."""

from typing import Any

import pytest

import compat as torch
from tests.compat.scripts import assert_same, cases, observe


@pytest.mark.parametrize(("source", "want"), cases("nn_utils"))
def test_golden(source: str, want: dict[str, Any]) -> None:
    assert_same(observe(torch, source), want)


def test_modules_at_an_index_by_keyword() -> None:
    for made in (torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Tanh()), torch.nn.ModuleList([torch.nn.ReLU()] * 2)):
        made.__setitem__(idx=0, module=torch.nn.Sigmoid())
        made.__delitem__(idx=1)
        assert [type(m) for m in made] == [torch.nn.Sigmoid]
