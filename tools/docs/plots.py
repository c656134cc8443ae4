"""Pictures in pages: an SVG is inlined, with the page's colours; the gallery has small ones."""

from __future__ import annotations

import base64
import html
import re
from pathlib import Path

_GREY = "#888888"
_IMAGE = re.compile(r'<img alt="([^"]*)" src="([^":]*?\.svg)"\s*/?>')


def inlined(svg: str, prefix: str, title: str) -> str:
    """An SVG as part of a page: black becomes the page's colour, and ids get a prefix.

    Args:
        svg: the text of a file.
        title: the text for screen readers.

    Example:
        >>> made = inlined('<svg width="9pt" viewBox="0 0 1 2"><path id="p" fill="#000000"/></svg>', "a", "A line")
        >>> print(made.partition(">")[2])
        <title>A line</title><path fill="currentColor"/></svg>
    """
    return _whole(_body(svg, prefix), svg, "currentColor", title)


def small(svg: str) -> str:
    """An SVG without its text, in colours for any background: a separate file."""
    body = re.sub(r"<text\b.*?</text>", "", _body(svg, "t"), flags=re.DOTALL)
    body = re.sub(r"\d+\.\d+", lambda m: f"{float(m[0]):.1f}", body).replace("currentColor", _GREY)
    return _whole(body, svg, _GREY, "").replace(
        "<svg ", '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" ', 1
    )


def _body(svg: str, prefix: str) -> str:
    body = svg[svg.index(">", svg.index("<svg")) + 1 : svg.rindex("</svg>")]
    for removed in (r"<metadata>.*?</metadata>", r"<!--.*?-->", r"<style.*?</style>", r"<title>.*?</title>"):
        body = re.sub(removed, "", body, flags=re.DOTALL)
    used = set(re.findall(r"(?:url\(#|href=\"#)([^)\"]+)", body))
    body = re.sub(r' id="([^"]*)"', lambda m: f' id="{prefix}-{m[1]}"' if m[1] in used else "", body)
    body = re.sub(r"(url\(#|href=\"#)", rf"\1{prefix}-", body)
    body = re.sub(r"#000000|\bblack\b", "currentColor", body)
    return re.sub(r"\s*\n\s*", "\n", body).strip()


def _whole(body: str, svg: str, colour: str, title: str) -> str:
    box = re.search(r'viewBox="([^"]*)"', svg)
    assert box is not None
    width = float(box[1].split()[2])
    about = f"<title>{html.escape(title)}</title>" if title else ""
    style = f'fill="{colour}" style="color:{colour};stroke-linejoin:round;stroke-linecap:butt"'
    if (given := re.search(r"<svg[^>]*?( font-size=\"\d+\")[^>]*?( text-anchor=\"\w+\")", svg)) is not None:
        style += given[1] + given[2]
    return f'<svg class="r-picture" viewBox="{box[1]}" width="{width:g}" role="img" {style}>{about}{body}</svg>'


def in_page(content: str, folder: Path) -> str:
    """The HTML of a page with its SVG pictures inlined.

    Args:
        folder: the folder of the page's source, to which the paths of pictures are relative.
    """

    def put(found: re.Match[str]) -> str:
        path = folder / found[2]
        if not re.search(r"matplotlib|r-picture", path.read_text(encoding="utf-8")[:2000]):
            return found[0]  # made by another program, with its own colours
        picture = inlined(path.read_text(encoding="utf-8"), f"p-{path.stem}", html.unescape(found[1]))
        return f"<figure>{picture}</figure>"

    return re.sub(r"<p>(<figure>.*?</figure>)</p>", r"\1", _IMAGE.sub(put, content), flags=re.DOTALL)


def output(path: Path) -> dict[str, str]:
    """A picture as the output of a notebook's cell: its data by media type."""
    if path.suffix == ".svg":
        return {"image/svg+xml": path.read_text(encoding="utf-8")}
    return {"image/png": base64.b64encode(path.read_bytes()).decode()}
