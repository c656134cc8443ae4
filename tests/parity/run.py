"""Compares compat with real PyTorch over PyTorch's own test databases.

    make parity                                              everything that is listed
    python tests/parity/run.py --tools DIR --only 'conv'     what matches
    python tests/parity/run.py --tools DIR --seed 7          other random samples
    python tests/parity/run.py --tools DIR --programs 10000  many random programs (see programs.py)

``ops.txt`` and ``modules.txt`` list the operators and modules that must agree: every cell that the parity programs
(``ops.py`` and ``modules.py`` in DIR, and ``nodes.py`` beside this file) have for them must be complete.
``exceptions.txt`` lists the cells that are not, each with its reason. The run fails if a cell without an exception
fails, if the cell of an exception is complete, if something listed does not exist, and if compat has an operator or
module that is not listed (an exception for the column ``*`` is for one that the parity programs have no cells for).
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
Table = dict[str, dict[str, bool]]


def entries(path: Path) -> Iterator[str]:
    """The lines of a list that are not empty or comments."""
    for line in path.read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            yield line.strip()


def exceptions(path: Path) -> dict[tuple[str, str], str]:
    """One ``label column reason ...`` per line, as ``{(label, column): reason}``."""
    known = {}
    for line in entries(path):
        label, column, reason = line.split(None, 2)
        known[label, column] = reason
    return known


def entry_of(label: str, held: Iterable[str]) -> str | None:
    """The listed entry that a row belongs to: ``std.unbiased`` is a variant of ``std``."""
    return next((name for name in held if label == name or label.startswith(f"{name}.")), None)


def judge(
    held: list[str], table: Table, why: dict[str, dict[str, str]], known: dict[tuple[str, str], str]
) -> list[str]:
    """The rows of a table that contradict the lists."""
    rows = {label: cells for label, cells in table.items() if entry_of(label, held)}
    wrong = [
        f"{name}: is listed, but the parity programs have nothing of that name"
        for name in held
        if not any(entry_of(label, [name]) for label in rows)
    ]
    for label, cells in sorted(rows.items()):
        for column, full in cells.items():
            if not full and (label, column) not in known:
                wrong.append(f"{label} {column}: {why.get(label, {}).get(column, 'fails')}")
            if full and (label, column) in known:
                wrong.append(f"{label} {column}: is full, so it needs no exception any more")
    wrong += [
        f"{label} {column}: is an exception for a cell that is not there"
        for label, column in known
        if entry_of(label, held) and column not in rows.get(label, {})
    ]
    return wrong


def unlisted(tools: Path, held_ops: list[str], held_modules: list[str]) -> list[str]:
    """The entries of PyTorch's databases that compat has and neither list names."""
    sys.path[:0] = [str(tools), str(ROOT)]
    compat = importlib.import_module("compat")
    ops = importlib.import_module("ops")
    modules = importlib.import_module("modules")
    found = sorted(
        {op.name for op in ops.op_db if not ops.OUT_OF_SCOPE.match(op.name) and ops.find(compat, op.name) is not None}
        - set(held_ops)
    )
    classes = [(info.module_cls.__name__, "nn") for info in modules.module_db]
    classes += [(info.optim_cls.__name__, "optim") for info in modules.optim_db]
    found += sorted(
        {name for name, home in classes if hasattr(getattr(compat, home, None), name) and name not in held_modules}
    )
    return [f"{name}: compat has it, and no list holds it" for name in found]


