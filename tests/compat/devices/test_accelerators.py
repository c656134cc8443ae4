"""Accelerators: the errors if there are none, and tensors on several devices, in a process with virtual ones."""

from __future__ import annotations

from pathlib import Path

import pytest

import compat as torch
from tests.compat.distributed.launching import run_python


def test_tensors_on_accelerators() -> None:
    status, text = run_python(str(Path(__file__).with_name("accelerators_program.py")), devices=4)
    assert (status, text) == (0, "done\n"), text


@pytest.mark.parametrize(
    "ask", [lambda: torch.ones(2, device="cuda"), lambda: torch.ones(2).cuda(), torch.cuda.synchronize]
)
def test_missing_gpu_errors_name_the_plugin(ask) -> None:
    with pytest.raises(AssertionError, match="Torch not compiled with CUDA enabled") as caught:
        ask()
    assert 'pip install "jax[cuda13]"' in caught.value.__notes__[0]


def test_missing_accelerator_errors_name_the_plugin() -> None:
    with pytest.raises(RuntimeError, match="XLA has no device here but the CPU") as caught:
        torch.ones(2, device="xla")
    assert 'pip install "jax[tpu]" for TPUs' in caught.value.__notes__[0]


def test_a_plugin_that_finds_nothing_is_distinguished_from_no_plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    from compat._core.types import device

    monkeypatch.setattr(device.runtime, "expected", lambda: True)
    monkeypatch.setattr(device.runtime, "accelerators", lambda kind: [])
    with pytest.raises(AssertionError) as caught:
        torch.ones(2, device="cuda")
    assert "A plugin of JAX's is installed, but it has found no GPU" in caught.value.__notes__[0]


def test_no_accelerator_answers() -> None:
    assert not torch.cuda.is_available() and torch.cuda.device_count() == 0 and torch.cuda.memory_allocated() == 0
    assert not torch.accelerator.is_available() and torch.accelerator.current_accelerator() is None
    assert not torch.xpu.is_available() and not torch.mps.is_available()
    with pytest.raises(RuntimeError, match="Cannot access accelerator device when none is available"):
        torch.device(0)
