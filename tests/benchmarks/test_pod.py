"""The plan of a transformer on a pod: the collectives of its compiled programs agree with the formula."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_compiled_collectives_have_the_expected_volume() -> None:
    command = [sys.executable, "-m", "benchmarks.scaling.pod", "--size", "small", "--devices", "8,16"]
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT, timeout=900, check=False)
    assert done.returncode == 0, done.stderr
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in done.stdout.splitlines()[2:]]
    assert [row[:2] for row in rows] == [[way, n] for n in ("8", "16") for way in ("data", "sharded", "tensor")]
    assert all(abs(float(row[5]) - 1) < 0.01 for row in rows), done.stdout
    exchanged = {(row[0], row[1]): row[2] for row in rows}
    assert "reduce-scatter" in exchanged["sharded", "8"] and "all-gather" in exchanged["sharded", "8"]
    assert all("gather" not in exchanged[way, n] for way in ("data", "tensor") for n in ("8", "16"))
    assert next(row[6] for row in rows if row[:2] == ["sharded", "8"]).endswith("(12.5%)")
