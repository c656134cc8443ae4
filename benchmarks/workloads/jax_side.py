"""Shared by the steps written by hand in JAX: the loop around them, their optimizers, and a few layers.

It is the target, so it is idiomatic JAX: the whole step is one ``jax.jit`` with donated state, images have their
channels last, and only the loss is returned to Python.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import cycle
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

Tree = Any


class Optimizer(NamedTuple):
    """Two pure functions: from parameters to the state, and from parameters, gradients and state to new ones."""

    init: Callable[[Tree], Tree]
    update: Callable[[Tree, Tree, Tree], tuple[Tree, Tree]]


def adam(lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8, decay: float = 0) -> Optimizer:
    """Adam; with ``decay``, decoupled from the gradient, AdamW."""

    def init(parameters: Tree) -> Tree:
        zeros = lambda: jax.tree.map(jnp.zeros_like, parameters)
        return zeros(), zeros(), jnp.zeros((), jnp.float32)

    def update(parameters: Tree, gradients: Tree, state: Tree) -> tuple[Tree, Tree]:
        first, second, step = state
        step = step + 1
        first = jax.tree.map(lambda m, g: betas[0] * m + (1 - betas[0]) * g, first, gradients)
        second = jax.tree.map(lambda v, g: betas[1] * v + (1 - betas[1]) * g * g, second, gradients)
        c1, c2 = 1 - betas[0] ** step, 1 - betas[1] ** step

        def moved(p: Any, m: Any, v: Any) -> Any:
            return p * (1 - lr * decay) - lr * (m / c1) / (jnp.sqrt(v / c2) + eps)

        return jax.tree.map(moved, parameters, first, second), (first, second, step)

    return Optimizer(init, update)


def sgd(lr: float, momentum: float) -> Optimizer:
    """Gradient descent with momentum, whose first velocity is the gradient."""

    def init(parameters: Tree) -> Tree:
        return jax.tree.map(jnp.zeros_like, parameters)

    def update(parameters: Tree, gradients: Tree, velocity: Tree) -> tuple[Tree, Tree]:
        velocity = jax.tree.map(lambda v, g: momentum * v + g, velocity, gradients)
        return jax.tree.map(lambda p, v: p - lr * v, parameters, velocity), velocity

    return Optimizer(init, update)


class JaxTraining:
    """A step written by hand, ready to run. A call takes the next batch and returns the loss.

    Args:
        step: ``step(state, *batch)`` returns the new state and the loss.
        state: the first state.
        batches: the batches of the steps, in turn.
    """

    def __init__(self, step: Callable[..., tuple[Tree, Any]], state: Tree, batches: Sequence[Sequence[Any]]) -> None:
        self.step = jax.jit(step, donate_argnums=0)
        self.state = jax.tree.map(jnp.asarray, state)
        self.batches = [tuple(map(jnp.asarray, batch)) for batch in batches]
        self._next = cycle(self.batches)

    def __call__(self) -> Any:
        self.state, loss = self.step(self.state, *next(self._next))
        return loss

    def cost(self) -> dict[str, float]:
        """What XLA counts of one step: floating-point operations, and bytes read and written."""
        counted = self.step.lower(self.state, *self.batches[0]).compile().cost_analysis()
        counted = counted[0] if isinstance(counted, list) else counted or {}
        return {"flops": float(counted.get("flops", 0)), "bytes": float(counted.get("bytes accessed", 0))}


def supervised(
    loss: Callable[..., Any], parameters: Tree, optimizer: Optimizer, batches: Sequence[Sequence[Any]]
) -> JaxTraining:
    """The usual step: the gradient of ``loss(parameters, *batch)``, then the optimizer."""

    def step(state: Tree, *batch: Any) -> tuple[Tree, Any]:
        parameters, moments = state
        value, gradients = jax.value_and_grad(loss)(parameters, *batch)
        return optimizer.update(parameters, gradients, moments), value

    parameters = jax.tree.map(jnp.asarray, parameters)
    return JaxTraining(step, (parameters, optimizer.init(parameters)), batches)


# ---------------------------------------------------------------- layers


def dense(parameters: Tree, name: str, x: Any) -> Any:
    """``Linear`` with PyTorch's weight, one row per output."""
    y = x @ parameters[f"{name}.weight"].T
    return y + parameters[f"{name}.bias"] if f"{name}.bias" in parameters else y


def convolution(x: Any, kernel: Any, stride: int = 1, padding: int = 0) -> Any:
    """A convolution of images with channels last; the kernel's axes are height, width, in, out."""
    around = [(padding, padding)] * 2
    return jax.lax.conv_general_dilated(x, kernel, (stride, stride), around, dimension_numbers=("NHWC", "HWIO", "NHWC"))


def max_pool(x: Any) -> Any:
    """The largest of each 2 by 2 pixels, channels last."""
    n, h, w, c = x.shape
    return x.reshape(n, h // 2, 2, w // 2, 2, c).max((2, 4))


def cross_entropy(logits: Any, labels: Any) -> Any:
    """The mean negative log probability of the labels."""
    picked = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=1)
    return -picked.mean()


def layer_norm(parameters: Tree, name: str, x: Any, eps: float = 1e-5) -> Any:
    """Over the last axis, then scaled and shifted."""
    centred = x - x.mean(-1, keepdims=True)
    normal = centred * jax.lax.rsqrt((centred**2).mean(-1, keepdims=True) + eps)
    return normal * parameters[f"{name}.weight"] + parameters[f"{name}.bias"]


def channels_last(kernel: Any) -> Any:
    """PyTorch's convolution weight (out, in, height, width) with the axes of ``convolution``."""
    return kernel.transpose(2, 3, 1, 0)
