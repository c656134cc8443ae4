"""The communication of a pod's devices when they train a transformer, from programs compiled for that many devices.

    python -m benchmarks.scaling.pod [--devices 8,64,512] [--size 7B|small]

A training step is compiled for virtual devices of the CPU, from shapes alone: no parameter is allocated, and nothing
runs. The bytes are read from the compiled programs and compared with a formula. Each number of devices uses a separate
process.

Three forms of parallelism, each a ``shard_map`` of the same model:

- *data*: each device has all parameters and its own sequences; gradients are summed over all devices.
- *sharded*: each device has a part of each parameter, gathers a layer's parameters in the forward pass and again in the
  backward pass, and reduces and scatters its gradient.
- *tensor*: groups of eight devices split each layer's heads and hidden units and sum its results; the groups split the
  sequences, and sum their gradients.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad.parallel import Collective, NamedSharding, collectives, make_mesh, shard_map, virtual_devices
from funcgrad.parallel import PartitionSpec as P

#: The number of devices that split a layer in the form *tensor*.
GROUP = 8
WAYS = ("data", "sharded", "tensor")


@dataclass(frozen=True)
class Size:
    """A transformer: ``wide`` channels, ``hidden`` units, sequences of ``length``, a vocabulary of ``words``."""

    layers: int
    wide: int
    hidden: int
    heads: int
    words: int
    length: int

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The parameters."""
        n, d, h = self.layers, self.wide, self.hidden
        return {
            "embedding": (self.words, d), "head": (d, self.words), "query": (n, d, d), "key": (n, d, d),
            "value": (n, d, d), "out": (n, d, d), "gate": (n, d, h), "up": (n, d, h), "down": (n, h, d),
            "first": (n, d), "second": (n, d),
        }  # fmt: skip


SIZES = {
    "7B": Size(layers=32, wide=4096, hidden=11008, heads=32, words=32000, length=4096),
    "small": Size(layers=4, wide=64, hidden=128, heads=8, words=512, length=16),
}
#: The dimension of a layer's parameters that *tensor* splits: outputs, or inputs where results are then summed.
OUTPUTS, INPUTS = ("query", "key", "value", "gate", "up"), ("out", "down")

Together = Callable[[Any], Any]


def normed(x: Any, scale: Any) -> Any:
    return x * scale / fnp.sqrt(fnp.mean(x * x, -1, keepdims=True) + 1e-5)


@dataclass(frozen=True)
class Division:
    """A form of parallelism.

    Attributes:
        mesh: the devices.
        specs: the mesh axes along which parameters are sharded.
        gather: returns a whole parameter, by name, from a device's shard, if the form gathers.
        apart: marks a value as varying over the devices.
        total: the sum over the devices on which a value varies.
    """

    mesh: Any
    specs: dict[str, P]
    gather: Callable[[str, Any], Any] = lambda name, p: p
    apart: Together = lambda x: x
    total: Together = lambda x: x


def layer(x: Any, p: dict[str, Any], size: Size, d: Division) -> Any:
    p = {name: d.gather(name, value) for name, value in p.items()}
    y, each = d.apart(normed(x, p["first"])), size.wide // size.heads
    q, k, v = (fnp.reshape(y @ p[name], (*x.shape[:2], -1, each)) for name in ("query", "key", "value"))
    scores = fnp.einsum("bthi,bshi->bhts", q, k) * each**-0.5
    causal = fnp.arange(x.shape[1])[:, None] >= fnp.arange(x.shape[1])
    mixed = fnp.einsum("bhts,bshi->bthi", fg.nn.softmax(fnp.where(causal, scores, -1e9)), v)
    x = x + d.total(fnp.reshape(mixed, (*x.shape[:2], -1)) @ p["out"])
    y = d.apart(normed(x, p["second"]))
    return x + d.total((fg.nn.silu(y @ p["gate"]) * (y @ p["up"])) @ p["down"])


def loss(params: dict[str, Any], tokens: Any, size: Size, d: Division) -> Any:
    """The mean over this device's sequences."""
    outer = {name: d.gather(name, params[name]) for name in ("embedding", "head")}
    layers = {name: value for name, value in params.items() if name not in outer}
    step = fg.checkpoint(lambda x, p: layer(x, p, size, d))
    x, _ = fg.scan(lambda x, p: (step(x, p), None), outer["embedding"][tokens[:, :-1]], layers)
    logits = fg.nn.log_softmax(x @ outer["head"])
    return -fnp.mean(fnp.take_along_axis(logits, tokens[:, 1:, None], -1))


