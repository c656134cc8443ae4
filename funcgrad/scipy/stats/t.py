"""Student's t distribution with ``df`` degrees of freedom."""

from __future__ import annotations

import math
from typing import Any

from funcgrad import special
from funcgrad.composite import composite
from funcgrad.numpy import elementwise as n
from funcgrad.scipy.stats.parts import standard


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
        >>> print(logpdf(0.0, 1.0).round(4))
        -1.1447
    """
    z, scale, df = standard("t.logpdf", x, loc, scale, df)
    half, more = n.multiply(df, 0.5), n.multiply(n.add(df, 1), 0.5)
    constant = n.subtract(
        special.gammaln(more), n.add(special.gammaln(half), n.multiply(n.log(n.multiply(df, math.pi)), 0.5))
    )
    return n.subtract(n.subtract(constant, n.log(scale)), n.multiply(more, n.log1p(n.divide(n.square(z), df))))


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
        >>> print(pdf(0.0, 1.0).round(4))
        0.3183
    """
    return n.exp(logpdf(x, df, loc, scale))


@composite
def cdf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The probability to be below ``x``.

    Source: Abramowitz and Stegun, 26.7.1.

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
        >>> print(cdf(0.0, 1.0))
        0.5
    """
    z, _, df = standard("t.cdf", x, loc, scale, df)
    square = n.square(z)
    tail = n.multiply(special.betainc(n.multiply(df, 0.5), 0.5, n.divide(df, n.add(df, square))), 0.5)
    return n.where(n.less(z, 0), tail, n.subtract(1, tail))


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
        >>> print(sf(0.0, 1.0))
        0.5
    """
    z, _, df = standard("t.sf", x, loc, scale, df)
    return cdf(n.negative(z), df)


@composite
def logcdf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of ``cdf``.

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
        >>> print(logcdf(0.0, 1.0).round(4))
        -0.6931
    """
    return n.log(cdf(x, df, loc, scale))


@composite
def logsf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The logarithm of ``sf``.

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
        >>> print(logsf(0.0, 1.0).round(4))
        -0.6931
    """
    return n.log(sf(x, df, loc, scale))
