"""The command line: ``python -m benchmarks [NAME…] [--sizes …] [--contestants …] [--quick] …``; see ``--help``."""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import importlib
import importlib.util
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from benchmarks import limits, tables
from benchmarks.contestants import CONTESTANTS, Contestant
from benchmarks.harness import Comparison, compare
from benchmarks.race import Rules, geometric_means, measure_against, race
from benchmarks.report import environment, progress, table
from benchmarks.results import FORMAT, Race, Run, problems, restored
from benchmarks.workloads import FILES, all_workloads, named
from benchmarks.workloads.base import Workload

#: The benchmarks of funcgrad itself, each a module of this package with a docstring and a function ``cases()``.
NAMES = (
    "jit_call",
    "gradient_lowering",
    "gradient",
    "eager_grad",
    "eager_functions",
    "long_chain",
    "import_time",
    "lowering",
    "new_shapes",
    "compile_times",
)
RESULTS = Path("out/benchmarks/results.json")

#: The part of each benchmark that --quick runs.
QUICK_NAMES = ("mlp", "mnist", "gpt", "chain")
QUICK_CONTESTANTS = tuple(name for name in CONTESTANTS if name != "torch.compile")


@dataclass(frozen=True)
class Settings:
    """The options of the command line."""

    benchmarks: list[str]
    workloads: list[tuple[Workload, str]]
    contestants: list[Contestant]
    baseline: str
    rules: Rules
    rounds: int | None
    quick: bool


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"benchmarks.{name}")


def _title(name: str) -> str:
    return (_module(name).__doc__ or "").strip().splitlines()[0]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Times training programs in compat, PyTorch and JAX, and operations in funcgrad and others.",
    )
    add = parser.add_argument
    add("names", nargs="*", metavar="NAME", help="workloads and benchmarks (--list); training: all of the former, "
        "functional: all of the latter (both)")  # fmt: skip
    add("--sizes", metavar="SIZES", help="small,medium,large (all), or fields that differ from small: depth=8,width=32")
    add("--series", action="store_true", help="instead of sizes: the time as a function of depth, width, batch, length")
    add("--contestants", metavar="NAMES", help=f"of {','.join(CONTESTANTS)} (all)")
    add("--rounds", type=int, metavar="N", help="turns of each contestant (15; a benchmark has its own number)")
    add("--threads", type=int, metavar="N", default=_cores(), help="for each contestant (all cores)")
    add("--quick", action="store_true", help=f"a selection that takes two minutes: {', '.join(QUICK_NAMES)}; small")
    add("--json", type=Path, metavar="PATH", default=RESULTS, help=f"the file for the results ({RESULTS}); plots are "
        "written to the same folder")  # fmt: skip
    add("--markdown", action="store_true", help="print the ratios as a Markdown table at the end")
    add("--show", type=Path, metavar="PATH", help="show the results in a file written by --json, without measuring")
    add("--list", action="store_true", help="list the benchmarks, workloads and contestants")
    return parser


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def parse_settings(parser: argparse.ArgumentParser, options: argparse.Namespace) -> Settings:
    """Parses the options; exits with a parser error for an unknown name."""
    names = options.names or (list(QUICK_NAMES) if options.quick else ["training", "functional"])
    known = ("training", "functional", *NAMES, *FILES, *all_workloads())
    unknown = [n for n in names if n not in known]
    if unknown:
        parser.error(f"no benchmark is called {', '.join(unknown)}; there are {', '.join(dict.fromkeys(known))}")
    contestants = _split(options.contestants) or (QUICK_CONTESTANTS if options.quick else tuple(CONTESTANTS))
    unknown_contestants = [n for n in contestants if n not in CONTESTANTS]
    if unknown_contestants:
        parser.error(f"no contestant is called {', '.join(unknown_contestants)}; there are {', '.join(CONTESTANTS)}")
    expanded = [m for n in names for m in {"training": FILES, "functional": NAMES}.get(n, (n,))]
    chosen = named([n for n in expanded if n not in NAMES])
    sizes = _split(options.sizes) or (("small",) if options.quick else None)
    pairs = [(w, s) for w in chosen for s in _sizes(w, sizes, options.series)]
    for size in sizes or ():
        if chosen and not options.series and all(s != size for _, s in pairs):
            parser.error(f"no workload of these has a size {size}")
    rules = Rules(threads=options.threads)
    if options.quick:
        rules = dataclasses.replace(rules, rounds=5, turn_seconds=0.05, budget=10, second_process=False)
    rules = dataclasses.replace(rules, rounds=options.rounds or rules.rounds)
    if options.series:
        rules = dataclasses.replace(rules, second_process=False)
    benchmarks = [n for n in dict.fromkeys(expanded) if n in NAMES]
    present = [CONTESTANTS[n] for n in contestants]
    return Settings(benchmarks, pairs, present, _baseline(present), rules, options.rounds, options.quick)


