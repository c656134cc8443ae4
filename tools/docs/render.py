"""Pages of the reference as HTML."""

from __future__ import annotations

import functools
import html
import inspect
import operator
import posixpath
import re
from collections.abc import Iterator
from typing import Any

from tools.docs import catalog, docstrings, operators
from tools.docs.catalog import Entry, Page
from tools.docs.docstrings import Link

#: The longest default value that is shown.
LONGEST_DEFAULT = 40
#: Words that name arguments and values in docstrings, not the attribute of that name.
ORDINARY = frozenset(
    [
        "self",
        "None",
        "True",
        "False",
        "input",
        "other",
        "out",
        "dim",
        "size",
        "dtype",
        "device",
        "shape",
        "data",
        "name",
        "index",
        "values",
        "grad",
    ]
)
_HIDDEN_BASES = (object, Exception, ValueError, TypeError, RuntimeError)


def page_html(page: Page) -> tuple[str, list[dict[str, Any]]]:
    """A page's content, and the headings in it for its table of contents."""
    short = [e.title.removeprefix(_common(page)) for e in page.entries]
    headings = [_heading(e.title, s) for e, s in zip(page.entries, short)]
    parts = [f"<h1>{html.escape(page.title)}</h1>", _summary(page)]
    parts += [entry_html(page, e) for e in page.entries]
    return "\n".join(parts), headings


def _heading(anchor: str, text: str) -> dict[str, Any]:
    return {"level": 2, "id": anchor, "name": text, "html": text, "data-toc-label": "", "children": []}


def _common(page: Page) -> str:
    """The common prefix of the names on a page."""
    places = {e.names[0].place for e in page.entries}
    return f"{places.pop()}." if len(places) == 1 else ""


def _summary(page: Page) -> str:
    rows = [
        f'<tr><td><a href="#{e.title}"><code>{_wrappable(e.title)}</code></a></td><td>{_summary_of(e)}</td></tr>'
        for e in page.entries
    ]
    return (
        f"<p>{html.escape(about(page))}</p>"
        f'<div class="md-typeset__table"><table class="r-summary"><tbody>{"".join(rows)}</tbody></table></div>'
    )


def about(page: Page) -> str:
    """The purpose of a page, in a sentence."""
    named = [e.title for e in page.entries[:3]]
    others = f" and {len(page.entries) - 3} more" if len(page.entries) > 3 else ""
    return f"Signatures, arguments, errors and examples of {', '.join(named)}{others}."


def _summary_of(entry: Entry) -> str:
    return docstrings.inline(entry.summary, lambda name: None)


def _wrappable(address: str) -> str:
    """A dotted name that may be broken after its dots."""
    return html.escape(address).replace(".", ".<wbr>").replace("_", "_<wbr>")


# ---------------------------------------------------------------- an entry


def entry_html(page: Page, entry: Entry) -> str:
    """An entry: heading, signatures of all its names, description, node, and other objects with that name."""
    link = linker(page.path, entry)
    anchor = f'<a class="headerlink" href="#{entry.title}" title="Permanent link">&para;</a>'
    parts = [
        f'<section class="r-entry"><h2 id="{entry.title}"><code>{_wrappable(entry.title)}</code>{anchor}</h2>',
        _signatures(entry),
        docstrings.body(entry.doc, link),
    ]
    if isinstance(entry.value, type):
        parts.append(_members(entry, link))
    parts += [_node(entry), _related(page.path, entry), "</section>"]
    return "".join(parts)


def _signatures(entry: Entry) -> str:
    shown: dict[str, list[str]] = {}
    for name in entry.names:
        kind = "class " if isinstance(name.value, type) else ""
        shown.setdefault(kind + arguments(name.value, name.module), []).append(name.address)
    lines = []
    for text, addresses in shown.items():
        kind, text = ("class ", text[6:]) if text.startswith("class ") else ("", text)
        for address in addresses:
            place, _, last = address.rpartition(".")
            place = place.replace("torch.Tensor", "Tensor")
            at = "" if address == entry.title else f' id="{address}"'
            lines.append(f"<code{at}>{kind}{place}.<b>{last}</b>{html.escape(text, quote=False)}</code>")
    head, rest = lines[:6], lines[6:]
    more = f"<details><summary>{len(rest)} more names</summary>{''.join(rest)}</details>" if rest else ""
    return f'<div class="r-sig">{"".join(head)}{more}</div>'


def arguments(value: Any, owner: Any = None) -> str:
    """``(input, *, out=None) -> Tensor``: a callable's signature as users read it; "" if there is none."""
    if isinstance(value, property):
        return ""
    if isinstance(value, type) and issubclass(value, tuple | BaseException) and value.__module__ != "compat":
        return "" if issubclass(value, BaseException) else _constructor(value)
    return _constructor(value, method=isinstance(owner, type))


