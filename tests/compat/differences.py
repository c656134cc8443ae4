"""Finite differences, to compare derivatives with."""

from collections.abc import Callable
from typing import Any

import numpy as np

# Central differences in float64: the error is about step**2 + 1e-16 / step.
STEP = 1e-5
TOLERANCE = 1e-6


def gradient(torch: Any, f: Callable[[Any], Any], x: np.ndarray, *, second: bool = False) -> np.ndarray:
    """compat's gradient of a weighted sum of ``f(x)``; with ``second``, of a weighted sum of that gradient."""
    leaf = torch.tensor(x).requires_grad_()
    out = _weighted(torch, f(leaf))
    (grad,) = torch.autograd.grad(out, leaf, create_graph=second)
    if second:
        if not grad.requires_grad:  # linear
            return np.zeros_like(x)
        (grad,) = torch.autograd.grad(_weighted(torch, grad), leaf)
    return grad.numpy()


def _weighted(torch: Any, t: Any) -> Any:
    return (t * torch.tensor(np.cos(np.arange(t.numel(), dtype=np.float64)).reshape(tuple(t.shape)))).sum()


def assert_derivatives(torch: Any, f: Callable[[Any], Any], x: np.ndarray) -> None:
    """First and second derivatives of ``f`` agree with finite differences of values and of gradients."""
    direction = np.sin(np.arange(x.size, dtype=np.float64) + 0.5).reshape(x.shape)

    def slope(g: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        return (g(x + STEP * direction) - g(x - STEP * direction)) / (2 * STEP)

    value = slope(lambda v: np.asarray(_weighted(torch, f(torch.tensor(v))).item()))
    np.testing.assert_allclose((gradient(torch, f, x) * direction).sum(), value, rtol=TOLERANCE, atol=TOLERANCE)
    weights = np.cos(np.arange(x.size, dtype=np.float64)).reshape(x.shape)
    change = slope(lambda v: (gradient(torch, f, v) * weights).sum())
    found = (gradient(torch, f, x, second=True) * direction).sum()
    np.testing.assert_allclose(found, change, rtol=TOLERANCE, atol=TOLERANCE)
