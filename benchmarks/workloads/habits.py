"""Common habits of scripts around a step, each on the same network of dense layers.

``habit_plain`` is the step alone; each of the others adds one habit, whose cost is the difference of times: the loss
read at every step, a few batches evaluated, gradients clipped, a learning-rate scheduler, gradients accumulated over
several batches.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.workloads.base import Compile, Training, Workload, as_it_is, drawn

#: The number of batches of an evaluation, and of those over which gradients accumulate.
SEVERAL = 4


@dataclass(frozen=True)
class Size:
    width: int
    batch: int


@dataclass(frozen=True)
class Parts:
    """The parts of a loop."""

    torch: Any
    model: Any
    predict: Any
    loss: Callable[[Any, Any], Any]
    optimizer: Any


Step = Callable[[Any, Any], Any]


def _plain(parts: Parts) -> Step:
    def step(x: Any, y: Any) -> Any:
        parts.optimizer.zero_grad()
        loss = parts.loss(parts.predict(x), y)
        loss.backward()
        parts.optimizer.step()
        return loss

    return step


def _evaluation(parts: Parts) -> Step:
    torch = parts.torch

    def step(x: Any, y: Any) -> Any:
        parts.model.eval()
        total, right = 0.0, 0
        with torch.no_grad():
            for inputs, labels in zip(x.chunk(SEVERAL), y.chunk(SEVERAL)):
                logits = parts.predict(inputs)
                total += parts.loss(logits, labels).item() * len(inputs)
                right += (logits.argmax(dim=1) == labels).sum().item()
        parts.model.train()
        return torch.tensor(total / len(x) + right)

    return step


def _clip(parts: Parts) -> Step:
    def step(x: Any, y: Any) -> Any:
        parts.optimizer.zero_grad()
        loss = parts.loss(parts.predict(x), y)
        loss.backward()
        parts.torch.nn.utils.clip_grad_norm_(parts.model.parameters(), max_norm=0.1)
        parts.optimizer.step()
        return loss

    return step


def _scheduler(parts: Parts) -> Step:
    scheduler = parts.torch.optim.lr_scheduler.CosineAnnealingLR(parts.optimizer, T_max=100)
    train = _plain(parts)

    def step(x: Any, y: Any) -> Any:
        loss = train(x, y)
        scheduler.step()
        return loss

    return step


def _accumulate(parts: Parts) -> Step:
    def step(x: Any, y: Any) -> Any:
        parts.optimizer.zero_grad()
        total = 0.0
        for inputs, labels in zip(x.chunk(SEVERAL), y.chunk(SEVERAL)):
            loss = parts.loss(parts.predict(inputs), labels) / SEVERAL
            loss.backward()
            total = total + loss.detach()
        parts.optimizer.step()
        return total

    return step


def _build(habit: Callable[[Parts], Step], reads: bool = False) -> Callable[[Any, Size, Compile], Training]:
    def build(torch: Any, size: Size, compile: Compile = as_it_is) -> Training:
        nn, width = torch.nn, size.width
        torch.manual_seed(0)
        model = nn.Sequential(
            nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10)
        )
        batches = drawn(8, lambda: (torch.randn(size.batch, width), torch.randint(0, 10, (size.batch,))))
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        step = habit(Parts(torch, model, compile(model), nn.CrossEntropyLoss(), optimizer))
        return Training(model, step, batches, reads=reads)

    return build


_SIZES = {"small": Size(64, 32), "medium": Size(256, 128)}

WORKLOADS = (
    Workload("habit_plain", "a step with no habits", _SIZES, _build(_plain)),
    Workload("habit_item", "the loss read at every step", _SIZES, _build(_plain, reads=True)),
    Workload("habit_evaluation", "four batches evaluated under no_grad", _SIZES, _build(_evaluation)),
    Workload("habit_clip", "gradients clipped by their norm", _SIZES, _build(_clip)),
    Workload("habit_scheduler", "a schedule for the learning rate", _SIZES, _build(_scheduler)),
    Workload("habit_accumulate", "gradients accumulated over four batches", _SIZES, _build(_accumulate)),
)
