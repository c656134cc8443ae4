"""Deformable convolution."""

from __future__ import annotations

from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor

_torch = names_of("torch")


def deform_conv2d(
    image: Tensor, weight: Tensor, offset: Tensor, mask: Tensor, bias: Tensor, stride_h: int, stride_w: int,
    pad_h: int, pad_w: int, dilation_h: int, dilation_w: int, groups: int, offset_groups: int, use_mask: bool,
) -> Tensor:  # fmt: skip
    """A 2-D convolution that samples its input at displaced positions.

    Args:
        image: of shape (N, C, H, W).
        weight: of shape (C_out, C / groups, kernel_h, kernel_w).
        offset: of shape (N, 2 * offset_groups * kernel_h * kernel_w, H_out, W_out): the displacements, rows before
            columns.
        mask: factors of the samples, of shape (N, offset_groups * kernel_h * kernel_w, H_out, W_out).
        bias: of shape (C_out,).

    Returns:
        A tensor of shape (N, C_out, H_out, W_out).

    Raises:
        RuntimeError: for other shapes.
    """
    n, _, height, width = image.shape
    out, own, kh, kw = weight.shape
    oh = (height + 2 * pad_h - (dilation_h * (kh - 1) + 1)) // stride_h + 1
    ow = (width + 2 * pad_w - (dilation_w * (kw - 1) + 1)) // stride_w + 1
    _check(image, weight, offset, mask, groups, offset_groups, use_mask, (oh, ow))
    moved = offset.reshape(n, offset_groups, kh, kw, 2, oh, ow)
    y = _places(oh, stride_h, pad_h, kh, dilation_h, image)[:, None, :, None] + moved[:, :, :, :, 0]
    x = _places(ow, stride_w, pad_w, kw, dilation_w, image)[None, :, None, :] + moved[:, :, :, :, 1]
    read = _interpolate(image.reshape(n, offset_groups, -1, height * width), y, x, height, width)
    if use_mask:
        read = read * mask.reshape(n, offset_groups, 1, kh, kw, oh, ow)
    columns = read.reshape(n, groups, own * kh * kw, oh * ow)
    product = weight.reshape(groups, out // groups, -1) @ columns
    return product.reshape(n, out, oh, ow) + bias[:, None, None]


def _check(
    image: Tensor, weight: Tensor, offset: Tensor, mask: Tensor, groups: int, offset_groups: int, use_mask: bool,
    size: tuple[int, int],
) -> None:  # fmt: skip
    taps = offset_groups * weight.size(2) * weight.size(3)
    if weight.size(1) * groups != image.size(1):
        raise RuntimeError(f"Expected weight to take {image.size(1)} channels, got {weight.size(1) * groups}")
    if weight.size(0) % groups or image.size(1) % offset_groups:
        raise RuntimeError("the channels of the image and of the weight must be multiples of their groups")
    if tuple(offset.shape) != (image.size(0), 2 * taps, *size):
        raise RuntimeError(f"offset should have shape {[image.size(0), 2 * taps, *size]}, got {list(offset.shape)}")
    if use_mask and tuple(mask.shape) != (image.size(0), taps, *size):
        raise RuntimeError(f"mask should have shape {[image.size(0), taps, *size]}, got {list(mask.shape)}")


def _places(size: int, stride: int, pad: int, taps: int, dilation: int, like: Tensor) -> Tensor:
    """The positions of the kernel's taps without offset, of shape (taps, size)."""
    arange = _torch["arange"]
    made: Tensor = arange(taps, dtype=like.dtype)[:, None] * dilation + arange(size, dtype=like.dtype) * stride - pad
    return made


def _interpolate(flat: Tensor, y: Tensor, x: Tensor, height: int, width: int) -> Tensor:
    """Bilinear interpolation of the image, zero outside.

    Args:
        flat: of shape (N, groups, channels, height * width).
        y, x: of shape (N, groups, kernel_h, kernel_w, H_out, W_out).

    Returns:
        A tensor of shape (N, groups, channels, kernel_h, kernel_w, H_out, W_out).
    """
    low_y, low_x = y.detach().floor(), x.detach().floor()
    found = None
    for row, weight_y in ((low_y, low_y + 1 - y), (low_y + 1, y - low_y)):
        for column, weight_x in ((low_x, low_x + 1 - x), (low_x + 1, x - low_x)):
            inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
            index = (row * width + column).masked_fill(~inside, 0).long().flatten(2)
            values = flat.gather(3, index[:, :, None].expand(-1, -1, flat.size(2), -1))
            weight = (weight_y * weight_x).masked_fill(~inside, 0)
            part = values.reshape(*flat.shape[:3], *y.shape[2:]) * weight[:, :, None]
            found = part if found is None else found + part
    assert found is not None
    return found
