"""Which of PyTorch's names a package mentions, and which of those a Python installation has.

    python tests/ecosystem/names.py scan SITE-PACKAGES [PACKAGE ...] > mentioned.json
    python tests/ecosystem/names.py have mentioned.json > there.json       # with PyTorch, or with -m compat
    python tests/ecosystem/names.py missing mentioned.json pytorch.json compat.json

``scan`` reads sources, resolves the names that ``import`` binds (``import torch.nn.functional as F``), and imports
nothing. ``have`` looks each name up. ``missing`` lists what PyTorch has and compat does not, by how many packages
mention it, with the kind of use: ``import`` (the package's module cannot be imported), ``body`` (used while it is
imported), ``call`` (inside a function), ``guarded`` (inside ``try``, after ``hasattr`` or for type checkers alone).
"""

from __future__ import annotations

import ast
import importlib
import json
import sys
import warnings
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

#: Kinds of mentions, the most important first.
WHERE = ("import", "body", "call", "guarded")
ROOT = "torch"


class Names(ast.NodeVisitor):
    """PyTorch's names in one file.

    Attributes:
        found: by full name, the earliest kind of mention.
    """

    def __init__(self) -> None:
        self.found: dict[str, str] = {}
        self.aliases: dict[str, str] = {}
        self.depth = self.guards = 0
        self.lazy_annotations = False

    def _add(self, name: str, where: str) -> None:
        where = "guarded" if self.guards else "call" if self.depth else where
        if name not in self.found or WHERE.index(where) < WHERE.index(self.found[name]):
            self.found[name] = where

    def visit_Import(self, node: ast.Import) -> None:
        for name in node.names:
            if name.name.partition(".")[0] == ROOT:
                self.aliases[name.asname or ROOT] = name.name if name.asname else ROOT
                self._add(name.name, "import")

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if node.module == "__future__" and any(n.name == "annotations" for n in node.names):
            self.lazy_annotations = True
        if node.level or (node.module or "").partition(".")[0] != ROOT:
            return
        for name in node.names:
            full = node.module if name.name == "*" else f"{node.module}.{name.name}"
            self._add(str(full), "import")
            self.aliases[name.asname or name.name] = str(full)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        parts, at = [node.attr], node.value
        while isinstance(at, ast.Attribute):
            parts.append(at.attr)
            at = at.value
        if isinstance(at, ast.Name) and at.id in self.aliases:
            self._add(".".join((self.aliases[at.id], *reversed(parts))), "body")
        else:
            self.generic_visit(node)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> None:
        arguments = node.args
        early = [*arguments.defaults, *(d for d in arguments.kw_defaults if d), *getattr(node, "decorator_list", [])]
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        noted = [a.annotation for a in every if a.annotation] + [r for r in [getattr(node, "returns", None)] if r]
        for part in early:
            self.visit(part)
        self.depth += self.lazy_annotations
        for part in noted:
            self.visit(part)
        self.depth += 1 - self.lazy_annotations
        body = node.body if isinstance(node.body, list) else [node.body]
        for statement in body:
            self.visit(statement)
        self.depth -= 1

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = _function  # noqa: N815 (ast's names)

    def visit_Try(self, node: ast.Try) -> None:
        self.guards += 1
        for part in node.body:
            self.visit(part)
        self.guards -= 1
        for part in (*node.handlers, *node.orelse, *node.finalbody):
            self.visit(part)

    def visit_If(self, node: ast.If) -> None:
        asks = ast.unparse(node.test)
        self.visit(node.test)
        guarded = any(
            word in asks for word in ("hasattr", "TYPE_CHECKING", "version", "VERSION", "is_available", "_has")
        )
        self.guards += guarded
        for part in node.body:
            self.visit(part)
        self.guards -= guarded
        for part in node.orelse:
            self.visit(part)


