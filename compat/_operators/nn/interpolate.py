"""Image resizing: each element of the result is a weighted sum of a few input elements, axis by axis.

Along one axis a mode is a table: for each position of the result the positions of the input (the *taps*) and their
weights. The gradient uses the transposed table instead of a scatter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any, NamedTuple

import numpy

from compat._core.operators.declaration import Arguments
from compat._core.operators.op import Op, aten
from compat._core.tensor.registry import function, names_of
from compat._core.tensor.tensor import Tensor
from compat._core.types import dtype as dtypes
from compat._core.types.errors import lacks, size_text, warn
from compat._operators.spatial import in_format_of_input
from funcgrad import numpy as np
from funcgrad.core import dtypes as fdtypes
from funcgrad.core.tracing import type_of
from funcgrad.primitives.indexing import take
from funcgrad.primitives.reductions import reduce_sum
from funcgrad.primitives.shape import broadcast, full, reshape

Ints = tuple[int, ...]
Scales = tuple[float, ...] | None

# ---------------------------------------------------------------- tables


class Table(NamedTuple):
    """``result[i] = sum over k of weights[i, k] * input[taps[i, k]]``; without weights, one tap has weight 1."""

    taps: numpy.ndarray
    weights: numpy.ndarray | None

    def transposed(self, size: int) -> Table:
        """The table of the transposed map, whose result has ``size`` positions."""
        count, width = self.taps.shape
        weights = numpy.ones((count, width)) if self.weights is None else self.weights
        used = weights.ravel() != 0
        target = self.taps.ravel()[used]
        order = numpy.argsort(target, kind="stable")
        target = target[order]
        rank = numpy.arange(len(target)) - numpy.searchsorted(target, target)
        widest = int(rank.max(initial=0)) + 1
        taps = numpy.zeros((size, widest), numpy.int64)
        new_weights = numpy.zeros((size, widest), weights.dtype)
        taps[target, rank] = numpy.repeat(numpy.arange(count), width)[used][order]
        new_weights[target, rank] = weights.ravel()[used][order]
        return Table(taps, new_weights)


def _step(size: int, count: int, align: bool, scale: float | None, kind: Any) -> Any:
    """The distance in the input between neighbouring elements of the result."""
    if align:
        return kind(size - 1) / kind(count - 1) if count > 1 else kind(0)
    return kind(1 / scale) if scale is not None and scale > 0 else kind(size) / kind(count)


def _nearest(size: int, count: int, align: bool, scale: float | None, kind: Any, *, offset: float) -> Table:
    """The nearest input position, computed in float32; ``offset`` is 0.5 for pixel centres."""
    step = _step(size, count, False, scale, numpy.float32)
    at = (numpy.arange(count, dtype=numpy.float32) + numpy.float32(offset)) * step
    return Table(numpy.minimum(numpy.floor(at).astype(numpy.int64), size - 1)[:, None], None)


def _left_taps(size: int, count: int, align: bool, scale: float | None, kind: Any, clamp: bool) -> Any:
    """For each element of the result, the input position to its left and the distance from it."""
    step = _step(size, count, align, scale, kind)
    index = numpy.arange(count).astype(kind)
    at = index * step if align else step * (index + kind(0.5)) - kind(0.5)
    if clamp:
        at = numpy.maximum(at, kind(0))
    left = numpy.minimum(numpy.floor(at).astype(numpy.int64), size - 1)
    return left, numpy.clip(at - left.astype(kind), kind(0), kind(1))


def _linear(size: int, count: int, align: bool, scale: float | None, kind: Any) -> Table:
    left, distance = _left_taps(size, count, align, scale, kind, True)
    right = numpy.minimum(left + 1, size - 1)
    return Table(numpy.stack([left, right], 1), numpy.stack([1 - distance, distance], 1))


def cubic(x: Any, a: float) -> Any:
    """Keys' cubic kernel with parameter ``a``."""
    x = abs(x)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = (((x - 5) * x + 8) * x - 4) * a
    return numpy.where(x < 1, near, numpy.where(x < 2, far, 0))


