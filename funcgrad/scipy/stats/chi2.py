"""The chi-squared distribution with ``df`` degrees of freedom: that of a gamma variable of ``df / 2``, doubled."""

from __future__ import annotations

from typing import Any

from funcgrad.composite import composite
from funcgrad.numpy import elementwise as n
from funcgrad.scipy.stats import gamma


@composite
def logpdf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of the density.

    Args:
        x: where; real, as all arguments are, which broadcast together. Integers count as float32.
        df: the degrees of freedom, positive.
        loc, scale: the variable is a standard one times ``scale``, which is positive, plus ``loc``.

    Returns:
        A floating array of the broadcast shape and the promoted dtype.

    Raises:
        TypeError: for what is no array, or is complex.
        ValueError: for shapes that do not broadcast.

    Example:
        >>> print(logpdf(2.0, 2.0).round(4))
        -1.6931
    """
    return gamma.logpdf(x, n.divide(df, 2), loc, n.multiply(scale, 2))


@composite
def pdf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density.

    Args:
        x: where; real, as all arguments are, which broadcast together. Integers count as float32.
        df: the degrees of freedom, positive.
        loc, scale: the variable is a standard one times ``scale``, which is positive, plus ``loc``.

    Returns:
        A floating array of the broadcast shape and the promoted dtype.

    Raises:
        TypeError: for what is no array, or is complex.
        ValueError: for shapes that do not broadcast.

    Example:
        >>> print(pdf(0.0, 2.0))
        0.5
    """
    return n.exp(logpdf(x, df, loc, scale))


@composite
def cdf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability to be below ``x``.

    Args:
        x: where; real, as all arguments are, which broadcast together. Integers count as float32.
        df: the degrees of freedom, positive.
        loc, scale: the variable is a standard one times ``scale``, which is positive, plus ``loc``.

    Returns:
        A floating array of the broadcast shape and the promoted dtype.

    Raises:
        TypeError: for what is no array, or is complex.
        ValueError: for shapes that do not broadcast.

    Example:
        >>> print(cdf(0.0, 2.0))
        0.0
    """
    return gamma.cdf(x, n.divide(df, 2), loc, n.multiply(scale, 2))


@composite
def sf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability to be above ``x``.

    Args:
        x: where; real, as all arguments are, which broadcast together. Integers count as float32.
        df: the degrees of freedom, positive.
        loc, scale: the variable is a standard one times ``scale``, which is positive, plus ``loc``.

    Returns:
        A floating array of the broadcast shape and the promoted dtype.

    Raises:
        TypeError: for what is no array, or is complex.
        ValueError: for shapes that do not broadcast.

    Example:
        >>> print(sf(0.0, 2.0))
        1.0
    """
    return gamma.sf(x, n.divide(df, 2), loc, n.multiply(scale, 2))
