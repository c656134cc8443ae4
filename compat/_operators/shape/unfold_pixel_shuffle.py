"""``unfold``, ``fold``, ``pixel_shuffle``, ``pixel_unshuffle``, ``channel_shuffle``."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy

from compat._core.operators.declaration import Arguments
from compat._core.operators.op import aten
from compat._core.tensor.registry import function
from compat._core.tensor.tensor import Tensor
from compat._core.types.dtype import bool_
from compat._core.types.errors import lacks, size_text
from compat._operators.spatial import in_format_of_input
from funcgrad import numpy as np
from funcgrad.core.tracing import type_of
from funcgrad.primitives.shape import concatenate, full, pad, reshape, slice_, transpose

Ints = tuple[int, ...]

# ---------------------------------------------------------------- unfold and fold


def _counts(spatial: Sequence[int], kernel: Ints, dilation: Ints, padding: Ints, stride: Ints) -> Ints:
    """The number of blocks along each dimension."""
    rows = zip(spatial, kernel, dilation, padding, stride)
    return tuple((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, d, p, s in rows)


def _check_lengths(**arguments: Ints) -> None:
    for name, value in arguments.items():
        if len(value) != 2:
            raise RuntimeError(f"It is expected {name} equals to 2, but got size {len(value)}")


def _check_numbers(kernel: Ints, dilation: Ints, padding: Ints, stride: Ints) -> None:
    rows = (
        ("kernel size", "kernel_height", "kernel_width", kernel, 1),
        ("dilation", "dilation_height", "dilation_width", dilation, 1),
        ("padding", "pad_height", "pad_width", padding, 0),
        ("stride", "stride_height", "stride_width", stride, 1),
    )
    for name, height, width, value, least in rows:
        if min(value) < least:
            condition = "greater than zero" if least else "non-negative"
            raise RuntimeError(f"{name} should be {condition}, but got {height}: {value[0]} {width}: {value[1]}")


def _refuse_integers(name: str, input: Tensor) -> None:
    if not (input.dtype.is_floating_point or input.dtype.is_complex or input.dtype is bool_):
        raise lacks(name, input.dtype)


def _pair(values: Sequence[int]) -> str:
    return f"({values[0]}, {values[1]})"


def _check_columns(input: Tensor, kernel_size: Ints, dilation: Ints, padding: Ints, stride: Ints) -> None:
    _check_lengths(kernel_size=kernel_size, dilation=dilation, padding=padding, stride=stride)
    _check_numbers(kernel_size, dilation, padding, stride)
    size = tuple(input.shape)
    n = len(size)
    if n < 3:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-max(n, 1)}, {max(n, 1) - 1}], but got {min(n, 2)})"
        )
    if n not in (3, 4) or not prod(size[n - 3 :]):
        raise RuntimeError(
            "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, "
            f"but got: {size_text(size)}"
        )
    counts = _counts(size[-2:], kernel_size, dilation, padding, stride)
    if min(counts) < 1:
        raise RuntimeError(
            f"Given input with spatial size {_pair(size[-2:])}, kernel_size={_pair(kernel_size)}, "
            f"dilation={_pair(dilation)}, padding={_pair(padding)}, calculated shape of the array of sliding blocks as "
            f"{_pair(counts)}, but its components must be at least one."
        )
    _refuse_integers("im2col_out_cpu", input)


def _corners(kernel: Ints, dilation: Ints) -> list[Ints]:
    """The offset of each element of a block from the block's first element."""
    return [(i * dilation[0], j * dilation[1]) for i in range(kernel[0]) for j in range(kernel[1])]


@aten(
    "im2col(Tensor self, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor",
    node="Im2ColBackward0",
    saves="dilation kernel_size padding self_sym_argsize_minus_1 self_sym_argsize_minus_2 stride",
    names="_C._nn.im2col", check=_check_columns,
    arguments=Arguments(
        shows={f"self_sym_argsize_minus_{i}": lambda layouts, i=i, **_: layouts["input"].size[-i] for i in (1, 2)}
    ),
)  # fmt: skip
def im2col(input, kernel_size, dilation, padding, stride):
    """The blocks of an image as columns."""
    *lead, _, _ = type_of(input).shape
    counts = _counts(type_of(input).shape[-2:], kernel_size, dilation, padding, stride)
    edges = (*(0 for _ in lead), *padding)
    zero = type_of(input).dtype.type(0)
    wide = pad(input, zero, low=edges, high=edges, interior=(0,) * len(edges)) if any(padding) else input
    parts = []
    for corner in _corners(kernel_size, dilation):
        limit = tuple(c + (n - 1) * s + 1 for c, n, s in zip(corner, counts, stride))
        part = slice_(
            wide, start=(*(0 for _ in lead), *corner), limit=(*lead, *limit), strides=(*(1 for _ in lead), *stride)
        )
        parts.append(reshape(part, shape=(*lead, 1, prod(counts))))
    columns = concatenate(*parts, axis=len(lead)) if len(parts) > 1 else parts[0]
    return reshape(columns, shape=(*lead[:-1], lead[-1] * len(parts), prod(counts)))


