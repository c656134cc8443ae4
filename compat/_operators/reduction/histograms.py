"""``histogram`` and ``histogramdd``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from compat._core.operators.call_errors import wrong_call
from compat._core.operators.composite import composite
from compat._core.operators.declaration import Gradients
from compat._core.operators.op import aten
from compat._core.operators.out import resize_out
from compat._core.tensor.tensor import Tensor
from compat._core.types.errors import cpp_name, lacks, size_text
from compat._core.types.structseq import named_result
from compat._operators.create.ranges import linspace
from funcgrad import numpy as np
from funcgrad.core.tracing import type_of
from funcgrad.primitives.shape import reshape


@aten(
    "histogram.bin_ct(Tensor self, Tensor weight, Tensor[] edges) -> Tensor",
    names="",
    gradients=Gradients(undefined=True),
)
def _count(input, weight, edges):
    """The sum of the weights of the rows of ``input`` in each bin.

    Args:
        input: (N, D).
        weight: (N,), of the same dtype.
        edges: for each of the D dimensions the sorted edges of its bins.
    """
    sizes = [type_of(e).shape[0] - 1 for e in edges]
    dtype = type_of(input).dtype
    if not edges:  # no bins
        return np.zeros((), dtype)
    flat_bin: Any = 0
    inside: Any = np.ones(type_of(weight).shape, bool)
    for d, (ends, n) in enumerate(zip(edges, sizes)):
        x = np.at(input)[:, d].get()
        inside = np.logical_and(inside, np.logical_and(x >= np.at(ends)[0].get(), x <= np.at(ends)[n].get()))
        # The last bin includes both its edges.
        bin = np.clip(np.searchsorted(ends, x, side="right") - 1, 0, max(n - 1, 0))
        flat_bin = np.add(np.multiply(flat_bin, n), bin)
    weights = np.where(inside, weight, np.zeros((), dtype))
    total = math.prod(sizes)
    hist = np.at(np.zeros((total,), dtype))[flat_bin].add(weights) if total else np.zeros((0,), dtype)
    return reshape(hist, shape=tuple(sizes))


def _check_input(rows: Tensor, weight: Tensor | None, size: Sequence[int]) -> None:
    if not rows.dtype.is_floating_point or rows.dtype.itemsize < 4:
        raise lacks("histogramdd", rows.dtype)
    if weight is None:
        return
    if weight.dtype is not rows.dtype:
        raise RuntimeError(
            "torch.histogramdd: if weight tensor is provided, input tensor and weight tensor should have the same "
            f"dtype, but got input({cpp_name(rows.dtype)}), and weight({cpp_name(weight.dtype)})"
        )
    if tuple(weight.shape) != tuple(size[:-1]):
        raise RuntimeError(
            "torch.histogramdd: if weight tensor is provided it should have the same shape as the input tensor "
            f"excluding its innermost dimension, but got input with shape {size_text(size)} and weight with shape "
            f"{size_text(weight.shape)}"
        )


def _check_edges(rows: Tensor, bins: Sequence[Tensor]) -> None:
    for d, ends in enumerate(bins):
        if ends.dtype is not rows.dtype:
            raise RuntimeError(
                "torch.histogramdd: input tensor and bins tensors should have the same dtype, but got input with dtype "
                f"{cpp_name(rows.dtype)} and bins for dimension {d} with dtype {cpp_name(ends.dtype)}"
            )
        if ends.dim() != 1:
            raise RuntimeError(
                f"torch.histogramdd: bins tensor should have one dimension, but got {ends.dim()} dimensions in the "
                f"bins tensor for dimension {d}"
            )
        if not ends.numel():
            raise RuntimeError(
                "torch.histogramdd: bins tensor should have at least 1 element, but got 0 elements in the bins tensor "
                f"for dimension {d}"
            )


def _even_edges(rows: Tensor, bins: Sequence[int], range: Sequence[float] | None) -> list[Tensor]:
    """The edges of bins of equal width; their range is by default from the smallest to the largest element."""
    for d, n in enumerate(bins):
        if n <= 0:
            raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {n} for dimension {d}")
    count = rows.shape[1]
    if range is not None and len(range) != 2 * count:
        raise RuntimeError(
            f"torch.histogramdd: for a {count}-dimensional histogram range should have {2 * count} elements, but got "
            f"{len(range)}"
        )
    if range is not None:
        ends = list(zip(range[::2], range[1::2]))
    elif rows.numel():
        ends = list(zip(rows.amin(0).tolist(), rows.amax(0).tolist()))
    else:
        ends = [(0.0, 1.0)] * count
    return [
        linspace(*_nonempty(d, low, high), n + 1, dtype=rows.dtype)
        for d, ((low, high), n) in enumerate(zip(ends, bins))
    ]


def _nonempty(d: int, low: float, high: float) -> tuple[float, float]:
    """The range of dimension ``d``, widened by one half at both ends if it is empty.

    Raises:
        RuntimeError: for an infinite range, and if ``low`` exceeds ``high``.
    """
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuntimeError(f"torch.histogramdd: dimension {d}'s range [{low:g}, {high:g}] is not finite")
    if low > high:
        raise RuntimeError(
            f"torch.histogramdd: min should not exceed max, but got min {low:g} max {high:g} for dimension {d}"
        )
    return (low - 0.5, high + 0.5) if low == high else (low, high)


def _histogram(
    rows: Tensor, size: Sequence[int], bins: Sequence[Any], range: Any, weight: Tensor | None, density: bool
) -> tuple[Tensor, list[Tensor]]:
    """The histogram of rows, and its edges; ``size`` is the size of the input that the rows are from."""
    _check_input(rows, weight, size)
    if bins and isinstance(bins[0], Tensor):
        _check_edges(rows, bins)
        edges = list(bins)
    else:
        edges = _even_edges(rows.detach(), bins, range)
    weights = rows.new_ones(rows.shape[0]) if weight is None else weight.reshape(-1)
    hist = _count.function(rows, weights, edges)
    if density:
        hist = hist / hist.sum()
        for d, ends in enumerate(edges):
            hist = hist / ends.diff().reshape([-1 if k == d else 1 for k, _ in enumerate(edges)])
    return hist, edges


def _check_types(input: Any, bins: Any, given: dict[str, Any]) -> None:
    """Checks the types of arguments, and that there is no ``range`` if ``bins`` are the edges."""
    types = {"range": tuple | list, "weight": Tensor, "out": tuple | list}
    is_count = hasattr(bins, "__index__") and not isinstance(bins, (bool, Tensor))
    is_edges = isinstance(bins, Tensor) and "range" not in given
    valid = all(isinstance(given[name], kind) for name, kind in types.items() if name in given)
    if not (isinstance(input, Tensor) and (is_count or is_edges) and valid):
        raise wrong_call("torch.histogram", input, bins, **given)


@composite(
    "histogram.bins_tensor(Tensor self, Tensor bins, *, Tensor? weight=None, bool density=False) -> (Tensor hist, "
    "Tensor bin_edges)",
    "histogram.bin_ct(Tensor self, int bins=100, *, float[]? range=None, Tensor? weight=None, "
    "bool density=False) -> (Tensor hist, Tensor bin_edges)",
)
def histogram(input, bins=100, *, range=None, weight=None, density=False, out=None):
    """The number of elements in each bin.

    Args:
        bins: the number of bins of equal width, or the sorted edges of the bins.
        range: the outer edges of the bins; by default the smallest and the largest element.
        weight: the weight of each element, of the size of ``input``.
        density: whether to divide by the sum and by the width of the bins, so that the integral is one.
        out: two tensors to write the results into.

    Returns:
        ``hist`` and ``bin_edges``.

    Raises:
        RuntimeError: for less than one bin, infinite ranges, and sizes and dtypes that do not match.

    Example:
        >>> torch.histogram(torch.tensor([1.0, 2.0, 1.0]), 4, range=(0.0, 3.0)).hist
        tensor([0., 2., 1., 0.])
    """
    named = {"range": range, "weight": weight, "density": density or None, "out": out}
    _check_types(input, bins, {k: v for k, v in named.items() if v is not None})
    given = [bins] if isinstance(bins, Tensor) else [int(bins)]
    rows = input.reshape(-1, 1)
    flat = None if weight is None else weight.reshape(-1) if weight.shape == input.shape else weight
    hist, (edges,) = _histogram(rows, (input.numel(), 1), given, range, flat, density)
    if out is None:
        return named_result("histogram", ("hist", "bin_edges"))([hist, edges])
    for result, target, suffix in zip(("hist", "bin_edges"), out, ("", " for dimension 0"), strict=True):
        if target.dtype is not input.dtype:
            raise RuntimeError(
                f"torch.histogram: input tensor and {result} tensor should have the same "
                f"dtype, but got input {cpp_name(input.dtype)} and {result} {cpp_name(target.dtype)}{suffix}"
            )
    for target, made in zip(out, (hist, edges), strict=True):
        resize_out(target, tuple(made.shape))
        target.copy_(made)
    return named_result("histogram_out", ("hist", "bin_edges"))(list(out))


@composite(
    "histogramdd.int_bins(Tensor self, int bins, float[]? range=None, Tensor? weight=None, "
    "bool density=False) -> (Tensor hist, Tensor[] bin_edges)",
    "histogramdd(Tensor self, int[] bins, float[]? range=None, Tensor? weight=None, "
    "bool density=False) -> (Tensor hist, Tensor[] bin_edges)",
    "histogramdd.TensorList_bins(Tensor self, Tensor[] bins, float[]? range=None, Tensor? weight=None, "
    "bool density=False) -> (Tensor hist, Tensor[] bin_edges)",
    names="torch.histogramdd", errors="before",
)  # fmt: skip
def histogramdd(input, bins, range=None, weight=None, density=False):
    """The number of vectors in each bin of a grid.

    Args:
        input: vectors along the last dimension, D long.
        bins: for each of the D dimensions the number of bins of equal width, or their edges; or one number for all.
        range: the outer edges of all dimensions, flattened; by default the smallest and the largest elements.
        weight: the weight of each vector.
        density: whether to divide by the sum and by the volume of the bins.

    Returns:
        ``hist``, of D dimensions, and ``bin_edges``, D vectors.

    Raises:
        RuntimeError: as for ``histogram``.

    Example:
        >>> points = torch.tensor([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]])
        >>> torch.histogramdd(points, [2, 2]).hist
        tensor([[0., 1.],
                [1., 1.]])
    """
    if input.dim() < 2:
        raise RuntimeError("torch.histogramdd: input tensor should have at least 2 dimensions")
    count = input.shape[-1]
    given = [bins] * count if isinstance(bins, int) else list(bins)
    if len(given) != count:
        raise RuntimeError("histogramdd: The size of bins must be equal to the innermost dimension of the input.")
    rows = input.reshape(math.prod(input.shape[:-1]), count)
    hist, edges = _histogram(rows, tuple(input.shape), given, range, weight, density)
    return named_result("histogramdd", ("hist", "bin_edges"))([hist, tuple(edges)])