def in_file(path: Path) -> dict[str, str]:
    """The names in a file, with the kind of mention; none for a file that is not Python of this version."""
    source = path.read_text(encoding="utf-8", errors="replace")
    if f"import {ROOT}" not in source and f"from {ROOT}" not in source:
        return {}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return {}
    names = Names()
    for imported in ast.walk(tree):  # first, as functions may use what is imported below them
        if isinstance(imported, ast.Import):
            names.visit_Import(imported)
        elif isinstance(imported, ast.ImportFrom):
            names.visit_ImportFrom(imported)
    names.found.clear()
    names.visit(tree)
    return names.found


def in_package(folder: Path) -> dict[str, str]:
    """The names in a package's files, except tests."""
    found: dict[str, str] = {}
    files = [folder] if folder.is_file() else sorted(folder.rglob("*.py"))
    for path in files:
        if {"tests", "test", "testing_utils.py"} & set(path.relative_to(folder.parent).parts):
            continue
        for name, where in in_file(path).items():
            if name not in found or WHERE.index(where) < WHERE.index(found[name]):
                found[name] = where
    return found


def packages(site: Path, chosen: list[str]) -> Iterator[tuple[str, Path]]:
    """The packages in a folder that mention PyTorch, or those that are chosen."""
    for path in sorted(site.iterdir()):
        name = path.stem if path.suffix == ".py" else path.name
        if (path.is_dir() or path.suffix == ".py") and (not chosen or name in chosen):
            if name not in (ROOT, "functorch", "torchgen", "compat", "funcgrad") and not name.endswith("-info"):
                yield name, path


def scan(site: Path, chosen: list[str]) -> dict[str, dict[str, str]]:
    """By package, the names that it mentions."""
    found = {name: in_package(path) for name, path in packages(site, chosen)}
    return {name: dict(sorted(names.items())) for name, names in found.items() if names}


def resolves(name: str) -> str | None:
    """The shortest prefix of a name that does not exist; None if the name exists."""
    parts = name.split(".")
    at: object = importlib.import_module(parts[0])
    module = parts[0]
    for n, part in enumerate(parts[1:], 2):
        here = ".".join(parts[:n])
        try:
            at = getattr(at, part)
        except Exception:  # a missing name may raise any error
            if module is None or not _importable(here):
                return here
            at = sys.modules[here]
        module = here if here in sys.modules else None  # type: ignore[assignment]
    return None


def _importable(name: str) -> bool:
    try:
        importlib.import_module(name)
    except Exception:
        return False
    return True


def have(mentioned: dict[str, dict[str, str]]) -> dict[str, str | None]:
    """By name, the prefix that does not exist."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {name: resolves(name) for name in sorted({n for names in mentioned.values() for n in names})}


def missing(
    mentioned: dict[str, dict[str, str]], pytorch: dict[str, str | None], compat: dict[str, str | None]
) -> list[tuple[str, str, list[str]]]:
    """What PyTorch has and compat does not: the name, the earliest kind of mention, the packages."""
    users: dict[str, set[str]] = defaultdict(set)
    where: dict[str, str] = {}
    for package, names in mentioned.items():
        for name, kind in names.items():
            gone = compat[name]
            if gone is not None and pytorch[name] is None:
                users[gone].add(package)
                if gone not in where or WHERE.index(kind) < WHERE.index(where[gone]):
                    where[gone] = kind
    order = sorted(users, key=lambda n: (-len(users[n]), WHERE.index(where[n]), n))
    return [(name, where[name], sorted(users[name])) for name in order]


def _read(path: str) -> dict:
    return json.loads(Path(path).read_text())  # type: ignore[no-any-return]


def main(command: str, *rest: str) -> None:
    """Runs the command line."""
    if command == "scan":
        print(json.dumps(scan(Path(rest[0]), list(rest[1:])), indent=1))
    elif command == "have":
        print(json.dumps(have(_read(rest[0])), indent=1))
    else:
        for name, where, users in missing(*(_read(path) for path in rest)):
            print(f"{len(users):3} {where:8} {name}  ({', '.join(users[:6])}{', …' * (len(users) > 6)})")


if __name__ == "__main__":
    main(*sys.argv[1:])
