"""Two processes beside one: the program runs and prints times and ratios."""

from __future__ import annotations

import re
import subprocess
import sys


def test_two_processes_beside_one() -> None:
    command = [sys.executable, "-m", "benchmarks.scaling.processes", "--rounds", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    times = [float(found) for found in re.findall(r"([\d.]+) ms", done.stdout)]
    assert len(times) == 8 and done.stdout.count("times") == 2, done.stdout
    assert all(found > 0 for found in times[:3] + times[4:]), done.stdout
