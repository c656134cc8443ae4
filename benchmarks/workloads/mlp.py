"""A network of dense layers trained with Adam."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from benchmarks.workloads.base import Compile, Start, Training, Workload, as_it_is, drawn


@dataclass(frozen=True)
class Size:
    depth: int
    width: int
    batch: int


def build(torch: Any, size: Size, compile: Compile = as_it_is) -> Training:
    nn = torch.nn
    torch.manual_seed(0)
    layers: list[Any] = []
    for _ in range(size.depth - 1):
        layers += [nn.Linear(size.width, size.width), nn.ReLU()]
    model = nn.Sequential(*layers, nn.Linear(size.width, size.width))
    batches = drawn(8, lambda: (torch.randn(size.batch, size.width), torch.randn(size.batch, size.width)))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    criterion = nn.MSELoss()
    predict = compile(model)

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = criterion(predict(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return Training(model, step, batches)


def jax(start: Start, size: Size) -> Any:
    import jax

    from benchmarks.workloads import jax_side

    def loss(parameters: Any, x: Any, y: Any) -> Any:
        for i in range(size.depth - 1):
            x = jax.nn.relu(jax_side.dense(parameters, str(2 * i), x))
        return ((jax_side.dense(parameters, str(2 * size.depth - 2), x) - y) ** 2).mean()

    return jax_side.supervised(loss, start.parameters, jax_side.adam(), start.batches)


WORKLOADS = (
    Workload(
        name="mlp",
        title="dense layers and Adam",
        sizes={"small": Size(3, 64, 32), "medium": Size(3, 512, 128), "large": Size(3, 2048, 256)},
        build=build,
        jax=jax,
        series={"depth": (1, 3, 10, 30), "width": (16, 64, 256, 1024), "batch": (1, 32, 256, 2048)},
    ),
)
