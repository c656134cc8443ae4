"""Parts of the documentation's build: notebooks, formulas, docstrings as HTML, cards, what the search is asked."""

from __future__ import annotations

import ast
import json
import re

import pytest

pytest.importorskip("latex2mathml")
from tests.docs import pages
from tools.docs import browse, cards, docstrings, formulas, notebooks, pictures

TUTORIAL = (pages.ROOT / "docs" / "tutorials" / "fit.md").read_text()


def test_a_page_becomes_a_notebook() -> None:
    made = json.loads(notebooks.notebook(TUTORIAL, "https://x.org/tutorials/fit.html"))
    code = [cell for cell in made["cells"] if cell["cell_type"] == "code"]
    assert len(code) == len(re.findall(r"^```python$", TUTORIAL, re.MULTILINE)) > 2
    for cell in code:
        ast.parse("".join(cell["source"]))
    assert "0 1.9420\n" in code[1]["outputs"][0]["text"]
    assert len({cell["id"] for cell in made["cells"]}) == len(made["cells"])


def test_links_of_a_notebook_lead_to_the_site() -> None:
    made = notebooks.notebook("See [b](../how/b.md#c) and [d](https://e.org/f.md).", "https://x.org/a/g.html")
    assert "](https://x.org/a/../how/b.html#c)" in made and "](https://e.org/f.md)" in made


def test_formulas_are_mathml() -> None:
    found = formulas.written(r'<p><span class="arithmatex">\(x^2 &lt; 1\)</span></p>')
    assert "<msup>" in found and "arithmatex" not in found and "\\(" not in found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Adds ``x``.", "<p>Adds <code>x</code>.</p>"),
        ("A < b & *c*.", "<p>A &lt; b &amp; <em>c</em>.</p>"),
        ("Like ``relu``.", '<p>Like <a href="r.html"><code>relu</code></a>.</p>'),
        ("- one\n- two", "<ul><li>one</li><li>two</li></ul>"),
    ],
)
def test_text_of_docstrings(text: str, expected: str) -> None:
    assert docstrings.body(docstrings.parse(text), {"relu": "r.html"}.get) == expected


def test_sections_of_docstrings() -> None:
    doc = docstrings.parse(
        "Adds. And more.\n\nArgs:\n    x, y: numbers,\n        two.\n\nExample:\n    >>> 1 + 1\n    2\n"
    )
    made = docstrings.body(doc, lambda name: None)
    assert doc.summary == "Adds."
    assert "<dt><code>x</code>, <code>y</code></dt><dd>numbers, two.</dd>" in made
    assert '<div class="highlight">' in made and "2" in made


@pytest.mark.parametrize("name", pictures.PICTURES)
def test_pictures_are_what_runs(name: str) -> None:
    """``python tools/docs/pictures.py`` draws them again."""
    assert (pictures.FOLDER / f"{name}.svg").read_text() == pictures.PICTURES[name]()


def test_a_card_has_its_size() -> None:
    assert cards.draw("A title", "What it says.", "funcgrad").size == cards.SIZE


def test_what_the_search_must_find_is_stated() -> None:
    found = browse.searches()
    assert len(found) >= 30 and all(wanted for _, wanted in found)
