"""Plots of the results, with matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.results import Race, Run
from benchmarks.tables import median, series_of


def draw(run: Run, folder: Path) -> list[Path]:
    """Draws the ratios by workload, and the times along each series, if there are any. Returns the files."""
    import matplotlib

    matplotlib.use("Agg")
    folder.mkdir(parents=True, exist_ok=True)
    series = series_of(run.races)
    in_series = {id(race) for races in series.values() for race in races}
    single = [race for race in run.races if id(race) not in in_series]
    files = []
    if any(result.ratio for race in single for name, result in race.results.items() if name != race.baseline):
        files.append(_ratios(single, folder / "ratios.png"))
    if series:
        files.append(_series(series, folder / "series.png"))
    return files


def _ratios(races: Sequence[Race], path: Path) -> Path:
    """A row for each race, a bar for each contestant, with the quartiles; the baseline is the line at 1."""
    import matplotlib.pyplot as plt

    found = {n for race in races for n, r in race.results.items() if n != race.baseline and r.ratio is not None}
    names = [n for n in dict.fromkeys(n for race in races for n in race.results) if n in found]
    figure, axes = plt.subplots(figsize=(9, 1.2 + 0.16 * (len(names) + 1) * len(races)), layout="constrained")
    height = 0.8 / max(len(names), 1)
    for i, name in enumerate(names):
        places, values, errors = [], [], []
        for row, race in enumerate(races):
            ratio = getattr(race.results.get(name), "ratio", None)
            if ratio is not None:
                places.append(row + (i - (len(names) - 1) / 2) * height)
                values.append(ratio.median)
                errors.append((ratio.median - ratio.low, ratio.high - ratio.median))
        error: Any = list(zip(*errors, strict=True))
        # From the baseline, which is 1: a bar to the left is slower.
        widths = [value - 1 for value in values]
        axes.barh(places, widths, height, left=1, xerr=error, label=name, color=f"C{i}", error_kw={"lw": 0.8})
    axes.axvline(1, color="black", lw=0.8)
    axes.set_xscale("log")
    axes.set_yticks(range(len(races)), [f"{race.workload}, {race.size}" for race in races])
    axes.invert_yaxis()
    axes.set_xlabel(f"times as fast as {races[0].baseline}")
    figure.legend(loc="outside lower center", ncols=len(names))
    figure.savefig(path, dpi=120)
    plt.close(figure)
    return path


def _series(series: dict[tuple[str, str], list[Race]], path: Path) -> Path:
    """A panel for each series: step times against the field that varies."""
    import matplotlib.pyplot as plt

    columns = min(3, len(series))
    rows = -(-len(series) // columns)
    figure, grid = plt.subplots(rows, columns, figsize=(4.5 * columns, 3.5 * rows), squeeze=False, layout="constrained")
    names = list(dict.fromkeys(n for races in series.values() for race in races for n in race.results))
    for axes, ((workload, field), races) in zip(grid.flat, series.items()):
        for i, name in enumerate(names):
            points = [(race.fields[field], 1e3 * s) for race in races if (s := median(race, name)) is not None]
            if points:
                axes.loglog(*zip(*points, strict=True), marker="o", ms=3, label=name, color=f"C{i}")
        axes.set(title=f"{workload}: {field}", ylabel="ms a step")
    for axes in grid.flat[len(series) :]:
        axes.set_visible(False)
    grid[0, 0].legend(fontsize="small")
    figure.savefig(path, dpi=120)
    plt.close(figure)
    return path
