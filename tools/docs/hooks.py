"""Hooks of the documentation's build: mkdocs.yml names this file under ``hooks``.

They add the pages of the reference, take each page's description from its first sentences, convert formulas to MathML,
draw a card for each page, and add public names to the search index.
"""

from __future__ import annotations

import html
import inspect
import os
import posixpath
import re
import sys
from pathlib import Path
from typing import Any

from markdown.extensions.toc import slugify
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import event_priority
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from mkdocs.structure.toc import get_toc
from mkdocs.utils import meta

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tools.docs import cards, catalog, families, formulas, notebooks, parity, plots, render  # noqa: E402

FOLDER = "reference"
#: The item of the navigation that the pages of the reference replace.
PLACE = "Reference"
_made: dict[str, Any] = {}
_searched: list[dict[str, Any]] = []
_cards: dict[str, tuple[str, str]] = {}
_notebooks: dict[str, str] = {}
_small: dict[str, str] = {}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    from funcgrad import __version__

    config.extra["release"] = __version__
    if os.environ.get("MIKE_DOCS_VERSION"):
        config.extra["version"] = {"provider": "mike"}
    _made.clear()
    for page in catalog.pages():
        _made[f"{FOLDER}/{page.path}.md"] = page
    for namespace in render.INDICES:
        _made[_index_path(namespace)] = namespace
    _insert(config.nav or [], _navigation())
    return config


def _index_path(namespace: str) -> str:
    return f"{FOLDER}/{namespace.partition('.')[0]}/all-{namespace}.md"


def _navigation() -> list[Any]:
    found: list[Any] = [f"{FOLDER}/index.md"]
    indices = [{n: _index_path(n)} for n in render.INDICES]
    found.append({"All names": indices})
    for key, title in families.SECTIONS.items():
        pages = [{p.title: f"{FOLDER}/{p.path}.md"} for p in catalog.pages() if p.section == key]
        found.append({title: pages})
    return found


