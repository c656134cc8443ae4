"""The crawler finds the errors of a site."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pygments")
from tools.docs import crawl

HEAD = '<meta name="description" content="{0}"><link rel="canonical" href="https://x.org/{0}.html">'
GOOD = {
    "a.html": HEAD.format("a") + '<h1 id="top">A</h1><a href="b.html#here">b</a><a href="#top">t</a><img src="p.png">',
    "b.html": HEAD.format("b") + '<h2 id="here">B</h2><a href="https://elsewhere.org">e</a>',
}


def found(tmp_path: Path, **changes: str) -> list[str]:
    for name, text in GOOD.items():
        (tmp_path / name).write_text(changes.get(name.removesuffix(".html"), text))
    (tmp_path / "p.png").write_bytes(b"")
    return list(crawl.problems(tmp_path, "https://x.org/"))


def test_a_good_site_has_none(tmp_path: Path) -> None:
    assert found(tmp_path) == []


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("b.html#here", "c.html", "broken link"),
        ("b.html#here", "b.html#there", "no such anchor"),
        ("#top", "#bottom", "no such anchor"),
        ("p.png", "https://cdn.org/p.png", "fetches"),
        ("p.png", "q.png", "broken link"),
        ("<h1", '<p id="top"></p><h1', "twice"),
        ("<h1", "x" * 200_000 + "<h1", "bytes of HTML"),
        ('content="a"', 'content="b"', "has the description of"),
        ('content="a"', 'content=""', "no description"),
        ('rel="canonical"', 'rel="next"', "no canonical"),
    ],
)
def test_faults_of_a_site_are_found(tmp_path: Path, old: str, new: str, problem: str) -> None:
    wrong = found(tmp_path, a=GOOD["a.html"].replace(old, new))
    assert wrong and any(problem in w for w in wrong)
