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


def test_modules_that_are_imported_late_are_listed_and_others_are_missed() -> None:
    assert {"cuda", "backends", "amp", "compiler", "autocast"} <= set(dir(torch))
    with pytest.raises(AttributeError, match="module 'compat' has no attribute 'nonsense'"):
        torch.nonsense  # noqa: B018
    with pytest.raises(AttributeError, match=r"module 'compat\.utils' has no attribute 'nonsense'"):
        torch.utils.nonsense  # noqa: B018


def test_submodules_under_pytorchs_name() -> None:
    source = (
        "import compat; compat.install()\n"
        "import torch.backends.cudnn as cudnn, torch._dynamo, torch.utils.checkpoint, torch.utils.benchmark\n"
        "from torch.cuda.amp import GradScaler, autocast\n"
        "from torch.profiler import profile, record_function\n"
        "import torch.autograd.profiler as older, torch.version\n"
        "cudnn.benchmark = True\n"
        "torch._dynamo.reset(); torch._dynamo.config.suppress_errors = True\n"
        "print(compat.backends.cudnn.benchmark, older.record_function is record_function)"
    )
    assert in_a_fresh_process(source) == "True True"


def test_a_compiled_module_is_the_module() -> None:
    net = torch.nn.Linear(2, 1)
    want = net(torch.ones(1, 2))
    net.compile()
    assert torch.equal(net(torch.ones(1, 2)), want)
