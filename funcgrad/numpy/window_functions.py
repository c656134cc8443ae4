"""Window functions, and the Bessel function used by one of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.arguments import validate
from funcgrad.numpy import elementwise as e
from funcgrad.numpy.creation.arrays import asarray
from funcgrad.numpy.promotion import asoperand, promoted
from funcgrad.primitives.special import functions as special
from funcgrad.runtime.call_cache import composite


def _places(M: int, name: str) -> np.ndarray:
    """``M`` positions from -1 to 1, or 0 if ``M`` is one; float32, the default dtype."""
    M = validate.integer(name, "M", M, 0)
    return (np.arange(1 - M, M, 2) / max(M - 1, 1)).astype(np.float32)


def _cosines(M: int, name: str, *weights: float) -> Any:
    angles = np.pi * _places(M, name)
    terms = [np.float32(w) * e.cos(angles * np.float32(k)) for k, w in enumerate(weights)]
    total = terms[0]
    for term in terms[1:]:
        total = e.add(total, term)
    return total


def hanning(M: int) -> Any:
    """The Hann window: a raised cosine, 0 at both ends.

    Args:
        M: the number of places, an int.

    Returns:
        A vector of ``M`` elements, float32.

    Raises:
        TypeError: for an argument that is not a number, or traced.
        ValueError: where ``M`` is negative.

    Example:
        >>> print(hanning(3))
        [0. 1. 0.]
    """
    return _cosines(M, "hanning", 0.5, 0.5)


def hamming(M: int) -> Any:
    """The Hamming window: a raised cosine, 0.08 at both ends.

    Args:
        M: the number of places, an int.

    Returns:
        A vector of ``M`` elements, float32.

    Raises:
        TypeError: for an argument that is not a number, or traced.
        ValueError: where ``M`` is negative.

    Example:
        >>> print(hamming(1))
        [1.]
    """
    return _cosines(M, "hamming", 0.54, 0.46)


@composite
def blackman(M: int) -> Any:
    """The Blackman window: of two cosines, 0 at both ends.

    Args:
        M: the number of places, an int.

    Returns:
        A vector of ``M`` elements, float32.

    Raises:
        TypeError: for an argument that is not a number, or traced.
        ValueError: where ``M`` is negative.

    Example:
        >>> print(blackman(1))
        [1.]
    """
    return _cosines(M, "blackman", 0.42, 0.5, 0.08)


def bartlett(M: int) -> Any:
    """The Bartlett window: a triangle, 0 at both ends.

    Args:
        M: the number of places, an int.

    Returns:
        A vector of ``M`` elements, float32.

    Raises:
        TypeError: for an argument that is not a number, or traced.
        ValueError: where ``M`` is negative.

    Example:
        >>> print(bartlett(3))
        [0. 1. 0.]
    """
    return e.subtract(1.0, e.absolute(_places(M, "bartlett")))


@composite
def kaiser(M: int, beta: Any) -> Any:
    """The Kaiser window, narrower for larger ``beta``.

    Args:
        M: the number of places, an int.
        beta: a real number, which may be traced and differentiated.

    Returns:
        A vector of ``M`` elements, float32, or float64 as ``beta`` is.

    Raises:
        TypeError: for an argument that is not a number, a traced ``M``, or a complex ``beta``.
        ValueError: where ``M`` is negative.

    Example:
        >>> print(kaiser(3, 0.0))
        [1. 1. 1.]
    """
    beta = asoperand(beta, "kaiser")
    places = _places(M, "kaiser")
    height = np.sqrt(np.maximum(1 - places * places, 0), dtype=np.float32)
    return e.divide(i0(e.multiply(beta, height)), i0(beta))


def i0(x: Any) -> Any:
    """The modified Bessel function of the first kind, of order 0.

    Args:
        x: a real array or number.

    Returns:
        An array of the shape of ``x``; of the dtype of ``x``, float32 of bools and integers.

    Raises:
        TypeError: for operands that are not arrays, or complex numbers.

    Example:
        >>> print(i0(0.0))
        1.0
    """
    (x,) = promoted(asarray(asoperand(x, "i0")), floating=True)
    return special.i0(x)


__all__ = ["bartlett", "blackman", "hamming", "hanning", "i0", "kaiser"]