def _insert(nav: list[Any], pages: list[Any]) -> None:
    for item in nav:
        if isinstance(item, dict) and PLACE in item:
            item[PLACE] = pages


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for path in _made:
        files.append(File.generated(config, path, content=""))
    for name in sorted((Path(__file__).parent / "theme" / "javascripts").glob("*.js")):
        files.append(File.generated(config, f"javascripts/{name.name}", abs_src_path=str(name)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    made = _made.get(page.file.src_uri)
    if made is None:
        page.meta.setdefault("description", _first_sentences(markdown))
        if notebooks.has_code(markdown):
            _notebooks[page.file.dest_uri.removesuffix(".html") + ".ipynb"] = notebooks.notebook(
                markdown, page.canonical_url or "", Path(page.file.abs_src_path or "").parent
            )
            page.meta["notebook"] = posixpath.basename(page.file.dest_uri).removesuffix(".html") + ".ipynb"
        return _linked(markdown, page)
    page.meta["search"] = {"exclude": True}
    page.meta["title"] = title = f"{made}: all names" if isinstance(made, str) else made.title
    page.meta["description"] = f"Every public name of {made}." if isinstance(made, str) else render.about(made)
    page.edit_url = None
    return f"# {title}"


_NAMES = re.compile(r'<span class="n">([^<]*)</span>')


def _lighter(content: str) -> str:
    """Highlighted code without invisible differences: names have the text's colour, output has lines of one kind."""
    return _NAMES.sub(r"\1", content).replace('</span>\n<span class="go">', "\n")


def _place(name: str, page: Page) -> str | None:
    """The link from a page to the entry of a public name; None for a name without one."""
    if name not in catalog.places():
        return None
    path, anchor = catalog.places()[name]
    return f"{posixpath.relpath(f'{FOLDER}/{path}.html', posixpath.dirname(page.file.dest_uri) or '.')}#{anchor}"


_NAMED = re.compile(r"\[([^\]\n]+)\]\[((?:torch|funcgrad|compat)\.[\w.]+)\]")


def _linked(markdown: str, page: Page) -> str:
    """``[`text`][torch.exp]`` as a link to the entry of that name in the reference."""
    folder = posixpath.dirname(page.file.src_uri)

    def link(found: re.Match[str]) -> str:
        path, anchor = catalog.places()[found[2]]
        return f"[{found[1]}]({posixpath.relpath(f'{FOLDER}/{path}.md', folder or '.')}#{anchor})"

    return _NAMED.sub(link, markdown)


def _first_sentences(markdown: str) -> str:
    """The first two sentences of a page's first paragraph, without its markup."""
    for paragraph in re.split(r"\n\s*\n", re.sub(r"^```.*?^```", "", markdown, flags=re.DOTALL | re.MULTILINE)):
        if re.match(r"[#<|!\-]", paragraph.strip() or "#"):
            continue
        text = re.sub(r"\[([^\]]+)\]\([^)]*\)|\[([^\]]+)\]\[[^\]]*\]", r"\1\2", paragraph)
        text = re.sub(r"[`*$]", "", " ".join(text.split()))
        return " ".join(re.split(r"(?<=[.:])\s", text)[:2])[:300]
    return ""


def on_page_content(content: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    made = _made.get(page.file.src_uri)
    _cards[page.file.src_uri] = (str(page.meta.get("title") or page.title), str(page.meta.get("description") or ""))
    if made is None:
        content = plots.in_page(formulas.written(content), Path(page.file.abs_src_path or "").parent)
        content = _terms(content, page)
        if "<!-- parity" in content:
            content = parity.written(content, lambda name: _place(name, page))
        if _GALLERY in content:
            content = content.replace(_GALLERY, _gallery(page))
        if "notebook" in page.meta:
            link = (
                f'<p class="r-node"><a href="{page.meta["notebook"]}" download>Download this page as a notebook</a></p>'
            )
            content = content.replace("</h1>", f"</h1>{link}", 1)
        return _lighter(content)
    if isinstance(made, str):
        path = page.file.src_uri.removeprefix(f"{FOLDER}/").removesuffix(".md")
        title = f"<h1>{made}: all names</h1><p>Every public name of <code>{made}</code>, by family.</p>"
        text, headings = render.index_html(made, path)
        page.toc = _toc(made, headings)
        return title + text
    text, headings = render.page_html(made)
    page.toc = _toc(made.title, headings)
    page.present_anchor_ids = (
        (page.present_anchor_ids or set())
        | {e.title for e in made.entries}
        | {n.address for e in made.entries for n in e.names}
    )
    _searched.extend(_documents(made, page))
    return _lighter(text)


_GALLERY = "<!-- gallery -->"


def _gallery(page: Page) -> str:
    """The pages of this page's section and of its front matter: a small picture, the title, the description."""
    cards_ = []
    more = [other for path in page.meta["also"].split() for other in _kept if other.file.src_uri == path]
    for other in [*(page.parent.children if page.parent is not None else ()), *more]:
        if other is page or not isinstance(other, Page):
            continue
        source = Path(other.file.abs_src_path or "")
        markdown, front = meta.get_data(source.read_text(encoding="utf-8"))
        picture = source.parent / front["picture"]
        address = posixpath.join(posixpath.dirname(page.file.dest_uri), "small", f"{source.stem}.svg")
        _small[address] = plots.small(picture.read_text(encoding="utf-8"))
        link, shown = other.file.url_relative_to(page.file), posixpath.basename(address)
        about = html.escape(_first_sentences(markdown).partition(". ")[0].rstrip(".") + ".")
        cards_.append(
            f'<a class="r-card" href="{link}"><img alt="" src="small/{shown}" loading="lazy">'
            f"<strong>{html.escape(other.title or '')}</strong><span>{about}</span></a>"
        )
    return f'<div class="r-gallery">{"".join(cards_)}</div>'


def _toc(title: str, headings: list[dict[str, Any]]) -> Any:
    return get_toc([{"level": 1, "id": "", "name": title, "html": title, "data-toc-label": "", "children": headings}])


def _documents(made: catalog.Page, page: Page) -> list[dict[str, Any]]:
    """The search entries of a page of the reference: the page, and each of its entries with all its names."""
    found: list[dict[str, Any]] = [{"location": page.url, "title": made.title, "text": render.about(made)}]
    found[0]["names"] = catalog.namespaces().get(made.path, [])
    for entry in made.entries:
        names = [n.address for n in entry.names]
        if isinstance(entry.value, type) and entry.title != "torch.Tensor":
            names += [f"{entry.title}.{name}" for name, _ in render.members(entry.value)]
        found.append(
            {
                "location": f"{page.url}#{entry.title}",
                "title": entry.title,
                "text": entry.summary.replace("``", ""),
                "names": names,
                "arguments": " ".join(_arguments(entry)).replace("_", " "),
            }
        )
        if entry.title in ("torch.nn.Module", "torch.Tensor"):  # whose methods other classes repeat
            found[-1]["weight"] = 15
    return found


#: Arguments that too many functions have to be searched for.
_COMMON = frozenset(
    [
        "self",
        "input",
        "other",
        "out",
        "dim",
        "dtype",
        "device",
        "x",
        "a",
        "b",
        "y",
        "axis",
        "size",
        "shape",
        "name",
        "args",
        "kwargs",
        "value",
    ]
)


def _arguments(entry: catalog.Entry) -> list[str]:
    try:
        names = inspect.signature(entry.value).parameters
    except (TypeError, ValueError):
        return []
    return [name for name in names if name not in _COMMON and not name.startswith("_")]


_TERM = re.compile(r"<dt>(.*?)</dt>\s*<dd>(.*?)</dd>", re.DOTALL)


def _terms(content: str, page: Page) -> str:
    """A page's definition lists with an anchor for each term, which the search finds."""

    def term(found: re.Match[str]) -> str:
        title = re.sub(r"<[^>]+>", "", found[1])
        anchor = slugify(title, "-")
        text = html.unescape(re.sub(r"<[^>]+>", " ", found[2]))
        names = [name.strip() for name in html.unescape(title).split(",")]
        _searched.append({"location": f"{page.url}#{anchor}", "title": title, "text": text, "names": names})
        return found[0].replace("<dt>", f'<dt id="{anchor}">', 1)

    return _TERM.sub(term, content)


def on_page_context(context: dict[str, Any], page: Page, config: MkDocsConfig, nav: Any) -> dict[str, Any]:
    context["card"] = cards.path_of(page.file.src_uri)
    return context


_WORKER = re.compile(r"assets/javascripts/workers/search\.\w+\.min\.js")


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    frame, article, content = output.partition("<article class")  # the theme indents its own by up to forty spaces
    return (
        re.sub(r"\s*\n\s*", "\n", _WORKER.sub("javascripts/search.js", frame))
        + article
        + _WORKER.sub("javascripts/search.js", content)
    )


def on_post_template(output: str, template_name: str, config: MkDocsConfig) -> str:
    return _WORKER.sub("javascripts/search.js", output)


@event_priority(50)
def on_pre_build(config: MkDocsConfig) -> None:
    _searched.clear()
    _cards.clear()
    _notebooks.clear()
    _small.clear()


@event_priority(50)  # before the search writes its index
def on_post_build(config: MkDocsConfig) -> None:
    index = config.plugins["material/search"].search_index
    words = {p.url: p.meta.get("words") for p in _pages(config)}
    for entry in index.entries:
        if words.get(entry["location"]):
            entry["names"] = [word.strip() for word in words[entry["location"]].split(",")]
        entry["text"] = html.unescape(re.sub(r"<[^>]+>", " ", entry["text"]))
    index.entries.extend(_searched)
    for path, text in [*_notebooks.items(), *_small.items()]:
        (Path(config.site_dir) / path).parent.mkdir(exist_ok=True)
        (Path(config.site_dir) / path).write_text(text, encoding="utf-8")
    cards.draw_all(_cards, Path(config.site_dir), config.site_name)


_kept: list[Page] = []


def on_nav(nav: Any, config: MkDocsConfig, files: Files) -> Any:
    _kept[:] = nav.pages
    return nav


def _pages(config: MkDocsConfig) -> list[Page]:
    return _kept
