"""Names of funcgrad whose modules are imported on first use, inside a running transform."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAMS = {
    "trace": "len(fg.trace(lambda x: fg.jit(fnp.sin)(x) + 1, 2.0).equations)",
    "grad": "float(fg.grad(lambda x: fg.jit(fnp.square)(x))(3.0))",
    "vmap": "fg.vmap(lambda x: fg.jit(fnp.square)(x))(fnp.arange(3.0)).tolist()",
    "grad of checkpoint, scan and cond": (
        "float(fg.grad(lambda x: fg.checkpoint("
        "lambda y: fg.scan(lambda c, _: (fg.cond(c > 0, fnp.sin, fnp.cos, c), None), y, None, length=2)[0])(x))(1.0))"
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_first_use_inside_a_transform(name: str) -> None:
    """The first use has the result of a second one, when everything has been imported."""
    program = f"import funcgrad as fg\nimport funcgrad.numpy as fnp\nprint({PROGRAMS[name]})\nprint({PROGRAMS[name]})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first == second
