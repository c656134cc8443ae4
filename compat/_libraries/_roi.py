"""Pooling over regions of interest: averages of interpolated samples, maxima, and position-sensitive variants.

A region is divided into bins, and a bin is a weighted sum of pixels, with products of row and column weights. So each
operator defines the rows and columns of its bins (``Axis``), and ``_read`` computes the sums: pixels are gathered
channels-last, for as many regions at a time as fit in memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor
from compat._core.types.dtype import int32

_torch = names_of("torch")
#: The maximum number of gathered elements at a time.
_ROOM = 1 << 24


@dataclass
class Axis:
    """The pixels that bins read along one axis of the image.

    Attributes:
        index: rows or columns, of shape (regions, bins, samples).
        weight: their weights, zero for unused samples.
    """

    index: Tensor
    weight: Tensor


def _check(operator: str, image: Tensor, rois: Tensor) -> None:
    if rois.dim() != 2 or rois.size(1) != 5:
        raise RuntimeError("Tensor rois should have shape as Tensor[K, 5]")
    if image.dim() != 4:
        raise RuntimeError(f"{operator}: input should have shape [N, C, H, W], got {list(image.shape)}")
    if image.dtype != rois.dtype:
        raise RuntimeError(f"{operator}: input should have the same type as rois")


def _channels_out(image: Tensor, bins: int) -> int:
    if image.size(1) % bins:
        raise RuntimeError("input channels must be a multiple of pooling height * pooling width")
    return int(image.size(1)) // bins


def _arange(n: int, like: Tensor) -> Tensor:
    made: Tensor = _torch["arange"](n, dtype=like.dtype)
    return made


def _round(x: Tensor) -> Tensor:
    """To the nearest integer, ties away from zero."""
    return x.sign() * (x.abs() + 0.5).floor()


def _most(counts: Tensor) -> int:
    return max(int(counts.max().item()), 1)


# ---------------------------------------------------------------- samples


def _interpolated(start: Tensor, length: Tensor, bins: int, ratio: int, size: int) -> Axis:
    """Equidistant samples in each bin, each interpolated between two pixels.

    Args:
        start, length: of the regions along the axis, in pixels.
        ratio: the number of samples per bin; 0 or less for one per pixel.
        size: of the image.
    """
    width = length / bins
    counts = width.ceil() if ratio <= 0 else _torch["full_like"](width, ratio)
    most = ratio if ratio > 0 else _most(counts)
    corner = start[:, None] + _arange(bins, start) * width[:, None]
    step = (_arange(most, start) + 0.5) * width[:, None] / counts[:, None]
    at = corner[:, :, None] + step[:, None, :]
    taken = (at >= -1) & (at <= size) & (_arange(most, start) < counts[:, None])[:, None, :]
    at = _torch["where"](taken, at, 0.0).clamp(0, size - 1)
    low = at.floor()
    far = at - low
    index = _torch["stack"]([low, (low + 1).clamp(max=size - 1)], -1)
    weight = _torch["stack"]([1 - far, far], -1) * taken[..., None]
    shape = (start.size(0), bins, 2 * most)
    return Axis(index.long().reshape(shape), weight.reshape(shape))


def _whole(first: Tensor, last: Tensor) -> Axis:
    """All pixels from ``first`` to before ``last``, of shape (regions, bins)."""
    span = _arange(_most(last - first), first)
    index = first[..., None] + span
    taken = index < last[..., None]
    return Axis(_torch["where"](taken, index, 0.0).long(), taken.to(first.dtype))


# ---------------------------------------------------------------- reading


def _table(image: Tensor, bins_h: int, bins_w: int) -> Tensor:
    """The image with channels last, bins separated: (images, bins_h, bins_w, rows, columns, channels)."""
    n, _, h, w = image.shape
    return image.reshape(n, -1, bins_h, bins_w, h, w).permute(0, 2, 3, 4, 5, 1)


def _pixels(table: Tensor, batch: Tensor, rows: Axis, columns: Axis) -> Tensor:
    """The pixels that bins read: (regions, bins_h, bins_w, samples_h, samples_w, channels)."""
    y, x = rows.index[:, :, None, :, None], columns.index[:, None, :, None, :]
    by_bin = [names_of("torch")["arange"](n).reshape(shape) if n > 1 else 0 for n, shape in (
        (table.size(1), (1, -1, 1, 1, 1)), (table.size(2), (1, 1, -1, 1, 1)))]  # fmt: skip
    return table[batch[:, None, None, None, None], by_bin[0], by_bin[1], y, x]


def _at_a_time(table: Tensor, rows: Axis, columns: Axis) -> int:
    one = table.size(-1)
    for axis in (rows, columns):
        one *= axis.index.size(1) * axis.index.size(2)
    return max(_ROOM // max(one, 1), 1)


def _parts(rois: Tensor, rows: Axis, columns: Axis, size: int) -> Any:
    """Batch indices and axes, for a few regions at a time."""
    for at in range(0, rois.size(0), size):
        part = slice(at, at + size)
        yield (rois[part, 0].long(), *(Axis(a.index[part], a.weight[part]) for a in (rows, columns)))


def _read(table: Tensor, rois: Tensor, rows: Axis, columns: Axis) -> Tensor:
    """The weighted sums of the bins: (regions, channels, bins_h, bins_w)."""
    sums = [
        _torch["einsum"]("kpqyxc,kpy,kqx->kcpq", _pixels(table, batch, r, c), r.weight, c.weight)
        for batch, r, c in _parts(rois, rows, columns, _at_a_time(table, rows, columns))
    ]
    found: Tensor = _torch["cat"](sums) if len(sums) > 1 else sums[0]
    return found


# ---------------------------------------------------------------- the operators


def _edges(rois: Tensor, scale: float, offset: float) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The starts and sizes of regions, along columns and rows."""
    x1, y1, x2, y2 = (rois[:, n] * scale - offset for n in range(1, 5))
    return x1, y1, x2 - x1, y2 - y1


