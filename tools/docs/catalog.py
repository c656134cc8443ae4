"""The reference's contents: public names grouped into entries, entries put on pages.

An entry is documented by one docstring. It has all names of the same object: a function, the method, the in-place
variant, aliases. Each name occurs at one place in the reference, with itself as anchor.
"""

from __future__ import annotations

import functools
import inspect
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from tools.docs import docstrings, families, operators
from tools.docs.names import Name, public_names

#: The order in which an entry's names are considered for its heading.
_FIRST = ("torch", "torch.nn", "torch.optim", "torch.linalg", "torch.fft", "torch.special", "torch.nn.functional")


@dataclass
class Entry:
    """An entry of the reference.

    Attributes:
        names: all names of the entry, the heading first.
        home: the module that defines it.
        operator: its declaration as an operator, if it is one.
    """

    names: list[Name]
    home: str
    operator: operators.Operator | None = None
    doc: docstrings.Doc = field(default_factory=docstrings.Doc)

    @property
    def title(self) -> str:
        return self.names[0].address

    @property
    def value(self) -> Any:
        return self.names[0].value

    @property
    def summary(self) -> str:
        return self.doc.summary


@dataclass
class Page:
    """A page of the reference.

    Attributes:
        path: its path without a suffix: ``torch/pointwise-trigonometry``.
        section: its section of the navigation.
    """

    path: str
    title: str
    section: str
    about: str = ""
    entries: list[Entry] = field(default_factory=list)


def _key(value: Any) -> int:
    op = operators.describe(value) if not isinstance(value, type) else None
    function = operators.function_of(value)
    return op.key if op is not None else id(getattr(function, "__func__", function))


def _rank(name: Name) -> tuple:
    place = name.place
    order = _FIRST.index(place) if place in _FIRST else len(_FIRST) + place.count(".")
    alias = getattr(operators.function_of(name.value), "__name__", name.last) != name.last
    return (
        name.last.endswith("_") and not name.last.startswith("_"),
        order,
        alias,
        place == "torch.Tensor",
        name.address,
    )


@functools.cache
def entries() -> list[Entry]:
    """All entries, in the order of their titles."""
    groups: dict[Any, list[Name]] = {}
    for name in public_names():
        groups.setdefault((name.address.partition(".")[0] == "funcgrad", _key(name.value)), []).append(name)
    made = [_entry(names) for names in _joined(groups.values())]
    return sorted(made, key=lambda entry: entry.title.lower())


def _joined(groups: Iterable[list[Name]]) -> list[list[Name]]:
    """Groups merged, so that a method is with the function of its name, and ``exp_`` with ``exp``."""
    found: dict[str, list[Name]] = {}
    rest = []
    for group in groups:
        first = min(group, key=_rank)
        if first.place in ("torch", "torch.Tensor", "torch.nn.functional") and not isinstance(first.value, type):
            plain = first.place == "torch.nn.functional" and not first.last.endswith("_")
            found.setdefault(first.address if plain else first.last.rstrip("_"), []).extend(group)
        else:
            rest.append(group)
    return [*found.values(), *rest]


def _entry(names: list[Name]) -> Entry:
    ordered = sorted({n.address: n for n in names}.values(), key=_rank)
    node = next((op.node for n in ordered if (op := operators.describe(n.value)) and op.node), "")
    own = node.partition("Backward")[0].lower()  # asin's node is AsinBackward0, whatever aliases there are
    ordered.sort(key=lambda n: (*_rank(n)[:2], own != n.last.replace("_", "").lower()))
    described = [n for n in ordered if (getattr(n.value, "__doc__", None) or "").strip()]
    head = described[0] if described else ordered[0]
    operator = next((op for n in ordered if (op := operators.describe(n.value)) and op.node), None)
    operator = operator or operators.describe(head.value)
    text = inspect.getdoc(head.value) if not isinstance(head.value, type) else head.value.__doc__
    return Entry(ordered, operators.home(head.value), operator, docstrings.parse(text))


@functools.cache
def pages() -> list[Page]:
    """All pages with their entries, in the navigation's order."""
    found: dict[str, Page] = {}
    for entry in entries():
        path, title, section, about = families.place(entry.title, entry.home, isinstance(entry.value, type))
        page = found.setdefault(path, Page(path, title, section, about))
        page.entries.append(entry)
    order = list(families.SECTIONS)
    return sorted(found.values(), key=lambda page: (order.index(page.section), families.rank(page.path), page.title))


@functools.cache
def namespaces() -> dict[str, list[str]]:
    """By the page's path, the namespaces of which the page has the most entries."""
    count = Counter((e.names[0].place, page.path) for page in pages() for e in page.entries)
    best: dict[str, str] = {}
    for (place, path), _ in reversed(count.most_common()):
        best[place] = path
    found: dict[str, list[str]] = {}
    for place, path in best.items():
        if "." in place and place != "torch.Tensor":
            found.setdefault(path, []).append(place)
    return found


@functools.cache
def places() -> dict[str, tuple[str, str]]:
    """The page's path and the anchor of every name."""
    found: dict[str, tuple[str, str]] = {}
    for page in pages():
        for entry in page.entries:
            for name in entry.names:
                found[name.address] = (page.path, name.address)
    return found
