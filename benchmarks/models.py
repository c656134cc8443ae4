"""The networks that several benchmarks share, written for any NumPy-like module."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

Parameters = list[tuple[Any, Any]]


def mlp_arrays(sizes: Sequence[int], batch: int, seed: int = 0) -> tuple[Parameters, Any, Any]:
    """Weights and biases of a dense network with layers of these sizes, a batch of inputs and one of targets."""
    random = np.random.default_rng(seed)

    def normal(*shape: int) -> np.ndarray:
        return random.normal(size=shape).astype(np.float32)

    parameters = [(normal(m, n) / np.float32(m**0.5), np.zeros(n, np.float32)) for m, n in pairwise(sizes)]
    return parameters, normal(batch, sizes[0]), normal(batch, sizes[-1])


def on_device(tree: Any) -> Any:
    """The same arrays as JAX arrays, which all contestants except HIPS autograd accept."""
    import jax

    return jax.tree.map(jax.numpy.asarray, tree)


def mlp_forward(numpy: Any) -> Callable[[Parameters, Any], Any]:
    """A new function that computes the network's outputs, with tanh after every layer."""

    def forward(parameters: Parameters, x: Any) -> Any:
        for w, b in parameters:
            x = numpy.tanh(x @ w + b)
        return x

    return forward


def mlp_loss(numpy: Any) -> Callable[[Parameters, Any, Any], Any]:
    """A new function that computes the mean squared error of the network."""

    def loss(parameters: Parameters, x: Any, y: Any) -> Any:
        for w, b in parameters:
            x = numpy.tanh(x @ w + b)
        return ((x - y) ** 2).mean()

    return loss


# ---------------------------------------------------------------- differences between libraries


@dataclass(frozen=True)
class Library:
    """The functions of a library that the networks use.

    Attributes:
        numpy: its NumPy.
        conv: of images (batch, channels, height, width) with kernels, padded to keep the size.
        max_pool: of windows of two by two.
    """

    numpy: Any
    conv: Callable[[Any, Any], Any]
    max_pool: Callable[[Any], Any]


def library(name: str) -> Library:
    """``funcgrad`` or ``jax``, as their users write networks."""
    if name == "funcgrad":
        import funcgrad.numpy
        from funcgrad import nn

        return Library(funcgrad.numpy, partial(nn.conv, padding="same"), lambda x: nn.max_pool(x, 2))
    from jax import lax
    from jax import numpy as jnp

    windows = (1, 1, 2, 2)
    return Library(
        jnp,
        lambda x, w: lax.conv(x, w, (1, 1), "SAME"),
        lambda x: lax.reduce_window(x, -jnp.inf, lax.max, windows, windows, "VALID"),
    )


def _cross_entropy(numpy: Any, logits: Any, targets: Any) -> Any:
    shifted = logits - logits.max(axis=-1, keepdims=True)
    chosen = numpy.take_along_axis(shifted, targets[..., None], axis=-1)[..., 0]
    return (numpy.log(numpy.exp(shifted).sum(axis=-1)) - chosen).mean()


# ---------------------------------------------------------------- a transformer


@dataclass(frozen=True)
class TransformerSize:
    """The size of a transformer, and of its batch."""

    layers: int = 4
    width: int = 64
    heads: int = 4
    vocabulary: int = 65
    length: int = 64
    batch: int = 8


def transformer_arrays(size: TransformerSize) -> tuple[Any, Any, Any]:
    """Parameters of a character model with causal attention, a batch of characters and of the next ones."""
    random, d = np.random.default_rng(0), size.width

    def normal(*shape: int) -> np.ndarray:
        return random.normal(size=shape).astype(np.float32) / np.float32(shape[0] ** 0.5)

    def block() -> dict[str, np.ndarray]:
        ones, zeros = np.ones(d, np.float32), np.zeros(d, np.float32)
        return {
            "scale1": ones, "shift1": zeros, "qkv": normal(d, 3 * d), "out": normal(d, d),
            "scale2": ones, "shift2": zeros, "up": normal(d, 4 * d), "down": normal(4 * d, d),
        }  # fmt: skip

    parameters = {
        "tokens": normal(size.vocabulary, d),
        "places": normal(size.length, d),
        "blocks": [block() for _ in range(size.layers)],
        "head": normal(d, size.vocabulary),
    }
    text = random.integers(0, size.vocabulary, (size.batch, size.length + 1))
    return parameters, text[:, :-1], text[:, 1:]


def transformer_loss(lib: Library, size: TransformerSize) -> Callable[[Any, Any, Any], Any]:
    """A new function that computes the mean cross entropy of the next character."""
    numpy, n, depth = lib.numpy, size.length, size.width // size.heads

    def norm(x: Any, scale: Any, shift: Any) -> Any:
        centred = x - x.mean(axis=-1, keepdims=True)
        return centred / numpy.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5) * scale + shift

    def attention(x: Any, block: Any) -> Any:
        q, k, v = (
            part.reshape(-1, n, size.heads, depth).transpose(0, 2, 1, 3)
            for part in numpy.split(x @ block["qkv"], 3, axis=-1)
        )
        scores = q @ k.transpose(0, 1, 3, 2) / np.float32(depth**0.5)
        scores = numpy.where(np.tri(n, dtype=bool), scores, np.float32(-1e9))
        weights = numpy.exp(scores - scores.max(axis=-1, keepdims=True))
        mixed = (weights / weights.sum(axis=-1, keepdims=True)) @ v
        return mixed.transpose(0, 2, 1, 3).reshape(x.shape) @ block["out"]

    def gelu(x: Any) -> Any:
        return 0.5 * x * (1 + numpy.tanh(0.7978845608 * (x + 0.044715 * x**3)))

    def loss(p: Any, text: Any, following: Any) -> Any:
        x = p["tokens"][text] + p["places"]
        for block in p["blocks"]:
            x = x + attention(norm(x, block["scale1"], block["shift1"]), block)
            x = x + gelu(norm(x, block["scale2"], block["shift2"]) @ block["up"]) @ block["down"]
        return _cross_entropy(numpy, x @ p["head"], following)

    return loss


# ---------------------------------------------------------------- a convolutional network


def cnn_arrays(batch: int, side: int = 28) -> tuple[list[np.ndarray], Any, Any]:
    """Parameters of two convolutions and two dense layers, a batch of images with one channel, and their classes."""
    random = np.random.default_rng(0)

    def normal(*shape: int, fan: int) -> np.ndarray:
        return random.normal(size=shape).astype(np.float32) / np.float32(fan**0.5)

    features = 32 * (side // 4) ** 2
    parameters = [
        normal(16, 1, 3, 3, fan=9), normal(32, 16, 3, 3, fan=144),
        normal(features, 128, fan=features), normal(128, 10, fan=128),
    ]  # fmt: skip
    return parameters, normal(batch, 1, side, side, fan=1), random.integers(0, 10, batch)


def cnn_loss(lib: Library) -> Callable[[Any, Any, Any], Any]:
    """A new function that computes the mean cross entropy of the images' classes."""
    numpy = lib.numpy

    def loss(parameters: Any, x: Any, classes: Any) -> Any:
        first, second, dense, head = parameters
        for kernels in (first, second):
            x = lib.max_pool(numpy.maximum(lib.conv(x, kernels), 0))
        x = numpy.maximum(x.reshape(len(x), -1) @ dense, 0)
        return _cross_entropy(numpy, x @ head, classes)

    return loss