def roi_align(
    image: Tensor, rois: Tensor, scale: float, pooled_height: int, pooled_width: int, ratio: int, aligned: bool
) -> Tensor:
    """The average of interpolated samples in each bin.

    Args:
        image: of shape (N, C, H, W).
        rois: of shape (K, 5): the index of an image, and corners x1, y1, x2, y2.
        scale: the scale from the corners' unit to pixels.
        ratio: samples per bin and axis; 0 or less for one per pixel.
        aligned: whether pixel values are at pixel centres.

    Returns:
        Of shape (K, C, pooled_height, pooled_width).

    Raises:
        RuntimeError: for other shapes, and different dtypes.
    """
    _check("roi_align", image, rois)
    if rois.size(0) == 0:
        return image.new_zeros((0, image.size(1), pooled_height, pooled_width))
    x, y, width, height = _edges(rois, scale, 0.5 if aligned else 0.0)
    if not aligned:
        width, height = width.clamp(min=1), height.clamp(min=1)
    rows = _interpolated(y, height, pooled_height, ratio, image.size(2))
    columns = _interpolated(x, width, pooled_width, ratio, image.size(3))
    count = _samples(height, pooled_height, ratio) * _samples(width, pooled_width, ratio)
    return _read(_table(image, 1, 1), rois, rows, columns) / count.clamp(min=1)[:, None, None, None]


def _samples(length: Tensor, bins: int, ratio: int) -> Tensor:
    counts: Tensor = (length / bins).ceil() if ratio <= 0 else _torch["full_like"](length, ratio)
    return counts


def _mapping(rois: Tensor, channels: int, pooled_height: int, pooled_width: int) -> Tensor:
    """The channel of the image for each result."""
    shape = (channels, pooled_height, pooled_width)
    numbers = _torch["arange"](channels * pooled_height * pooled_width, dtype=int32)
    made: Tensor = numbers.reshape(shape).expand(rois.size(0), *shape).contiguous()
    return made


def ps_roi_align(
    image: Tensor, rois: Tensor, scale: float, pooled_height: int, pooled_width: int, ratio: int
) -> tuple[Tensor, Tensor]:
    """``roi_align`` with separate channels for each bin.

    Returns:
        The averages, of shape (K, C / bins, pooled_height, pooled_width), and their channels, int32.

    Raises:
        RuntimeError: for other shapes, different dtypes, and a number of channels that is not a multiple of the bins.
    """
    _check("ps_roi_align", image, rois)
    channels = _channels_out(image, pooled_height * pooled_width)
    mapping = _mapping(rois, channels, pooled_height, pooled_width)
    if rois.size(0) == 0:
        return image.new_zeros(mapping.shape), mapping
    x, y, width, height = _edges(rois, scale, 0.5)
    rows = _interpolated(y, height, pooled_height, ratio, image.size(2))
    columns = _interpolated(x, width, pooled_width, ratio, image.size(3))
    count = _samples(height, pooled_height, ratio) * _samples(width, pooled_width, ratio)
    sums = _read(_table(image, pooled_height, pooled_width), rois, rows, columns)
    return sums / count[:, None, None, None], mapping


