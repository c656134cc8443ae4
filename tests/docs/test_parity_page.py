"""The page on operators says what the comparison with PyTorch measured."""

from __future__ import annotations

import re

import compat as torch
from tools.docs import parity


def test_every_entry_is_the_same_or_differs() -> None:
    listed = [*parity.lines("ops.txt"), *parity.lines("modules.txt")]
    agreeing = [name for names in parity.same().values() for name in names]
    assert len(agreeing) == len(set(agreeing)) > 600
    assert set(agreeing) | set(parity.exceptions()) >= set(listed)
    assert not set(agreeing) & set(parity.exceptions())


def test_every_column_has_a_name() -> None:
    assert {c for whys in parity.exceptions().values() for columns, _ in whys for c in columns} <= set(parity.COLUMNS)


def test_absent_names_raise_and_others_are_not_listed() -> None:
    absent = {name for names in parity.absent().values() for name in names}
    assert "torch.quantize_per_tensor" in absent and "torch.nested.nested_tensor" not in absent
    assert "torch.distributed.tensor.DTensor" not in absent and not hasattr(torch, "quantize_per_tensor")


def test_the_page_links_and_explains() -> None:
    made = parity.written("<!-- parity: same --><!-- parity: different -->", lambda name: f"r.html#{name}")
    assert '<a href="r.html#torch.addmm">addmm</a>' in made
    assert "<td>" in made and not re.search(r"<!-- |`", made)
