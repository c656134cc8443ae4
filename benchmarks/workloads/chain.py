"""A chain of small operations on ten numbers, forward and backward: the overhead of an operation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from benchmarks.workloads.base import Compile, Start, Training, Workload, as_it_is, drawn


@dataclass(frozen=True)
class Size:
    """A chain of ``length`` operations."""

    length: int
    elements: int = 10


def build(torch: Any, size: Size, compile: Compile = as_it_is) -> Training:
    nn = torch.nn

    class Chain(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = nn.Parameter(torch.randn(size.elements))

        def forward(self, x: Any) -> Any:
            y = self.w
            for i in range(size.length - 1):
                y = torch.sin(y) if i % 2 else y * x
            return y.sum()

    torch.manual_seed(0)
    model = Chain()
    batches = drawn(4, lambda: [torch.rand(size.elements) + 0.5])
    predict = compile(model)

    def step(x: Any) -> Any:
        model.w.grad = None
        loss = predict(x)
        loss.backward()
        with torch.no_grad():
            model.w -= 0.01 * model.w.grad
        return loss

    return Training(model, step, batches)


def jax(start: Start, size: Size) -> Any:
    import jax
    import jax.numpy as jnp

    from benchmarks.workloads import jax_side

    def loss(w: Any, x: Any) -> Any:
        y = w
        for i in range(size.length - 1):
            y = jnp.sin(y) if i % 2 else y * x
        return y.sum()

    def step(w: Any, x: Any) -> tuple[Any, Any]:
        value, gradient = jax.value_and_grad(loss)(w, x)
        return w - 0.01 * gradient, value

    return jax_side.JaxTraining(step, start.parameters["w"], start.batches)


WORKLOADS = (
    Workload(
        name="chain",
        title="small operations on ten numbers, one after the other",
        sizes={"small": Size(50), "medium": Size(200)},
        build=build,
        jax=jax,
        series={"length": (10, 50, 200, 800)},
    ),
)