@functools.cache
def _public_annotation(text: str) -> str:
    text = text.strip("'\"")
    text = re.sub(r"\b(?:dtypes\.dtype|\w+)\b(?!\.)", lambda m: operators.ANNOTATIONS.get(m[0], m[0]), text)
    return "" if text in ("", "None | None") or text.startswith(" |") else text.replace("dtypes.dtype", "dtype")


def _constructor(value: Any, method: bool = False) -> str:
    signature = operators.signature(value)
    if signature is None:
        return "(…)"
    parameters = list(signature.parameters.values())
    if method and parameters and parameters[0].kind is not inspect.Parameter.KEYWORD_ONLY:
        parameters = parameters[1:]
    shown, named, positional = [], False, False
    for p in parameters:
        if p.name.startswith("_") and p.default is not p.empty:
            continue
        if positional and p.kind is not p.POSITIONAL_ONLY:
            shown.append("/")
        positional = p.kind is p.POSITIONAL_ONLY
        if p.kind is p.KEYWORD_ONLY and not named:
            shown.append("*")
        named = named or p.kind in (p.KEYWORD_ONLY, p.VAR_POSITIONAL)
        shown.append(_parameter(p))
    returned = signature.return_annotation
    result = "" if isinstance(value, type) or returned is signature.empty else _annotation(returned)
    return f"({', '.join(shown + ['/'] * positional)})" + (f" → {result}" if result else "")


def _annotation(annotation: Any) -> str:
    return _public_annotation(annotation if isinstance(annotation, str) else getattr(annotation, "__name__", ""))


def _parameter(p: inspect.Parameter) -> str:
    stars = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
    kind = _annotation(p.annotation) if p.annotation is not p.empty else ""
    text = stars + p.name + (f": {kind}" if kind else "")
    if p.default is p.empty:
        return text
    default = repr(p.default)
    if len(default) > LONGEST_DEFAULT or " at 0x" in default or default.startswith("<"):
        default = "…"
    return f"{text}={default}" if not kind else f"{text} = {default}"


def _node(entry: Entry) -> str:
    op = entry.operator
    if op is None or entry.title.startswith("funcgrad"):
        return ""
    if op.node:
        saves = ", ".join(f"<code>_saved_{name}</code>" for name in op.saves) or "nothing"
        return f'<p class="r-node">Backward node <code>{op.node}</code>; it saves {saves}.</p>'
    nodes = ", ".join(f"<code>{node}</code>" for node in op.uses[:8]) + (", …" if len(op.uses) > 8 else "")
    return f'<p class="r-node">A composite of other operators; in the graph it is {nodes}.</p>' if nodes else ""


@functools.cache
def _by_word() -> dict[str, list[Entry]]:
    found: dict[str, list[Entry]] = {}
    for page in catalog.pages():
        for entry in page.entries:
            found.setdefault(_word(entry.names[0].last), []).append(entry)
    return found


def _word(last: str) -> str:
    return last.lower().replace("_", "").removesuffix("loss")


def _related(path: str, entry: Entry) -> str:
    """Links to objects with the same name: the module, the function, the one of the other API."""
    others = [e for e in _by_word()[_word(entry.names[0].last)] if e is not entry][:6]
    links = [f'<a href="{href(path, e.title)}"><code>{_wrappable(e.title)}</code></a>' for e in others]
    return f'<p class="r-node">See also {", ".join(links)}.</p>' if links else ""


# ---------------------------------------------------------------- members of a class


@functools.cache
def _shown() -> frozenset[int]:
    """The classes that have an entry of their own."""
    return frozenset(id(entry.value) for page in catalog.pages() for entry in page.entries)


def _hidden(base: type) -> bool:
    """Whether an internal class is only a base of others: its members are listed as theirs."""
    return id(base) not in _shown() and base.__module__.partition(".")[0] in ("compat", "funcgrad")


def members(kind: type) -> Iterator[tuple[str, Any]]:
    """The public members of a class, its own or those of bases without an entry: the name and the value."""
    seen = set()
    elsewhere = {above for base in bases(kind) for above in base.__mro__}
    for base in kind.__mro__:
        if base in elsewhere or (base is not kind and not _hidden(base)):
            continue
        for name, value in vars(base).items():
            plain = value.__func__ if isinstance(value, classmethod | staticmethod) else value
            kinds = (property, functools.cached_property)
            if name.startswith("_") or name in seen or not (inspect.isfunction(plain) or isinstance(plain, kinds)):
                continue
            seen.add(name)
            yield name, plain


