"""The model and the loop of ``examples/digits.py``: real images, from a shuffling ``DataLoader``, and Adam."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from benchmarks.workloads.base import Compile, Training, Workload, as_it_is


@dataclass(frozen=True)
class Size:
    batch: int


def build(torch: Any, size: Size, compile: Compile = as_it_is) -> Training:
    from sklearn.datasets import load_digits

    nn, data = torch.nn, torch.utils.data
    torch.manual_seed(0)
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    model = nn.Sequential(
        nn.Conv2d(1, 16, kernel_size=3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, kernel_size=3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(128, 64),
        nn.ReLU(),
        nn.Linear(64, 10),
    )
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    dataset = data.TensorDataset(images, torch.tensor(digits.target))
    loader = data.DataLoader(dataset, batch_size=size.batch, shuffle=True)
    predict = compile(model)

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = criterion(predict(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return Training(model, step, loader, reads=True)


WORKLOADS = (
    Workload(
        name="digits",
        title="the digits example: its DataLoader, and the loss read at every step",
        sizes={"small": Size(32), "medium": Size(256)},
        build=build,
    ),
)
