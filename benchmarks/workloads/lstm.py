"""Two layers of LSTM and a dense layer on the last step's output: as ``nn.LSTM``, and as a loop over cells by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.workloads.base import Compile, Start, Training, Workload, as_it_is, drawn

LAYERS = 2


@dataclass(frozen=True)
class Size:
    inputs: int
    hidden: int
    length: int
    batch: int


def _built_in(torch: Any, size: Size) -> Any:
    nn = torch.nn

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm = nn.LSTM(size.inputs, size.hidden, num_layers=LAYERS, batch_first=True)
            self.head = nn.Linear(size.hidden, 1)

        def forward(self, x: Any) -> Any:
            outputs, _ = self.lstm(x)
            return self.head(outputs[:, -1])

    return Model()


def _by_hand(torch: Any, size: Size) -> Any:
    nn = torch.nn

    class Cell(nn.Module):
        def __init__(self, inputs: int) -> None:
            super().__init__()
            self.ih, self.hh = nn.Linear(inputs, 4 * size.hidden), nn.Linear(size.hidden, 4 * size.hidden)

        def forward(self, x: Any, h: Any, c: Any) -> Any:
            i, f, g, o = (self.ih(x) + self.hh(h)).chunk(4, dim=1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            return torch.sigmoid(o) * torch.tanh(c), c

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cells = nn.ModuleList([Cell(size.hidden if layer else size.inputs) for layer in range(LAYERS)])
            self.head = nn.Linear(size.hidden, 1)

        def forward(self, x: Any) -> Any:
            states = [(x.new_zeros(len(x), size.hidden),) * 2 for _ in self.cells]
            h = x
            for t in range(x.shape[1]):
                h = x[:, t]
                for layer, cell in enumerate(self.cells):
                    states[layer] = cell(h, *states[layer])
                    h = states[layer][0]
            return self.head(h)

    return Model()


def _build(make: Callable[[Any, Size], Any]) -> Callable[[Any, Size, Compile], Training]:
    def build(torch: Any, size: Size, compile: Compile = as_it_is) -> Training:
        torch.manual_seed(0)
        model = make(torch, size)
        batches = drawn(4, lambda: (torch.randn(size.batch, size.length, size.inputs), torch.randn(size.batch, 1)))
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        criterion = torch.nn.MSELoss()
        predict = compile(model)

        def step(x: Any, y: Any) -> Any:
            optimizer.zero_grad()
            loss = criterion(predict(x), y)
            loss.backward()
            optimizer.step()
            return loss

        return Training(model, step, batches)

    return build


def _jax(name: Callable[[int, str, str], str]) -> Callable[[Start, Size], Any]:
    """The step in JAX, a scan over time; ``name`` returns the names of a layer's weights."""

    def step(start: Start, size: Size) -> Any:
        import jax
        import jax.numpy as jnp

        from benchmarks.workloads import jax_side

        def layer(p: Any, number: int, xs: Any) -> Any:
            """All outputs of a layer, time first."""
            w_ih, w_hh, b_ih, b_hh = (
                p[name(number, kind, part)] for kind in ("weight", "bias") for part in ("ih", "hh")
            )

            def cell(state: Any, entering: Any) -> Any:
                h, c = state
                i, f, g, o = jnp.split(entering + h @ w_hh.T, 4, axis=1)
                c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
                h = jax.nn.sigmoid(o) * jnp.tanh(c)
                return (h, c), h

            zero = jnp.zeros((xs.shape[1], size.hidden), xs.dtype)
            return jax.lax.scan(cell, (zero, zero), xs @ w_ih.T + (b_ih + b_hh))[1]

        def loss(p: Any, x: Any, y: Any) -> Any:
            xs = x.transpose(1, 0, 2)
            for number in range(LAYERS):
                xs = layer(p, number, xs)
            return ((jax_side.dense(p, "head", xs[-1]) - y) ** 2).mean()

        return jax_side.supervised(loss, start.parameters, jax_side.adam(), start.batches)

    return step


def _flops(size: Size) -> float:
    """Two for each weight, input and time step, and twice that for the backward pass."""
    weights = 4 * size.hidden * (size.inputs + size.hidden + (LAYERS - 1) * 2 * size.hidden)
    return 6.0 * size.batch * size.length * weights


_SIZES = {"small": Size(16, 32, 10, 8), "medium": Size(64, 128, 30, 32), "large": Size(128, 256, 64, 64)}

WORKLOADS = (
    Workload(
        name="lstm",
        title="two layers of nn.LSTM and Adam",
        sizes=_SIZES,
        build=_build(_built_in),
        jax=_jax(lambda layer, kind, part: f"lstm.{kind}_{part}_l{layer}"),
        flops=_flops,
    ),
    Workload(
        name="lstm_loop",
        title="the same LSTM as a Python loop over cells",
        # Many thousand operations per step would take a contestant that compiles them all minutes.
        sizes={name: _SIZES[name] for name in ("small", "medium")},
        build=_build(_by_hand),
        jax=_jax(lambda layer, kind, part: f"cells.{layer}.{part}.{kind}"),
        flops=_flops,
    ),
)
