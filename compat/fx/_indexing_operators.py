"""Gathers, scatters and dynamic slices of funcgrad as operators of ``aten`` (``compat.fx._primitive_operators``).

All are an index (``aten.index``) or an ``index_put`` with the coordinates of each element.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compat._core.tensor.namespace import torch

__all__ = ["dynamic_slice", "dynamic_update_slice", "gather", "scatter"]


def _along(row: Any, axis: int, ndim: int) -> Any:
    """A vector along one of ``ndim`` axes."""
    view = [1] * ndim
    view[axis] = -1
    return row.reshape(view)


def _coordinates(shape: Sequence[int], indices: Any, dims: Any, sizes: Sequence[int], mode: str) -> tuple[list, Any]:
    """For each axis of the operand the coordinates of the result's elements; and where windows are inside, or None."""
    rows = [d for d in range(indices.ndim - 1 + len(dims.window)) if d not in dims.window]
    ndim = len(rows) + len(dims.window)
    inside = dict(zip(dims.kept(len(shape)), dims.window))
    view = [1] * ndim
    for d, n in zip(rows, indices.shape):
        view[d] = n
    valid = None
    found = []
    for d, n in enumerate(shape):
        here: Any = None
        if d in dims.index_map:
            start = indices[..., dims.index_map.index(d)].to(torch.int64)
            last = n - sizes[d]
            if mode == "clip":
                start = start.clamp(0, last)
            elif mode == "fill":
                fits = ((start >= 0) & (start <= last)).reshape(view)
                valid = fits if valid is None else valid & fits
                start = start.clamp(0, max(last, 0))
            here = start.reshape(view)
        elif d in dims.operand_batch:
            axis = rows[dims.indices_batch[dims.operand_batch.index(d)]]
            here = _along(torch.arange(n), axis, ndim)
        if d in inside and (here is None or sizes[d] > 1):
            offset = _along(torch.arange(sizes[d]), inside[d], ndim)
            here = offset if here is None else here + offset
        found.append(torch.zeros(view, dtype=torch.int64) if here is None else here)
    return _whole_axes_left_out(found, shape, indices, dims, sizes), valid


def _whole_axes_left_out(found: list, shape: Sequence[int], indices: Any, dims: Any, sizes: Sequence[int]) -> list:
    """Coordinates without those of trailing axes that windows take whole, as for the rows of an embedding."""
    ndim, leading = len(shape), len(shape)
    while leading and leading - 1 not in (*dims.index_map, *dims.operand_batch, *dims.collapsed):
        if sizes[leading - 1] != shape[leading - 1]:
            break
        leading -= 1
    whole = ndim - leading
    total = indices.ndim - 1 + len(dims.window)
    if not leading or tuple(dims.window[len(dims.window) - whole :]) != tuple(range(total - whole, total)):
        return found
    return [t.reshape(t.shape[: total - whole]) for t in found[:leading]]


def _update_sizes(x: Sequence[int], updates: Sequence[int], dims: Any) -> list[int]:
    inside = dict(zip(dims.kept(len(x)), (updates[d] for d in dims.window)))
    return [inside.get(d, 1) for d in range(len(x))]


def _index(x: Any, coordinates: list) -> Any:
    return torch.ops.aten.index.Tensor(x, coordinates)


def gather(x: Any, indices: Any, *, dims: Any, sizes: Sequence[int], mode: str, unique: bool) -> Any:
    """The elements of windows; zeros for windows outside with ``mode="fill"``."""
    t = x.tensor
    if 0 in t.shape:
        rows, inside = iter(indices.type.shape[:-1]), iter(sizes[d] for d in dims.kept(t.ndim))
        ndim = indices.type.ndim - 1 + len(dims.window)
        shape = [next(inside) if d in dims.window else next(rows) for d in range(ndim)]
        return torch.full(shape, 0, dtype=t.dtype, device=t.device)
    coordinates, valid = _coordinates(t.shape, indices.tensor, dims, sizes, mode)
    found = _index(t, coordinates)
    return found if valid is None else torch.where(valid, found, 0)


def scatter(x: Any, indices: Any, updates: Any, *, dims: Any, mode: str, unique: bool, accumulate: bool = False) -> Any:
    """``x`` with windows set to ``updates``, or with them added; those outside are dropped with ``mode="fill"``."""
    t, new = x.tensor, updates.tensor
    if 0 in t.shape or 0 in new.shape:
        return t
    sizes = _update_sizes(t.shape, new.shape, dims)
    coordinates, valid = _coordinates(t.shape, indices.tensor, dims, sizes, mode)
    if valid is not None and not accumulate:
        # A dropped window keeps its elements: an additional row of the first axis takes what is written there.
        t = torch.cat([t, t[:1]])
        coordinates[0] = torch.where(valid.reshape(valid.shape[: coordinates[0].ndim]), coordinates[0], t.shape[0] - 1)
        return torch.ops.aten.index_put.default(t, coordinates, new)[:-1]
    if valid is not None:
        new = torch.where(valid, new, 0)
    return torch.ops.aten.index_put.default(t, coordinates, new, accumulate)


def _starts(x: Any, starts: Any, sizes: Sequence[int]) -> list[Any] | None:
    """Constant starts, moved inside."""
    fixed = starts.constant
    if fixed is None:
        return None
    return [min(max(int(a), 0), n - s) for a, n, s in zip(fixed, x.type.shape, sizes)]


def _window(x: Any, starts: Any, sizes: Sequence[int]) -> list[Any]:
    ndim = len(sizes)
    bounds = zip(x.type.shape, sizes)
    return [
        _along(starts.tensor[d].clamp(0, n - s) + torch.arange(s), d, ndim) for d, (n, s) in enumerate(bounds)
    ]  # fmt: skip


def dynamic_slice(x: Any, starts: Any, *, sizes: Sequence[int]) -> Any:
    """A window at positions that may be computed."""
    fixed = _starts(x, starts, sizes)
    t = x.tensor
    if fixed is None:
        return _index(t, _window(x, starts, sizes))
    for d, (a, s) in enumerate(zip(fixed, sizes)):
        t = t if s == t.shape[d] else torch.ops.aten.slice.Tensor(t, d, a, a + s, 1)
    return t


def dynamic_update_slice(x: Any, starts: Any, update: Any) -> Any:
    """``x`` with a window replaced."""
    sizes = update.type.shape
    fixed = _starts(x, starts, sizes)
    if fixed is None:
        return torch.ops.aten.index_put.default(x.tensor, _window(x, starts, sizes), update.tensor)
    cut = [d for d, s in enumerate(sizes) if s != x.type.shape[d]]
    if not cut:
        return update.tensor
    t, parts = x.tensor, []
    for d in cut:  # from outside to inside, and back
        parts.append((t, d))
        t = torch.ops.aten.slice.Tensor(t, d, fixed[d], fixed[d] + sizes[d], 1)
    found = update.tensor
    for outer, d in reversed(parts):
        found = torch.slice_scatter(outer, found, d, fixed[d], fixed[d] + sizes[d], 1)
    return found