def _cubic(size: int, count: int, align: bool, scale: float | None, kind: Any) -> Table:
    left, distance = _left_taps(size, count, align, scale, kind, False)
    offsets = numpy.arange(-1, 3)
    weights = cubic(distance[:, None] - offsets.astype(kind), kind(-0.75))
    return Table(numpy.clip(left[:, None] + offsets, 0, size - 1), weights.astype(kind))


def _triangle(x: Any) -> Any:
    return numpy.maximum(1 - abs(x), 0)


def _lanczos(x: Any) -> Any:
    return numpy.where(abs(x) < 3, numpy.sinc(x) * numpy.sinc(x / 3), 0)


def _antialiased(
    size: int, count: int, align: bool, scale: float | None, kind: Any, *, filter: Callable[[Any], Any], width: int
) -> Table:
    """A filter of ``width``, stretched for downsampling so that it covers every element (antialiasing)."""
    step = _step(size, count, align, scale, kind)
    stretch = max(step, kind(1))
    support = kind(width * 0.5) * stretch
    centre = step * (numpy.arange(count).astype(kind) + kind(0.5))
    first = numpy.maximum((centre - support + kind(0.5)).astype(numpy.int64), 0)
    last = numpy.minimum((centre + support + kind(0.5)).astype(numpy.int64), size)
    taps = first[:, None] + numpy.arange(max(int((last - first).max(initial=1)), 1))
    weights = filter((taps - centre[:, None] + 0.5) / stretch)
    weights = numpy.where(taps < last[:, None], weights, 0)
    total = weights.sum(1, keepdims=True)
    weights = weights / numpy.where(total == 0, 1, total)
    return Table(numpy.minimum(taps, size - 1), weights.astype(kind))


# ---------------------------------------------------------------- application of tables


def _apply(x: Any, table: Table, axis: int) -> Any:
    """Applies a table along one axis."""
    shape = type_of(x).shape
    count, width = table.taps.shape
    if table.weights is None:
        return _repeated(x, table.taps[:, 0], axis)
    result = None
    for k in range(width):
        weights = broadcast(
            table.weights[:, k].astype(type_of(x).dtype), shape=(*shape[:axis], count, *shape[axis + 1 :]), dims=(axis,)
        )
        term = np.multiply(_gathered(x, table.taps[:, k], axis), weights)
        result = term if result is None else np.add(result, term)
    return result


def _gathered(x: Any, taps: numpy.ndarray, axis: int) -> Any:
    size = type_of(x).shape[axis]
    return x if len(taps) == size and (taps == numpy.arange(size)).all() else take(x, taps, axis=axis)


