"""A chain of elementwise operations on large tensors, forward and backward: the cost of reading and writing memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from benchmarks.workloads.base import Compile, Start, Training, Workload, as_it_is, drawn


@dataclass(frozen=True)
class Size:
    elements: int


def build(torch: Any, size: Size, compile: Compile = as_it_is) -> Training:
    nn = torch.nn

    class Chain(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = nn.Parameter(torch.randn(size.elements))

        def forward(self, x: Any) -> Any:
            y = torch.tanh(self.w * x + 0.5)
            y = torch.sigmoid(2 * y) * y + torch.exp(-y * y)
            return ((y - x) ** 2).mean()

    torch.manual_seed(0)
    model = Chain()
    batches = drawn(2, lambda: [torch.randn(size.elements)])
    predict = compile(model)

    def step(x: Any) -> Any:
        model.w.grad = None
        loss = predict(x)
        loss.backward()
        with torch.no_grad():
            model.w -= 0.1 * model.w.grad
        return loss

    return Training(model, step, batches)


def jax(start: Start, size: Size) -> Any:
    import jax
    import jax.numpy as jnp

    from benchmarks.workloads import jax_side

    def loss(w: Any, x: Any) -> Any:
        y = jnp.tanh(w * x + 0.5)
        y = jax.nn.sigmoid(2 * y) * y + jnp.exp(-y * y)
        return ((y - x) ** 2).mean()

    def step(w: Any, x: Any) -> tuple[Any, Any]:
        value, gradient = jax.value_and_grad(loss)(w, x)
        return w - 0.1 * gradient, value

    return jax_side.JaxTraining(step, start.parameters["w"], start.batches)


WORKLOADS = (
    Workload(
        name="elementwise",
        title="elementwise operations on large tensors",
        sizes={"small": Size(10_000), "medium": Size(1_000_000), "large": Size(10_000_000)},
        build=build,
        jax=jax,
    ),
)
