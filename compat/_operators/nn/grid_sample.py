"""Image sampling at the positions of a grid: ``grid_sample``, ``affine_grid``."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import prod
from typing import Any

import numpy

from compat._core.operators.composite import composite
from compat._core.operators.op import Op, aten
from compat._core.tensor.registry import function
from compat._core.tensor.tensor import Tensor
from compat._core.types.dtype import dtype as Dtype
from compat._core.types.errors import lacks, size_text, warn
from funcgrad import numpy as np
from funcgrad.core import dtypes as fdtypes
from funcgrad.core.tracing import type_of
from funcgrad.primitives.indexing import IndexDims, gather
from funcgrad.primitives.shape import reshape

MODES = ("bilinear", "nearest", "bicubic")
PADDINGS = ("zeros", "border", "reflection")
Ints = tuple[int, ...]

# ---------------------------------------------------------------- coordinates


def _unnormalized(x: Any, size: int, align: bool) -> Any:
    """A coordinate from -1 to 1 as a pixel position; -1 and 1 are the centres (``align``) or the outer edges of the
    outermost pixels."""
    if align:
        return np.multiply(np.divide(np.add(x, 1), 2), size - 1)
    return np.divide(np.subtract(np.multiply(np.add(x, 1), size), 1), 2)


def _clipped(x: Any, size: int) -> Any:
    """A position clamped to the image, with derivative zero at its edges; NaN becomes 0."""
    last = type_of(x).dtype.type(size - 1)
    low = np.where(np.greater(x, 0), x, np.zeros((), type_of(x).dtype))
    return np.where(np.less(low, last), low, last)


def _reflected(x: Any, size: int, align: bool) -> Any:
    low, span = (0.0, float(size - 1)) if align else (-0.5, float(size))
    if not span:
        return np.multiply(x, 0)
    distance = np.subtract(x, low)
    distance = np.where(np.less(distance, 0), np.negative(distance), distance)
    flips = np.floor(np.divide(distance, span))
    extra = np.fmod(distance, span)
    even = np.equal(np.fmod(flips, 2), 0)
    return np.where(even, np.add(extra, low), np.add(np.subtract(span, extra), low))


def _padded(x: Any, size: int, padding: int, align: bool) -> Any:
    """A position as the padding mode maps it."""
    if padding == 1:
        return _clipped(x, size)
    return _clipped(_reflected(x, size, align), size) if padding == 2 else x


# ---------------------------------------------------------------- samples


def _elements(x: Any, positions: list[Any], sizes: Ints) -> Any:
    """The elements at integer positions, given per dimension, zero outside: ``(batch, channels, points)``."""
    inside, flat = None, None
    for position, size in zip(positions, sizes):
        within = np.logical_and(np.greater_equal(position, 0), np.less_equal(position, size - 1))
        inside = within if inside is None else np.logical_and(inside, within)
        index = np.astype(_clipped(position, size), fdtypes.int64)
        flat = index if flat is None else np.add(np.multiply(flat, size), index)
    batch, channels, _ = type_of(x).shape
    count = type_of(flat).shape[1]
    dims = IndexDims(window=(1,), collapsed=(2,), operand_batch=(0,), indices_batch=(0,), index_map=(2,))
    found = gather(
        x, reshape(flat, shape=(batch, count, 1)), dims=dims, sizes=(1, channels, 1), mode="promise", unique=False
    )
    return np.where(np.expand_dims(inside, 1), found, np.zeros((), type_of(found).dtype))


def _weighted_sum(x: Any, taps: list[list[tuple[Any, Any]]], sizes: Ints) -> Any:
    """The weighted sum over all combinations of taps, which are pairs of a position and its weight, per dimension."""
    total = None
    for combination in product(*taps):
        weight = combination[0][1]
        for _, other in combination[1:]:
            weight = np.multiply(weight, other)
        term = np.multiply(_elements(x, [position for position, _ in combination], sizes), np.expand_dims(weight, 1))
        total = term if total is None else np.add(total, term)
    return total


def _linear_taps(x: Any) -> list[tuple[Any, Any]]:
    left = np.floor(x)
    distance = np.subtract(x, left)
    return [(left, np.subtract(1, distance)), (np.add(left, 1), distance)]


def _cubic_taps(x: Any, size: int, padding: int, align: bool) -> list[tuple[Any, Any]]:
    left = np.floor(x)
    to_left = np.subtract(x, left)
    a = -0.75  # of Keys' cubic kernel

    def near(t: Any) -> Any:
        return np.add(np.multiply(np.multiply(np.subtract(np.multiply(a + 2, t), a + 3), t), t), 1)

    def far(t: Any) -> Any:
        return np.multiply(np.subtract(np.multiply(np.add(np.multiply(np.subtract(t, 5), t), 8), t), 4), a)

    to_right = np.subtract(1, to_left)
    weights = (far(np.add(to_left, 1)), near(to_left), near(to_right), far(np.add(to_right, 1)))
    return [(_padded(np.add(left, k - 1), size, padding, align), w) for k, w in enumerate(weights)]


def _sampled(input: Any, grid: Any, mode: int, padding: int, align: bool) -> Any:
    type = type_of(input)
    sizes, n = type.shape[2:], type.ndim - 2
    points_shape = type_of(grid).shape[1:-1]
    shape = (*type.shape[:2], *points_shape)
    if not prod(shape):
        return np.zeros(shape, type.dtype)
    kind = fdtypes.float32 if type.dtype.itemsize == 2 else type.dtype
    x = np.astype(reshape(input, shape=(*type.shape[:2], prod(sizes))), kind)
    points = np.astype(reshape(grid, shape=(type.shape[0], prod(points_shape), n)), kind)
    at = [_unnormalized(np.at(points)[:, :, n - 1 - d].get(), sizes[d], align) for d in range(n)]
    if mode != 2:
        at = [_padded(a, size, padding, align) for a, size in zip(at, sizes)]
    if mode == 1:
        found = _elements(x, [np.rint(a) for a in at], sizes)
    elif mode == 2:
        found = _weighted_sum(x, [_cubic_taps(a, size, padding, align) for a, size in zip(at, sizes)], sizes)
    else:
        found = _weighted_sum(x, [_linear_taps(a) for a in at], sizes)
    return np.astype(reshape(found, shape=shape), type.dtype)


# ---------------------------------------------------------------- grid_sample


def _check_sampler(input: Tensor, grid: Tensor) -> None:
    size, grid_size = tuple(input.shape), tuple(grid.shape)
    if not size or not grid_size or size[0] != grid_size[0]:
        raise RuntimeError(
            "grid_sampler(): expected grid and input to have same batch size, but got input with sizes "
            f"{size_text(size)} and grid with sizes {size_text(grid_size)}"
        )
    if grid_size[-1] != len(size) - 2:
        raise RuntimeError(
            f"grid_sampler(): expected grid to have size {len(size) - 2} in last dimension, but got grid with sizes "
            f"{size_text(grid_size)}"
        )
    empty = next((d for d in range(2, len(size)) if size[d] <= 0), None)
    if empty is not None:
        raise RuntimeError(
            "grid_sampler(): expected input to have non-empty spatial dimensions, but input has sizes "
            f"{size_text(size)} with dimension {empty} being empty"
        )


def _check_dims(n: int) -> Callable[..., None]:
    def check(input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool) -> None:
        _check_sampler(input, grid)
        if input.dim() != n + 2 or grid.dim() != n + 2:
            raise RuntimeError(
                f"grid_sampler(): expected {n + 2}D input and grid with same number of dimensions, but got input with "
                f"sizes {size_text(input.shape)} and grid with sizes {size_text(grid.shape)}"
            )
        if n == 3 and interpolation_mode == 2:
            raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
        if input.dtype is not grid.dtype:
            raise RuntimeError(f"expected scalar type {input.dtype.scalar_name} but found {grid.dtype.scalar_name}")
        if not input.dtype.is_floating_point:
            raise lacks(f"grid_sampler_{n}d_cpu{'_kernel_impl' if n == 2 else ''}", input.dtype)

    return check


def _declare(n: int) -> Op:
    def body(input, grid, interpolation_mode, padding_mode, align_corners):
        return _sampled(input, grid, interpolation_mode, padding_mode, align_corners)

    body.__doc__ = f"``grid_sample`` over {n} dimensions, with its modes as numbers."
    return aten(
        f"grid_sampler_{n}d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners)"
        " -> Tensor",
        node=f"GridSampler{n}DBackward0", saves="align_corners grid! input! interpolation_mode padding_mode",
        names=f"torch.grid_sampler_{n}d", check=_check_dims(n), out=False,
    )(body)  # fmt: skip


_SAMPLERS = {n: _declare(n) for n in (2, 3)}


@composite(
    "grid_sampler(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor",
    names="torch.grid_sampler",
)
def grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners):
    """``grid_sample`` with its modes as numbers."""
    _check_sampler(input, grid)
    if input.dim() not in (4, 5) or grid.dim() != input.dim():
        wanted = f"{input.dim()}D" if input.dim() == 4 else "4D or 5D"
        raise RuntimeError(
            f"grid_sampler(): expected {wanted} input and grid with same number of dimensions, but got input with "
            f"sizes {size_text(input.shape)} and grid with sizes {size_text(grid.shape)}"
        )
    return _SAMPLERS[input.dim() - 2].function(input, grid, interpolation_mode, padding_mode, bool(align_corners))


def _warn_align_corners() -> None:
    warn(
        "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Please specify "
        "align_corners=True if the old behavior is desired. See the documentation of grid_sample for details."
    )


@function("F.grid_sample")
def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """Samples images at the positions of a grid.

    Args:
        input: (batch, channels, height, width), or with a depth before the height.
        grid: (batch, ..., 2 or 3): x, y (and z) for each position of the result, from -1 to 1 across the image.
        mode: ``bilinear``, ``nearest`` or ``bicubic``.
        padding_mode: the values outside: ``zeros``, the nearest pixel (``border``), or reflections (``reflection``).
        align_corners: whether -1 and 1 are the centres of the outermost pixels rather than their outer edges.

    Raises:
        ValueError: for an unknown mode.
        RuntimeError: for sizes that do not match.

    Example:
        >>> x, grid = torch.tensor([[[[1.0, 3.0]]]]), torch.tensor([[[[0.0, 0.0]]]])
        >>> torch.nn.functional.grid_sample(x, grid, align_corners=False)
        tensor([[[[2.]]]])
    """
    if mode not in MODES:
        raise ValueError(
            f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'"
        )
    if padding_mode not in PADDINGS:
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but got: "
            f"'{padding_mode}'"
        )
    if align_corners is None:
        _warn_align_corners()
    return grid_sampler(input, grid, MODES.index(mode), PADDINGS.index(padding_mode), bool(align_corners))


# ---------------------------------------------------------------- affine_grid


def _steps(count: int, align: bool, dtype: Any) -> numpy.ndarray:
    """``count`` positions from -1 to 1; the outermost are at the ends (``align``) or half a step inside."""
    if count <= 1:
        return numpy.zeros(count, dtype)
    steps = numpy.linspace(-1, 1, count, dtype=dtype)
    return steps if align else (steps * ((count - 1) / count)).astype(dtype)


def _check_matrices(theta: Tensor, size: Ints, align_corners: bool) -> None:
    if theta.shape[0] != size[0]:
        n = len(size) - 2
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{size[0]}, {n + 1}] but got: "
            f"[{theta.shape[0]}, {n + 1}]."
        )


@aten(
    "affine_grid_generator(Tensor theta, SymInt[] size, bool align_corners) -> Tensor",
    node="AffineGridGeneratorBackward0", saves="align_corners size", names="torch.affine_grid_generator",
    check=_check_matrices, out=False,
)  # fmt: skip
def affine_grid_generator(theta, size, align_corners):
    """``affine_grid`` without its checks."""
    dtype = type_of(theta).dtype
    spatial = size[2:]
    n = len(spatial)
    positions = numpy.meshgrid(*(_steps(s, align_corners, dtype) for s in spatial), indexing="ij")
    base = numpy.stack([*positions[::-1], numpy.ones(spatial, dtype)], -1).reshape(prod(spatial), n + 1)
    grid = np.matmul(np.asarray(base), np.swapaxes(theta, 1, 2))
    return reshape(grid, shape=(size[0], *spatial, n))


def _check_theta(theta: Tensor, size: Ints) -> None:
    dtype: Dtype = theta.dtype
    if not dtype.is_floating_point:
        raise ValueError(f"Expected theta to have floating point type, but got {dtype}")
    n = len(size) - 2
    if n not in (2, 3):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. Got size "
            f"{size}."
        )
    if theta.dim() != 3 or tuple(theta.shape[-2:]) != (n, n + 1):
        raise ValueError(
            f"Expected a batch of {n}D affine matrices of shape Nx{n}x{n + 1} for size {size}. Got {theta.shape}."
        )


@function("F.affine_grid")
def affine_grid(theta: Tensor, size: Any, align_corners: bool | None = None) -> Tensor:
    """The sampling grids of affine maps, for ``grid_sample``.

    Args:
        theta: a batch of matrices, 2 by 3 or 3 by 4.
        size: the size of the images that ``grid_sample`` returns, with batch and channels.
        align_corners: as for ``grid_sample``.

    Raises:
        ValueError: for matrices of another shape, and for empty sizes.
        NotImplementedError: for images without two or three dimensions.

    Example:
        >>> torch.nn.functional.affine_grid(torch.eye(2, 3)[None], (1, 1, 1, 2), align_corners=False)
        tensor([[[[-0.5000,  0.0000],
                  [ 0.5000,  0.0000]]]])
    """
    _check_theta(theta, size)
    if align_corners is None:
        _warn_align_corners()
    if min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {size}")
    if align_corners and 1 in size[2:]:
        warn(
            "Since version 1.3.0, affine_grid behavior has changed for unit-size grids when align_corners=True. This "
            "is not an intended use case of affine_grid. See the documentation of affine_grid for details."
        )
    return affine_grid_generator.function(theta, tuple(size), bool(align_corners))
