"""Output of the benchmarks, printed and written."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from benchmarks.harness import Comparison

_PACKAGES = ("funcgrad", "jax", "jaxlib", "numpy", "autograd", "torch")


def environment() -> dict[str, Any]:
    """The conditions of a run: the machine and the versions."""
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


def in_seconds(seconds: float) -> str:
    """A time to three digits, with its unit.

    Example:
        >>> in_seconds(0.0123456), in_seconds(2.5)
        ('12.3 ms', '2.5 s ')
    """
    exponent, unit = next(((e, u) for e, u in ((0, "s "), (3, "ms")) if seconds * 10**e >= 1), (6, "µs"))
    return f"{seconds * 10**exponent:.3g} {unit}"


def aligned(rows: Sequence[Sequence[str]], alignment: str, *, spill: bool = False) -> str:
    """Rows of text in columns; ``alignment`` is a ``<`` or ``>`` for each.

    Args:
        rows: the cells.
        alignment: the alignment of each column.
        spill: whether a cell without cells to its right may be wider than its column.

    Example:
        >>> print(aligned([("", "n"), ("one", "10"), ("two", "2")], "<>"))
              n
        one  10
        two   2
    """
    alone = [len(row) > 2 and not any(row[2:]) for row in rows] if spill else [False] * len(rows)
    widths = [
        max([len(row[i]) for row, free in zip(rows, alone, strict=True) if not (free and i)], default=0)
        for i in range(len(rows[0]))
    ]
    lines = []
    for row, free in zip(rows, alone, strict=True):
        cells = (f"{cell:{'<' if free else a}{w}}" for cell, a, w in zip(row, alignment, widths))
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def table(comparisons: Sequence[Comparison]) -> str:
    """The comparisons of one benchmark as text: times are medians, in brackets the quartiles of the ratios."""
    head = ("", "ours", "other", "", "ratio", "quartiles", "target")
    rows = [head]
    for c in comparisons:
        verdict = "" if c.target is None else f"{c.target:g} {'met' if c.ratio.median <= c.target else 'MISSED'}"
        times = in_seconds(c.seconds.median), in_seconds(c.other_seconds.median)
        quartiles = f"{c.ratio.low:.3f} to {c.ratio.high:.3f}"
        rows.append((c.case, *times, c.other, f"{c.ratio.median:.3f}", quartiles, verdict))
    return aligned(rows, "<>><>><")


def progress(text: str) -> None:
    """A line of progress, separate from the results."""
    print(text, file=sys.stderr, flush=True)
