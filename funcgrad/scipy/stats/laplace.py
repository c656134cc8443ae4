"""The Laplace distribution around ``loc``."""

from __future__ import annotations

import math
from typing import Any

from funcgrad.composite import composite
from funcgrad.numpy import elementwise as n
from funcgrad.scipy.stats.parts import standard


@composite
def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the density.

    Args:
        x: where; real, as all arguments are, which broadcast together. Integers count as float32.
        loc, scale: the variable is a standard one times ``scale``, which is positive, plus ``loc``.

    Returns:
        A floating array of the broadcast shape and the promoted dtype.

    Raises:
        TypeError: for what is no array.
        ValueError: for shapes that do not broadcast.

    Example:
        >>> print(logpdf(0.0).round(4))
        -0.6931
    """
    z, scale = standard("laplace.logpdf", x, loc, scale)
    return n.negative(n.add(n.abs(z), n.add(n.log(scale), math.log(2))))


@composite
def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density.

    Args:
        x: where; real, as all arguments are, which broadcast together. Integers count as float32.
        loc, scale: the variable is a standard one times ``scale``, which is positive, plus ``loc``.

    Returns:
        A floating array of the broadcast shape and the promoted dtype.

    Raises:
        TypeError: for what is no array.
        ValueError: for shapes that do not broadcast.

    Example:
        >>> print(pdf(0.0).round(4))
        0.5
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
        TypeError: for what is no array, or is complex.
        ValueError: for shapes that do not broadcast.

    Example:
        >>> print(cdf(0.0))
        0.5
    """
    z, _ = standard("laplace.cdf", x, loc, scale)
    tail = n.multiply(n.exp(n.negative(n.abs(z))), 0.5)
    return n.where(n.less(z, 0), tail, n.subtract(1, tail))


@composite
def sf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability to be above ``x``.

    Args:
        x: where; real, as all arguments are, which broadcast together. Integers count as float32.
        loc, scale: the variable is a standard one times ``scale``, which is positive, plus ``loc``.

    Returns:
        A floating array of the broadcast shape and the promoted dtype.

    Raises:
        TypeError: for what is no array, or is complex.
        ValueError: for shapes that do not broadcast.

    Example:
        >>> print(sf(0.0))
        0.5
    """
    return cdf(n.negative(standard("laplace.sf", x, loc, scale)[0]))
