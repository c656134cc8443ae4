"""A residual network for CIFAR's images, with batch normalization, trained with stochastic gradient descent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from benchmarks.workloads.base import Compile, Start, Training, Workload, as_it_is, drawn


@dataclass(frozen=True)
class Size:
    """``blocks`` per stage: 1 makes a ResNet-8, 3 a ResNet-20."""

    batch: int
    blocks: int = 1
    width: int = 16
    pixels: int = 32
    stages: int = 3


def _model(torch: Any, size: Size) -> Any:
    nn, F = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self, inputs: int, outputs: int) -> None:
            super().__init__()
            stride = 1 if inputs == outputs else 2
            self.conv1 = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)
            self.norm1 = nn.BatchNorm2d(outputs)
            self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
            self.norm2 = nn.BatchNorm2d(outputs)
            self.short = nn.Sequential()
            if inputs != outputs:
                projection = nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False)
                self.short = nn.Sequential(projection, nn.BatchNorm2d(outputs))

        def forward(self, x: Any) -> Any:
            y = F.relu(self.norm1(self.conv1(x)))
            return F.relu(self.norm2(self.conv2(y)) + self.short(x))

    class ResNet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, size.width, 3, padding=1, bias=False)
            self.norm = nn.BatchNorm2d(size.width)
            self.blocks = nn.Sequential(*(Block(i, o) for i, o in _widths(size)))
            self.head = nn.Linear(_widths(size)[-1][1], 10)

        def forward(self, x: Any) -> Any:
            x = self.blocks(F.relu(self.norm(self.conv(x))))
            return self.head(x.mean((2, 3)))

    return ResNet()


def _widths(size: Size) -> list[tuple[int, int]]:
    """Channels in and out of each block: doubled at the beginning of each stage but the first."""
    out = [size.width * 2**stage for stage in range(size.stages) for _ in range(size.blocks)]
    return list(zip([size.width, *out[:-1]], out, strict=True))


def build(torch: Any, size: Size, compile: Compile = as_it_is) -> Training:
    torch.manual_seed(0)
    model = _model(torch, size)
    shape = (size.batch, 3, size.pixels, size.pixels)
    batches = drawn(4, lambda: (torch.randn(*shape), torch.randint(0, 10, (size.batch,))))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    criterion = torch.nn.CrossEntropyLoss()
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
    import jax.numpy as jnp

    from benchmarks.workloads import jax_side

    optimizer = jax_side.sgd(1e-3, 0.9)
    parameters = {n: jax_side.channels_last(p) if p.ndim == 4 else p for n, p in start.parameters.items()}
    batches = [(images.transpose(0, 2, 3, 1), labels) for images, labels in start.batches]
    scales = [n.removesuffix(".weight") for n, p in parameters.items() if p.ndim == 1 and n.endswith(".weight")]
    running = {n: (jnp.zeros_like(parameters[f"{n}.bias"]), jnp.ones_like(parameters[f"{n}.bias"])) for n in scales}

    def loss(p: Any, running: Any, x: Any, labels: Any) -> tuple[Any, Any]:
        moved = {}

        def norm(name: str, x: Any) -> Any:
            mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
            unbiased = variance * (x[..., 0].size / (x[..., 0].size - 1))
            old_mean, old_variance = running[name]
            moved[name] = 0.9 * old_mean + 0.1 * mean, 0.9 * old_variance + 0.1 * unbiased
            return (x - mean) * (jax.lax.rsqrt(variance + 1e-5) * p[f"{name}.weight"]) + p[f"{name}.bias"]

        def convolved(name: str, x: Any, stride: int = 1, padding: int = 1) -> Any:
            return jax_side.convolution(x, p[f"{name}.weight"], stride, padding)

        x = jax.nn.relu(norm("norm", convolved("conv", x)))
        for i, (inputs, outputs) in enumerate(_widths(size)):
            block, stride = f"blocks.{i}", 1 if inputs == outputs else 2
            y = jax.nn.relu(norm(f"{block}.norm1", convolved(f"{block}.conv1", x, stride)))
            if stride == 2:
                x = norm(f"{block}.short.1", convolved(f"{block}.short.0", x, stride, padding=0))
            x = jax.nn.relu(norm(f"{block}.norm2", convolved(f"{block}.conv2", y)) + x)
        logits = jax_side.dense(p, "head", x.mean((1, 2)))
        return jax_side.cross_entropy(logits, labels), moved

    def step(state: Any, *batch: Any) -> tuple[Any, Any]:
        parameters, velocity, running = state
        (value, running), gradients = jax.value_and_grad(loss, has_aux=True)(parameters, running, *batch)
        return (*optimizer.update(parameters, gradients, velocity), running), value

    parameters = jax.tree.map(jnp.asarray, parameters)
    return jax_side.JaxTraining(step, (parameters, optimizer.init(parameters), running), batches)


WORKLOADS = (
    Workload(
        name="resnet",
        title="a CIFAR ResNet with batch normalization and SGD with momentum",
        sizes={"small": Size(2, width=4, pixels=16), "medium": Size(16), "large": Size(64, blocks=3)},
        build=build,
        jax=jax,
    ),
)
