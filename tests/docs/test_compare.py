"""Which outputs count as equal to those shown."""

from __future__ import annotations

import pytest

from tests.docs.compare import same


@pytest.mark.parametrize(
    ("want", "got"),
    [
        ("1\n", "1\n\n"),
        ("<object at 0x...>", "<object at 0x7f12>"),
        ("a\n  ...\nb", "a\n  x\n  y\nb"),
        ("[0.12904336 0.123755   0.11846668]", "[0.12904337 0.12375501 0.11846668]"),
        ("tensor([0.1234, 2.0000])", "tensor([0.1235, 2.0000])"),
        ("[-0.         -0.84147096 -0.9092974 ]", "[-0.        -0.841471  -0.9092974]"),
        ("1.1920929e-07", "0.0"),
        ("3e-05", "3.1e-05"),
        ("x 1.5\n  ...\nE 2", "x 1.5000001\n  ...\nE 2"),
    ],
)
def test_same(want: str, got: str) -> None:
    assert same(want, got)


@pytest.mark.parametrize(
    ("want", "got"),
    [
        ("1", "2"),
        ("[0.12904336 0.123755]", "[0.12914336 0.123755]"),
        ("[0.5 0.5]", "[0.5 0.5 0.5]"),
        ("1.5 a", "1.5 b"),
        ("shape (3, 4)", "shape (4, 3)"),
        ("1.0", "1"),
        ("-1.5", "1.5"),
        ("tensor([0.1234])", "tensor([0.1236])"),
        ("1e-4", "1e-2"),
        ("nan", "1.0"),
        ("<a at 0x...>\n<b at 0x...>", "<a at 0x7f12>\n<c at 0x7f12>\n<b at 0x7f12>"),
        ("<a at 0x...>\n[]", "<a at 0x7f12>\n[]\n<b at 0x7f13>\n[]"),
    ],
)
def test_different(want: str, got: str) -> None:
    assert not same(want, got)
