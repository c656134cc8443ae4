"""Runs small programs of packages under real PyTorch and under compat, and makes a table of equal numbers.

    python tests/ecosystem/run.py [--table docs/start/packages.md] [PROGRAM ...]

Run it with a Python that has both PyTorch and compat. The packages that a program names in its first line are installed
from the registry into a folder of its own (``out/ecosystem``), with their dependencies except PyTorch.
A program reports numbers under names (``programs/harness.py``); they are compared in order, relative to the largest of
their name.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
OUT = ROOT / "out" / "ecosystem"
PROGRAMS = HERE / "programs"
#: Packages that are installed already, or replaced.
GIVEN = frozenset(("torch", "numpy", "triton", "jax", "jaxlib", "scipy", "ml-dtypes"))
#: The largest allowed difference of numbers, relative to the largest of their name.
TOLERANCE = 2e-4
BEGIN, END = "<!-- table of packages -->", "<!-- end of the table -->"


@dataclass
class Outcome:
    """The outcome of a program.

    Attributes:
        reports: numbers by name.
        seconds: its duration.
        error: the last line of the output if it failed.
    """

    reports: dict[str, list[float]] = field(default_factory=dict)
    seconds: float = 0.0
    error: str = ""


# ---------------------------------------------------------------- packages


def packages_of(program: Path) -> list[str]:
    """The packages that a program names in its first line."""
    return program.read_text().partition("\n")[0].removeprefix("# packages:").split()


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def site_of(program: Path) -> Path:
    """The folder of a program's packages."""
    return OUT / program.stem


def installed(site: Path) -> dict[str, metadata.Distribution]:
    """The packages in a folder, by name."""
    return {_normal(d.name): d for d in metadata.distributions(path=[str(site)]) if d.name}


def _needs(distribution: metadata.Distribution) -> list[str]:
    """The dependencies of a package on this machine."""
    from packaging.requirements import Requirement

    found = []
    for text in distribution.requires or ():
        asked = Requirement(text)
        if asked.marker is None or asked.marker.evaluate({"extra": ""}):
            name = _normal(asked.name)
            if name not in GIVEN and not name.startswith("nvidia"):
                found.append(f"{name}{asked.specifier}")
    return found


def install(wanted: list[str], site: Path) -> None:
    """Installs packages and their dependencies."""
    site.mkdir(parents=True, exist_ok=True)
    while True:
        there = installed(site)
        missing = sorted({w for w in wanted if _normal(re.split(r"[<>=!~\[; ]", w)[0]) not in there})
        if not missing:
            return
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
        subprocess.run([*command, "--target", str(site), *missing], check=True)
        wanted = [need for d in installed(site).values() for need in _needs(d)]


# ---------------------------------------------------------------- programs


def run(program: Path, compat: bool, limit: float) -> Outcome:
    """Runs a program."""
    command = [sys.executable, *(["-m", "compat"] if compat else []), str(program)]
    paths = [str(PROGRAMS), str(site_of(program)), *([str(ROOT)] if compat else [])]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(paths), "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false",
    }  # fmt: skip
    start = time.perf_counter()
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return Outcome(error=f"it took more than {limit:.0f} s", seconds=limit)
    outcome = Outcome(seconds=time.perf_counter() - start)
    for line in done.stdout.splitlines():
        if line.startswith("REPORT "):
            name, numbers = json.loads(line.removeprefix("REPORT "))
            outcome.reports[name] = numbers
    if done.returncode:
        outcome.error = (done.stderr.strip().splitlines() or ["it failed without a word"])[-1]
        (OUT / f"{program.stem}.{'compat' if compat else 'pytorch'}.log").write_text(done.stderr)
    return outcome


def distance(a: list[float], b: list[float]) -> float:
    """The largest difference of two lists of numbers, relative to the largest; infinite if the lengths differ."""
    if len(a) != len(b):
        return math.inf
    scale = max((abs(x) for x in a if math.isfinite(x)), default=0.0) or 1.0
    apart = [0.0 if x == y or (math.isnan(x) and math.isnan(y)) else abs(x - y) / scale for x, y in zip(a, b)]
    return max((math.inf if math.isnan(d) else d for d in apart), default=0.0)


@dataclass
class Row:
    """A program of the table."""

    program: Path
    pytorch: Outcome
    compat: Outcome

    def differing(self) -> list[str]:
        """The names whose numbers differ."""
        ours = self.compat.reports
        return [n for n, x in self.pytorch.reports.items() if n not in ours or distance(x, ours[n]) > TOLERANCE]

    def line(self) -> str:
        """The program as a row of the table."""
        versions = {name: d.version for name, d in installed(site_of(self.program)).items()}
        names = ", ".join(f"{p} {versions.get(_normal(p), '')}".strip() for p in packages_of(self.program))
        total, differing = len(self.pytorch.reports), self.differing()
        said = f"{total - len(differing)} of {total}"
        if self.pytorch.error:
            remark = f"PyTorch: {self.pytorch.error}"
        else:
            remark = self.compat.error or (", ".join(differing) if differing else "")
        remark = re.sub(r" \(/[^)]*\)", "", remark).replace("|", "\\|").replace("`", "")[:160]
        return f"| {names} | {said} | {remark} |"


def table(rows: list[Row]) -> str:
    """The table, in Markdown, by packages."""
    lines = ["| packages | same numbers | what differs |", "| --- | --- | --- |"]
    return "\n".join([*lines, *sorted(row.line() for row in rows)])


def main() -> int:
    """Runs the command line; returns 1 if a number differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", help="names of programs; all by default")
    parser.add_argument("--table", type=Path, help="a page whose table is replaced")
    parser.add_argument("--limit", type=float, default=900, help="seconds a program may take")
    options = parser.parse_args()
    chosen = [p for p in sorted(PROGRAMS.glob("*.py")) if p.stem != "harness"]
    chosen = [p for p in chosen if not options.programs or p.stem in options.programs]
    rows = []
    for program in chosen:
        install(packages_of(program), site_of(program))
        rows.append(Row(program, run(program, False, options.limit), run(program, True, options.limit)))
        row = rows[-1]
        print(f"{program.stem}: PyTorch {row.pytorch.seconds:.0f} s, compat {row.compat.seconds:.0f} s", flush=True)
        print(row.line(), flush=True)
    shown = table(rows)
    print(shown)
    if options.table:
        before, _, rest = options.table.read_text().partition(BEGIN)
        options.table.write_text(f"{before}{BEGIN}\n{shown}\n{END}{rest.partition(END)[2]}")
    return int(any(row.differing() or row.compat.error for row in rows))


if __name__ == "__main__":
    sys.exit(main())