def _check_folded(input, output_size, kernel_size, dilation, padding, stride):
    _check_lengths(output_size=output_size, kernel_size=kernel_size, dilation=dilation, padding=padding, stride=stride)
    _check_numbers(kernel_size, dilation, padding, stride)
    size = tuple(input.shape)
    n = len(size)
    if n not in (2, 3) or not prod(size[n - 2 :]):
        raise RuntimeError(
            "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for "
            f"input, but got: {size_text(size)}"
        )
    if size[-2] % prod(kernel_size):
        raise RuntimeError(
            f"Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got "
            f"input.size(1)={size[-2]} and kernel_size={_pair(kernel_size)}."
        )
    counts = _counts(output_size, kernel_size, dilation, padding, stride)
    given = (
        f"Given output_size={_pair(output_size)}, kernel_size={_pair(kernel_size)}, dilation={_pair(dilation)}, "
        f"padding={_pair(padding)}, stride={_pair(stride)}, "
    )
    blocks = prod(counts)
    if size[-1] != blocks:
        raise RuntimeError(
            f"{given}expected size of input's dimension 2 to match the calculated number of sliding blocks "
            f"{counts[0]} * {counts[1]} = {blocks}, but got input.size(2)={size[-1]}."
        )
    if min(counts) < 1:
        raise RuntimeError(
            f"{given}calculated shape of the array of sliding blocks as {_pair(counts)}, which is too small "
            "(non-positive)"
        )
    _refuse_integers("col2im_out_cpu", input)


