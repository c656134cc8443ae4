"""Convolution and correlation of arrays of any number of axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from funcgrad import fft
from funcgrad.nn import conv
from funcgrad.numpy.elementwise import conj, multiply
from funcgrad.numpy.promotion import asoperand, normalized_axis, promoted
from funcgrad.numpy.shape import flip, reshape, transpose
from funcgrad.primitives.shape import slice_
from funcgrad.tracing import type_of

__all__ = ["convolve", "correlate", "fftconvolve"]

Pairs = tuple[Sequence[int], Sequence[int]]


def _part(x: Any, axis: int, start: int, count: int) -> Any:
    shape = type_of(x).shape
    low, high = [0] * len(shape), list(shape)
    low[axis], high[axis] = start, start + count
    return slice_(x, start=tuple(low), limit=tuple(high), strides=(1,) * len(shape))


def _check_mode(name: str, mode: str) -> None:
    if mode not in ("full", "valid", "same"):
        raise ValueError(f'{name}: mode must be "full", "valid" or "same", got {mode!r}')


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
        in1, in2: arrays, of as many axes unless ``axes`` is given.
        mode: ``"full"``, all that there is; ``"valid"``, where all of one lies in the other; ``"same"``, the middle, of
            the size of ``in1``.
        method: ``"direct"``, ``"fft"``, or ``"auto"``, which is direct.
        axes: the axes of each that are convolved, pairwise; all in order if not given. The others are independent: the
            result has those of ``in1`` first, then those of ``in2``, then the convolved ones.
        dot_axes: axes of each that are multiplied and summed, pairwise.

    Returns:
        Along each axis ``n + k - 1`` elements if ``"full"``, ``n`` if ``"same"``, ``max(n, k) - min(n, k) + 1`` if
        ``"valid"``, for ``n`` of ``in1`` and ``k`` of ``in2``; of the promoted floating dtype, integers as float32.

    Raises:
        TypeError: for what is no array.
        ValueError: for an unknown mode, axes that do not pair, an empty ``in2``, or ``"valid"`` where neither lies in
            the other.

    Example:
        >>> print(convolve(np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0])))
        [1. 3. 5. 3.]
    """
    _check_mode("convolve", mode)
    if method == "fft" and axes is None:
        return fftconvolve(in1, in2, mode)
    a, b = promoted(asoperand(in1, "convolve"), asoperand(in2, "convolve"), floating=True)
    first, second = type_of(a), type_of(b)
    if axes is None and first.ndim != second.ndim:
        raise ValueError(f"convolve: operands must have as many axes, got {first} and {second}")
    along = axes if axes is not None else (range(first.ndim), range(first.ndim))
    mine, its = (_axes(x.ndim, c, d) for x, c, d in zip((first, second), along, dot_axes, strict=True))
    if len(mine[2]) != len(its[2]) or len(mine[1]) != len(its[1]):
        raise ValueError(f"convolve: axes {tuple(map(tuple, along))} or {tuple(map(tuple, dot_axes))} do not pair")
    sizes = [first.shape[i] for i in mine[2]], [second.shape[i] for i in its[2]]
    if mode == "valid" and any(n < k for n, k in zip(*sizes, strict=True)):
        if any(n > k for n, k in zip(*sizes, strict=True)):
            raise ValueError(f"convolve: for mode 'valid' one must lie in the other, got {first} and {second}")
        if axes is None:
            return convolve(b, a, mode, method)
    image, kernel = _arranged(a, mine), flip(_arranged(b, its), tuple(range(2, 2 + len(its[2]))))
    if not sizes[0]:
        # Nothing is convolved: one axis of size one is.
        image, kernel = (reshape(x, (*type_of(x).shape, 1)) for x in (image, kernel))
    padding = tuple(0 if mode == "valid" else k - 1 for k in sizes[1]) or 0
    found = conv(image, kernel, padding=padding)
    shape = (*[first.shape[i] for i in mine[0]], *[second.shape[i] for i in its[0]])
    found = reshape(found, (*shape, *type_of(found).shape[2 : 2 + len(sizes[0])]))
    if mode == "same":
        for axis, (n, k) in enumerate(zip(*sizes, strict=True), len(shape)):
            found = _part(found, axis, (k - 1) // 2, n)
    return found


def _axes(ndim: int, along: Sequence[int], dots: Sequence[int]) -> tuple[list[int], list[int], list[int]]:
    """The independent axes, the summed ones and the convolved ones."""
    convolved = [normalized_axis(i, ndim, "convolve") for i in along]
    summed = [normalized_axis(i, ndim, "convolve") for i in dots]
    return [i for i in range(ndim) if i not in (*convolved, *summed)], summed, convolved


def _arranged(x: Any, axes: tuple[list[int], list[int], list[int]]) -> Any:
    """As (independent, summed, convolved...), the first two groups each as one axis."""
    free, summed, convolved = axes
    shape = type_of(x).shape
    sizes = [int(np.prod([shape[i] for i in group], dtype=int)) for group in (free, summed)]
    return reshape(transpose(x, (*free, *summed, *convolved)), (*sizes, *[shape[i] for i in convolved]))


def correlate(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Any:
    """The correlation of two arrays: the convolution with the second one reversed and conjugated.

    Args:
        in1, in2, mode, method: as for ``convolve``.

    Returns:
        As for ``convolve``.

    Raises:
        TypeError: for what is no array.
        ValueError: for an unknown mode, operands of different numbers of axes, an empty ``in2``, or ``"valid"`` where
            neither lies in the other.

    Example:
        >>> print(correlate(np.array([1.0, 2.0, 3.0]), np.array([0.0, 1.0])))
        [1. 2. 3. 0.]
    """
    other = conj(flip(asoperand(in2, "correlate")))
    return convolve(in1, other, mode, method)


def fftconvolve(in1: Any, in2: Any, mode: str = "full") -> Any:
    """``convolve`` by Fourier transforms, which is faster for large arrays.

    Args:
        in1, in2, mode: as for ``convolve``; not numbers, and of as many axes.

    Returns:
        As for ``convolve``, but float32 of float16.

    Raises:
        TypeError: for what is no array.
        ValueError: for an unknown mode, operands of different numbers of axes, or of none.

    Example:
        >>> print(fftconvolve(np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0])).round(4))
        [1. 3. 5. 3.]
    """
    _check_mode("fftconvolve", mode)
    a, b = promoted(asoperand(in1, "fftconvolve"), asoperand(in2, "fftconvolve"), floating=True)
    first, second = type_of(a), type_of(b)
    if first.ndim != second.ndim:
        raise ValueError(f"fftconvolve: operands must have as many axes, got {first} and {second}")
    full = [n + k - 1 for n, k in zip(first.shape, second.shape, strict=True)]
    if first.dtype.kind == "c":
        found = fft.ifftn(multiply(fft.fftn(a, full), fft.fftn(b, full)))
    else:
        found = fft.irfftn(multiply(fft.rfftn(a, full), fft.rfftn(b, full)), full)
    for axis, (n, k, whole) in enumerate(zip(first.shape, second.shape, full, strict=True)):
        count = whole if mode == "full" else n if mode == "same" else max(n, k) - min(n, k) + 1
        found = _part(found, axis, (whole - count) // 2, count)
    return found
