"""Unmodified torchviz draws these graphs as it draws PyTorch's."""

from __future__ import annotations

import html
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import compat
from tests.notebooks.drawings import DRAWINGS, GOLDEN, PICTURES, Drawing, drawn

pytestmark = pytest.mark.filterwarnings("ignore:distutils Version classes:DeprecationWarning", "ignore:The distutils")

PAGES = Path(__file__).parents[2] / "docs" / "notebooks"
RECORDED = json.loads(GOLDEN.read_text())


@pytest.fixture(scope="module")
def make_dot() -> Iterator[Callable[..., Any]]:
    compat.install()
    try:
        yield pytest.importorskip("torchviz").make_dot
    finally:
        compat.uninstall()
        for name in [n for n in sys.modules if n.partition(".")[0] == "torchviz"]:
            del sys.modules[name]


@pytest.mark.parametrize("what", DRAWINGS, ids=lambda what: what.__name__)
def test_drawing(make_dot: Callable[..., Any], what: Callable[[Any], Drawing]) -> None:
    assert drawn(compat, make_dot, what).splitlines() == RECORDED[what.__name__].splitlines()


def test_parameters_of_other_types_than_tensors(make_dot: Callable[..., Any]) -> None:
    with pytest.raises(AssertionError):
        make_dot(compat.ones(1, requires_grad=True) * 2, params={"x": 1})


def words(text: str) -> list[str]:
    """The text in a picture's boxes, without line breaks and blanks."""
    return sorted(word for word in html.unescape(text).split() if word.strip("-"))


@pytest.mark.parametrize(("picture", "drawing"), PICTURES.items())
def test_picture_on_a_page(picture: str, drawing: str) -> None:
    svg, source = (PAGES / "img" / f"{picture}.svg").read_text(), RECORDED[drawing]
    labels = {n: quoted or plain for n, quoted, plain in re.findall(r'(\d+) \[label=(?:"([^"]*)"|(\w+))', source)}
    assert words(" ".join(re.findall(r"<text[^>]*>([^<]*)</text>", svg))) == words(" ".join(labels.values()))
    assert svg.count('class="edge"') == source.count("->")
