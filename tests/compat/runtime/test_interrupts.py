"""The state after interrupts; ``interrupts.py`` makes them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def test_modes_and_steps_are_whole_after_interrupts() -> None:
    done = subprocess.run(
        [sys.executable, "interrupts.py", "200"],
        cwd=HERE, capture_output=True, text=True, timeout=240, check=False,
        env={**os.environ, "PYTHONPATH": str(HERE.parents[2])},
    )  # fmt: skip
    assert done.stdout == "nothing wrong\n", done.stdout + done.stderr
