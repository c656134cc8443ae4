"""A character-level GPT of four blocks, attention written by hand, trained with AdamW."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from benchmarks.workloads.base import Compile, Start, Training, Workload, as_it_is, drawn

CHARACTERS = 65


@dataclass(frozen=True)
class Size:
    width: int
    length: int
    batch: int
    heads: int = 4
    layers: int = 4


def _modules(torch: Any, size: Size) -> Any:
    nn, F = torch.nn, torch.nn.functional

    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.qkv = nn.Linear(size.width, 3 * size.width)
            self.out = nn.Linear(size.width, size.width)
            self.register_buffer("seen", torch.tril(torch.ones(size.length, size.length)).bool(), persistent=False)

        def forward(self, x: Any) -> Any:
            batch, length, width = x.shape
            shape = (batch, length, size.heads, width // size.heads)
            q, k, v = (part.view(shape).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1))
            scores = (q @ k.transpose(-2, -1)) / math.sqrt(shape[-1])
            scores = scores.masked_fill(~self.seen[:length, :length], float("-inf"))
            mixed = F.softmax(scores, dim=-1) @ v
            return self.out(mixed.transpose(1, 2).contiguous().view(batch, length, width))

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.attention = nn.LayerNorm(size.width), Attention()
            self.norm2 = nn.LayerNorm(size.width)
            self.up, self.down = nn.Linear(size.width, 4 * size.width), nn.Linear(4 * size.width, size.width)

        def forward(self, x: Any) -> Any:
            x = x + self.attention(self.norm1(x))
            return x + self.down(F.gelu(self.up(self.norm2(x))))

    class GPT(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens = nn.Embedding(CHARACTERS, size.width)
            self.positions = nn.Embedding(size.length, size.width)
            self.blocks = nn.ModuleList([Block() for _ in range(size.layers)])
            self.norm = nn.LayerNorm(size.width)
            self.head = nn.Linear(size.width, CHARACTERS, bias=False)

        def forward(self, tokens: Any) -> Any:
            places = torch.arange(tokens.shape[1], device=tokens.device)
            x = self.tokens(tokens) + self.positions(places)
            for block in self.blocks:
                x = block(x)
            return self.head(self.norm(x))

    return GPT()


def build(torch: Any, size: Size, compile: Compile = as_it_is) -> Training:
    torch.manual_seed(0)
    model = _modules(torch, size)
    text = drawn(8, lambda: (torch.randint(0, CHARACTERS, (size.batch, size.length + 1)),))
    batches = [(t[:, :-1].contiguous(), t[:, 1:].contiguous()) for (t,) in text]
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    predict = compile(model)

    def step(tokens: Any, following: Any) -> Any:
        logits = predict(tokens)
        loss = torch.nn.functional.cross_entropy(logits.view(-1, CHARACTERS), following.view(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return Training(model, step, batches)


def jax(start: Start, size: Size) -> Any:
    import jax
    import jax.numpy as jnp

    from benchmarks.workloads import jax_side

    dense, norm = jax_side.dense, jax_side.layer_norm
    seen = jnp.tril(jnp.ones((size.length, size.length), bool))

    def attention(p: Any, name: str, x: Any) -> Any:
        batch, length, width = x.shape
        shape = (batch, length, size.heads, width // size.heads)
        parts = jnp.split(dense(p, f"{name}.qkv", x), 3, axis=-1)
        q, k, v = (part.reshape(shape).transpose(0, 2, 1, 3) for part in parts)
        scores = q @ k.swapaxes(-2, -1) / math.sqrt(shape[-1])
        mixed = jax.nn.softmax(jnp.where(seen, scores, -jnp.inf)) @ v
        return dense(p, f"{name}.out", mixed.transpose(0, 2, 1, 3).reshape(batch, length, width))

    def loss(p: Any, tokens: Any, following: Any) -> Any:
        x = p["tokens.weight"][tokens] + p["positions.weight"]
        for block in (f"blocks.{i}" for i in range(size.layers)):
            x = x + attention(p, f"{block}.attention", norm(p, f"{block}.norm1", x))
            hidden = jax.nn.gelu(dense(p, f"{block}.up", norm(p, f"{block}.norm2", x)), approximate=False)
            x = x + dense(p, f"{block}.down", hidden)
        logits = dense(p, "head", norm(p, "norm", x))
        return jax_side.cross_entropy(logits.reshape(-1, CHARACTERS), following.reshape(-1))

    return jax_side.supervised(loss, start.parameters, jax_side.adam(3e-4, decay=0.01), start.batches)


WORKLOADS = (
    Workload(
        name="gpt",
        title="a character GPT of four blocks and AdamW",
        sizes={"small": Size(32, 16, 4), "medium": Size(128, 64, 16), "large": Size(256, 128, 16, heads=8)},
        build=build,
        jax=jax,
        series={"layers": (1, 2, 4, 8), "width": (32, 64, 128, 256), "length": (16, 64, 128)},
    ),
)
