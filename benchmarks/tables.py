"""The training programs' results as text: tables for the terminal, and as Markdown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from benchmarks.report import aligned, in_seconds
from benchmarks.results import Mean, Race, Result, Run


def _bytes(count: int | None) -> str:
    return "" if count is None else f"{count / 2**20:.0f} MB"


def _maybe_seconds(seconds: float | None) -> str:
    return "" if seconds is None else in_seconds(seconds)


def _percent(fraction: float | None) -> str:
    return "" if fraction is None else f"{100 * fraction:.3g}%"


def heading(race: Race) -> str:
    """A line that describes the training program."""
    fields = ", ".join(f"{name} {value}" for name, value in race.fields.items())
    return f"{race.workload}, {race.size} ({fields}): {race.title}"


def race_table(race: Race) -> str:
    """One race: a row for each contestant, then remarks about the run."""
    head = ("", "step", "ratio", "quartiles", "first step", "2nd process", "memory", "of FLOP/s", "of bytes/s")
    rows: list[tuple[str, ...]] = [head]
    for name, r in race.results.items():
        if r.status != "ok":
            rows.append((name, f"{r.status}: {r.reason}", *[""] * (len(head) - 2)))
            continue
        step = "" if r.step_seconds is None else in_seconds(r.step_seconds.median)
        ratio, quartiles = ("", "") if r.ratio is None else (f"{r.ratio.median:.2f}", _quartiles(r))
        first = _maybe_seconds(r.first_seconds[0] if r.first_seconds else None)
        rows.append(
            (name, step, ratio, quartiles, first, _maybe_seconds(r.second_process_seconds), _bytes(r.growth_bytes),
             _percent(r.flops_fraction), _percent(r.bytes_fraction))
        )  # fmt: skip
    return "\n".join([aligned(_without_empty(rows), "<>>>>>>>>", spill=True), *remarks(race)])


def _quartiles(result: Result) -> str:
    assert result.ratio is not None
    return f"{result.ratio.low:.2f} to {result.ratio.high:.2f}"


def _without_empty(rows: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    """The first two columns, and those with contents below the head."""
    kept = [i for i in range(len(rows[0])) if i < 2 or any(row[i] for row in rows[1:])]
    return [tuple(row[i] for i in kept) for row in rows]


def remarks(race: Race) -> list[str]:
    """Remarks on the reliability of the numbers."""
    ran = [name for name, r in race.results.items() if r.losses]
    said = []
    if len(ran) > 1:
        said.append(f"the losses of {', '.join(ran)} {'agree' if race.agree else 'DO NOT AGREE'}; {race.rounds} rounds")
    if race.disturbed and race.elsewhere is not None:
        said.append(f"THE MACHINE WAS BUSY: {race.elsewhere:.0%} of it with something else; see docs/benchmarks.md")
    return said


def means_table(means: dict[str, dict[str, Mean]]) -> str:
    """The geometric means: a row for each contestant, a column for each size."""
    sizes = list(dict.fromkeys(size for by_size in means.values() for size in by_size))
    rows = [("geometric mean of the ratios", *sizes)]
    rows += [(name, *(_mean(by_size.get(size)) for size in sizes)) for name, by_size in means.items()]
    return aligned(rows, "<" + ">" * len(sizes))


def _mean(mean: Mean | None) -> str:
    if mean is None:
        return ""
    return f"{mean.ratio:.2f} ({mean.races} of {mean.of})"


def series_table(races: Sequence[Race]) -> str:
    """One workload at several sizes: a row for each, a column for each contestant, then how the time grows."""
    names = list(dict.fromkeys(name for race in races for name in race.results))
    rows = [("", *names)]
    for race in races:
        medians = (median(race, name) for name in names)
        rows.append((race.size, *("" if seconds is None else in_seconds(seconds) for seconds in medians)))
    rows.append(("time ~ size to the power", *(_power(races, name) for name in names)))
    return aligned(rows, "<" + ">" * len(names))


def median(race: Race, name: str) -> float | None:
    """A contestant's step time in a race, if it has one."""
    result = race.results.get(name)
    return None if result is None or result.step_seconds is None else result.step_seconds.median


def series_of(races: Sequence[Race]) -> dict[tuple[str, str], list[Race]]:
    """The races that vary one field of a size, by workload and field."""
    found: dict[tuple[str, str], list[Race]] = {}
    for race in races:
        if "=" in race.size and "+" not in race.size:
            found.setdefault((race.workload, race.size.partition("=")[0]), []).append(race)
    return {key: sorted(some, key=lambda race: race.fields[key[1]]) for key, some in found.items() if len(some) > 1}


def _power(races: Sequence[Race], name: str) -> str:
    """The exponent between the two largest sizes: 0 means only overhead, 1 proportional time."""
    *_, before, last = races
    field = last.size.partition("=")[0]
    small, large = median(before, name), median(last, name)
    if small is None or large is None:
        return ""
    return f"{math.log(large / small) / math.log(last.fields[field] / before.fields[field]):.2f}"


def markdown(run: Run) -> str:
    """The ratios as a Markdown table, with the machine and the command below it."""
    names = [name for name in dict.fromkeys(n for race in run.races for n in race.results) if not _is_base(run, name)]
    lines = ["| | size | " + " | ".join(names) + " |", "| --- | --- |" + " ---: |" * len(names)]
    for race in run.races:
        mark = " †" if race.disturbed else ""
        cells = (_cell(race.results.get(name), mark) for name in names)
        lines.append(f"| {race.workload} | {race.size} | " + " | ".join(cells) + " |")
    sizes = list(dict.fromkeys(size for by_size in run.means.values() for size in by_size))
    for size in (s for s in sizes if len(sizes) > 2 or s == "all"):
        cells = (_mean(run.means.get(name, {}).get(size)) for name in names)
        lines.append(f"| **geometric mean** | {size} | " + " | ".join(cells) + " |")
    baselines = " and ".join(dict.fromkeys(race.baseline for race in run.races))
    around: dict[str, Any] = run.environment
    versions = ", ".join(f"{name} {version}" for name, version in around.get("versions", {}).items())
    command = " ".join(["python -m benchmarks", *run.command])
    source = (
        f"How many times as fast as {baselines}: medians over the rounds of `{command}`, {run.date[:10]}, "
        f"{around.get('machine', '')}, threads for each: {around.get('threads')}; {versions}."
    )
    if any(race.disturbed for race in run.races):
        source += " †: the machine was busy with other programs: this number is unreliable."
    return "\n".join([*lines, "", source])


def _is_base(run: Run, name: str) -> bool:
    return all(race.baseline == name for race in run.races)


def _cell(result: Result | None, mark: str) -> str:
    if result is None or result.status == "absent":
        return ""
    return result.status if result.ratio is None else f"{result.ratio.median:.2f}{mark}"
