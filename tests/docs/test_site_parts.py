"""Parts of the documentation's build: notebooks, formulas, docstrings as HTML, cards, searches."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("latex2mathml")
from mkdocs.utils import meta, yaml_load

from tests.docs import pages
from tools.docs import browse, cards, docstrings, drawing, formulas, notebooks, plots


def site() -> dict[str, Any]:
    """The contents of mkdocs.yml."""
    with (pages.ROOT / "mkdocs.yml").open() as file:
        return yaml_load(file)


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


def test_pictures_are_drawn_from_real_runs() -> None:
    command = [sys.executable, str(pages.ROOT / "tools" / "docs" / "pictures.py"), "--check"]
    environment = {**os.environ, "PYTHONPATH": str(pages.ROOT)}
    environment.pop("COMPAT_EAGER", None)
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr


def test_boxes_of_a_graph_do_not_overlap() -> None:
    edges = [drawing.Edge("a", "b"), drawing.Edge("b", "c"), drawing.Edge("a", "c", "past b")]
    graph = drawing.Graph({k: [k] for k in "abc"}, edges)
    layers, ways = graph.layers()
    assert [len(layer) for layer in layers] == [1, 2, 1] and len(ways[2]) == 1
    parts, height = graph.draw()
    assert sum("<rect" in part for part in parts) == 3 and height < 200


MATPLOTLIB = """<?xml version="1.0"?><svg width="9pt" viewBox="0 0 10 5"><metadata>m</metadata>
<defs><style type="text/css">*{stroke-linejoin: round}</style></defs>
<g id="figure_1"><path d="M 0.123456 1" clip-path="url(#p1)" style="stroke: #000000"/><text>x</text></g>
<defs><clipPath id="p1"><rect/></clipPath></defs></svg>"""


def test_plots_take_the_colours_of_the_page() -> None:
    made = plots.inlined(MATPLOTLIB, "p-a", "A < B")
    assert "#000000" not in made and "stroke: currentColor" in made and "<style" not in made
    assert re.findall(r' id="([^"]*)"', made) == ["p-a-p1"] and "url(#p-a-p1)" in made
    assert "<title>A &lt; B</title>" in made
    small = plots.small(MATPLOTLIB)
    assert "<text" not in small and "currentColor" not in small and "0.123456" not in small


def test_a_picture_after_a_cell_is_its_output(tmp_path: Path) -> None:
    (tmp_path / "a.svg").write_text(MATPLOTLIB)
    made = json.loads(
        notebooks.notebook("```python\nx\n```\n\n![A](a.svg)\n\nMore.\n", "https://x.org/a.html", tmp_path)
    )
    code, prose = made["cells"]
    assert code["outputs"][0]["data"]["image/svg+xml"] == MATPLOTLIB and prose["source"] == ["More."]


def test_tabs_stand_one_below_the_other_in_a_notebook() -> None:
    page = '=== "one"\n\n    ```python\n    1\n    ```\n\n=== "two"\n\n    ```python\n    2\n    ```\n\nEnd.\n'
    cells = json.loads(notebooks.notebook(page, "https://x.org/a.html"))["cells"]
    assert ["".join(c["source"]).strip() for c in cells] == ["**one**", "1", "**two**", "2", "End."]


def test_each_page_of_the_gallery_has_a_picture() -> None:
    section = next(item["Tutorials"] for item in site()["nav"] if "Tutorials" in item)
    for path in [next(iter(item.values())) for item in section if isinstance(item, dict)]:
        page = pages.ROOT / "docs" / path
        _, front = meta.get_data(page.read_text())
        assert (page.parent / front["picture"]).exists(), path


def test_social_cards_have_their_size() -> None:
    assert cards.draw("A title", "What it says.", "funcgrad").size == cards.SIZE


def test_expected_results_of_searches_are_listed() -> None:
    found = browse.searches()
    assert len(found) >= 30 and all(wanted for _, wanted in found)


def test_the_table_of_environment_variables_is_whole() -> None:
    page = (pages.ROOT / "docs" / "guides" / "environment.md").read_text()
    read = re.compile(r'"((?:FUNCGRAD|COMPAT)_[A-Z_]+)"')
    files = [p for package in ("funcgrad", "compat") for p in (pages.ROOT / package).rglob("*.py")]
    named = {name for path in files for name in read.findall(path.read_text())}
    assert named == set(re.findall(r"^\| `((?:FUNCGRAD|COMPAT)_\w+)`", page, re.MULTILINE)) and len(named) > 5
