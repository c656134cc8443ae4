"""What the benchmarks print and write."""

from __future__ import annotations

import dataclasses
import os
import platform
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from benchmarks.harness import Comparison, Spread

_PACKAGES = ("funcgrad", "jax", "jaxlib", "numpy", "autograd", "torch")


def environment() -> dict[str, Any]:
    """What the numbers depend on: the machine and the versions."""
    import jax

    versions = {}
    for package in _PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return {
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "device": str(jax.devices()[0].device_kind),
        "load": [round(x, 2) for x in os.getloadavg()] if hasattr(os, "getloadavg") else None,
        "versions": versions,
    }


def as_json(name: str, comparison: Comparison) -> dict[str, Any]:
    """One comparison as plain data, the benchmark's name first."""
    return {"benchmark": name, **dataclasses.asdict(comparison)}


def _seconds(spread: Spread) -> str:
    exponent, unit = next(((e, u) for e, u in ((0, "s "), (3, "ms")) if spread.median * 10**e >= 1), (6, "µs"))
    return f"{spread.median * 10**exponent:.3g} {unit}"


def table(comparisons: Sequence[Comparison]) -> str:
    """The comparisons of one benchmark as text: times are medians, in brackets the quartiles of the ratios."""
    head = ("", "ours", "other", "", "ratio", "quartiles", "target")
    rows = [head]
    for c in comparisons:
        verdict = "" if c.target is None else f"{c.target:g} {'met' if c.ratio.median <= c.target else 'MISSED'}"
        times = _seconds(c.seconds), _seconds(c.other_seconds)
        quartiles = f"{c.ratio.low:.3f} to {c.ratio.high:.3f}"
        rows.append((c.case, *times, c.other, f"{c.ratio.median:.3f}", quartiles, verdict))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    aligned = "<>><>><"
    lines = ("  ".join(f"{cell:{a}{w}}" for cell, a, w in zip(row, aligned, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)


def progress(text: str) -> None:
    """A line about what is going on, apart from the results."""
    print(text, file=sys.stderr, flush=True)
