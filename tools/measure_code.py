"""Measures how much code an operator of ``compat`` needs, and the sizes of its packages.

python tools/measure_code.py           medians by folder, modules by folder, lines
python tools/measure_code.py --all     every operator with its lines, the longest first

The lines of an operator are those of its row, its checks, its formula and its backward formula: the statements that
declare it, and the functions of the same module that nothing else uses. Docstrings, comments and blank lines are not
counted. The lines of a statement that declares several operators are divided among them.
"""

from __future__ import annotations

import argparse
import ast
import io
import statistics
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
OPERATORS = ROOT / "compat" / "_operators"
MOST_LINES, MOST_MODULES = 12, 25
#: Folders with PyTorch's modules, and so with their number.
LISTS = ("compat/nn/modules", "compat/distributions")


class Operator(NamedTuple):
    """An operator, the module that declares it, and its number of lines."""

    name: str
    module: str
    lines: float


class Module:
    """A module of operators.

    Attributes:
        statements: the statements at its top level, each with the numbers of its lines of code.
        binds: by name, the statement that defines it.
    """

    def __init__(self, path: Path):
        self.path = path
        source = path.read_text()
        self.tree = ast.parse(source)
        code = code_lines(source, self.tree)
        self.statements = [(s, {n for n in span(s) if n in code}) for s in self.tree.body]
        self.binds = {name: i for i, (s, _) in enumerate(self.statements) for name in bound(s)}

    def operators(self, declared: list[tuple[int, str]], shown: str) -> Iterator[Operator]:
        """Its operators.

        Args:
            declared: the lines at which operators are declared, and their names.
            shown: the name of the module.
        """
        rows: dict[int, list[str]] = {}
        for line, name in declared:
            place = next(i for i, (s, _) in enumerate(self.statements) if line in span(s))
            rows.setdefault(place, []).append(name)
        own = {i: self.attached(i) for i in rows}
        uses = {i: self.closure(statements) for i, statements in own.items()}
        elsewhere = self.closure(
            [
                i
                for i, (s, _) in enumerate(self.statements)
                if not any(i in statements for statements in own.values())
                and not (isinstance(s, ast.FunctionDef | ast.Assign) and all(n.startswith("_") for n in bound(s)))
            ]
        )
        for i, called in rows.items():
            others = set().union(elsewhere, *[found for j, found in uses.items() if j != i])
            mine = set(own[i]) | (uses[i] - others - set(rows))
            lines = sum(len(self.statements[j][1]) for j in mine) / len(called)
            yield from (Operator(name, shown, lines) for name in called)

    def attached(self, row: int) -> list[int]:
        """The statement that declares an operator, and those that add to it: its backward formula, its aliases."""
        names = bound(self.statements[row][0])
        found = [row]
        for i, (s, _) in enumerate(self.statements):
            if isinstance(s, ast.FunctionDef):
                said = [d for d in s.decorator_list if isinstance(d, ast.Attribute | ast.Call)]
            else:
                said = [s.value] if isinstance(s, ast.Expr) and isinstance(s.value, ast.Call) else []
            if i != row and any(used(d) & names for d in said):
                found.append(i)
        return found

    def closure(self, statements: list[int]) -> set[int]:
        """The functions and values of the module that statements use, directly or indirectly."""
        found: set[int] = set()
        pending = list(statements)
        while pending:
            for name in used(self.statements[pending.pop()][0]):
                i = self.binds.get(name)
                s = self.statements[i][0] if i is not None else None
                if i is not None and i not in found and isinstance(s, ast.FunctionDef | ast.Assign | ast.AnnAssign):
                    found.add(i)
                    pending.append(i)
        return found - set(statements)


def span(statement: ast.stmt) -> range:
    """The numbers of a statement's lines, decorators among them."""
    decorators = getattr(statement, "decorator_list", [])
    return range(min([statement.lineno, *[d.lineno for d in decorators]]), (statement.end_lineno or 0) + 1)


def bound(statement: ast.stmt) -> set[str]:
    """The names that a statement defines."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return {statement.name}
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    targets = [statement.target] if isinstance(statement, ast.AnnAssign) else targets
    return {n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)}


def used(node: ast.AST) -> set[str]:
    """The names that code mentions."""
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def code_lines(source: str, tree: ast.Module) -> set[int]:
    """The numbers of the lines that are neither blank, nor comments, nor docstrings."""
    skipped = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    found: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in skipped:
            found.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module) and ast.get_docstring(node) is not None:
            found.difference_update(span(node.body[0]))
    return found


def operators() -> list[Operator]:
    """All operators."""
    sys.path.insert(0, str(ROOT))
    from compat._core.operators.operator_base import OperatorBase
    from compat._core.tensor.registry import load_all

    declared: dict[str, list[tuple[int, str]]] = {}
    make = OperatorBase.__init__

    def noted(self: OperatorBase, name: str, *more: Any, **named: Any) -> None:
        frame: Any = sys._getframe(1)
        while frame.f_code.co_name != "<module>":
            frame = frame.f_back
        declared.setdefault(frame.f_code.co_filename, []).append((frame.f_lineno, name))
        make(self, name, *more, **named)

    OperatorBase.__init__ = noted  # type: ignore[method-assign]
    load_all()
    found: list[Operator] = []
    for path in sorted(OPERATORS.rglob("*.py")):
        if str(path) in declared:
            found += Module(path).operators(declared[str(path)], path.relative_to(OPERATORS).as_posix())
    return found


def lines_of(folder: str) -> int:
    """The number of lines of the modules in a folder."""
    return sum(path.read_text().count("\n") for path in (ROOT / folder).rglob("*.py"))


def show_folders() -> None:
    """Prints the folders of ``compat``, those with too many modules marked."""
    counts: dict[str, int] = {}
    for path in sorted((ROOT / "compat").rglob("*.py")):
        folder = path.parent.relative_to(ROOT).as_posix()
        counts[folder] = counts.get(folder, 0) + (path.name != "__init__.py")
    print("\nmodules a folder, those of more than 15:")
    for folder, count in sorted(counts.items(), key=lambda item: -item[1]):
        if count > 15:
            mark = "  more than 25" if count > MOST_MODULES and folder not in ("compat", *LISTS) else ""
            print(f"  {count:4d}  {folder}{mark}")


def main() -> int:
    parser = argparse.ArgumentParser(description="How much code an operator takes, and how large the packages are.")
    parser.add_argument("--all", action="store_true", help="every operator, the longest first")
    every = operators()
    if parser.parse_args().all:
        for op in sorted(every, key=lambda op: -op.lines):
            print(f"{op.lines:6.1f}  {op.name:32} {op.module}")
        print()
    folders: dict[str, list[float]] = {}
    for op in every:
        folders.setdefault(op.module.partition("/")[0], []).append(op.lines)
    print("lines an operator: declaration, checks, formula and backward")
    print("  median  most  operators")
    for folder, lines in sorted(folders.items()):
        print(f"  {statistics.median(lines):6.1f} {max(lines):5.0f} {len(lines):5d}  compat/_operators/{folder}")
    median = statistics.median(op.lines for op in every)
    print(f"  {median:6.1f} {max(op.lines for op in every):5.0f} {len(every):5d}  all (at most {MOST_LINES})")
    show_folders()
    print("\nlines:")
    for folder in ("compat", "compat/_core", "compat/_operators", "funcgrad"):
        print(f"  {lines_of(folder):6d}  {folder}")
    return median > MOST_LINES


if __name__ == "__main__":
    sys.exit(main())
