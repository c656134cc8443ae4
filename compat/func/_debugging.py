"""Inspecting tensors inside transforms."""

from __future__ import annotations

from typing import Any

from compat._core.tensor.tensor import Tensor
from compat._core.tensor.tracing import tensor_of
from compat._core.transforms import vmap_checks


def debug_unwrap(tensor: Tensor, *, recurse: bool = True) -> Tensor:
    """The value that a transform wraps: the batch under ``vmap``, the primal under ``grad`` and ``jvp``.

    For inspection only: the transform does not apply to operations on it.

    Args:
        recurse: whether to unwrap all transforms, rather than only the innermost.

    Example:
        >>> shapes = []
        >>> def f(x):
        ...     shapes.append((x.shape, torch.func.debug_unwrap(x).shape))
        ...     return x
        >>> _ = torch.vmap(f)(torch.ones(2, 3))
        >>> shapes
        [(torch.Size([3]), torch.Size([2, 3]))]
    """
    x: Any = tensor._storage_.buffer
    if recurse:
        x = vmap_checks.inmost(x)
    elif isinstance(x, vmap_checks.TRACED):
        x = vmap_checks.wrapped(x)
    return tensor if x is tensor._storage_.buffer else tensor_of(x)
