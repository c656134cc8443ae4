"""Convolution and correlation of arrays of any rank."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from funcgrad import fft
from funcgrad.arguments import validate
from funcgrad.core.tracing import type_of
from funcgrad.nn.layers import conv
from funcgrad.numpy.elementwise import conj, multiply
from funcgrad.numpy.promotion import asoperand, promoted
from funcgrad.numpy.shape import flip, reshape, transpose
from funcgrad.primitives.shape import cut
from funcgrad.runtime.call_cache import composite

__all__ = ["convolve", "correlate", "fftconvolve"]

Pairs = tuple[Sequence[int], Sequence[int]]


def _pairs(name: str, what: str, given: Pairs) -> tuple[list[int], list[int]]:
    """The pairs of axes of both operands."""
    parts = validate.pair(name, what, given, "two sequences of axes")
    mine, its = (list(validate.sequence(name, f"each of {what}", part)) for part in parts)
    if len(mine) != len(its):
        raise ValueError(f"{name}: {what} {mine} and {its} do not pair")
    return mine, its


def _operands(name: str, in1: Any, in2: Any, mode: str, paired: bool) -> tuple[Any, Any]:
    validate.one_of(name, "mode", mode, ("full", "valid", "same"))
    a, b = promoted(asoperand(in1, name), asoperand(in2, name), floating=True)
    first, second = type_of(a), type_of(b)
    if paired and first.ndim != second.ndim:
        raise ValueError(f"{name}: operands must have as many axes, got {first} and {second}")
    return a, b


def _is_within(name: str, sizes: Sequence[Sequence[int]]) -> bool:
    """Whether the second operand is no larger than the first along each axis, rather than the other way."""
    if all(n >= k for n, k in zip(*sizes, strict=True)):
        return True
    if any(n > k for n, k in zip(*sizes, strict=True)):
        raise ValueError(f"{name}: for mode 'valid' one must lie in the other, got sizes {sizes[0]} and {sizes[1]}")
    return False


@composite
def convolve(
    in1: Any,
    in2: Any,
    mode: str = "full",
    method: str = "auto",
    *,
    axes: Pairs | None = None,
    dot_axes: Pairs = ((), ()),
) -> Any:
    """The convolution of two arrays.

    Args:
        in1, in2: arrays, of equal rank unless ``axes`` is given.
        mode: ``"full"``, all; ``"valid"``, the positions of complete overlap; ``"same"``, the middle, of the size of
            ``in1``.
        method: ``"direct"``, ``"fft"``, or ``"auto"``, which is direct.
        axes: pairs of axes to convolve; by default all in order. The others are independent: the result has those of
            ``in1``, then those of ``in2``, then the convolved ones.
        dot_axes: pairs of axes to multiply and sum.

    Returns:
        Along each axis ``n + k - 1`` elements if ``"full"``, ``n`` if ``"same"``, ``max(n, k) - min(n, k) + 1`` if
        ``"valid"``, for ``n`` of ``in1`` and ``k`` of ``in2``; of the promoted floating dtype, integers as float32.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: for an unknown mode or method, mismatched axes, an empty ``in2``, or ``"valid"`` if neither fits in
            the other.

    Example:
        >>> print(convolve(np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0])))
        [1. 3. 5. 3.]
    """
    return _convolved("convolve", in1, in2, mode, method, axes, dot_axes)


def _convolved(
    name: str, in1: Any, in2: Any, mode: str, method: str, axes: Pairs | None = None, dot_axes: Pairs = ((), ())
) -> Any:
    a, b = _operands(name, in1, in2, mode, axes is None)
    if validate.one_of(name, "method", method, ("auto", "direct", "fft")) == "fft" and axes is None:
        return _by_transforms(name, a, b, mode)
    first, second = type_of(a), type_of(b)
    along = (range(first.ndim), range(first.ndim)) if axes is None else _pairs(name, "axes", axes)
    dots = _pairs(name, "dot_axes", dot_axes)
    mine, its = (_axes(name, x.ndim, c, d) for x, c, d in zip((first, second), along, dots, strict=True))
    sizes = [first.shape[i] for i in mine[2]], [second.shape[i] for i in its[2]]
    if 0 in sizes[1]:
        raise ValueError(f"{name}: in2 must not be empty, got {second}")
    if mode == "valid" and not _is_within(name, sizes) and axes is None:
        return _convolved(name, b, a, mode, method)
    image, kernel = _arranged(a, mine), flip(_arranged(b, its), tuple(range(2, 2 + len(its[2]))))
    if not sizes[0]:
        # Without axes to convolve, one of size one is added.
        image, kernel = (reshape(x, (*type_of(x).shape, 1)) for x in (image, kernel))
    padding = tuple(0 if mode == "valid" else k - 1 for k in sizes[1]) or 0
    found = conv(image, kernel, padding=padding)
    shape = (*[first.shape[i] for i in mine[0]], *[second.shape[i] for i in its[0]])
    found = reshape(found, (*shape, *type_of(found).shape[2 : 2 + len(sizes[0])]))
    if mode == "same":
        for axis, (n, k) in enumerate(zip(*sizes, strict=True), len(shape)):
            found = cut(found, axis, (k - 1) // 2, (k - 1) // 2 + n)
    return found


def _axes(name: str, ndim: int, along: Sequence[int], dots: Sequence[int]) -> tuple[list[int], list[int], list[int]]:
    """The independent, the summed and the convolved axes."""
    convolved = [validate.axis(name, i, ndim) for i in along]
    summed = [validate.axis(name, i, ndim) for i in dots]
    return [i for i in range(ndim) if i not in (*convolved, *summed)], summed, convolved


def _arranged(x: Any, axes: tuple[list[int], list[int], list[int]]) -> Any:
    """The array as (independent, summed, convolved...), with the first two groups merged."""
    free, summed, convolved = axes
    shape = type_of(x).shape
    sizes = [int(np.prod([shape[i] for i in group], dtype=int)) for group in (free, summed)]
    return reshape(transpose(x, (*free, *summed, *convolved)), (*sizes, *[shape[i] for i in convolved]))


@composite
def correlate(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Any:
    """The correlation of two arrays: the convolution with the second one reversed and conjugated.

    Args:
        in1, in2, mode, method: as for ``convolve``.

    Returns:
        As for ``convolve``.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: for an unknown mode or method, operands of different ranks, an empty ``in2``, or ``"valid"`` if
            neither fits in the other.

    Example:
        >>> print(correlate(np.array([1.0, 2.0, 3.0]), np.array([0.0, 1.0])))
        [1. 2. 3. 0.]
    """
    other = conj(flip(asoperand(in2, "correlate")))
    return _convolved("correlate", in1, other, mode, method)


@composite
def fftconvolve(in1: Any, in2: Any, mode: str = "full") -> Any:
    """``convolve`` by Fourier transforms, which is faster for large arrays.

    Args:
        in1, in2, mode: as for ``convolve``; not scalars, and of equal rank.

    Returns:
        As for ``convolve``, but float32 for float16.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: for an unknown mode, operands of different ranks, scalars or empty arrays, or ``"valid"`` if neither
            fits in the other.

    Example:
        >>> print(fftconvolve(np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0])).round(4))
        [1. 3. 5. 3.]
    """
    a, b = _operands("fftconvolve", in1, in2, mode, True)
    return _by_transforms("fftconvolve", a, b, mode)


def _by_transforms(name: str, a: Any, b: Any, mode: str) -> Any:
    first, second = type_of(a), type_of(b)
    if not first.ndim or 0 in (*first.shape, *second.shape):
        raise ValueError(f"{name}: operands must have axes, none of them empty, got {first} and {second}")
    if mode == "valid":
        _is_within(name, (first.shape, second.shape))
    full = [n + k - 1 for n, k in zip(first.shape, second.shape, strict=True)]
    if first.dtype.kind == "c":
        found = fft.ifftn(multiply(fft.fftn(a, full), fft.fftn(b, full)))
    else:
        found = fft.irfftn(multiply(fft.rfftn(a, full), fft.rfftn(b, full)), full)
    for axis, (n, k, whole) in enumerate(zip(first.shape, second.shape, full, strict=True)):
        count = whole if mode == "full" else n if mode == "same" else max(n, k) - min(n, k) + 1
        start = (whole - count) // 2
        found = cut(found, axis, start, start + count)
    return found
