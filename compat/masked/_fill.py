"""Masked-out elements are replaced by the identity of the operation: 0 for a sum, minus infinity for a maximum."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from compat._core.tensor.namespace import torch

__all__: list[str] = []


def _extreme(sign: int, name: str, dtype: Any) -> float:
    """The least value of a dtype, or for a sign of -1 the greatest."""
    if dtype.is_floating_point:
        return -sign * math.inf
    if dtype.is_complex or dtype is torch.bool:
        raise NotImplementedError(f"identity of {name} on {dtype} input")
    bounds = torch.iinfo(dtype)
    return bounds.min if sign > 0 else bounds.max


def _of_norm(name: str, dtype: Any, order: float) -> float:
    if order != -math.inf:
        return 0
    if not dtype.is_floating_point:
        raise AssertionError(f"input must be floating point, got {dtype}")
    return math.inf


_least: Callable[[str, Any], float] = lambda name, dtype: _extreme(1, name, dtype)
_greatest: Callable[[str, Any], float] = lambda name, dtype: _extreme(-1, name, dtype)

#: By the operation: its identity, from its name, the dtype and other arguments.
_NEUTRAL: dict[str, Callable[..., complex]] = {
    "sum": lambda name, dtype: 0,
    "prod": lambda name, dtype: 1,
    "amax": _least,
    "argmax": _least,
    "logaddexp": _least,
    "logsumexp": lambda name, dtype: complex(-math.inf, 0) if dtype.is_complex else _extreme(1, name, dtype),
    "amin": _greatest,
    "argmin": _greatest,
    "norm": _of_norm,
    "median": lambda name, dtype: math.nan,
}


def mask_like(input: Any, mask: Any) -> Any:
    """A mask of booleans in the size of ``input``.

    Raises:
        ValueError: for None.
        IndexError: for more dimensions than those of ``input``.
    """
    if mask is None:
        raise ValueError("_input_mask requires explicit mask")
    if mask.shape != input.shape:
        if mask.dim() > input.dim():
            raise IndexError(
                "_input_mask expected broadcastable mask (got mask dimensionality higher than of the input)"
            )
        mask = torch.broadcast_to(mask.clone(), input.shape)
    return mask.to(dtype=torch.bool)


def keep(name: str, input: Any, mask: Any, *more: Any) -> Any:
    """``input`` with masked-out elements replaced by the identity of the named operation.

    Args:
        mask: True for elements to keep; None keeps all.
        more: further parameters of the identity: the order of a norm.
    """
    if mask is None:
        return input
    mask = mask_like(input, mask)
    neutral = torch.tensor(_NEUTRAL[name](name, input.dtype, *more), dtype=input.dtype, device=input.device)
    return torch.where(mask, input, neutral)


def dimensions(dim: Any, ndim: int) -> tuple[int, ...]:
    """Dimensions counted from the left, in order; all of them for None and ``()``.

    Raises:
        RuntimeError: for one that occurs twice.
        IndexError: for a dimension out of range.
    """
    if dim is None or dim == ():
        return tuple(range(ndim))
    ndim = max(ndim, 1)
    found: list[int] = []
    for d in (dim,) if isinstance(dim, int) else dim:
        if d in found:
            raise RuntimeError(f"dim={d} appears multiple times in the list of dims")
        if not -ndim <= d < ndim:
            raise IndexError(f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {d})")
        found.append(d % ndim)
    return tuple(sorted(found))
