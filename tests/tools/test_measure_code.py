"""The tool that counts the lines of operators counts correctly."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

from tools import measure_code

SOURCE = '''"""A module."""

X = 1  # a value


def _helper(x):
    """Helps."""
    # with nothing
    return x


@aten(
    "twice(Tensor self) -> Tensor",
)
def twice(input):
    return _helper(2 * input)


@twice.backward
def twice_backward(ct):
    return 2 * ct


def other(input):
    return X
'''


def test_lines_of_code_are_counted() -> None:
    found = measure_code.code_lines(SOURCE, ast.parse(SOURCE))
    assert found == {3, 6, 9, 12, 13, 14, 15, 16, 19, 20, 21, 24, 25}


def test_an_operator_counts_its_declaration_backward_and_helpers(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(SOURCE)
    measured = measure_code.Module(path)
    ((name, lines),) = [(op.name, op.lines) for op in measured.operators([(12, "twice")], "module.py")]
    assert (name, lines) == ("twice", 10)  # five of the row, three of the backward formula, two of the helper


def test_most_operators_are_short() -> None:
    done = subprocess.run([sys.executable, measure_code.__file__], capture_output=True, text=True, check=True)
    assert f"all (at most {measure_code.MOST_LINES})" in done.stdout