@aten(
    "col2im(Tensor self, SymInt[2] output_size, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] "
    "stride) -> Tensor",
    node="Col2ImBackward0", saves="dilation kernel_size padding stride", names="_C._nn.col2im", check=_check_folded,
)  # fmt: skip
def col2im(input, output_size, kernel_size, dilation, padding, stride):
    """The image that is the sum of blocks, given as columns."""
    *batch, rows, _ = type_of(input).shape
    counts = _counts(output_size, kernel_size, dilation, padding, stride)
    lead = (*batch, rows // prod(kernel_size))
    parts = reshape(input, shape=(*lead, prod(kernel_size), *counts))
    wide = tuple(n + 2 * p for n, p in zip(output_size, padding))
    zero, none = type_of(input).dtype.type(0), (0,) * len(lead)
    total = full(zero, (*lead, *wide))
    add = np.logical_or if type_of(input).dtype == numpy.bool_ else np.add
    for i, corner in enumerate(_corners(kernel_size, dilation)):
        part = slice_(parts, start=(*none, i, 0, 0), limit=(*lead, i + 1, *counts), strides=(1,) * (len(lead) + 3))
        after = (w - c - (n - 1) * s - 1 for w, c, n, s in zip(wide, corner, counts, stride))
        placed = pad(
            reshape(part, shape=(*lead, *counts)),
            zero,
            low=(*none, *corner),
            high=(*none, *after),
            interior=(*none, *(s - 1 for s in stride)),
        )
        total = add(total, placed)
    limit = tuple(p + n for p, n in zip(padding, output_size))
    return slice_(total, start=(*none, *padding), limit=(*lead, *limit), strides=(1,) * (len(lead) + 2))


def _two(value: Any) -> Ints:
    return (value.__index__(),) * 2 if hasattr(value, "__index__") else tuple(v.__index__() for v in value)


@function("F.unfold")
def unfold(input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """The blocks of images as columns: (batch, channels, height, width) to (batch, channels * block size, blocks).

    Args:
        input: images, with or without a batch.
        kernel_size: the size of a block, a number or two; so are the next three.
        dilation: the step within a block.
        padding: the number of zeros added on every side.
        stride: the step between blocks.

    Raises:
        RuntimeError: for arguments that are invalid for the size of the input.

    Example:
        >>> torch.nn.functional.unfold(torch.arange(6.0).reshape(1, 1, 2, 3), 2)
        tensor([[[0., 1.],
                 [1., 2.],
                 [3., 4.],
                 [4., 5.]]])
    """
    return im2col.function(input, _two(kernel_size), _two(dilation), _two(padding), _two(stride))


@function("F.fold")
def fold(
    input: Tensor, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor:
    """The images that are sums of blocks, given as columns: the inverse of ``unfold`` if blocks do not overlap.

    Args:
        input: columns, with or without a batch.
        output_size: height and width of the images.
        kernel_size, dilation, padding, stride: as for ``unfold``.

    Raises:
        RuntimeError: for arguments that are invalid for the size of the input.

    Example:
        >>> torch.nn.functional.fold(torch.ones(1, 2, 2), (1, 3), (1, 2))
        tensor([[[[1., 2., 1.]]]])
    """
    sizes = (_two(output_size), _two(kernel_size), _two(dilation), _two(padding), _two(stride))
    return col2im.function(input, *sizes)


# ---------------------------------------------------------------- pixel_shuffle and channel_shuffle


def _check_pixels(name: str, input: Tensor, argument: str, factor: int) -> None:
    if input.dim() < 3:
        raise RuntimeError(
            f"{name} expects input to have at least 3 dimensions, but got input with {input.dim()} dimension(s)"
        )
    if factor <= 0:
        raise RuntimeError(f"{name} expects a positive {argument}, but got {factor}")


def _check_shuffle(input: Tensor, upscale_factor: int) -> None:
    _check_pixels("pixel_shuffle", input, "upscale_factor", upscale_factor)
    if input.shape[-3] % upscale_factor**2:
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, "
            f"but input.size(-3)={input.shape[-3]} is not divisible by {upscale_factor**2}"
        )


def _permuted(x: Any, shape: Sequence[int], order: Sequence[int], lead: int) -> Any:
    """An array reshaped to ``shape`` after its first ``lead`` dimensions, the new ones permuted by ``order``."""
    parts = reshape(x, shape=(*type_of(x).shape[:lead], *shape))
    return transpose(parts, permutation=(*range(lead), *(lead + o for o in order)))


@aten(
    "pixel_shuffle(Tensor self, int upscale_factor) -> Tensor",
    node="PixelShuffleBackward0", saves="upscale_factor", names="torch.pixel_shuffle F.pixel_shuffle",
    layout=in_format_of_input, check=_check_shuffle, out=False,
)  # fmt: skip
def pixel_shuffle(input, upscale_factor):
    """Moves channels into spatial positions: (channels * r², height, width) becomes (channels, height * r, width * r).

    Args:
        upscale_factor: r.

    Raises:
        RuntimeError: if the number of channels is not divisible by ``r²``.

    Example:
        >>> torch.pixel_shuffle(torch.arange(4).reshape(4, 1, 1), 2)
        tensor([[[0, 1],
                 [2, 3]]])
    """
    *lead, c, h, w = type_of(input).shape
    r = upscale_factor
    moved = _permuted(input, (c // r**2, r, r, h, w), (0, 3, 1, 4, 2), len(lead))
    return reshape(moved, shape=(*lead, c // r**2, h * r, w * r))


def _check_unshuffle(input: Tensor, downscale_factor: int) -> None:
    _check_pixels("pixel_unshuffle", input, "downscale_factor", downscale_factor)
    for name, d in (("height", -2), ("width", -1)):
        if input.shape[d] % downscale_factor:
            raise RuntimeError(
                f"pixel_unshuffle expects {name} to be divisible by downscale_factor, but input.size({d})="
                f"{input.shape[d]} is not divisible by {downscale_factor}"
            )


@aten(
    "pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor",
    node="PixelUnshuffleBackward0", saves="downscale_factor", names="torch.pixel_unshuffle F.pixel_unshuffle",
    layout=in_format_of_input, check=_check_unshuffle, out=False,
)  # fmt: skip
def pixel_unshuffle(input, downscale_factor):
    """The inverse of ``pixel_shuffle``: moves spatial positions into channels.

    Example:
        >>> torch.pixel_unshuffle(torch.arange(4).reshape(1, 2, 2), 2).flatten()
        tensor([0, 1, 2, 3])
    """
    *lead, c, h, w = type_of(input).shape
    r = downscale_factor
    moved = _permuted(input, (c, h // r, r, w // r, r), (0, 2, 4, 1, 3), len(lead))
    return reshape(moved, shape=(*lead, c * r**2, h // r, w // r))


def _check_channels(input: Tensor, groups: int) -> None:
    size = tuple(input.shape)
    if len(size) < 3:
        raise RuntimeError(f"channel_shuffle expects input with > 2 dims, but got input with sizes {size_text(size)}")
    if groups <= 0:
        raise RuntimeError(f"Number of groups to divide channels in must be positive. Value of groups:{groups}")
    if size[1] % groups:
        raise RuntimeError(
            f"Number of channels must be divisible by groups. Got {size[1]} channels and {groups} groups."
        )


@aten(
    "channel_shuffle(Tensor self, SymInt groups) -> Tensor",
    node="ChannelShuffleBackward0", saves="groups", names="torch.channel_shuffle F.channel_shuffle",
    layout=in_format_of_input, check=_check_channels, out=False,
)  # fmt: skip
def channel_shuffle(input, groups):
    """Interleaves the channels of groups.

    Args:
        groups: the number of groups of channels, which are the second dimension.

    Raises:
        RuntimeError: if the number of channels is not divisible by ``groups``.

    Example:
        >>> torch.channel_shuffle(torch.arange(4).reshape(1, 4, 1), 2).flatten()
        tensor([0, 2, 1, 3])
    """
    shape = type_of(input).shape
    rest = tuple(range(2, len(shape)))
    order = (1, 0, *rest)
    return reshape(_permuted(input, (groups, shape[1] // groups, *shape[2:]), order, 1), shape=shape)
