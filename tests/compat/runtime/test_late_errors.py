"""Errors that depend on values computed later: they name the line that recorded the operation."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import compat as torch
from compat.nn import functional

ROOT = Path(__file__).resolve().parents[3]
pytestmark = pytest.mark.deferral


def sevens(n: int = 3) -> torch.Tensor:
    """Indices that are out of bounds, and unknown until they are computed."""
    return (torch.ones(n, 30_000).sum(1) * 0 + 7).long()


RECORDING: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: functional.embedding(sevens(), torch.ones(3, 2)), IndexError, "index out of range in self"),
    (lambda: torch.ones(3).gather(0, sevens()), RuntimeError, "index 7 is out of bounds for dimension 0 with size 3"),
    (lambda: torch.ones(3)[sevens()], IndexError, "index 7 is out of bounds for dimension 0 with size 3"),
    (lambda: functional.cross_entropy(torch.ones(3, 4), sevens()), IndexError, "Target 7 is out of bounds."),
    (lambda: torch.zeros(3).scatter(0, sevens(), torch.ones(3)), RuntimeError, "index 7 is out of bounds"),
    (lambda: sevens() // (sevens() * 0), RuntimeError, "ZeroDivisionError"),
]


@pytest.mark.parametrize("i", range(len(RECORDING)))
def test_the_line_is_named(i: int) -> None:
    record, kind, text = RECORDING[i]
    made = record()
    later = made + 1
    with pytest.raises(kind) as caught:
        print(later)
    message = str(caught.value)
    assert message.startswith(text) and type(caught.value) is kind
    assert f"recorded at test_late_errors.py:{record.__code__.co_firstlineno} (in <lambda>)" in message
    assert "COMPAT_EAGER=1" in message
    assert torch.ones(2).add(1).tolist() == [2, 2]  # and it is reported once


def test_an_error_at_its_own_line_has_the_usual_text() -> None:
    with pytest.raises(IndexError) as caught:
        print(functional.embedding(sevens(), torch.ones(3, 2)))
    assert str(caught.value) == "index out of range in self"


def test_a_loop_that_reads_no_value_raises_it_without_waiting_for_the_previous_window() -> None:
    def window() -> Any:
        result = torch.ones(3, 30_000).sum(1)
        torch.runtime.flush()
        return result

    looked_up = functional.embedding(sevens(), torch.ones(3, 2))
    window()
    window()  # nothing is read: the window before may still run
    with pytest.raises(IndexError, match="index out of range in self"):
        window()
    assert window().tolist() == [30_000] * 3 and looked_up.shape == (3, 2)


def test_eager_mode_raises_at_the_operation() -> None:
    code = """
import compat as torch
x = (torch.ones(3, 30_000).sum(1) * 0 + 7).long()
try:
    torch.nn.functional.embedding(x, torch.ones(3, 2))
except IndexError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT), "COMPAT_EAGER": "1"},
    )  # fmt: skip
    assert done.stdout == "index out of range in self\n", done.stderr


# ---------------------------------------------------------------- under torch.compile


def replayed(step: Any, *good: torch.Tensor) -> None:
    for _ in range(4):
        step(*good)
    assert step.reason is None


def test_a_compiled_call_checks_the_values_of_arguments() -> None:
    table = torch.ones(3, 2, requires_grad=True)

    @torch.compile
    def step(x: torch.Tensor) -> torch.Tensor:
        return functional.embedding(x, table.detach()).sum()  # the index is checked, not the table

    replayed(step, torch.zeros(4, dtype=torch.long))
    line = step.function.__code__.co_firstlineno + 2
    with pytest.raises(IndexError, match=rf"index out of range in self\n.*test_late_errors.py:{line} \(in step\)"):
        step(torch.full((4,), 7))
    assert step(torch.ones(4, dtype=torch.long)) == 8


def test_a_compiled_call_checks_computed_values() -> None:
    table = torch.nn.Parameter(torch.ones(3, 2))
    optimizer = torch.optim.SGD([table], lr=0.125)

    @torch.compile
    def step(x: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad()
        loss = functional.embedding(x[:, 1:] * 2, table).sum()
        loss.backward()
        optimizer.step()
        return loss.detach()

    good = torch.zeros(1, 3, dtype=torch.long)
    replayed(step, good)
    with pytest.raises(IndexError, match=r"index out of range in self\nThe operation was recorded at test_late_errors"):
        print(step(torch.ones(1, 3, dtype=torch.long) * 7))
    found = step(good).item()
    assert step(good).item() < found
    step(torch.ones(1, 3, dtype=torch.long) * 7)  # whose loss is never read: a later step raises
    step(good)  # not the next one, which would wait for it
    with pytest.raises(IndexError, match="index out of range in self"):
        step(good)


def test_a_compiled_call_checks_the_values_of_parts_of_arguments() -> None:
    @torch.compile
    def loss(x: torch.Tensor) -> torch.Tensor:
        return functional.nll_loss(torch.ones(4, 3).log_softmax(1), x[:, 1:][:, 0])

    replayed(loss, torch.zeros(4, 5, dtype=torch.long))
    with pytest.raises(IndexError, match=r"Target 7 is out of bounds\.\n.*test_late_errors.py"):
        loss(torch.full((4, 5), 7))
