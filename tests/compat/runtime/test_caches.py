"""Caches are bounded and listed, and do not affect results."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import numpy as np
import pytest

import compat as torch
from compat import nn, runtime
from compat._core.dispatch.overrides import overridden_layout
from compat._core.memory.strides import contiguous_layout, layout_of
from funcgrad.core import caching
from funcgrad.core.caching import limited


def test_stats_list_all_caches() -> None:
    torch.ones(3).exp().tolist()
    found = runtime.stats()["caches"]
    assert {"plans", "layouts", "kernels", "windows", "backward passes", "types of arrays", "promotions"} <= set(found)
    assert all(0 <= c.entries <= c.limit and c.evictions >= 0 for c in found.values())
    assert found["plans"].entries > 0 and found["layouts"].entries > 0


def test_layouts_stay_themselves_when_all_are_evicted() -> None:
    with limited(2):
        held = [contiguous_layout((n, 2), torch.float32) for n in range(30)]
        base = held[5].base
        parts = [layout_of(base, (n, 1), (2, 1), 0) for n in range(1, 5)]
        assert all(a is contiguous_layout((n, 2), torch.float32) for n, a in enumerate(held))
        assert all(a is layout_of(base, (n + 1, 1), (2, 1), 0) for n, a in enumerate(parts))
        assert all(contiguous_layout((n, 2), torch.float32).base is held[n].base for n in range(30))
    assert overridden_layout(held[3]).plain is held[3]


def _model(length: int) -> Any:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv1d(2, 4, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(4 * length, 3))
    optimizer = torch.optim.Adam(net.parameters(), lr=0.05, foreach=True)
    x = torch.linspace(-1, 1, 4 * length).reshape(2, 2, length)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x), torch.tensor([0, 2]))
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses


def _recurrent(length: int) -> Any:
    torch.manual_seed(0)
    net = nn.LSTM(2, 3, batch_first=True)
    out, (h, _) = net(torch.linspace(-1, 1, 2 * length).reshape(1, length, 2))
    (out.sum() + h.prod()).backward()
    return [p.grad.tolist() for p in net.parameters()]


def _views(length: int) -> Any:
    x = torch.arange(float(4 * length), requires_grad=True)
    y = x.reshape(4, length)[1:3, ::2].T * 2
    z = (x * 1.5).as_strided((2, 2), (1, length))
    w = (x * 1).clone()
    w[1:4] *= 3
    (y.sum() + (z * z).sum() + (w * x.detach()).sum()).backward()
    return [x.grad.tolist(), y.tolist(), x.detach().roll(2).flip(0).tolist(), torch.cat([x, z.reshape(-1)]).tolist()]


def _derivatives(length: int) -> Any:
    x = torch.linspace(0.1, 1, length, requires_grad=True)
    (first,) = torch.autograd.grad((x.exp() * x.sin()).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad((first * first).sum(), x)
    f = lambda v: (v * v).sum().sin()
    return [
        first.tolist(), second.tolist(), torch.func.hessian(f)(x.detach()).tolist(),
        torch.func.vmap(torch.func.grad(f))(torch.ones(2, length)).tolist(),
        torch.autograd.functional.jvp(f, x.detach(), torch.ones(length))[1].item(),
    ]  # fmt: skip


def _compiled(length: int) -> Any:
    double = torch.compile(lambda x: (x * 2).tanh().sum())
    return [double(torch.linspace(0, 1, length)).item() for _ in range(4)]


@pytest.mark.parametrize("program", [_model, _recurrent, _views, _derivatives, _compiled])
def test_results_are_equal_with_caches_that_evict_every_entry(program: Any) -> None:
    lengths = (4, 5)
    wanted = [program(length) for length in lengths]
    with limited(2):
        for _ in range(2):
            for length, want in zip(lengths, wanted, strict=True):
                for a, b in zip(program(length), want, strict=True):
                    np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)
    assert all(c.entries <= c.limit for c in caching.stats().values())


def test_threads_work_with_caches_that_evict_every_entry() -> None:
    wanted = {n: _views(n) for n in (4, 5, 6)}
    failed: list[Any] = []

    def work(n: int) -> None:
        try:
            for _ in range(6):
                assert _views(n) == wanted[n]
        except BaseException as error:
            failed.append(error)

    with limited(3):
        threads = [threading.Thread(target=work, args=(n,)) for n in (4, 5, 6)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert not failed


def test_memory_is_bounded_over_new_shapes() -> None:
    w = nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([w], lr=0.001, momentum=0.9)

    def run(first: int, count: int) -> None:
        for i in range(first, first + count):
            x = torch.ones(1 + i % 20, 1 + i // 20)
            loss = ((x * w).tanh() * x + 1).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            x[: i % 7].sum()
        loss.item()

    with limited(60):
        run(0, 120)
        gc.collect()
        before = len(gc.get_objects())
        run(120, 240)
        gc.collect()
        grown = len(gc.get_objects()) - before
    assert grown < 40_000  # 150,000 if all were kept


def test_trained_modules_are_freed_with_their_owner() -> None:
    def run() -> list[Any]:
        net = nn.Linear(4, 3)
        optimizer = torch.optim.Adam(net.parameters())

        @torch.compile
        def step(x: Any) -> Any:
            optimizer.zero_grad()
            loss = net(x).sum()
            loss.backward()
            optimizer.step()
            return loss

        for _ in range(4):
            step(torch.ones(2, 4))
            step.function(torch.ones(2, 4))
        return [weakref.ref(o) for o in (net, net.weight, net.weight._storage_, optimizer, step)]

    held = run()
    runtime.synchronize()
    gc.collect()
    assert [r() for r in held] == [None] * 5
