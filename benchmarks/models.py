"""The networks that several benchmarks share, written once for any NumPy-like module."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
    """The same arrays, as JAX's, which all contestants but HIPS autograd take."""
    import jax

    return jax.tree.map(jax.numpy.asarray, tree)


def mlp_forward(numpy: Any) -> Callable[[Parameters, Any], Any]:
    """A new function: the network's outputs, tanh after every layer."""

    def forward(parameters: Parameters, x: Any) -> Any:
        for w, b in parameters:
            x = numpy.tanh(x @ w + b)
        return x

    return forward


def mlp_loss(numpy: Any) -> Callable[[Parameters, Any, Any], Any]:
    """A new function: the mean squared error of the network."""

    def loss(parameters: Parameters, x: Any, y: Any) -> Any:
        for w, b in parameters:
            x = numpy.tanh(x @ w + b)
        return ((x - y) ** 2).mean()

    return loss