def start(tools: Path, program: str, options: list[str]) -> subprocess.Popen[str]:
    """Starts one of the programs that measure."""
    search = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    environment = {"JAX_PLATFORMS": "cpu", **os.environ, "PYTHONPATH": search, "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, str(tools / program), "--lib", "compat", *options]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def measure(tools: Path, names: list[str], modules: list[str], seed: int, shards: int) -> list[dict[str, Any]]:
    """Runs the programs side by side; returns the JSON of each."""
    with tempfile.TemporaryDirectory() as scratch:
        jobs = []
        pattern = f"^({'|'.join(map(re.escape, names))})$"
        for i in range(shards if names else 0):
            file = Path(scratch, f"ops{i}.json")
            options = ["--ops", pattern, "--shard", f"{i}/{shards}", "--quiet"]
            jobs.append((file, start(tools, "ops.py", [*options, "--seed", str(seed), "--json", str(file)])))
        if names:
            file = Path(scratch, "nodes.json")
            options = ["--tools", str(tools), "--ops", pattern, "--seed", str(seed), "--json", str(file)]
            jobs.append((file, start(HERE, "nodes.py", options)))
        if modules:
            file = Path(scratch, "modules.json")
            pattern = f"^({'|'.join(map(re.escape, modules))})$"
            options = ["--only", pattern, "--seed", str(seed), "--json", str(file)]
            jobs.append((file, start(tools, "modules.py", options)))
        results = []
        for file, job in jobs:
            output, _ = job.communicate()
            if not file.exists():
                sys.exit(f"{job.args} failed:\n{output}")
            results.append(json.loads(file.read_text()))
        return results


def disagreeing(count: int, seed: int) -> list[str]:
    """Runs random programs; returns those whose results differ, each as one line."""
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch, "programs.json")
        options = ["--programs", str(count), "--seed", str(seed * count), "--json", str(file)]
        job = start(HERE, "programs.py", options)
        output, _ = job.communicate()
        if not file.exists():
            sys.exit(f"{job.args} failed:\n{output}")
        print(f"programs: {output.strip().splitlines()[-1]}")
        found = json.loads(file.read_text())
    return [f"program {wrong['seed']}: {'; '.join(wrong['program'])}: {wrong['difference']}" for wrong in found]


def tables(results: list[dict[str, Any]]) -> dict[str, tuple[Table, dict[str, dict[str, str]]]]:
    """The rows of all programs, by entry."""
    merged: dict[str, tuple[Table, dict[str, dict[str, str]]]] = {}
    for result in results:
        for about, part in {"operators": result}.items() if "table" in result else result.items():
            for rows, more in zip(merged.setdefault(about, ({}, {})), (part["table"], part["why"])):
                for label, cells in more.items():
                    rows.setdefault(label, {}).update(cells)
    return merged


def summary(about: str, table: Table) -> None:
    cells = Counter((column, full) for row in table.values() for column, full in row.items())
    print(f"{about}: {len(table)} entries, {sum(all(row.values()) for row in table.values())} of them full")
    for column in dict.fromkeys(column for row in table.values() for column in row):
        full, of = cells[column, True], cells[column, True] + cells[column, False]
        print(f"  {column:9s} {full:4d} of {of:4d}  {100 * full / of:5.1f}%")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tools", type=Path, required=True, help="where ops.py and modules.py are")
    parser.add_argument("--only", default="", help="a regular expression: what to run of what is held")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--shards", type=int, default=2, help="processes for the operators")
    parser.add_argument("--programs", type=int, default=400, help="how many random programs, where all is measured")
    arguments = parser.parse_args()
    tools = arguments.tools.resolve()
    held_ops, held_modules = list(entries(HERE / "ops.txt")), list(entries(HERE / "modules.txt"))
    known = exceptions(HERE / "exceptions.txt")
    chosen_ops, chosen_modules = (
        [n for n in held if re.search(arguments.only, n)] for held in (held_ops, held_modules)
    )

    results = tables(measure(tools, chosen_ops, chosen_modules, arguments.seed, arguments.shards))
    held = [*chosen_ops, *chosen_modules]
    table, why = {}, {}
    for about, (rows, reasons) in results.items():
        summary(about, rows)
        table.update(rows)
        why.update(reasons)
    wrong = judge(held, table, why, known)
    if not arguments.only:
        unmeasured = [label for label, column in known if column == "*"]
        wrong += unlisted(tools, [*held_ops, *unmeasured], [*held_modules, *unmeasured])
        wrong += disagreeing(arguments.programs, arguments.seed)
    for (label, column), reason in known.items():
        print(f"exception: {label} {column}: {reason}")
    print(*(f"WRONG: {line}" for line in wrong), sep="\n", end="\n" * bool(wrong))
    print(f"parity: {len(held_ops)} operators and {len(held_modules)} modules held, {len(wrong) or 'nothing'} wrong")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
