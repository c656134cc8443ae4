"""Discrete Fourier transforms, with the names and arguments of ``numpy.fft``.

float32 arrays have complex64 transforms, float64 arrays complex128 ones. ``norm`` selects the direction that is divided
by the number ``n`` of elements: ``"backward"``, the inverse; ``"forward"``, the other; ``"ortho"``, both by
``sqrt(n)``. ``a`` and ``x`` are arrays. ``axis`` and ``axes`` are the transformed axes, ``n`` and ``s`` the sizes along
them, to which arrays are zero-padded or cropped; ``s`` has one size for each of ``axes``.

Example:
    >>> import funcgrad as fg, funcgrad.numpy as fnp
    >>> from funcgrad import fft
    >>> energy = lambda x: fnp.sum(fnp.abs(fft.rfft(x)) ** 2)
    >>> print(fg.grad(energy)(fnp.array([1.0, 2.0, 0.0])))
    [6. 9. 3.]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad.arguments import validate
from funcgrad.core import dtypes
from funcgrad.core.tracing import type_of
from funcgrad.numpy.fourier import (
    OPPOSITE,
    Axes,
    checked_norm,
    complex_transform,
    size_of_one,
    transform_of_real,
    transform_to_real,
    transformable,
)
from funcgrad.numpy.promotion import asoperand
from funcgrad.numpy.shape import roll
from funcgrad.primitives.elementwise import conj
from funcgrad.runtime import from_numpy

__all__ = [
    "fft", "ifft", "fft2", "ifft2", "fftn", "ifftn", "rfft", "irfft", "rfft2", "irfft2", "rfftn", "irfftn",
    "hfft", "ihfft", "fftfreq", "rfftfreq", "fftshift", "ifftshift",
]  # fmt: skip

# ---------------------------------------------------------------- complex


def fft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Any:
    """The Fourier transform along an axis: ``sum(a[j] * exp(-2j * pi * j * k / n) for j in range(n))``.

    Args:
        a: an array with at least one axis; a real one becomes complex.
        n: how many elements to transform; ``a`` is cut, or filled up with zeros. All if not given.
        axis: an int.
        norm: ``"backward"``, ``"ortho"`` or ``"forward"``: see the module's docstring.

    Returns:
        An array of size ``n`` along the axis: complex64, or complex128 for double precision.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: for an axis out of range, no elements, or an unknown ``norm``.

    Example:
        >>> print(fft(np.array([1.0, 0.0, 0.0, 0.0])).real)
        [1. 1. 1. 1.]
    """
    return complex_transform(a, size_of_one(n), (axis,), norm, False, "fft")


def ifft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Any:
    """The inverse of ``fft``.

    Args:
        a: an array with at least one axis; a real one becomes complex.
        n: how many elements to transform; ``a`` is cut, or filled up with zeros. All if not given.
        axis: an int.
        norm: ``"backward"``, ``"ortho"`` or ``"forward"``: see the module's docstring.

    Returns:
        An array of size ``n`` along the axis: complex64, or complex128 for double precision.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: for an axis out of range, no elements, or an unknown ``norm``.

    Example:
        >>> print(ifft(fft(np.array([1.0, 2.0, 4.0]))).real.round(5))
        [1. 2. 4.]
    """
    return complex_transform(a, size_of_one(n), (axis,), norm, True, "ifft")


def fftn(a: Any, s: Axes = None, axes: Axes = None, norm: str | None = None) -> Any:
    """The Fourier transform along several axes.

    Args:
        a: an array; a real one becomes complex.
        s: how many elements to transform along each axis, one number for each; -1, or no ``s``, for all.
        axes: a sequence of ints; one that is there twice is transformed twice. If not given, the last
            ``len(s)``, or all.
        norm: ``"backward"``, ``"ortho"`` or ``"forward"``: see the module's docstring.

    Returns:
        An array of the shape of ``a``, with sizes ``s`` along the axes: complex64, or complex128 for double
        precision.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: for axes out of range, ``s`` of another length, no elements, or an unknown ``norm``.

    Example:
        >>> print(fftn(np.ones((2, 2))).real)
        [[4. 0.]
         [0. 0.]]
    """
    return complex_transform(a, s, axes, norm, False, "fftn")


def ifftn(a: Any, s: Axes = None, axes: Axes = None, norm: str | None = None) -> Any:
    """The inverse of ``fftn``.

    Args:
        a: an array; a real one becomes complex.
        s: how many elements to transform along each axis, one number for each; -1, or no ``s``, for all.
        axes: a sequence of ints; one that is there twice is transformed twice. If not given, the last
            ``len(s)``, or all.
        norm: ``"backward"``, ``"ortho"`` or ``"forward"``: see the module's docstring.

    Returns:
        An array of the shape of ``a``, with sizes ``s`` along the axes: complex64, or complex128 for double
        precision.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: for axes out of range, ``s`` of another length, no elements, or an unknown ``norm``.

    Example:
        >>> print(ifftn(fftn(np.eye(2))).real)
        [[1. 0.]
         [0. 1.]]
    """
    return complex_transform(a, s, axes, norm, True, "ifftn")


def fft2(a: Any, s: Axes = None, axes: Axes = (-2, -1), norm: str | None = None) -> Any:
    """``fftn`` along two axes, the last two unless others are named.

    Args:
        a: an array that has these axes; a real one becomes complex.
        s: how many elements to transform along each axis, one number for each; -1, or no ``s``, for all.
        axes: a sequence of ints.
        norm: ``"backward"``, ``"ortho"`` or ``"forward"``: see the module's docstring.

    Returns:
        An array of the shape of ``a``, with sizes ``s`` along the axes: complex64, or complex128 for double
        precision.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: for axes out of range, ``s`` of another length, no elements, or an unknown ``norm``.

    Example:
        >>> fft2(np.ones((3, 2, 4))).shape
        (3, 2, 4)
    """
    return complex_transform(a, s, axes, norm, False, "fft2")


def ifft2(a: Any, s: Axes = None, axes: Axes = (-2, -1), norm: str | None = None) -> Any:
    """``ifftn`` along two axes, the last two unless others are named.

    Args:
        a: an array that has these axes; a real one becomes complex.
        s: how many elements to transform along each axis, one number for each; -1, or no ``s``, for all.
        axes: a sequence of ints.
        norm: ``"backward"``, ``"ortho"`` or ``"forward"``: see the module's docstring.

    Returns:
        An array of the shape of ``a``, with sizes ``s`` along the axes: complex64, or complex128 for double
        precision.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: for axes out of range, ``s`` of another length, no elements, or an unknown ``norm``.

    Example:
        >>> ifft2(np.ones((3, 2, 4))).shape
        (3, 2, 4)
    """
    return complex_transform(a, s, axes, norm, True, "ifft2")


# ---------------------------------------------------------------- real


def rfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Any:
    """The first ``n // 2 + 1`` elements of the transform of a real array; the others are their conjugates.

    Args:
        a: a real array with at least one axis; integers become float32.
        n: how many elements to transform; ``a`` is cut, or filled up with zeros. All if not given.
        axis: an int.
        norm: ``"backward"``, ``"ortho"`` or ``"forward"``: see the module's docstring.

    Returns:
        An array of size ``n // 2 + 1`` along the axis: complex64, or complex128 for double precision.

    Raises:
        TypeError: for operands that are not arrays, or a complex one.
        ValueError: for an axis out of range, no elements, or an unknown ``norm``.

    Example:
        >>> print(rfft(np.array([1.0, 1.0, 1.0])).real)
        [3. 0.]
    """
    return transform_of_real(a, size_of_one(n), (axis,), norm, "rfft")


def irfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Any:
    """The inverse of ``rfft``: a real array, from half of its transform.

    Args:
        a: complex coefficients; the imaginary part of the first, and of the last for an even ``n``, does not count.
        n: the number of elements of the result; ``2 * (m - 1)`` if not given, for ``m`` coefficients.
        axis, norm: as for ``fft``.

    Returns:
        A real array, of size ``n`` along the axis: float32, or float64 for double precision.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: as for ``fft``; so for one coefficient without ``n``.

    Example:
        >>> print(irfft(rfft(np.array([1.0, 2.0, 3.0])), 3).round(5))
        [1. 2. 3.]
    """
    return transform_to_real(a, size_of_one(n), (axis,), norm, "irfft")


def rfftn(a: Any, s: Axes = None, axes: Axes = None, norm: str | None = None) -> Any:
    """``rfft`` along the last of ``axes``, then ``fft`` along the others.

    Args:
        a: a real array with at least one axis; integers become float32.
        s: how many elements to transform along each axis, one number for each; -1, or no ``s``, for all.
        axes: a sequence of ints, the last of them only once. If not given, the last ``len(s)``, or all.
        norm: ``"backward"``, ``"ortho"`` or ``"forward"``: see the module's docstring.

    Returns:
        An array of the sizes ``s`` along the axes, ``s[-1] // 2 + 1`` along the last: complex64, or complex128
        for double precision.

    Raises:
        TypeError: for operands that are not arrays, or a complex one.
        ValueError: for axes out of range, no axis at all, the last one named twice, ``s`` of another
            length, no elements, or an unknown ``norm``.

    Example:
        >>> rfftn(np.ones((3, 4))).shape
        (3, 3)
    """
    return transform_of_real(a, s, axes, norm, "rfftn")


def irfftn(a: Any, s: Axes = None, axes: Axes = None, norm: str | None = None) -> Any:
    """The inverse of ``rfftn``; the size along the last axis as for ``irfft``.

    Args:
        a: an array with at least one axis; a real one becomes complex.
        s: the sizes of the result along the axes; if not given, those of ``a``, and ``2 * (m - 1)`` along the
            last, for ``m`` coefficients.
        axes: a sequence of ints, the last of them only once. If not given, the last ``len(s)``, or all.
        norm: ``"backward"``, ``"ortho"`` or ``"forward"``: see the module's docstring.

    Returns:
        A real array of the sizes ``s`` along the axes: float32, or float64 for double precision.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: for axes out of range, no axis at all, the last one named twice, ``s`` of another
            length, no elements, or an unknown ``norm``.

    Example:
        >>> irfftn(rfftn(np.ones((3, 5))), (3, 5)).shape
        (3, 5)
    """
    return transform_to_real(a, s, axes, norm, "irfftn")


def rfft2(a: Any, s: Axes = None, axes: Axes = (-2, -1), norm: str | None = None) -> Any:
    """``rfftn`` along two axes, the last two unless others are named.

    Args:
        a: a real array that has these axes; integers become float32.
        s: how many elements to transform along each axis, one number for each; -1, or no ``s``, for all.
        axes: a sequence of ints.
        norm: ``"backward"``, ``"ortho"`` or ``"forward"``: see the module's docstring.

    Returns:
        An array of the sizes ``s`` along the axes, ``s[-1] // 2 + 1`` along the last: complex64, or complex128
        for double precision.

    Raises:
        TypeError: for operands that are not arrays, or a complex one.
        ValueError: for axes out of range, no axis at all, the last one named twice, ``s`` of another
            length, no elements, or an unknown ``norm``.

    Example:
        >>> rfft2(np.ones((5, 3, 4))).shape
        (5, 3, 3)
    """
    return transform_of_real(a, s, axes, norm, "rfft2")


def irfft2(a: Any, s: Axes = None, axes: Axes = (-2, -1), norm: str | None = None) -> Any:
    """``irfftn`` along two axes, the last two unless others are named.

    Args:
        a: an array that has these axes; a real one becomes complex.
        s: the sizes of the result along the axes; if not given, those of ``a``, and ``2 * (m - 1)`` along the
            last, for ``m`` coefficients.
        axes: a sequence of ints.
        norm: ``"backward"``, ``"ortho"`` or ``"forward"``: see the module's docstring.

    Returns:
        A real array of the sizes ``s`` along the axes: float32, or float64 for double precision.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: for axes out of range, no axis at all, the last one named twice, ``s`` of another
            length, no elements, or an unknown ``norm``.

    Example:
        >>> irfft2(np.ones((5, 3, 3))).shape
        (5, 3, 4)
    """
    return transform_to_real(a, s, axes, norm, "irfft2")


def hfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Any:
    """The real transform of a Hermitian-symmetric array given by its first half.

    Args:
        a: the first ``n // 2 + 1`` elements.
        n: the number of elements of the result; ``2 * (m - 1)`` if not given, for ``m`` elements.
        axis, norm: as for ``fft``.

    Returns:
        A real array, of size ``n`` along the axis: float32, or float64 for double precision.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: as for ``fft``; so for one element without ``n``.

    Example:
        >>> print(hfft(np.array([1.0, 0.0, 0.0])))
        [1. 1. 1. 1.]
    """
    x = conj(transformable(a, "hfft"))
    return transform_to_real(x, size_of_one(n), (axis,), OPPOSITE.get(norm or "backward", norm), "hfft")


def ihfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Any:
    """The inverse of ``hfft``: the first half of the inverse transform of a real array.

    Args:
        a: a real array with at least one axis; integers become float32.
        n: how many elements to transform; ``a`` is cut, or filled up with zeros. All if not given.
        axis: an int.
        norm: ``"backward"``, ``"ortho"`` or ``"forward"``: see the module's docstring.

    Returns:
        An array of size ``n // 2 + 1`` along the axis: complex64, or complex128 for double precision.

    Raises:
        TypeError: for operands that are not arrays, or a complex one.
        ValueError: for an axis out of range, no elements, or an unknown ``norm``.

    Example:
        >>> print(ihfft(np.array([1.0, 1.0, 1.0, 1.0])).real)
        [1. 0. 0.]
    """
    return conj(transform_of_real(a, size_of_one(n), (axis,), OPPOSITE[checked_norm(norm, "ihfft")], "ihfft"))


# ---------------------------------------------------------------- frequencies


def _frequencies(counts: Callable[[int], np.ndarray], n: int, d: float, dtype: Any, name: str) -> Any:
    n, d = validate.integer(name, "n", n, least=1), validate.number(name, "d", d)
    kind = dtypes.canonical(float if dtype is None else dtype)
    if not dtypes.is_floating(kind):
        raise TypeError(f"{name}: dtype must be floating, got {kind}")
    return from_numpy((counts(n) / (n * d)).astype(kind))


def fftfreq(n: int, d: float = 1.0, dtype: Any = None, device: Any = None) -> Any:
    """The frequency of each coefficient of ``fft``, in cycles per unit of ``d``.

    Args:
        n: the number of elements.
        d: the sample spacing, a number.
        dtype: floating; float32 if not given.
        device: accepted for the array API; there is one device.

    Returns:
        ``dtype[n]``: the non-negative frequencies, then the negative ones.

    Raises:
        TypeError: for a dtype that is not floating.
        ValueError: for an ``n`` that is not positive.

    Example:
        >>> print(fftfreq(4))
        [ 0.    0.25 -0.5  -0.25]
    """
    return _frequencies(lambda n: (np.arange(n) + n // 2) % n - n // 2, n, d, dtype, "fftfreq")


def rfftfreq(n: int, d: float = 1.0, dtype: Any = None, device: Any = None) -> Any:
    """The frequency of each coefficient of ``rfft``.

    Args:
        n, d, dtype, device: as for ``fftfreq``.

    Returns:
        ``dtype[n // 2 + 1]``.

    Raises:
        TypeError: for a dtype that is not floating.
        ValueError: for an ``n`` that is not positive.

    Example:
        >>> print(rfftfreq(4))
        [0.   0.25 0.5 ]
    """
    return _frequencies(lambda n: np.arange(n // 2 + 1), n, d, dtype, "rfftfreq")


def fftshift(x: Any, axes: int | Axes = None) -> Any:
    """The elements rolled so that frequency 0 is in the middle.

    Args:
        x: an array of any dtype.
        axes: an int or several; all if not given.

    Returns:
        An array of the shape and the dtype of ``x``.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: for an axis out of range, or is named twice.

    Example:
        >>> print(fftshift(fftfreq(4)))
        [-0.5  -0.25  0.    0.25]
    """
    return _shifted(x, axes, 1, "fftshift")


def ifftshift(x: Any, axes: int | Axes = None) -> Any:
    """The inverse of ``fftshift``.

    Args:
        x: an array of any dtype.
        axes: an int or several; all if not given.

    Returns:
        An array of the shape and the dtype of ``x``.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: for an axis out of range, or is named twice.

    Example:
        >>> print(ifftshift(fftshift(np.arange(5))))
        [0 1 2 3 4]
    """
    return _shifted(x, axes, -1, "ifftshift")


def _shifted(x: Any, axes: int | Axes, direction: int, name: str) -> Any:
    x = asoperand(x, name)
    chosen = validate.axes(name, axes, type_of(x).ndim)
    # Half of the size, rounded down in one direction and up in the other.
    return roll(x, [direction * (type_of(x).shape[a] // 2) for a in chosen], list(chosen)) if chosen else x
