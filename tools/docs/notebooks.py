"""Pages as notebooks: each block of code a cell, with the output that the page shows, which the tests have checked."""

from __future__ import annotations

import json
import re
import textwrap
from pathlib import Path
from typing import Any

from tools.docs import plots

_BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```[ \t]*$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\]\((?!https?:|#)([^)\s]+?)\.md(#[^)]*)?\)")


def has_code(markdown: str) -> bool:
    """Whether a page has code to run."""
    return re.search(r"^```python[ \t]*$", markdown, re.MULTILINE) is not None


_PICTURE = re.compile(r"^!\[[^\]]*\]\(([^):]+\.(?:svg|png))\)[ \t]*$", re.MULTILINE)
_TAB = re.compile(r'^=== "([^"]+)"\n((?:(?: {4}.*)?\n)*)', re.MULTILINE)


def _untabbed(markdown: str) -> str:
    """Tabs as consecutive sections, since notebooks have no tabs."""
    return _TAB.sub(lambda m: f"**{m[1]}**\n{textwrap.dedent(m[2])}", markdown)


def notebook(markdown: str, address: str, folder: Path | None = None) -> str:
    """A page as the text of an ``.ipynb`` file.

    Args:
        markdown: the page, without its front matter.
        address: the URL of the page, to which its links to other pages are relative.
        folder: the folder of the page's source: a picture right after a cell becomes the cell's output.

    Example:
        >>> made = json.loads(notebook("# A\\n\\n```python\\n1 + 1\\n```\\n\\n```output\\n2\\n```\\n", "https://x.org/a.html"))
        >>> [(cell["cell_type"], "".join(cell["source"])) for cell in made["cells"]]
        [('markdown', '# A'), ('code', '1 + 1')]
    """
    base = address.rpartition("/")[0]
    markdown = _untabbed(markdown)
    cells: list[dict[str, Any]] = []
    at = 0
    for found in _BLOCK.finditer(markdown):
        _prose(cells, _pictured(cells, markdown[at : found.start()], folder), base)
        language, options, text = found[1], found[2], found[3]
        if language == "python" and "title=" not in options:
            cells.append(_cell("code", text, execution_count=None, outputs=[]))
        elif language == "output" and cells and cells[-1]["cell_type"] == "code":
            cells[-1]["outputs"].append({"name": "stdout", "output_type": "stream", "text": _lines(text)})
        else:
            _prose(cells, found[0], base)
        at = found.end()
    _prose(cells, _pictured(cells, markdown[at:], folder), base)
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    whole = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, indent=1, ensure_ascii=False)


def _pictured(cells: list[dict[str, Any]], text: str, folder: Path | None) -> str:
    """The text after a cell without the picture that it begins with, which becomes the cell's output."""
    found = _PICTURE.match(text.lstrip())
    if found is None or folder is None or not cells or cells[-1]["cell_type"] != "code":
        return text
    shown = {"output_type": "display_data", "metadata": {}, "data": plots.output(folder / found[1])}
    cells[-1]["outputs"].append(shown)
    return text.lstrip()[found.end() :]


def _prose(cells: list[dict[str, Any]], text: str, folder: str) -> None:
    if text.strip():
        text = _LINK.sub(lambda m: f"]({folder}/{m[1]}.html{m[2] or ''})", text)
        cells.append(_cell("markdown", re.sub(r"\]\[[\w.]+\]", "]", text)))


def _cell(kind: str, text: str, **more: Any) -> dict[str, Any]:
    return {"cell_type": kind, "metadata": {}, "source": _lines(text.strip("\n")), **more}


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)
