"""On a GPU: training programs as on the CPU, the precision of products, autocast, memory.

Tests run on the CPU: with ``JAX_PLATFORMS=cuda,cpu`` in the environment these run on a GPU, if JAX has one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import compat as torch
from benchmarks.workloads import all_workloads
from funcgrad import runtime

pytestmark = pytest.mark.skipif(not runtime.accelerators("cuda"), reason="JAX has no GPU here")

STEPS = 8


def losses(name: str, device: str, wrap: Callable[[Any], Any] = lambda step: step) -> list[float]:
    """The losses of a benchmark's first steps on a device."""
    workload = all_workloads()[name]
    training = workload.build(torch, workload.size("small"), lambda model: model)
    training.move(device)
    training.step = wrap(training.step)
    return [training().item() for _ in range(STEPS)]


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    torch.backends.cudnn.allow_tf32 = False
    yield
    torch.backends.cudnn.allow_tf32 = True
    torch.set_float32_matmul_precision("highest")


@pytest.mark.parametrize("name", sorted(all_workloads()))
def test_programs_train_as_on_the_cpu(name: str) -> None:
    wanted = losses(name, "cpu")
    # Sums are in another order, which training amplifies; a pixel that is a maximum twice may differ.
    np.testing.assert_allclose(losses(name, "cuda"), wanted, rtol=2e-3)
    np.testing.assert_allclose(losses(name, "cuda", torch.compile), wanted, rtol=2e-3)


def error_of_product() -> float:
    """The largest relative error of a float32 product."""
    torch.manual_seed(0)
    x, y = torch.rand(256, 256), torch.rand(256, 256)
    exact = x.double() @ y.double()
    return ((x.cuda() @ y.cuda()).cpu().double() / exact - 1).abs().max().item()


def test_products_are_exact_unless_tf32_is_allowed() -> None:
    assert error_of_product() < 1e-6
    torch.set_float32_matmul_precision("high")
    assert error_of_product() > 1e-5
    torch.backends.cuda.matmul.allow_tf32 = False
    assert error_of_product() < 1e-6


def test_convolutions_use_tf32_unless_it_is_forbidden() -> None:
    torch.manual_seed(0)
    x, w = torch.rand(8, 32, 16, 16), torch.rand(32, 32, 3, 3)
    exact = torch.nn.functional.conv2d(x.double(), w.double())

    def error() -> float:
        return (torch.nn.functional.conv2d(x.cuda(), w.cuda()).cpu().double() / exact - 1).abs().max().item()

    assert error() < 1e-5
    torch.backends.cudnn.allow_tf32 = True
    assert 1e-5 < error() < 1e-2


def test_autocast_trains() -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.GELU(), torch.nn.Linear(128, 10)).cuda()
    optimizer, scaler = torch.optim.AdamW(model.parameters(), 1e-2), torch.amp.GradScaler("cuda")
    x, y = torch.randn(256, 64, device="cuda"), torch.randint(10, (256,)).cuda()
    found = []
    for _ in range(30):
        optimizer.zero_grad()
        with torch.autocast("cuda", torch.bfloat16):
            loss = torch.nn.functional.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        found.append(loss.item())
    assert found[-1] < 0.7 * found[0]


def test_memory_is_reported() -> None:
    before = torch.cuda.memory_allocated()
    x = torch.ones(1 << 20, device="cuda")
    torch.cuda.synchronize()
    assert torch.cuda.memory_allocated() - before >= x.nbytes
    free, total = torch.cuda.mem_get_info()
    assert 0 < free <= total and torch.cuda.get_device_name()
