"""Docstrings in Google style as HTML: sections as lists, highlighted code, names as links."""

from __future__ import annotations

import functools
import html
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonConsoleLexer, PythonLexer

SECTION = re.compile(r"^(Args|Attributes|Returns|Raises|Yields|Examples?|Notes?):[ \t]*$")
ITEM = re.compile(r"^([*\w.`, ]+?)(?: \(([^)]*)\))?:[ \n](.*)$", re.DOTALL)
INLINE = re.compile(
    r"``(.+?)``|`([^`]+)`|\[([^\]]+)\]\[([^\]]+)\]|\*\*(.+?)\*\*|(?<![\w*])\*([^*\s][^*]*)\*(?!\w)", re.DOTALL
)
LISTED = ("Args", "Attributes", "Raises")

Link = Callable[[str], str | None]
"""Where a name is explained, as the page has to write it; None if nowhere."""


@dataclass
class Doc:
    """The parts of a docstring.

    Attributes:
        text: the paragraphs before, between and after the sections.
        sections: heading and lines, in order.
    """

    text: list[str] = field(default_factory=list)
    sections: list[tuple[str, list[str]]] = field(default_factory=list)

    @property
    def summary(self) -> str:
        """The first sentence."""
        first = self.text[0] if self.text else ""
        return re.split(r"(?<=[.:;])\s", " ".join(first.split()), maxsplit=1)[0].rstrip(":;")


def parse(text: str | None) -> Doc:
    """The parts of a docstring."""
    doc, lines = Doc(), inspect.cleandoc(text or "").splitlines()
    paragraph: list[str] = []
    at = 0
    while at < len(lines):
        if heading := SECTION.match(lines[at]):
            body, at = _indented(lines, at + 1)
            _close(doc, paragraph)
            doc.sections.append((heading[1], body))
            continue
        if lines[at].strip():
            paragraph.append(lines[at])
        else:
            _close(doc, paragraph)
        at += 1
    _close(doc, paragraph)
    return doc


def _close(doc: Doc, paragraph: list[str]) -> None:
    if paragraph:
        doc.text.append("\n".join(paragraph))
        paragraph.clear()


def _indented(lines: list[str], at: int) -> tuple[list[str], int]:
    start = at
    while at < len(lines) and (not lines[at].strip() or lines[at].startswith(" ")):
        at += 1
    return inspect.cleandoc("\n" + "\n".join(lines[start:at])).splitlines(), at


# ---------------------------------------------------------------- to HTML


def body(doc: Doc, link: Link, skip: int = 0) -> str:
    """The HTML of a docstring.

    Args:
        link: finds the entry of a name.
        skip: the number of paragraphs of the text to omit.
    """
    parts = [paragraph(text, link) for text in doc.text[skip:]]
    return "".join(parts + [_section(name, lines, link) for name, lines in doc.sections])


def paragraph(text: str, link: Link) -> str:
    """A paragraph, a list, or a block of code, which is recognized by its indentation."""
    lines = text.splitlines()
    if text.startswith(">>>"):
        return code(text, console=True)
    if all(line.startswith("    ") for line in lines):
        return code(inspect.cleandoc(text))
    first = next((i for i, line in enumerate(lines) if re.match(r"\s*[-*] ", line)), None)
    if first is None:
        return f"<p>{inline(text, link)}</p>"
    before = f"<p>{inline(chr(10).join(lines[:first]), link)}</p>" if first else ""
    items = re.split(r"^\s*[-*] ", "\n".join(lines[first:]), flags=re.MULTILINE)[1:]
    return before + "<ul>" + "".join(f"<li>{inline(item, link)}</li>" for item in items) + "</ul>"


def _section(name: str, lines: list[str], link: Link) -> str:
    if name.startswith("Example"):
        text = "\n".join(lines)
        if re.search(r"\btorch\.", text) and "import compat" not in text:
            text = text.replace(">>> ", ">>> import compat as torch\n>>> ", 1)
        blocks = re.split(r"\n\s*\n(?!>>>)", text)
        return "".join(code(b, console=True) if b.startswith(">>>") else paragraph(b, link) for b in blocks if b)
    if name not in LISTED:
        return f'<p class="r-part">{name}</p><div class="r-list">{paragraph(chr(10).join(lines), link)}</div>'
    rows = []
    for item in re.split(r"\n(?! )", "\n".join(lines)):
        found = ITEM.match(item)
        if found:
            kind = f" ({html.escape(found[2])})" if found[2] else ""
            terms = ", ".join(f"<code>{html.escape(t.strip(' `'))}</code>" for t in found[1].split(","))
            rows.append(f"<dt>{terms}{kind}</dt><dd>{inline(found[3], link)}</dd>")
        elif item.strip():
            rows.append(f"<dd>{inline(item, link)}</dd>")
    return f'<p class="r-part">{name}</p><dl class="r-list">{"".join(rows)}</dl>'


def inline(text: str, link: Link) -> str:
    """Text with its code, emphasis and links."""
    parts, at = [], 0
    for found in INLINE.finditer(text):
        parts += [html.escape(text[at : found.start()], quote=False), _marked(found, link)]
        at = found.end()
    return " ".join("".join([*parts, html.escape(text[at:], quote=False)]).split())


def _marked(found: re.Match[str], link: Link) -> str:
    if found[5] or found[6]:
        tag = "strong" if found[5] else "em"
        return f"<{tag}>{html.escape(found[5] or found[6])}</{tag}>"
    shown, name = (found[3].strip("`"), found[4]) if found[3] else (found[1] or found[2],) * 2
    target = link(name.removesuffix("()"))
    quoted = f"<code>{html.escape(' '.join(shown.split()), quote=False)}</code>"
    return f'<a href="{target}">{quoted}</a>' if target else quoted


@functools.cache
def code(text: str, console: bool = False) -> str:
    """A block of code, or of a session at Python's prompt."""
    lexer = PythonConsoleLexer() if console else PythonLexer()
    return f'<div class="highlight"><pre><code>{_light(highlight(text, lexer, _FORMAT))}</code></pre></div>'


#: Types of tokens that are not highlighted.
_PLAIN = re.compile(r'<span class="(?:n|p|w|o|nn|go)">([^<]*)</span>')
_FORMAT = HtmlFormatter(nowrap=True)


def _light(marked: str) -> str:
    return _PLAIN.sub(r"\1", marked).rstrip()
