"""Convolutions, with axis layouts as letters, as in JAX."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from jax.lax import ConvDimensionNumbers

from funcgrad.core.tracing import type_of
from funcgrad.lax.contraction import preferred
from funcgrad.lax.operands import sizes_of
from funcgrad.lax.shapes import transpose
from funcgrad.lax.windows import padtype_to_pads
from funcgrad.primitives import convolution as c
from funcgrad.primitives import shape as s
from funcgrad.primitives.contraction import dot
from funcgrad.primitives.geometry import dilated

__all__ = [
    "conv", "conv_dimension_numbers", "conv_general_dilated", "conv_general_dilated_local",
    "conv_general_dilated_patches", "conv_transpose", "conv_with_general_padding",
]  # fmt: skip

Padding = str | Sequence[tuple[int, int]]
Letters = tuple[str, str, str] | ConvDimensionNumbers | None

# ---------------------------------------------------------------- layouts


def conv_dimension_numbers(lhs_shape: Sequence[int], rhs_shape: Sequence[int], dimension_numbers: Letters) -> Any:
    """The axis roles of a convolution as numbers.

    Args:
        lhs_shape, rhs_shape: of the input and the kernel.
        dimension_numbers: three strings, a letter for each axis: ``N`` and ``C`` of the input and of the result for
            batch and features, ``O`` and ``I`` of the kernel for output and input features, any others for the spatial
            axes; ``("NCHW", "OIHW", "NCHW")``. None for batch, features, spatial axes in all.

    Returns:
        A ``ConvDimensionNumbers``: for input, kernel and result the axis of the batch or output features, of features,
        and the spatial axes in the order of the kernel's.

    Raises:
        TypeError: for another type of ``dimension_numbers``.
        ValueError: for a wrong number of axes, or inconsistent letters.

    Example:
        >>> conv_dimension_numbers((1, 8, 8, 3), (3, 3, 3, 4), ("NHWC", "HWIO", "NHWC")).rhs_spec
        (3, 2, 0, 1)
    """
    n = len(lhs_shape)
    if n != len(rhs_shape) or n < 2:
        raise ValueError(
            "conv: input and kernel must have as many axes as each other, two at least, got the shapes "
            f"{tuple(lhs_shape)} and {tuple(rhs_shape)}"
        )
    if isinstance(dimension_numbers, ConvDimensionNumbers):
        return dimension_numbers
    if dimension_numbers is None:
        return ConvDimensionNumbers(*[tuple(range(n))] * 3)
    if len(dimension_numbers) != 3 or not all(isinstance(letters, str) for letters in dimension_numbers):
        raise TypeError(f"conv: dimension_numbers must be three strings, got {dimension_numbers!r}")
    lhs, rhs, out = dimension_numbers
    space = [letter for letter in rhs if letter not in "OI"]
    for letters, first in ((lhs, "NC"), (rhs, "OI"), (out, "NC")):
        if sorted(letters) != sorted([*first, *space]) or len(letters) != n or len(set(letters)) != n:
            raise ValueError(
                f"conv: dimension_numbers {dimension_numbers} must each have {n} letters, {first[0]!r}, {first[1]!r} "
                f"and those in space, {''.join(space)!r}, once"
            )
    return ConvDimensionNumbers(
        *[tuple(map(letters.index, (*first, *space))) for letters, first in ((lhs, "NC"), (rhs, "OI"), (out, "NC"))]
    )


def _pairs(padding: Padding, sizes: Sequence[int], spans: Sequence[int], strides: Sequence[int]) -> Any:
    if isinstance(padding, str):
        return tuple(padtype_to_pads(sizes, spans, strides, padding))
    return tuple((int(low), int(high)) for low, high in padding)


# ---------------------------------------------------------------- convolutions


def conv_general_dilated(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: Padding,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Letters = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Any:
    """A convolution; the kernel is not reversed.

    Args:
        lhs, rhs: the input and the kernel, of as many axes; promoted if dtypes differ.
        window_strides: the stride of the kernel along each spatial axis.
        padding: pairs, the zeros added before and after; ``"VALID"`` for none, or ``"SAME"``.
        lhs_dilation, rhs_dilation: the dilation of the input and of the kernel; by default 1.
        dimension_numbers: as for ``conv_dimension_numbers``.
        feature_group_count, batch_group_count: the number of groups into which the input's features, or its batch, are
            split.
        precision: as for ``dot_general``.
        preferred_element_type: the dtype of products, sums and the result.

    Returns:
        An array.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: for incompatible shapes, groups or numbers of entries.

    Example:
        >>> x, w = np.arange(5.0)[None, :, None], np.ones((3, 1, 1))
        >>> print(conv_general_dilated(x, w, (1,), "SAME", dimension_numbers=("NWC", "WIO", "NWC")).ravel())
        [1. 3. 6. 9. 7.]
    """
    x, w = preferred("conv_general_dilated", lhs, rhs, preferred_element_type)
    shape, kernel = type_of(x).shape, type_of(w).shape
    numbers = conv_dimension_numbers(shape, kernel, dimension_numbers)
    ones = (1,) * (len(shape) - 2)
    given = (window_strides, lhs_dilation or ones, rhs_dilation or ones)
    strides, spread, holes = (sizes_of("conv_general_dilated", v) for v in given)
    if not len(strides) == len(spread) == len(holes) == len(ones):
        raise ValueError(f"conv_general_dilated: strides and dilations must have {len(ones)} entries, got {given}")
    sizes = [dilated(shape[d], b) for d, b in zip(numbers.lhs_spec[2:], spread, strict=True)]
    spans = [dilated(kernel[d], h) for d, h in zip(numbers.rhs_spec[2:], holes, strict=True)]
    return c.convolve(
        x, w, strides=strides, padding=_pairs(padding, sizes, spans, strides), lhs_dilation=spread, rhs_dilation=holes,
        groups=feature_group_count, batch_groups=batch_group_count, layout=c.Layout(*map(tuple, numbers)),
    )  # fmt: skip


def conv(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: str,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Any:
    """A convolution of an input (batch, features, spatial) with a kernel (output features, input features, spatial).

    Args:
        lhs, rhs, window_strides, padding, precision, preferred_element_type: as for ``conv_general_dilated``.

    Returns:
        An array: batch, features, spatial.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: for incompatible shapes.

    Example:
        >>> print(conv(np.ones((1, 1, 4)), np.ones((1, 1, 3)), (1,), "VALID"))
        [[[3. 3.]]]
    """
    return conv_general_dilated(
        lhs, rhs, window_strides, padding, precision=precision, preferred_element_type=preferred_element_type
    )


def conv_with_general_padding(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: Padding,
    lhs_dilation: Sequence[int] | None,
    rhs_dilation: Sequence[int] | None,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Any:
    """``conv`` with arbitrary padding and dilation.

    Args:
        lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation: as for ``conv_general_dilated``.
        precision, preferred_element_type: as there.

    Returns:
        An array: batch, features, spatial.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: for incompatible shapes.

    Example:
        >>> print(conv_with_general_padding(np.ones((1, 1, 4)), np.ones((1, 1, 3)), (1,), [(1, 0)], None, (2,)))
        [[[2.]]]
    """
    return conv_general_dilated(
        lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation,
        precision=precision, preferred_element_type=preferred_element_type,
    )  # fmt: skip


def _transposed_pads(size: int, stride: int, padding: str) -> tuple[int, int]:
    """Padding with which a convolution of dilated inputs inverts the shape change of one with that padding."""
    if padding not in ("SAME", "VALID"):
        raise ValueError(f'conv_transpose: padding must be pairs of integers, "VALID" or "SAME", got {padding!r}')
    total = size + stride - 2 + (max(size - stride, 0) if padding == "VALID" else 0)
    low = size - 1 if padding == "VALID" or stride > size - 1 else -(-total // 2)
    return low, total - low


def conv_transpose(
    lhs: Any,
    rhs: Any,
    strides: Sequence[int],
    padding: Padding,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Letters = None,
    transpose_kernel: bool = False,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Any:
    """A convolution of the dilated input, for upsampling ("deconvolution").

    Args:
        lhs, rhs: the input and the kernel.
        strides: the upsampling factor along each spatial axis.
        padding: ``"SAME"`` for results larger by the strides, ``"VALID"`` for the inverse of the shape change of a
            valid convolution; or pairs, as for ``conv_general_dilated``.
        rhs_dilation: the dilation of the kernel; by default 1.
        dimension_numbers: as for ``conv_dimension_numbers``; None for batch, spatial, features, and kernels of spatial,
            input features, output features.
        transpose_kernel: reverses the kernel and swaps its feature axes, so that the result is the transpose of
            ``conv_general_dilated`` with the same kernel.
        precision, preferred_element_type: as for ``conv_general_dilated``.

    Returns:
        An array.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: for incompatible shapes.

    Example:
        >>> x, w = np.array([1.0, 2.0])[None, :, None], np.ones((2, 1, 1))
        >>> print(conv_transpose(x, w, (2,), "VALID").ravel())
        [1. 1. 2. 2.]
    """
    x, w = preferred("conv_transpose", lhs, rhs, preferred_element_type)
    ndim = type_of(x).ndim
    if dimension_numbers is None:
        space = tuple(range(1, ndim - 1))
        image = (0, ndim - 1, *space)
        dimension_numbers = ConvDimensionNumbers(image, (ndim - 1, ndim - 2, *range(ndim - 2)), image)
    numbers = conv_dimension_numbers(type_of(x).shape, type_of(w).shape, dimension_numbers)
    holes = tuple(rhs_dilation or (1,) * (ndim - 2))
    spans = [dilated(type_of(w).shape[d], h) for d, h in zip(numbers.rhs_spec[2:], holes, strict=True)]
    if isinstance(padding, str):
        padding = [_transposed_pads(k, n, padding.upper()) for k, n in zip(spans, strides, strict=True)]
    if transpose_kernel:
        out, into, *space_of_kernel = numbers.rhs_spec
        w = s.reverse(w, axes=tuple(space_of_kernel))
        numbers = ConvDimensionNumbers(numbers.lhs_spec, (into, out, *space_of_kernel), numbers.out_spec)
    return conv_general_dilated(x, w, (1,) * (ndim - 2), padding, strides, holes, numbers)


# ---------------------------------------------------------------- patches


def conv_general_dilated_patches(
    lhs: Any,
    filter_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Padding,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Letters = None,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Any:
    """The windows of the input along the feature axis (im2col): for each feature all elements of the window.

    Args:
        lhs: the input.
        filter_shape: the size of the window along each spatial axis.
        window_strides, padding, lhs_dilation, rhs_dilation: as for ``conv_general_dilated``.
        dimension_numbers, precision, preferred_element_type: as there.

    Returns:
        An array, whose number of features is multiplied by the window's elements.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: for incompatible shapes.

    Example:
        >>> print(conv_general_dilated_patches(np.array([[[1.0, 2.0, 3.0]]]), (2,), (1,), "VALID"))
        [[[1. 2.]
          [2. 3.]]]
    """
    x, _ = preferred("conv_general_dilated_patches", lhs, lhs, preferred_element_type)
    window, kind = sizes_of("conv_general_dilated_patches", filter_shape), type_of(x)
    count = math.prod(window)
    numbers = conv_dimension_numbers(kind.shape, (1,) * kind.ndim, dimension_numbers)
    features = kind.shape[numbers.lhs_spec[1]]
    one = np.tile(np.eye(count, dtype=kind.dtype).reshape(count, 1, *window), (features, *(1,) * (kind.ndim - 1)))
    kernel = np.transpose(one, np.argsort(numbers.rhs_spec).tolist())
    return conv_general_dilated(
        x, kernel, window_strides, padding, lhs_dilation, rhs_dilation, numbers, feature_group_count=features
    )


def conv_general_dilated_local(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: Padding,
    filter_shape: Sequence[int],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Letters = None,
    precision: Any = None,
) -> Any:
    """A convolution with a different kernel at each position.

    Args:
        lhs: the input.
        rhs: the kernels, whose input features are those of ``conv_general_dilated_patches``, and whose spatial axes are
            the result's.
        window_strides, padding, lhs_dilation, rhs_dilation: as for ``conv_general_dilated``.
        filter_shape: the size of the window along each spatial axis.
        dimension_numbers, precision: as there.

    Returns:
        An array.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: for incompatible shapes.

    Example:
        >>> x, w = np.array([[[1.0, 2.0, 3.0]]]), np.ones((1, 2, 2))
        >>> print(conv_general_dilated_local(x, w, (1,), "VALID", (2,)))
        [[[3. 5.]]]
    """
    x, w = preferred("conv_general_dilated_local", lhs, rhs, None)
    numbers = conv_dimension_numbers(type_of(x).shape, type_of(w).shape, dimension_numbers)
    patches = conv_general_dilated_patches(
        x, filter_shape, window_strides, padding, lhs_dilation, rhs_dilation,
        ConvDimensionNumbers(numbers.lhs_spec, numbers.rhs_spec, numbers.lhs_spec),
    )  # fmt: skip
    image, kernel = transpose(patches, numbers.lhs_spec), transpose(w, numbers.rhs_spec)
    space = tuple(range(2, type_of(x).ndim))
    found = dot(image, kernel, contract=((1,), (1,)), batch=(space, space))  # spatial, batch, features
    ordered = transpose(found, (len(space), len(space) + 1, *range(len(space))))
    return transpose(ordered, np.argsort(numbers.out_spec).tolist())