def _repetitions(taps: numpy.ndarray, size: int) -> int | None:
    """How often each of ``size`` positions occurs, if all occur equally often, in order."""
    times = len(taps) // size if size else 0
    even = times and len(taps) == times * size and (taps == numpy.arange(len(taps)) // times).all()
    return times if even else None


def _repeated(x: Any, taps: numpy.ndarray, axis: int) -> Any:
    shape = type_of(x).shape
    times = _repetitions(taps, shape[axis])
    if times is None:
        return take(x, taps, axis=axis)
    wide = (*shape[: axis + 1], times, *shape[axis + 1 :])
    repeated = broadcast(x, shape=wide, dims=tuple(d for d in range(len(wide)) if d != axis + 1))
    return reshape(repeated, shape=(*shape[:axis], len(taps), *shape[axis + 1 :]))


def _apply_gradient(ct: Any, table: Table, size: int, axis: int) -> Any:
    """The gradient of ``_apply``."""
    times = _repetitions(table.taps[:, 0], size) if table.weights is None else None
    if times is None:
        return _apply(ct, table.transposed(size), axis)
    shape = type_of(ct).shape
    return reduce_sum(reshape(ct, shape=(*shape[:axis], size, times, *shape[axis + 1 :])), axes=(axis + 1,))


def _apply_to_bytes(x: Any, table: Table, axis: int) -> Any:
    """``_apply`` for uint8, with fixed-point weights of 16 bits."""
    if table.weights is None:
        return _apply(x, table, axis)
    largest = float(table.weights.max(initial=0.0))
    bits = next((b for b in range(22) if int(0.5 + largest * (1 << (b + 1))) >= 1 << 15), 22)
    fixed = numpy.trunc(table.weights * (1 << bits) + numpy.copysign(0.5, table.weights)).astype(numpy.int32)
    total = _apply(np.astype(x, fdtypes.int32), Table(table.taps, fixed), axis)
    rounded = np.right_shift(np.add(total, numpy.int32(1 << bits >> 1)), numpy.int32(bits))
    return np.astype(np.clip(rounded, numpy.int32(0), numpy.int32(255)), fdtypes.uint8)


# ---------------------------------------------------------------- modes


@dataclass(frozen=True)
class Mode:
    """A resampling mode for ``n`` axes."""

    n: int
    table: Callable[..., Table]
    node: str
    #: The name of the kernel in errors about dtypes.
    kernel: str
    #: Whether the operator has the parameter ``align_corners``.
    aligns: bool = True

    def tables(self, spatial: Sequence[int], counts: Ints, align: bool, scales: Scales, dtype: Any) -> list[Table]:
        kind = numpy.float64 if dtype == numpy.float64 else numpy.float32
        each = (None,) * self.n if scales is None else scales
        return [self.table(s, c, align, scale, kind) for s, c, scale in zip(spatial, counts, each)]


def _check(mode: Mode) -> Callable[..., None]:
    n = mode.n

    def check(input: Tensor, output_size: Ints, align_corners: bool, scale_factors: Scales) -> None:
        size = tuple(input.shape)
        names = "DHW"[-n:]
        inputs, outputs = (", ".join(f"{a}: {v}" for a, v in zip(names, s)) for s in (size[2:], output_size))
        if any(v <= 0 for v in (*size[2:], *output_size)):
            between = " and " if n == 1 else " "
            raise RuntimeError(
                f"Input and output sizes should be greater than 0, but got input ({inputs}){between}output ({outputs})"
            )
        if not prod(size[1:]):
            raise RuntimeError(f"Non-empty {n + 2}D data tensor expected but got a tensor with sizes {size_text(size)}")
        if not input.dtype.is_floating_point and input.dtype is not dtypes.uint8:
            raise lacks(mode.kernel, input.dtype)

    return check


def _resampled(x: Any, mode: Mode, counts: Ints, align: bool, scales: Scales) -> Any:
    type = type_of(x)
    if not prod(type.shape):
        return full(type.dtype.type(0), (*type.shape[:2], *counts))
    tables = mode.tables(type.shape[2:], counts, align, scales, type.dtype)
    bytes = type.dtype == numpy.uint8
    half = type.dtype.itemsize == 2 and tables[0].weights is not None
    result = np.astype(x, fdtypes.float32) if half else x
    for axis in range(mode.n + 1, 1, -1):
        result = (_apply_to_bytes if bytes else _apply)(result, tables[axis - 2], axis)
    return np.astype(result, type.dtype) if half else result


def _resampled_gradient(ct: Any, x: Any, mode: Mode, counts: Ints, align: bool, scales: Scales) -> Any:
    type = type_of(x)
    if not prod(type.shape):
        return full(type.dtype.type(0), type.shape)
    tables = mode.tables(type.shape[2:], counts, align, scales, type.dtype)
    half = type.dtype.itemsize == 2
    result = np.astype(ct, fdtypes.float32) if half else ct
    for axis in range(2, mode.n + 2):
        result = _apply_gradient(result, tables[axis - 2], type.shape[axis], axis)
    return np.astype(result, type.dtype) if half else result


def _saved_scales(n: int) -> dict[str, Callable[..., Any]]:
    def scale(i: int) -> Callable[..., Any]:
        return lambda scale_factors, **_: None if scale_factors is None else scale_factors[i]

    return {name: scale(i) for i, name in enumerate(_scale_names(n))}


def _scale_names(n: int) -> list[str]:
    return ["scales"] if n == 1 else [f"scales_{a}" for a in "dhw"[-n:]]


def _declare(name: str, mode: Mode) -> Op:
    def body(input, output_size, align_corners, scale_factors):
        return _resampled(input, mode, output_size, align_corners, scale_factors)

    def backward(ct: Any, input: Any, output_size: Ints, align_corners: bool, scale_factors: Scales) -> Any:
        return _resampled_gradient(ct, input, mode, output_size, align_corners, scale_factors)

    body.__doc__ = f"``interpolate`` of the last {mode.n} dimensions in one mode."
    aligned = ["align_corners"] if mode.aligns else []
    declared = aten(
        f"{name}(Tensor self, SymInt[{mode.n}] output_size, bool align_corners=False, float[]? scale_factors=None)"
        " -> Tensor",
        node=f"{mode.node}Backward0",
        saves=" ".join([*aligned, "output_size", *_scale_names(mode.n), "self.sym_sizes"]), names="",
        layout=in_format_of_input, check=_check(mode), out=False,
        arguments=Arguments(shows=_saved_scales(mode.n)),
    )(body)  # fmt: skip
    declared.backward(backward)
    return declared


def _modes() -> dict[tuple[str, int], tuple[str, Mode]]:
    found: dict[tuple[str, int], tuple[str, Mode]] = {}
    weights = "compute_indices_weights_"
    for n in (1, 2, 3):
        kernel = "upsample_nearest2d_channels_last" if n == 2 else f"{weights}nearest"
        plain, exact = (
            Mode(n, partial(_nearest, offset=offset), f"UpsampleNearest{exact}{n}D", kernel, False)
            for offset, exact in ((0.0, ""), (0.5, "Exact"))
        )
        found["nearest", n] = f"upsample_nearest{n}d", plain
        found["nearest-exact", n] = f"_upsample_nearest_exact{n}d", exact
    found["linear", 1] = "upsample_linear1d", Mode(1, _linear, "UpsampleLinear1D", f"{weights}linear")
    bilinear = Mode(2, _linear, "UpsampleBilinear2D", "upsample_bilinear2d_channels_last")
    found["bilinear", 2] = "upsample_bilinear2d", bilinear
    found["trilinear", 3] = "upsample_trilinear3d", Mode(3, _linear, "UpsampleTrilinear3D", f"{weights}linear")
    found["bicubic", 2] = "upsample_bicubic2d", Mode(2, _cubic, "UpsampleBicubic2D", f"{weights}cubic")
    for mode, (filter, width) in _FILTERS.items():
        table = partial(_antialiased, filter=filter, width=width)
        antialiased = Mode(2, table, f"Upsample{mode.capitalize()}2DAa", "compute_index_ranges_weights")
        found[f"{mode} antialias", 2] = f"_upsample_{mode}2d_aa", antialiased
    return found


#: Filters and their widths.
_FILTERS: dict[str, tuple[Callable[[Any], Any], int]] = {
    "bilinear": (_triangle, 2),
    "bicubic": (lambda x: cubic(x, -0.5), 4),
    "lanczos": (_lanczos, 6),
}


#: The operators by mode and number of axes.
RESAMPLERS = {key: _declare(*named) for key, named in _modes().items()}


# ---------------------------------------------------------------- interpolate

_AREA = {n: f"adaptive_avg_pool{n}d" for n in (1, 2, 3)}
#: The number of dimensions of the input of modes that support only one.
_NDIM = {"linear": 3, "bilinear": 4, "trilinear": 5}
_SIZES = "expected size to be one of int or Tuple[int] or Tuple[int, int] or Tuple[int, int, int]"


def _per_axis(input: Tensor, what: str, value: Any) -> list[Any]:
    """``size`` or ``scale_factor`` for each resampled dimension."""
    n = input.dim() - 2
    if not isinstance(value, (list, tuple)):
        return [value] * n
    if len(value) != n:
        first, name, letter = (
            ("output", "output size", "o") if what == "size" else ("scale_factor", "scale_factor", "s")
        )
        given = f"output size of {value}" if what == "size" else f"scale_factor of shape {value}"
        raise ValueError(
            f"Input and {first} must have the same number of spatial dimensions, but got input with spatial dimensions "
            f"of {list(input.shape[2:])} and {given}. Please provide input tensor in (N, C, d1, d2, ...,dK) format and "
            f"{name} in ({letter}1, {letter}2, ...,{letter}K) format."
        )
    if what == "size" and not all(hasattr(v, "__index__") for v in value):
        raise TypeError(f"{_SIZES}, but got size with types {[type(v) for v in value]}")
    return list(value)


def _size_and_scales(input: Tensor, size: Any, scale_factor: Any, recompute: bool) -> tuple[Ints, Scales]:
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is not None:
        sizes = _per_axis(input, "size", size)
        if recompute:
            raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
        return tuple(v.__index__() for v in sizes), None
    if scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    factors = [float(f) for f in _per_axis(input, "scale_factor", scale_factor)]
    counts = tuple(int(s * f) for s, f in zip(input.shape[2:], factors))
    if not all(-(2**63) <= n < 2**63 for n in counts):
        raise RuntimeError("value cannot be converted to type int64_t without overflow")
    return counts, None if recompute else tuple(factors)


def _check_mode(mode: str, align_corners: bool | None) -> None:
    if mode in ("nearest", "area", "nearest-exact") and align_corners is not None:
        raise ValueError(
            "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear"
        )


def _check_filter(input: Tensor, mode: str, align_corners: bool | None, antialias: bool) -> None:
    if antialias and not (mode in _FILTERS and input.dim() == 4):
        raise ValueError(
            "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D tensor as input"
        )
    if mode == "lanczos" and input.dim() == 4 and align_corners:
        raise ValueError("Lanczos mode does not support align_corners=True")
    if mode == "lanczos" and input.dim() == 4 and not antialias:
        raise ValueError("Lanczos mode requires antialias=True")


def _unsupported_mode(input: Tensor, mode: str) -> NotImplementedError:
    n = input.dim()
    if mode in _NDIM and n in (3, 4, 5):
        return NotImplementedError(f"Got {n}D input, but {mode} mode needs {_NDIM[mode]}D input")
    return NotImplementedError(
        f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {n}D) for the modes: nearest | linear | "
        f"bilinear | bicubic | trilinear | lanczos | area | nearest-exact (got {mode})"
    )


