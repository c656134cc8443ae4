"""Threads, switches and helper functions."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import jax
import pytest

import compat as torch
from funcgrad import runtime
from tests.compat.scripts import assert_same, cases, observe


@pytest.mark.parametrize(("source", "want"), cases("environment"))
def test_golden(source: str, want: dict[str, Any]) -> None:
    assert_same(observe(torch, source), want)


def test_determinism_compiles_at_once_and_restores_the_setting() -> None:
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


def test_the_number_of_threads_can_be_set_before_the_first_value() -> None:
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
    with pytest.raises(AttributeError, match="module 'torch' has no attribute 'nonsense'"):
        torch.nonsense  # noqa: B018
    with pytest.raises(AttributeError, match=r"module 'torch\.utils' has no attribute 'nonsense'"):
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


def test_the_cpu_implements_the_accelerator_interface() -> None:
    ran = torch.zeros(1)
    with torch.cpu.stream(torch.cpu.Stream()):
        ran += 1
        event = torch.cpu.Event()
        event.record()
    torch.cpu.current_stream().wait_event(event)
    event.synchronize()
    assert event.query() and torch.cpu.is_initialized() and ran.item() == 1


def test_deprecated_names_of_autocast_on_the_cpu() -> None:
    with pytest.warns(FutureWarning, match=r"use `torch.amp.autocast\('cpu', args...\)` instead"):
        context = torch.cpu.amp.autocast()
    with context:
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype is torch.bfloat16
    with pytest.warns(FutureWarning, match=r"`torch.cpu.amp.GradScaler\(args...\)` is deprecated"):
        scaler = torch.cpu.amp.GradScaler(init_scale=4.0)
    assert isinstance(scaler, torch.amp.GradScaler) and scaler.scale(torch.ones(1)).item() == 4


def test_config_shows_the_versions_and_threads() -> None:
    assert f"jax {jax.__version__}" in torch.__config__.show()
    assert f"torch.get_num_threads() : {torch.get_num_threads()}" in torch.__config__.parallel_info()
    assert torch.Storage is torch.FloatStorage


def test_the_version_compares_as_a_version() -> None:
    version = torch.__version__
    assert "2.4" < version < "2.14" and version >= (2, 4) and version > "2.13.0rc1" and not version < "2.13"
    assert isinstance(version, str) and hash(version) == hash(str(version)) and version.split(".")[0] == "2"
    of = torch.torch_version.TorchVersion
    in_order = [
        "1.2.dev3",
        "1.2a1.dev2",
        "1.2a1",
        "1.2b2",
        "1.2rc1",
        "1.2",
        "1.2+cpu",
        "1.2+1",
        "1.2.post1",
        "1.10",
        "1!0.1",
    ]
    for i, a in enumerate(in_order):
        for j, b in enumerate(in_order):
            assert ((of(a) < b), (of(a) == b), (of(a) >= b)) == (i < j, i == j, i >= j), (a, b)
    assert of("v1.2") == "1.2.0" and of("1.2.alpha1") == "1.2a1" and of("1.2-1") == (1, 2, "post1")
    assert of("1.2") < "parrot" and of("1.2") != "1.2.0"
    with pytest.raises(TypeError, match="'>' not supported between instances of 'TorchVersion' and 'int'"):
        assert version > 3