def bases(kind: type) -> list[type]:
    """The nearest bases of a class whose names are public."""
    found: dict[type, None] = {}
    for base in kind.__bases__:
        found |= dict.fromkeys(bases(base) if _hidden(base) else [base])
    return [base for base in found if base not in _HIDDEN_BASES]


def _members(entry: Entry, link: Link) -> str:
    kind = entry.value
    parts = []
    if above := bases(kind):
        shown = [_base(base, link) for base in above]
        parts.append(f'<p class="r-node">Based on {", ".join(shown)}.</p>')
    if entry.title == "torch.Tensor":
        return "".join(parts)
    rows = []
    for name, value in members(kind):
        written = not isinstance(getattr(value, "fget", None), operator.itemgetter)
        doc = docstrings.parse(value.__doc__ if written else None)
        text = docstrings.body(doc, link) if doc.text or doc.sections else ""
        shown = html.escape(_constructor(value, method=True), quote=False) if inspect.isfunction(value) else ""
        rows.append(f'<dt id="{entry.title}.{name}"><code><b>{name}</b>{shown}</code></dt><dd>{text}</dd>')
    if rows:
        parts.append(f'<p class="r-part">Methods and attributes</p><dl class="r-members">{"".join(rows)}</dl>')
    return "".join(parts)


def _base(base: type, link: Link) -> str:
    module = base.__module__.replace("compat", "torch", 1)
    target = next((t for a in (f"{module}.{base.__name__}", base.__name__) if (t := link(a))), None)
    name = f"<code>{base.__name__}</code>"
    return f'<a href="{target}">{name}</a>' if target else name


# ---------------------------------------------------------------- links


def href(source: str, address: str) -> str | None:
    """The link from a page to the place of a name."""
    found = catalog.places().get(address)
    if found is None:
        return None
    path, anchor = found
    return f"#{anchor}" if path == source else f"{posixpath.relpath(path, posixpath.dirname(source))}.html#{anchor}"


def linker(source: str, entry: Entry | None) -> Link:
    """Finds the entries of the names in a docstring, as the page at ``source`` links them."""
    ours = entry is not None and entry.title.startswith("funcgrad")
    near = [entry.names[0].place] if entry is not None else []
    near += ["funcgrad.numpy", "funcgrad"] if ours else ["torch", "torch.nn", "torch.nn.functional", "torch.optim"]
    known: frozenset[str] = frozenset(_parameters(entry)) | ORDINARY if entry is not None else ORDINARY

    def find(name: str) -> str | None:
        if (
            name in known
            or not re.fullmatch(r"[A-Za-z_][\w.]*", name)
            or (entry is not None and name == entry.names[0].last)
        ):
            return None
        name = re.sub(r"^(compat|F)\.", lambda m: "torch." if m[1] == "compat" else "torch.nn.functional.", name)
        tries = [name, *(f"{place}.{name}" for place in near), f"torch.{name}"]
        return next((found for t in tries if (found := href(source, t))), None)

    return find


def _parameters(entry: Entry) -> Iterator[str]:
    signature = operators.signature(entry.value)
    yield from signature.parameters if signature is not None else ()


# ---------------------------------------------------------------- indices

#: Namespaces whose names are on several pages: each gets a page that lists them all.
INDICES = (
    "torch", "torch.Tensor", "torch.nn", "torch.nn.functional", "torch.linalg", "torch.fft", "torch.special",
    "funcgrad", "funcgrad.numpy", "funcgrad.lax",
)  # fmt: skip


def index_html(namespace: str, path: str) -> tuple[str, list[dict[str, Any]]]:
    """All names of a namespace by family, each with a link to its place; and the headings."""
    parts, headings = [], []
    for page in catalog.pages():
        rows = []
        for entry in page.entries:
            own = [n for n in entry.names if n.place == namespace]
            if own:
                links = ", ".join(
                    f'<a href="{href(path, n.address)}"><code>{_wrappable(n.last)}</code></a>' for n in own
                )
                rows.append(f"<tr><td>{links}</td><td>{_summary_of(entry)}</td></tr>")
        if rows:
            target = f"{posixpath.relpath(page.path, posixpath.dirname(path))}.html"
            anchor = page.path.rpartition("/")[2]
            headings.append(_heading(anchor, page.title))
            heading = f'<h2 id="{anchor}"><a href="{target}">{html.escape(page.title)}</a></h2>'
            parts.append(f'{heading}<table class="r-summary"><tbody>')
            parts += [*rows, "</tbody></table>"]
    return "".join(parts), headings
