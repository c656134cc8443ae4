"""Crawls the built documentation: links, anchors, external requests, page sizes; and opens it in Chromium.

python tools/docs/crawl.py site                    read every page's HTML
python tools/docs/crawl.py site --browser          also open pages in Chromium, from a server under a path and from disk
python tools/docs/crawl.py site --search           also search for the names and words of tests/docs/searches.txt
python tools/docs/crawl.py site --shots out        also take screenshots: desktop and phone, light and dark
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT))

#: The largest allowed size of a page, in bytes of HTML.
HEAVIEST = 150_000
#: Attributes that make a browser fetch something when the page is opened.
_FETCHED = {
    ("script", "src"),
    ("img", "src"),
    ("iframe", "src"),
    ("source", "src"),
    ("video", "src"),
    ("object", "data"),
}
_LINKED_FILES = ("stylesheet", "icon", "preload", "preconnect", "modulepreload", "manifest")


@dataclass
class Read(HTMLParser):
    """The contents of a page that are checked.

    Attributes:
        ids: its anchors, in order.
        links: the targets of its links.
        fetches: what is fetched when it is opened.
    """

    ids: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    fetches: list[str] = field(default_factory=list)
    meta: dict[str, str] = field(default_factory=dict)
    canonical: str = ""

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {k: v or "" for k, v in attrs}
        if "id" in given:
            self.ids.append(given["id"])
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag == "meta" and (name := given.get("name") or given.get("property")):
            self.meta[name] = given.get("content", "")
        if tag == "link":
            if given.get("rel") == "canonical":
                self.canonical = given["href"]
            if any(kind in given.get("rel", "").split() for kind in _LINKED_FILES):
                self.fetches.append(given["href"])
        self.fetches += [given[name] for t, name in _FETCHED if t == tag and given.get(name)]


def read(path: Path) -> Read:
    page = Read()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def problems(site: Path, base: str = "") -> Iterator[str]:
    """The errors of a built site.

    Args:
        base: the site's own address: links that begin with it are the site's.
    """
    pages = {path.relative_to(site).as_posix(): read(path) for path in sorted(site.rglob("*.html"))}
    described: dict[str, str] = {}
    for name, page in pages.items():
        weight = (site / name).stat().st_size
        if weight > HEAVIEST:
            yield f"{name}: {weight:,} bytes of HTML"
        yield from (f"{name}: fetches {url}" for url in page.fetches if urlsplit(url).netloc)
        yield from (f"{name}: the anchor {i} is there twice" for i in {i for i in page.ids if page.ids.count(i) > 1})
        if name != "404.html":
            yield from (f"{name}: {wrong}" for wrong in _links(site, name, page, pages, base))
            text = page.meta.get("description", "")
            if not text:
                yield f"{name}: has no description"
            elif text in described:
                yield f"{name}: has the description of {described[text]}"
            described[text] = name
            if not page.canonical:
                yield f"{name}: has no canonical link"


def _links(site: Path, name: str, page: Read, pages: dict[str, Read], base: str) -> Iterator[str]:
    for url in dict.fromkeys(page.links + page.fetches):
        if base and url.startswith(base):
            url = "/" + url.removeprefix(base)
        split = urlsplit(url)
        if split.scheme or split.netloc:
            continue
        path, anchor = urldefrag(url)
        path = unquote(path.partition("?")[0])
        target = (
            (site / path.lstrip("/") if path.startswith("/") else (site / name).parent / path).resolve()
            if path
            else site / name
        )
        if target.is_dir():
            target /= "index.html"
        if not target.exists():
            yield f"broken link {url}"
        elif anchor and target.suffix == ".html":
            found = pages[target.relative_to(site.resolve() if path else site).as_posix()]
            if unquote(anchor) not in found.ids:
                yield f"no such anchor {url}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("site", type=Path)
    parser.add_argument("--base", default="", help="the site's own address")
    parser.add_argument("--browser", action="store_true")
    parser.add_argument("--search", action="store_true")
    parser.add_argument("--shots", type=Path)
    options = parser.parse_args()
    found = list(problems(options.site, options.base))
    if options.browser or options.search or options.shots:
        from tools.docs import browse

        found += browse.look(options.site, every=options.browser, search=options.search, shots=options.shots)
    print(*found[:200], sep="\n", end="\n" * bool(found))
    count = len(list(options.site.rglob("*.html")))
    print(f"crawl: {count} pages, {len(found) or 'no'} problems")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