def division(way: str, count: int, size: Size) -> Division:
    """One of ``WAYS`` on the given number of devices."""
    groups = make_mesh((count // GROUP, GROUP), ("data", "model"))
    names = size.shapes()
    whole, every = dict.fromkeys(names, P()), ("data", "model")
    if way == "data":
        return Division(groups, whole)
    if way == "sharded":
        layers = {name: P(None, None, every) if name == "down" else P(None, every) for name in names}
        axes = dict.fromkeys(names, 0) | {"down": 1, "embedding": 1}
        gather = lambda name, p: fg.lax.all_gather(p, every, axis=axes[name], tiled=True)
        return Division(groups, layers | {"head": P(every)}, gather)
    specs = whole | {name: P(None, None, "model") for name in OUTPUTS} | {name: P(None, "model") for name in INPUTS}
    apart = lambda x: fg.pcast(x, "model", to="varying")
    return Division(groups, specs, apart=apart, total=lambda x: fg.psum(x, "model"))


def compiled(way: str, count: int, size: Size, dtype: Any = jnp.float32) -> Any:
    """A compiled training step: the loss, and parameters minus their gradients; one sequence per device."""
    d = division(way, count, size)
    divided = P("data") if way == "tensor" else P(("data", "model"))

    def step(params: Any, tokens: Any) -> Any:
        mean = lambda p: fg.pmean(loss(p, tokens, size, d), ("data", "model")[: 2 - (way == "tensor")])
        value, gradients = fg.value_and_grad(mean)(params)
        return value, fg.trees.map(lambda p, g: p - 0.1 * g, params, gradients)

    mapped = shard_map(step, mesh=d.mesh, in_specs=(d.specs, divided), out_specs=(P(), d.specs))
    abstract = lambda shape, kind, spec: jax.ShapeDtypeStruct(shape, kind, sharding=NamedSharding(d.mesh, spec))
    params = {name: abstract(shape, dtype, d.specs[name]) for name, shape in size.shapes().items()}
    tokens = abstract((count, size.length + 1), jnp.int32, divided)
    return fg.jit(mapped, donate_argnums=0).lower(params, tokens).compile()


def formula(way: str, count: int, size: Size, itemsize: int = 4) -> int:
    """The bytes that a device sends in a step, computed from the sizes."""
    shapes = size.shapes()
    bytes_of = lambda names: itemsize * sum(_product(shapes[name]) for name in names)
    outer, layers = bytes_of(("embedding", "head")), bytes_of(set(shapes) - {"embedding", "head"})
    if way == "data":  # a sum of all gradients
        return 2 * (count - 1) * (outer + layers) // count
    if way == "sharded":  # each parameter gathered, those of layers again in the backward pass; each gradient scattered
        return (count - 1) * (2 * outer + 3 * layers) // count
    # Sums of a layer's results: two in the forward pass, one of them again in the recomputation, and two in the
    # backward
    # pass; and of gradients over the groups, of which a device has an eighth of those that are split.
    activations = itemsize * GROUP * size.length * size.wide * size.layers * 5
    divided = bytes_of((*OUTPUTS, *INPUTS))
    groups = count // GROUP
    gradients = 2 * (groups - 1) * (outer + layers - divided + divided // GROUP) // groups
    return 2 * (GROUP - 1) * activations // GROUP + gradients


def _product(shape: tuple[int, ...]) -> int:
    return shape[0] * _product(shape[1:]) if shape else 1


def row(way: str, count: int, size: Size) -> tuple[str, ...]:
    """A row of the table: the collectives, their counts, the bytes that a device sends by HLO and by the formula."""
    made = compiled(way, count, size)
    found = collectives(made)
    sent, expected = sum(c.sent for c in found), formula(way, count, size)
    params = sum(4 * _product(shape) for shape in size.shapes().values())
    held = made.memory_analysis().argument_size_in_bytes
    return (
        way, str(count), text_of(found), amount(sent), amount(expected), f"{sent / expected:.3f}",
        f"{amount(held)} ({held / params:.1%})",
    )  # fmt: skip


def text_of(found: list[Collective]) -> str:
    """The number of collectives of each kind."""
    counts: dict[str, int] = {}
    for c in found:
        counts[c.kind] = counts.get(c.kind, 0) + c.count
    return ", ".join(f"{n} {kind}" for kind, n in sorted(counts.items()))


def amount(size: float) -> str:
    """Bytes as text.

    Example:
        >>> amount(2_500_000)
        '2.5 MB'
    """
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.2f} GB"


HEADER = ("way", "devices", "exchanges a step", "sent by HLO", "by the formula", "ratio", "parameters on a device")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.scaling.pod", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--devices", default="8,64,512", help="how many, separated by commas")
    parser.add_argument("--size", choices=SIZES, default="7B")
    parser.add_argument("--rows-of", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.rows_of:
        virtual_devices(given.rows_of)
        for way in WAYS:
            print("| " + " | ".join(row(way, given.rows_of, SIZES[given.size])) + " |", flush=True)
        return
    print("| " + " | ".join(HEADER) + " |\n|" + "---|" * len(HEADER), flush=True)
    run = partial(subprocess.run, check=True)
    for count in given.devices.split(","):
        run([sys.executable, "-m", "benchmarks.scaling.pod", "--rows-of", count, "--size", given.size])


if __name__ == "__main__":
    main()
