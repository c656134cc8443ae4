"""Displayed tracebacks show only the user's frames; the exceptions themselves keep all frames."""

from __future__ import annotations

import os
import subprocess
import sys
import traceback
from pathlib import Path

import pytest

import compat as torch
import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad.core import traceback as of_users
from funcgrad.core.errors import ConcretizationError

ROOT = Path(__file__).resolve().parents[3]


def nested(x: object) -> object:
    def loss(y: object) -> object:
        return torch.nn.functional.linear(y, torch.ones(3, 3)).sum()

    return torch.func.grad(loss)(x)


def frames(error: BaseException) -> list[str]:
    return [frame.name for frame in traceback.extract_tb(error.__traceback__)]


def test_an_error_keeps_its_frames_and_shows_the_users() -> None:
    with pytest.raises(RuntimeError) as caught:
        nested(torch.ones(2))
    error = caught.value
    before = frames(error)
    with of_users.filtered(error) as count:
        here = "test_an_error_keeps_its_frames_and_shows_the_users"
        assert frames(error) == [here, "nested", "loss"] and count == len(before) - 3
    assert frames(error) == before
    assert "compat" + os.sep not in of_users.formatted(error)


def test_causes_contexts_and_groups_are_filtered_too() -> None:
    def raising() -> None:
        try:
            nested(torch.ones(2))
        except RuntimeError as error:
            raise ValueError("of it") from error

    with pytest.raises(ValueError, match="of it") as caught:
        raising()
    group = ExceptionGroup("both", [caught.value, ConcretizationError("alone")])
    text = of_users.formatted(group)
    assert "direct cause" in text and "in loss" in text and f"{os.sep}compat{os.sep}_" not in text


def test_callbacks_appear_below_their_caller_in_tracebacks() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        fg.jit(fg.vmap(lambda x: x / fnp.ones(2)[1 // 0]))(fnp.ones(2))
    with of_users.filtered(caught.value):
        assert frames(caught.value) == ["test_callbacks_appear_below_their_caller_in_tracebacks", "<lambda>"]


def test_tracebacks_without_library_frames_are_unchanged() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        list(map(lambda x: 1 // x, [0]))  # noqa: C417
    before = caught.value.__traceback__
    with of_users.filtered(caught.value) as count:
        assert count == 0 and len(frames(caught.value)) == 2
    assert caught.value.__traceback__ is before


def test_all_frames_on_request() -> None:
    with pytest.raises(RuntimeError) as caught:
        nested(torch.ones(2))
    fg.debug.full_tracebacks()
    try:
        with of_users.filtered(caught.value) as count:
            assert count == 0 and len(frames(caught.value)) > 10
    finally:
        fg.debug.full_tracebacks(False)


PROGRAM = """
import sys, threading
import compat as torch

def f(x):
    return x + torch.ones(3)

if sys.argv[1:] == ["thread"]:
    thread = threading.Thread(target=f, args=(torch.ones(2),))
    thread.start()
    thread.join()
else:
    f(torch.ones(2))
"""


@pytest.mark.parametrize(("argument", "full"), [("", ""), ("thread", ""), ("", "full")])
def test_python_shows_the_users_frames(tmp_path: Path, argument: str, full: str) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    environment = dict(os.environ, PYTHONPATH=str(ROOT), FUNCGRAD_TRACEBACK=full)
    done = subprocess.run(
        [sys.executable, str(program), argument], capture_output=True, text=True, check=False, env=environment
    )
    assert "in f\n    return x + torch.ones(3)" in done.stderr
    assert (f'"{ROOT}' in done.stderr) == bool(full)
    assert ("left out; FUNCGRAD_TRACEBACK=full" in done.stderr) != bool(full)


TEST = """
import compat as torch

def f(x):
    return x + torch.ones(3)

def test_it():
    f(torch.ones(2))
"""


@pytest.mark.parametrize("full", ["", "full"])
def test_pytest_shows_the_users_frames(tmp_path: Path, full: str) -> None:
    (tmp_path / "test_it.py").write_text(TEST)
    environment = dict(os.environ, PYTHONPATH=str(ROOT), FUNCGRAD_TRACEBACK=full)
    plugin = ["-p", "funcgrad.tools.pytest_plugin", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", "-q", *plugin, "--rootdir", str(tmp_path), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert "return x + torch.ones(3)" in done.stdout and "1 failed" in done.stdout
    assert ("broadcast_size" in done.stdout) == bool(full)
