"""Interrupts training programs at random moments, and checks the state afterwards.

    python tests/compat/runtime/interrupts.py [HOW MANY] [SEED]

A signal handler raises, as for Ctrl-C, while steps run: eager ones, compiled ones, backward passes, functions without
gradients, transforms. After each interrupt modes must be as before, and a compiled step must have happened completely
or not at all. (A ``with`` block of the program itself is not tested: Python may call the handler as it enters
``__exit__``, before its first line, in PyTorch as well.)
"""

from __future__ import annotations

import random
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import compat as torch
from compat._core.transforms.grad_mode import mode
from funcgrad.core.tracing import state
from funcgrad.runtime.deferred import local


class Interrupt(BaseException):
    """The exception that the handler raises."""


def _raise(*_: object) -> None:
    raise Interrupt


class Training:
    """A small model with all state that a step changes: parameters, buffers, an optimizer's state, random numbers."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.model = torch.nn.Sequential(
            torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 1)
        )
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.01)
        self.x = torch.linspace(-1, 1, 24).reshape(6, 4)
        self.compiled = torch.compile(self.step)

    def step(self) -> Any:
        """One step."""
        self.optimizer.zero_grad()
        loss = self.model(self.x).square().mean()
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def tensors(self) -> list[Any]:
        """All tensors that a step changes."""
        held = [v for s in self.optimizer.state.values() for v in s.values()]
        grads = [p.grad for p in self.model.parameters() if p.grad is not None]
        return [*self.model.parameters(), *self.model.buffers(), *held, *grads]

    def contents(self) -> list[bytes]:
        """Their values, and the state of the random numbers."""
        with torch.no_grad():
            found = [np.array(t.numpy()).tobytes() for t in self.tensors()]
        return [*found, torch.get_rng_state().numpy().tobytes()]


class Model:
    """The expected results of compiled steps: another training run, without interrupts."""

    def __init__(self, training: Training) -> None:
        self.training = Training()
        for _ in range(4):
            self.training.compiled()
        self.take(training)

    def take(self, training: Training) -> None:
        """Starts from the state of another training run."""
        with torch.no_grad():
            for mine, other in zip(self.training.tensors(), training.tensors(), strict=True):
                mine.copy_(other)
        self.random = torch.get_rng_state()

    def advance(self) -> None:
        """One step."""
        before = torch.get_rng_state()
        torch.set_rng_state(self.random)
        self.training.compiled()
        self.random = torch.get_rng_state()
        torch.set_rng_state(before)

    def contents(self) -> list[bytes]:
        """The same as for a training run."""
        return [*self.training.contents()[:-1], self.random.numpy().tobytes()]


def wrong_modes() -> list[str]:
    """What is wrong with the modes outside of all blocks."""
    found = {
        "grad mode": mode.grad is True and not mode.inference and torch.is_grad_enabled(),
        "a node is running": mode.node is None and mode.task is None and mode.depth == 0,
        "held back": local.hold is None,
        "inside a transform": state.depth == 0 and state.floor is None and state.deferring == 0,
        "captured": mode.since == 0 and mode.outset == float("inf"),
        "a mode watches": mode.watched == 0 and mode.observer is None,
    }
    return [name for name, right in found.items() if not right]


def set_right() -> None:
    """Resets modes."""
    mode.grad, mode.inference, mode.node, mode.task, mode.depth, mode.watched = True, False, None, None, 0, 0
    mode.since, mode.outset = 0, float("inf")
    local.hold = None
    state.depth, state.floor, state.deferring = 0, None, 0


def interrupted(work: Callable[[], Any], within: float, at: random.Random) -> bool:
    """Runs ``work`` with an interrupt after at most the given seconds; returns whether there was one."""
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, max(at.random() * within, 1e-6))
            work()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except Interrupt:
        return True
    return False


def duration(work: Callable[[], Any]) -> float:
    """The duration, in seconds."""
    for _ in range(3):  # no compilation is left
        work()
        torch.runtime.synchronize()
    start = time.perf_counter()
    for _ in range(20):
        work()
    return (time.perf_counter() - start) / 20


def eager(count: int, at: random.Random) -> list[str]:
    """Interrupts eager steps, backward passes and blocks of modes; returns what was wrong afterwards."""
    training, found = Training(), []
    w = torch.ones(3, requires_grad=True)

    @torch.no_grad()
    def apart() -> None:
        w * 2

    def blocks() -> None:
        for _ in range(3):
            apart()
            torch.func.grad(lambda v: (v * v).sum())(w.detach())

    def backward() -> None:
        (w * w).sum().backward()
        torch.autograd.grad((w * w * w).sum(), w, create_graph=True)[0].sum().backward()

    for work in (training.step, blocks, backward):
        takes = duration(work)
        for _ in range(count):
            if interrupted(work, 1.2 * takes, at):
                found += [f"{work.__name__}: {what}" for what in wrong_modes()]
                set_right()
    if not np.isfinite(training.step().item()):
        found.append("step: the loss is no number")
    return found


def compiled(count: int, at: random.Random) -> list[str]:
    """Interrupts compiled steps; returns what was wrong afterwards."""
    training, found = Training(), []
    for _ in range(4):
        training.compiled()
    if training.compiled.reason is not None:
        return [f"it is not compiled: {training.compiled.reason}"]
    wanted, takes = Model(training), duration(training.compiled)
    for _ in range(3):
        wanted.advance()
    wanted.take(training)
    for _ in range(count):
        interrupted(training.compiled, 1.2 * takes, at)
        found += [f"compiled: {what}" for what in wrong_modes()]
        set_right()
        now = training.contents()
        if now != wanted.contents():
            wanted.advance()
            if now != wanted.contents():
                found.append("compiled: half a step")
                wanted.take(training)
    return found


def main(count: int, seed: int = 0) -> list[str]:
    """Runs all of them."""
    at = random.Random(seed)
    before = signal.signal(signal.SIGALRM, _raise)
    try:
        return [*eager(count, at), *compiled(count, at)]
    finally:
        signal.signal(signal.SIGALRM, before)


if __name__ == "__main__":
    wrong = main(*map(int, sys.argv[1:] or ["1000"]))
    for line in sorted(set(wrong)):
        print(wrong.count(line), line)
    print("nothing wrong" if not wrong else f"{len(wrong)} wrong")