@function("F.interpolate")
def interpolate(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Resizes the dimensions after batch and channels.

    Args:
        input: one, two or three dimensions after batch and channels.
        size: the output size, a number or one per dimension; None if ``scale_factor`` is given.
        scale_factor: the ratio of the output size to the input size, a number or one per dimension.
        mode: ``nearest`` and ``nearest-exact`` repeat or skip elements, ``area`` averages; ``linear``, ``bilinear``,
            ``trilinear`` and ``bicubic`` interpolate, in one, two, three and two dimensions.
        align_corners: whether the centres of the outermost elements are aligned, rather than their outer edges.
        recompute_scale_factor: whether to use the ratio of the sizes instead of ``scale_factor``.
        antialias: whether to widen the filter for downsampling; ``bilinear``, ``bicubic`` and ``lanczos`` only.

    Raises:
        ValueError: for incompatible arguments.
        NotImplementedError: for an unknown mode, or one that does not support the number of dimensions.
        RuntimeError: for empty tensors.

    Example:
        >>> torch.nn.functional.interpolate(torch.tensor([[[0.0, 2.0]]]), 4, mode="linear")
        tensor([[[0.0000, 0.5000, 1.5000, 2.0000]]])
    """
    _check_mode(mode, align_corners)
    recompute = bool(recompute_scale_factor) or (mode == "area" and size is None)
    counts, scales = _size_and_scales(input, size, scale_factor, recompute)
    _check_filter(input, mode, align_corners, antialias)
    n = input.dim() - 2
    if mode == "area" and n in _AREA:
        return names_of("F")[_AREA[n]](input, counts)
    found = RESAMPLERS.get((f"{mode} antialias" if antialias else mode, n))
    if found is None:
        raise _unsupported_mode(input, mode)
    return found.function(input, counts, bool(align_corners), scales)


@function("F.upsample")
def upsample(
    input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None
) -> Tensor:
    """The deprecated name of ``interpolate``."""
    _warn_deprecated("upsample")
    return interpolate(input, size, scale_factor, mode, align_corners)


@function("F.upsample_nearest")
def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """``interpolate`` with the mode ``nearest``."""
    _warn_deprecated("upsample_nearest")
    return interpolate(input, size, scale_factor, mode="nearest")


@function("F.upsample_bilinear")
def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """``interpolate`` with the mode ``bilinear`` and aligned corners."""
    _warn_deprecated("upsample_bilinear")
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


def _warn_deprecated(name: str) -> None:
    warn(f"`nn.functional.{name}` is deprecated. Use `nn.functional.interpolate` instead.")
