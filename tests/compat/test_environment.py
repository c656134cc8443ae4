"""Threads, switches and plain helpers."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

import compat as torch
from funcgrad import runtime
from tests.compat.scripts import assert_same, cases, observe


@pytest.mark.parametrize(("source", "want"), cases("environment"))
def test_golden(source: str, want: dict[str, Any]) -> None:
    assert_same(observe(torch, source), want)


def test_determinism_compiles_at_once_and_gives_the_setting_back() -> None:
    before = runtime.settings.background
    torch.use_deterministic_algorithms(True)
    torch.use_deterministic_algorithms(True, warn_only=True)
    during = runtime.settings.background
    torch.use_deterministic_algorithms(False)
    assert (during, runtime.settings.background) == (False, before)


def test_an_unknown_precision_is_warned_about_and_ignored() -> None:
    with pytest.warns(UserWarning, match="foo is not one of 'highest', 'high', or 'medium'"):
        torch.set_float32_matmul_precision("foo")
    assert torch.get_float32_matmul_precision() == "highest"


def in_a_fresh_process(source: str) -> str:
    env = {name: value for name, value in os.environ.items() if name != "PJRT_NPROC"}
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, env=env, check=True)
    return done.stdout.strip()


def test_threads_asked_for_before_the_first_value_are_had() -> None:
    source = (
        "import compat as torch\n"
        "torch.set_num_threads({})\n"
        "torch.ones(3).add(1).tolist()\n"
        "print(next(l.split()[1] for l in open('/proc/self/status') if l.startswith('Threads')))"
    )
    if not os.path.exists("/proc/self/status"):
        pytest.skip("the number of threads is read from /proc")
    few, many = (int(in_a_fresh_process(source.format(n))) for n in (1, 12))
    assert many > few


def test_interop_threads_are_set_once() -> None:
    source = (
        "import compat as torch\n"
        "torch.set_num_interop_threads(3)\n"
        "try: torch.set_num_interop_threads(3)\n"
        "except RuntimeError as error: print(torch.get_num_interop_threads(), error)"
    )
    assert in_a_fresh_process(source) == (
        "3 Error: cannot set number of interop threads after parallel work has started or set_num_interop_threads "
        "called"
    )
