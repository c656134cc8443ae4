"""The exponential distribution, of mean ``scale`` from ``loc`` on."""

from __future__ import annotations

from typing import Any

from funcgrad.composite import composite
from funcgrad.numpy import elementwise as n
from funcgrad.scipy.stats.parts import inside, standard


@composite
def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the density.

    Args:
        x: where; real, as all arguments are, which broadcast together. Integers count as float32.
        loc, scale: the variable is a standard one times ``scale``, which is positive, plus ``loc``.

    Returns:
        A floating array of the broadcast shape and the promoted dtype.

    Raises:
        TypeError: for what is no array, or is complex.
        ValueError: for shapes that do not broadcast.

    Example:
        >>> print(logpdf(2.0))
        -2.0
    """
    z, scale = standard("expon.logpdf", x, loc, scale)
    return inside(n.greater_equal(z, 0), n.negative(n.add(z, n.log(scale))))


@composite
def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density.

    Args:
        x: where; real, as all arguments are, which broadcast together. Integers count as float32.
        loc, scale: the variable is a standard one times ``scale``, which is positive, plus ``loc``.

    Returns:
        A floating array of the broadcast shape and the promoted dtype.

    Raises:
        TypeError: for what is no array, or is complex.
        ValueError: for shapes that do not broadcast.

    Example:
        >>> print(pdf(0.0))
        1.0
    """
    return n.exp(logpdf(x, loc, scale))


@composite
def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability to be below ``x``.

    Args:
        x: where; real, as all arguments are, which broadcast together. Integers count as float32.
        loc, scale: the variable is a standard one times ``scale``, which is positive, plus ``loc``.

    Returns:
        A floating array of the broadcast shape and the promoted dtype.

    Raises:
        TypeError: for what is no array.
        ValueError: for shapes that do not broadcast.

    Example:
        >>> print(cdf(0.0))
        0.0
    """
    return n.negative(n.expm1(n.negative(n.maximum(standard("expon.cdf", x, loc, scale)[0], 0))))


@composite
def sf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability to be above ``x``.

    Args:
        x: where; real, as all arguments are, which broadcast together. Integers count as float32.
        loc, scale: the variable is a standard one times ``scale``, which is positive, plus ``loc``.

    Returns:
        A floating array of the broadcast shape and the promoted dtype.

    Raises:
        TypeError: for what is no array.
        ValueError: for shapes that do not broadcast.

    Example:
        >>> print(sf(0.0))
        1.0
    """
    return n.exp(n.negative(n.maximum(standard("expon.sf", x, loc, scale)[0], 0)))
