"""The convolutional network of MNIST tutorials, with stochastic gradient descent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from benchmarks.workloads.base import Compile, Start, Training, Workload, as_it_is, drawn


@dataclass(frozen=True)
class Size:
    batch: int
    channels: int = 32
    hidden: int = 128


def build(torch: Any, size: Size, compile: Compile = as_it_is) -> Training:
    nn = torch.nn
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, size.channels, 3),
        nn.ReLU(),
        nn.Conv2d(size.channels, 2 * size.channels, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(12 * 12 * 2 * size.channels, size.hidden),
        nn.ReLU(),
        nn.Linear(size.hidden, 10),
    )
    batches = drawn(4, lambda: (torch.randn(size.batch, 1, 28, 28), torch.randint(0, 10, (size.batch,))))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    criterion = nn.CrossEntropyLoss()
    predict = compile(model)

    def step(images: Any, labels: Any) -> Any:
        optimizer.zero_grad()
        loss = criterion(predict(images), labels)
        loss.backward()
        optimizer.step()
        return loss

    return Training(model, step, batches)


def jax(start: Start, size: Size) -> Any:
    import jax

    from benchmarks.workloads import jax_side

    parameters = dict(start.parameters)
    for name in ("0.weight", "2.weight"):
        parameters[name] = jax_side.channels_last(parameters[name])
    # PyTorch flattens channels first.
    dense = parameters["6.weight"].reshape(size.hidden, 2 * size.channels, 12, 12)
    parameters["6.weight"] = dense.transpose(0, 2, 3, 1).reshape(size.hidden, -1)
    batches = [(images.transpose(0, 2, 3, 1), labels) for images, labels in start.batches]

    def loss(p: Any, x: Any, labels: Any) -> Any:
        for layer in ("0", "2"):
            x = jax.nn.relu(jax_side.convolution(x, p[f"{layer}.weight"]) + p[f"{layer}.bias"])
        x = jax_side.max_pool(x).reshape(len(x), -1)
        x = jax.nn.relu(jax_side.dense(p, "6", x))
        return jax_side.cross_entropy(jax_side.dense(p, "8", x), labels)

    return jax_side.supervised(loss, parameters, jax_side.sgd(1e-3, 0.9), batches)


WORKLOADS = (
    Workload(
        name="mnist",
        title="MNIST's convolutional network and SGD with momentum",
        sizes={"small": Size(2, channels=4, hidden=32), "medium": Size(16), "large": Size(128)},
        build=build,
        jax=jax,
    ),
)