def _bins(start: Tensor, length: Tensor, bins: int, limit: int) -> tuple[Tensor, Tensor]:
    """The first pixel of each bin and the one after its last, of shape (regions, bins)."""
    width = (length / bins)[:, None]
    first = (_arange(bins, start) * width).floor() + start[:, None]
    last = ((_arange(bins, start) + 1) * width).ceil() + start[:, None]
    return first.clamp(0, limit), last.clamp(0, limit)


def _pixel_edges(rois: Tensor, scale: float) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    x1, y1, x2, y2 = (_round(rois[:, n] * scale) for n in range(1, 5))
    return x1, y1, x2 - x1, y2 - y1


def ps_roi_pool(
    image: Tensor, rois: Tensor, scale: float, pooled_height: int, pooled_width: int, margin: int = 1
) -> tuple[Tensor, Tensor]:
    """The average of the pixels of each bin, with separate channels for each bin.

    Args:
        margin: the number of rows and columns omitted at the image's end, as in torchvision.

    Returns:
        The averages, zero for an empty bin, and their channels, int32.

    Raises:
        RuntimeError: for other shapes, different dtypes, and a number of channels that is not a multiple of the bins.
    """
    _check("ps_roi_pool", image, rois)
    channels = _channels_out(image, pooled_height * pooled_width)
    mapping = _mapping(rois, channels, pooled_height, pooled_width)
    if rois.size(0) == 0:
        return image.new_zeros(mapping.shape), mapping
    x, y, width, height = _pixel_edges(rois, scale)
    tops = _bins(y, height.clamp(min=1), pooled_height, image.size(2) - margin)
    lefts = _bins(x, width.clamp(min=1), pooled_width, image.size(3) - margin)
    area = ((tops[1] - tops[0])[:, :, None] * (lefts[1] - lefts[0])[:, None, :]).clamp(min=1)
    sums = _read(_table(image, pooled_height, pooled_width), rois, _whole(*tops), _whole(*lefts))
    return sums / area[:, None], mapping


def roi_max_pool(
    image: Tensor, rois: Tensor, scale: float, pooled_height: int, pooled_width: int
) -> tuple[Tensor, Tensor]:
    """The maximum of the pixels of each bin.

    Returns:
        The maxima, zero for an empty bin, and their flat positions in the image, int32, -1 for none.

    Raises:
        RuntimeError: for other shapes, and different dtypes.
    """
    _check("roi_pool", image, rois)
    shape = (rois.size(0), image.size(1), pooled_height, pooled_width)
    if rois.size(0) == 0:
        return image.new_zeros(shape), image.new_zeros(shape, dtype=int32)
    x, y, width, height = _pixel_edges(rois, scale)
    rows = _whole(*_bins(y, (height + 1).clamp(min=1), pooled_height, image.size(2)))
    columns = _whole(*_bins(x, (width + 1).clamp(min=1), pooled_width, image.size(3)))
    table = _table(image, 1, 1)
    parts = _parts(rois, rows, columns, _at_a_time(table, rows, columns))
    found = [_maxima(_pixels(table, batch, r, c), r, c, image.size(3)) for batch, r, c in parts]
    values, places = (_torch["cat"](list(each)) for each in zip(*found))
    return values, places


def _maxima(pixels: Tensor, rows: Axis, columns: Axis, width: int) -> tuple[Tensor, Tensor]:
    taken = (rows.weight[:, :, None, :, None] * columns.weight[:, None, :, None, :]).flatten(3) > 0
    flat = pixels.flatten(3, 4).masked_fill(~taken[..., None], float("-inf"))
    best, at = flat.max(3)
    places = (rows.index[:, :, None, :, None] * width + columns.index[:, None, :, None, :]).flatten(3)
    none = ~taken.any(3)[..., None]
    found = places.gather(3, at).masked_fill(none, -1)
    return best.masked_fill(none, 0).permute(0, 3, 1, 2), found.to(int32).permute(0, 3, 1, 2)


def scatter_maxima(grad: Tensor, rois: Tensor, argmax: Tensor, size: tuple[int, ...]) -> Tensor:
    """The gradient of ``roi_max_pool`` with respect to its image.

    Args:
        grad: the gradient of the maxima.
        argmax: the positions of the maxima.
        size: the size of the image.
    """
    n, channels, height, width = size
    planes = rois[:, 0].long()[:, None] * channels + _torch["arange"](channels)
    place = planes[:, :, None, None] * (height * width) + argmax.long()
    flat = grad.new_zeros(n * channels * height * width)
    flat = flat.index_add(0, place.clamp(min=0).flatten(), grad.masked_fill(argmax < 0, 0).flatten())
    return flat.reshape(size)
