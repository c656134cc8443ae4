"""A variational autoencoder of dense layers, 784-400-20, trained with Adam on binary images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from benchmarks.workloads.base import Compile, Start, Training, Workload, as_it_is, drawn


@dataclass(frozen=True)
class Size:
    batch: int
    pixels: int = 784
    hidden: int = 400
    code: int = 20


def _model(torch: Any, size: Size) -> Any:
    nn = torch.nn

    class VAE(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encode = nn.Linear(size.pixels, size.hidden)
            self.mean = nn.Linear(size.hidden, size.code)
            self.log_variance = nn.Linear(size.hidden, size.code)
            self.decode = nn.Linear(size.code, size.hidden)
            self.pixels = nn.Linear(size.hidden, size.pixels)

        def forward(self, x: Any) -> tuple[Any, Any, Any]:
            hidden = torch.relu(self.encode(x))
            mean, log_variance = self.mean(hidden), self.log_variance(hidden)
            deviation = torch.exp(0.5 * log_variance)
            code = mean + torch.randn_like(deviation) * deviation
            return torch.sigmoid(self.pixels(torch.relu(self.decode(code)))), mean, log_variance

    return VAE()


def build(torch: Any, size: Size, compile: Compile = as_it_is) -> Training:
    torch.manual_seed(0)
    model = _model(torch, size)
    batches = drawn(4, lambda: [(torch.rand(size.batch, size.pixels) > 0.5).float()])
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    predict = compile(model)

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        pixels, mean, log_variance = predict(x)
        error = torch.nn.functional.binary_cross_entropy(pixels, x, reduction="sum")
        divergence = -0.5 * torch.sum(1 + log_variance - mean.pow(2) - log_variance.exp())
        loss = (error + divergence) / len(x)
        loss.backward()
        optimizer.step()
        return loss

    return Training(model, step, batches)


def jax(start: Start, size: Size) -> Any:
    import jax
    import jax.numpy as jnp

    from benchmarks.workloads import jax_side

    optimizer, dense = jax_side.adam(), jax_side.dense

    def loss(p: Any, x: Any, key: Any) -> Any:
        hidden = jax.nn.relu(dense(p, "encode", x))
        mean, log_variance = dense(p, "mean", hidden), dense(p, "log_variance", hidden)
        code = mean + jax.random.normal(key, mean.shape) * jnp.exp(0.5 * log_variance)
        logits = dense(p, "pixels", jax.nn.relu(dense(p, "decode", code)))
        error = -jnp.sum(x * jax.nn.log_sigmoid(logits) + (1 - x) * jax.nn.log_sigmoid(-logits))
        divergence = -0.5 * jnp.sum(1 + log_variance - mean**2 - jnp.exp(log_variance))
        return (error + divergence) / len(x)

    def step(state: Any, x: Any) -> tuple[Any, Any]:
        parameters, moments, key = state
        key, now = jax.random.split(key)
        value, gradients = jax.value_and_grad(loss)(parameters, x, now)
        return (*optimizer.update(parameters, gradients, moments), key), value

    parameters = jax.tree.map(jnp.asarray, start.parameters)
    return jax_side.JaxTraining(step, (parameters, optimizer.init(parameters), jax.random.key(0)), start.batches)


WORKLOADS = (
    Workload(
        name="vae",
        title="a variational autoencoder and Adam",
        sizes={"small": Size(4, 784, 64, 8), "medium": Size(128), "large": Size(1024)},
        build=build,
        jax=jax,
        # Its noise differs from PyTorch's.
        tolerances={"jax": 0.03},
    ),
)
