"""The results of the comparison with PyTorch, operator by operator: same, different and why, absent.

``make parity`` runs PyTorch's own test databases in both and fails if its lists (``tests/parity/*.txt``) are out of
date; the stubs of absent names are those of ``compat`` (``compat/_absent/table.py``).
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

from compat import _absent as stubs
from compat._absent.table import TABLE

ROOT = Path(__file__).resolve().parents[2]
LISTS = ROOT / "tests" / "parity"
#: The compared properties, by the names of the columns.
COLUMNS = {
    "*": "not compared", "forward": "values", "strides": "strides", "node": "the node's name", "saved": "what is saved",
    "graph": "the graph", "nodes": "every node of the graph", "grad": "gradients", "gradgrad": "second derivatives",
    "jvp": "forward mode", "inplace": "in place", "out": "`out=`", "errors": "errors", "seeded": "random numbers",
    "state": "state_dict",
}  # fmt: skip
_REFUSES = stubs.refusing("it", Exception, "").__code__
Link = Callable[[str], str | None]


def lines(name: str) -> Iterator[str]:
    for line in (LISTS / name).read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            yield line.strip()


def exceptions() -> dict[str, list[tuple[list[str], str]]]:
    """The columns that differ and the reason, by entry."""
    found: dict[str, dict[str, list[str]]] = {}
    for line in lines("exceptions.txt"):
        name, column, why = line.split(maxsplit=2)
        found.setdefault(name, {}).setdefault(why, []).append(column)
    return {name: [(columns, why) for why, columns in whys.items()] for name, whys in found.items()}


def same() -> dict[str, list[str]]:
    """The entries that agree in every compared column, by their public namespace."""
    different = exceptions()
    found: dict[str, list[str]] = {"Modules and optimizers": [n for n in lines("modules.txt") if n not in different]}
    for name in lines("ops.txt"):
        if name not in different:
            short = name.removeprefix("torch.")
            place = "ops.aten" if short.startswith("ops.") else short.rpartition(".")[0]
            found.setdefault(f"torch.{place}".rstrip("."), []).append(name)
    return dict(sorted(found.items(), key=lambda pair: pair[0].lower()))


def absent() -> dict[str, list[str]]:
    """The public names that stubs describe as absent, by the reason."""
    found: dict[str, list[str]] = {why: [] for why in TABLE}
    names, reasons = stubs._absences()
    for module, own in names.items():
        for name in own:
            address = f"{module}.{name}".removeprefix(".")
            if not any(part.startswith("_") for part in address.split(".")) and not _there(module, name):
                found[reasons[address]].append(f"torch.{address}")
    return {why: sorted(some) for why, some in found.items() if some}


def _there(module: str, name: str) -> bool:
    try:
        value = getattr(import_module(f"compat.{module}".rstrip(".")), name)
    except (ImportError, AttributeError):
        return False
    return not (isinstance(value, stubs._Refusing) or getattr(value, "__code__", None) is _REFUSES)


def _named(name: str, link: Link) -> str:
    base = re.sub(
        r"\.(?:with|grad|single|hermitian|chunked|full|reduced|binary|number|tensor|compare|quantile)\w*$", "", name
    )
    for address in (f"torch.{base}", f"torch.Tensor.{base}", f"torch.nn.{base}", f"torch.optim.{base}"):
        if (found := link(address)) is not None:
            return f'<a href="{found}">{html.escape(name)}</a>'
    return html.escape(name)


def _list(tag: str, names: str) -> str:
    return f'<{tag} class="r-names">{names}</{tag}>'


def page(part: str, link: Link) -> str:
    """A part of the page as HTML: ``same``, ``different`` or ``absent``.

    Args:
        link: returns the place of a name in the reference, or None.
    """
    if part == "same":
        return "".join(
            f"<h3>{html.escape(place)}: {len(names)}</h3>" + _list("p", ", ".join(_named(n, link) for n in names))
            for place, names in same().items()
        )
    if part == "different":
        rows = [
            f"<tr>{_list('td', _named(name, link))}"
            f"<td>{_code(', '.join(COLUMNS[c] for c in columns))}</td>"
            f"<td>{_code(why)}</td></tr>"
            for name, whys in sorted(exceptions().items())
            for columns, why in whys
        ]
        head = "<thead><tr><th>entry</th><th>what</th><th>why</th></tr></thead>"
        return f"<table>{head}<tbody>{''.join(rows)}</tbody></table>"
    items = [
        f"<dt>{html.escape(why[0].upper() + why[1:])}: {len(names)}</dt>{_list('dd', html.escape(', '.join(names)))}"
        for why, names in absent().items()
    ]
    return f"<dl>{''.join(items)}</dl>"


def _code(text: str) -> str:
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text))


def written(content: str, link: Link) -> str:
    """The HTML of a page with its parts in place of ``<!-- parity: same -->`` and the other markers."""

    return re.sub(r"<!-- parity: (\w+) -->", lambda found: page(found[1], link), content)