def _split(text: str | None) -> tuple[str, ...]:
    return tuple(part for part in (text or "").split(",") if part)


def _sizes(workload: Workload, asked: Sequence[str] | None, series: bool) -> list[str]:
    """The requested sizes that a workload has."""
    if series:
        return workload.series_sizes()
    if asked is None:
        return list(workload.sizes)
    return [size for size in asked if _has(workload, size)]


def _has(workload: Workload, size: str) -> bool:
    try:
        workload.size(size)
    except KeyError:
        return False
    return True


def _baseline(contestants: Sequence[Contestant]) -> str:
    """The first contestant whose package is installed."""
    there = (c.name for c in contestants if importlib.util.find_spec(c.package) is not None)
    return next(there, contestants[0].name)


def run_races(settings: Settings) -> list[Race]:
    """Runs the training programs, prints a table for each."""
    races = []
    for workload, size in settings.workloads:
        progress(f"  {workload.name}, {size} …")
        races.append(race(workload, size, settings.contestants, settings.baseline, settings.rules))
        _print_race(races[-1])
    return races


def _print_race(one: Race) -> None:
    print(f"\n{tables.heading(one)}\n{tables.race_table(one)}", flush=True)


def run_benchmarks(settings: Settings) -> dict[str, list[Comparison]]:
    """Runs the benchmarks of funcgrad itself, prints a table for each."""
    results: dict[str, list[Comparison]] = {}
    for name in settings.benchmarks:
        results[name] = []
        for case in _module(name).cases():
            progress(f"  {name}: {case.name} …")
            results[name] += compare(dataclasses.replace(case, rounds=settings.rounds) if settings.rounds else case)
        _print_benchmark(name, results[name])
    return results


def _print_benchmark(name: str, comparisons: Sequence[Comparison]) -> None:
    print(f"\n{name}: {_title(name)}\n{table(comparisons)}", flush=True)


def measure(settings: Settings, command: Sequence[str]) -> Run:
    """Runs the requested benchmarks."""
    around = environment() | {"threads": settings.rules.threads}
    print(f"Python {around['python']}, {around['machine']}, {around['device']}; {around['versions']}")
    date = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    limit = None
    if settings.workloads and not settings.quick:
        progress("  the machine's limits …")
        limit = limits.in_own_process(settings.rules.threads)
        print(f"a matrix product {limit.flops / 1e9:.3g} GFLOP/s, a copy {limit.bytes / 1e9:.3g} GB/s")
    races = run_races(settings)
    measure_against(limit, races)
    return Run(FORMAT, date, list(command), around, limit, races, geometric_means(races), run_benchmarks(settings))


def summarize(run: Run, folder: Path, markdown: bool) -> None:
    """Prints the summary after the single tables, and draws plots."""
    for (workload, field), races in tables.series_of(run.races).items():
        print(f"\n{workload}: a step's time with its {field}\n{tables.series_table(races)}")
    if run.means:
        print(f"\n{tables.means_table(run.means)}")
    disturbed = sum(race.disturbed for race in run.races)
    if disturbed:
        print(f"\n{disturbed} of {len(run.races)} races were run on a busy machine: their ratios are unreliable")
    if markdown:
        print(f"\n{tables.markdown(run)}")
    if run.races and importlib.util.find_spec("matplotlib"):
        from benchmarks.plot import draw

        for file in draw(run, folder):
            progress(f"  plotted: {file}")


def show(path: Path) -> Run:
    """Prints the results in a file."""
    written = json.loads(path.read_text())
    wrong = problems(written, Run)
    if wrong:
        raise SystemExit(f"{path} does not contain results of this form: {wrong[0]}")
    run: Run = restored(written, Run)
    for one in run.races:
        _print_race(one)
    for name, comparisons in run.comparisons.items():
        _print_benchmark(name, comparisons)
    return run


def _write(run: Run, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(dataclasses.asdict(run), indent=2) + "\n")
    progress(f"  written: {path}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Parses the command line and runs; returns the exit status, which does not depend on the numbers."""
    # Before JAX starts, since contestants in other processes need a part of an accelerator's memory.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    command = list(sys.argv[1:] if arguments is None else arguments)
    parser = _parser()
    options = parser.parse_args(command)
    if options.list:
        print("\n".join(f"{name}: {_title(name)}" for name in NAMES))
        print("\n".join(f"{w.name}: {w.title} ({', '.join(w.sizes)})" for w in all_workloads().values()))
        print("\n".join(f"contestant {c.name}: {c.title}" for c in CONTESTANTS.values()))
        return 0
    if options.show:
        summarize(show(options.show), options.show.parent, options.markdown)
        return 0
    run = measure(parse_settings(parser, options), command)
    _write(run, options.json)
    summarize(run, options.json.parent, options.markdown)
    return 0


if __name__ == "__main__":
    sys.exit(main())
