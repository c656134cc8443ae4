"""The command line: ``python -m benchmarks [NAME…] [--json FILE] [--rounds N] [--list]``."""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmarks.harness import compare
from benchmarks.report import as_json, environment, progress, table

#: The benchmarks, each a module of this package with a docstring and a function ``cases()``.
NAMES = ("jit_call", "mlp_lowering", "mlp_gradient", "eager_grad", "long_chain")


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"benchmarks.{name}")


def _title(name: str) -> str:
    return (_module(name).__doc__ or "").strip().splitlines()[0]


def run(names: Sequence[str], rounds: int | None = None) -> list[dict[str, Any]]:
    """Runs benchmarks, prints a table for each, returns all comparisons as plain data."""
    results = []
    for name in names:
        print(f"\n{name}: {_title(name)}", flush=True)
        comparisons = []
        for case in _module(name).cases():
            progress(f"  {case.name} …")
            comparisons += compare(dataclasses.replace(case, rounds=rounds) if rounds else case)
        print(table(comparisons), flush=True)
        results += [as_json(name, c) for c in comparisons]
    return results


def main(arguments: Sequence[str] | None = None) -> int:
    """Parses the command line and runs; returns the exit status, which does not depend on the numbers."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="funcgrad beside others, as ratios.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which to run, of {', '.join(NAMES)} (all)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there too")
    parser.add_argument("--rounds", type=int, metavar="N", help="turns of each contestant (a case has its own number)")
    parser.add_argument("--list", action="store_true", help="say what there is and stop")
    options = parser.parse_args(arguments)
    unknown = [n for n in options.names if n not in NAMES]
    if unknown:
        parser.error(f"no benchmark is called {', '.join(unknown)}; there are {', '.join(NAMES)}")
    if options.list:
        print("\n".join(f"{name}: {_title(name)}" for name in NAMES))
        return 0
    around = environment()
    print(f"Python {around['python']}, {around['machine']}, {around['device']}; {around['versions']}")
    results = run(options.names or NAMES, options.rounds)
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps({"environment": around, "results": results}, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
